"""Laws of the house that a machine can check. The lists of exceptions only shrink."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "ferrule").rglob("*.py"))

BROAD_CATCHES = {
    "cli/commands/explain.py": "a line that breaks the analysis costs its own answer and no other",
    "engine/bus.py": "a listener is somebody else's code",
    "engine/executor.py": "the task's exit, where nothing should arrive",
    "engine/faults.py": "drawing an error, or its own text, must not hide it",
    "engine/judging.py": "a judge that fails has said no",
    "engine/pipeline.py": "the pipeline's exit; a step after the call is somebody else's code",
    "engine/pool.py": "a tool that cannot say whether it is available is off",
    "engine/preparing.py": "a statement of effects that fails is the worst one",
    "engine/session.py": "the turn's exit",
    "hooks/loading.py": "importing a function runs somebody else's code",
    "hooks/worker.py": "a function that is a hook is somebody else's code",
    "permissions/matching.py": "a tool that reads its own specifiers is somebody else's code",
    "compat/claude_agent_sdk/client.py": "a callback for lines of the log is somebody else's code",
    "sdk/mirroring.py": "a store of transcripts is somebody else's code",
    "host/spawner/supervisor.py": "a call that gets no answer waits for ever, so a fault of ours costs that call alone",
    "mcp/connection.py": "whatever the protocol's package raises for a server is that server's trouble alone",
}

LATE_IMPORTS = {
    "__init__.py",
    "cli",
    "app",
    "testing/plugin.py",
    "host/http/tls.py",  # certificates take longer to load than a start may last, and http needs none
    "host/front_matter.py",  # YAML takes longer to load than most sessions without such files take to start
    "host/images.py",  # Pillow takes longer to load than most files take to read
    "host/covering.py",  # the same
    "host/writing.py",  # ctypes is loaded by the first file that is replaced
    "permissions/paths.py",  # pathspec takes 40 ms to load, and few sessions have a path rule
    "host/web/fetching.py",  # h11 is loaded by the first fetch
    "providers/catalog.py",  # one kind of model is asked for, and the others are not loaded
    "mcp/late.py",  # the protocol's package and the checks of JSON Schemas take seconds
    "core/json_text.py",  # pydantic takes longer to load than a start may last, so the first call loads it
    "core/tool.py",  # the same
    "output/projection.py",  # the same
    "tools/__init__.py",  # the same
    "settings/loading.py",  # the models of settings take 100 ms to build, and most folders have no settings
    "host/text.py",  # detection for the few files that are not UTF-8 takes longer to load than they do to read
}


def test_there_are_sources_to_check() -> None:
    assert len(SOURCES) > 40


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT / "src").as_posix())
def test_a_module_keeps_the_laws(path: Path) -> None:
    tree = _tree(path)

    assert list(_broken_laws(path, tree)) == []


def test_every_broad_catch_on_the_list_is_still_there() -> None:
    catching = {_name(path) for path in SOURCES if any(_broad_catches(_tree(path)))}

    assert catching == set(BROAD_CATCHES)


def test_every_module_says_what_it_is_for() -> None:
    silent = [_name(path) for path in SOURCES if path.name != "_version.py" and not ast.get_docstring(_tree(path))]

    assert silent == []


def test_no_tool_module_is_missing_from_the_independence_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (independent,) = [contract["modules"] for contract in contracts if contract["type"] == "independence"]

    tools = [path.stem for path in (ROOT / "src/ferrule/tools").glob("*.py") if not path.stem.startswith("__")]

    assert sorted(independent) == sorted(f"ferrule.tools.{name}" for name in tools)


def test_every_layer_stands_in_the_layer_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]

    folders = {f"ferrule.{path.parent.name}" for path in (ROOT / "src/ferrule").glob("*/__init__.py")}

    assert {layer.strip(" ()") for line in layers for layer in line.split("|")} >= folders


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _contract(kind: str) -> dict[str, list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == kind]
    return contract


def _broken_laws(path: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield f"line {node.lineno}: {type(node).__name__.lower()} {', '.join(node.names)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ContextVar":
            yield f"line {node.lineno}: a ContextVar is a hidden parameter"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _may_import_late(path):
            late = [inner for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom)]
            yield from (f"line {inner.lineno}: an import inside a function" for inner in late)
        if isinstance(node, ast.ClassDef) and re.search(r"(Manager|Helper|Utils?|Impl|Handler)$", node.name):
            yield f"line {node.lineno}: {node.name} does not say what it is"
    if re.search(r"util|helper|manager|misc|common", path.stem):
        yield f"{path.name} does not say what it is"
    if any(_broad_catches(tree)) and _name(path) not in BROAD_CATCHES:
        yield "catches everything, and is not on the list of boundaries"
    yield from (f"line {line}: {name} is mutable and lives in the module" for name, line in _mutated_globals(tree))


def _broad_catches(tree: ast.Module) -> Iterator[ast.ExceptHandler]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and (
            node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
        ):
            yield node


def _mutated_globals(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Module-level lists, dicts and sets that code in the same module changes."""
    held = {
        target.id: node.lineno
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.List | ast.Dict | ast.Set)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    changing = {"append", "add", "update", "pop", "clear", "extend", "insert", "remove", "setdefault", "discard"}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in changing and name in held:
                yield name, held[name]
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name in held:
                yield name, held[name]
            case _:
                pass


def _may_import_late(path: Path) -> bool:
    name = _name(path)
    return name in LATE_IMPORTS or name.partition("/")[0] in LATE_IMPORTS


def _name(path: Path) -> str:
    return path.relative_to(ROOT / "src" / "ferrule").as_posix()
