"""Laws of the house that a machine can check. The lists of exceptions only shrink."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "ferrule").rglob("*.py"))

BROAD_CATCHES = {
    "cli/commands/explain.py": "a line that breaks the analysis costs its own answer and no other",
    "engine/bus.py": "a listener is somebody else's code",
    "engine/executor.py": "the task's exit, where nothing should arrive",
    "engine/error_outcomes.py": "drawing an error, or its own text, must not hide it",
    "engine/judging.py": "a judge that fails has said no",
    "engine/pipeline.py": "the pipeline's exit; a step after the call is somebody else's code",
    "engine/pool.py": "a tool that cannot say whether it is available is off",
    "engine/preparing.py": "a statement of effects that fails is the worst one",
    "engine/session.py": "the turn's exit",
    "hooks/hook_loading.py": "importing a function runs somebody else's code",
    "hooks/worker.py": "a function that is a hook is somebody else's code",
    "permissions/rule_matching.py": "a tool that reads its own specifiers is somebody else's code",
    "compat/claude_agent_sdk/client.py": "a callback for lines of the log is somebody else's code",
    "sdk/mirroring.py": "a store of transcripts is somebody else's code",
    "host/processes/spawner/supervisor.py": "an unanswered call waits for ever: a fault costs that call alone",
    "mcp/server_connection.py": "whatever the protocol's package raises for a server is that server's trouble alone",
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


@cache
def _late_importers() -> tuple[str, ...]:
    """The patterns of `pyproject.toml`: the only list of modules that may import inside functions."""
    ignores = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    patterns = (pattern for pattern, rules in ignores["per-file-ignores"].items() if "PLC0415" in rules)
    return tuple(pattern.removeprefix("src/ferrule/") for pattern in patterns if pattern.startswith("src/ferrule/"))


def _may_import_late(path: Path) -> bool:
    return any(fnmatch(_name(path), pattern.replace("**", "*")) for pattern in _late_importers())


def _name(path: Path) -> str:
    return path.relative_to(ROOT / "src" / "ferrule").as_posix()
