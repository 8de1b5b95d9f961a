"""What the documentation shows is run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.core.effects import Change, ChangesState, ReachesHost, ReadsPath, ReadsState, RunsCommand, WritesPath
from ferrule.host.web.backends import Brave
from ferrule.host.web.searching import WebSearches
from ferrule.testing import bare_context
from ferrule.tools import Services, builtin_tools
from tests.requirement import requirement

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)\)")
MODULE = re.compile(r"`([\w/]+\.py)`")
CODE = ("src", "tests", "examples", "benchmarks")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CARDS_TEST = "tests/tools/test_cards.py::test_the_cards_are_what_the_tools_say"


@pytest.mark.parametrize("index", range(2))
def test_the_programs_of_the_readme_run(tmp_path: Path, index: int) -> None:
    program = _python(ROOT / "README.md")[index]
    shutil.copy(ROOT / "README.md", tmp_path)

    done = _run(tmp_path, sys.executable, "-c", program)

    assert done.returncode == 0, done.stderr
    assert "ok" in done.stdout if index == 0 else re.search(r"Text\(text='\d+'\)", done.stdout)


def test_the_readme_has_no_other_programs_and_its_custom_tool_is_short() -> None:
    programs = _python(ROOT / "README.md")

    assert len(programs) == 2
    assert len([line for line in programs[1].splitlines() if line.strip()]) <= 20


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    shutil.copy(ROOT / "README.md", tmp_path)
    commands = re.findall(r"^\$ (ferrule (?:call|explain) .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)

    assert len(commands) == 2
    for command in commands:
        done = _run(tmp_path, "bash", "-c", command.replace("ferrule", f"{sys.executable} -m ferrule", 1))
        assert done.returncode == 0, done.stderr


def test_the_page_on_testing_is_a_test_that_passes(tmp_path: Path) -> None:
    (tmp_path / "test_page.py").write_text("\n".join(_python(ROOT / "docs" / "testing.md")))

    done = _pytest(tmp_path, "test_page.py")

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", ["models", "sdk", "sessions"])
def test_the_programs_of_a_page_run(tmp_path: Path, page: str) -> None:
    programs = _python(ROOT / "docs" / f"{page}.md")

    done = _run(tmp_path, sys.executable, "-W", "error", "-c", "\n\n".join(programs))

    assert programs
    assert done.returncode == 0, done.stderr


def test_parts_of_programs_can_be_put_into_one(tmp_path: Path) -> None:
    pages = [ROOT / "docs" / f"{page}.md" for page in ("hooks", "mcp", "mcp-server", "other-loops")]
    programs = [program for page in pages for program in _python(page)]

    done = _run(tmp_path, sys.executable, "-W", "error", "-c", "\n\n".join(programs))

    assert len(programs) >= len(pages)
    assert done.returncode == 0, done.stderr


def test_no_page_has_programs_that_are_not_run() -> None:
    run = {"hooks", "mcp", "mcp-server", "models", "other-loops", "sdk", "sessions", "testing"}

    assert {page.stem for page in (ROOT / "docs").rglob("*.md") if _python(page)} == run


@requirement("CON-14")
def test_adding_a_tool_is_three_files_as_contributing_says(tmp_path: Path) -> None:
    for name in ("src", "tests"):  # compiled modules too, which are good as long as times are
        shutil.copytree(ROOT / name, tmp_path / name)
    written = [(name, content) for _, name, content in _fences(ROOT / "CONTRIBUTING.md") if name]
    for name, content in written:
        (tmp_path / name).write_text(content)

    listed = _run(tmp_path, sys.executable, "-m", "ferrule", "tools")
    first = _pytest(tmp_path, "tests/tools/test_count_lines.py", "tests/tools/test_builtin_tools.py", CARDS_TEST)
    again = _pytest(tmp_path, CARDS_TEST)

    assert len(written) == 3
    assert re.search(r"^CountLines +Count the lines of a file without reading it\.$", listed.stdout, re.MULTILINE)
    assert re.findall(r"^FAILED (\S+)", first.stdout, re.MULTILINE) == [CARDS_TEST], first.stdout
    assert again.returncode == 0, again.stdout
    assert '"CountLines"' in (tmp_path / "src/ferrule/tools/cards.json").read_text()


@requirement("SCHED-7")
def test_the_table_of_effects_is_true(tmp_path: Path) -> None:
    rows = dict(re.findall(r"^\| (\w+) \| (.*?) \|", (ROOT / "docs/effects.md").read_text(), re.MULTILINE))
    samples = {
        "Agent": ({"description": "x", "prompt": "y"}, [], "nothing itself"),
        "Skill": ({"skill": "x"}, [], "nothing itself"),
        "AskUserQuestion": (
            {"questions": [{"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]},
            [],
            "nothing",
        ),
        "Bash": (
            {"command": "ls sub"},
            [RunsCommand(("ls", "sub"), "ls sub", accounted=True), ReadsPath(f"{tmp_path}/sub"), ReadsState("cwd")],
            "what its syntax tree says",
        ),
        "CallMcpTool": ({"tool": "x"}, [], "nothing by itself"),
        "ListMcpResources": ({}, [ReadsState("mcp")], "depends on the servers"),
        "ReadMcpResource": (
            {"server": "x", "uri": "file:///a"},
            [ReadsState("mcp:x"), ReadsPath("/a")],
            "reads the path of a `file:` URI",
        ),
        "KillShell": ({"shell_id": "x"}, [ChangesState("task x")], "changes the session's task"),
        "TaskOutput": ({"task_id": "x"}, [ChangesState("task x")], "changes the session's task"),
        "Edit": (
            {"file_path": "/a", "old_string": "x", "new_string": "y"},
            [WritesPath("/a", Change.REPLACES)],
            "replaces `file_path`",
        ),
        "EnterPlanMode": ({}, [ChangesState("mode")], "changes the session's mode"),
        "ExitPlanMode": (
            {"plan": "x"},
            [ChangesState("mode"), ChangesState("plan"), ChangesState("turn")],
            "changes the session's mode, plan and turn",
        ),
        "Glob": ({"pattern": "*"}, [ReadsPath(str(tmp_path))], "reads `path`"),
        "Grep": ({"pattern": "x", "path": "/a"}, [ReadsPath("/a")], "reads `path`"),
        "NotebookEdit": (
            {"notebook_path": "/a.ipynb"},
            [ReadsPath("/a.ipynb"), WritesPath("/a.ipynb", Change.REPLACES)],
            "reads and replaces `notebook_path`",
        ),
        "Read": ({"file_path": "/a"}, [ReadsPath("/a")], "reads `file_path`"),
        "TodoWrite": ({"todos": []}, [ChangesState("todos")], "changes the session's todos"),
        "ToolSearch": ({"query": "x"}, [ChangesState("found_tools")], "changes the session's found_tools"),
        "WebFetch": (
            {"url": "http://example.com/a"},
            [ReachesHost("example.com", sends=False)],
            "fetches from the host of `url`",
        ),
        "WebSearch": (
            {"query": "words"},
            [ReachesHost("api.search.brave.com", sends=False)],
            "fetches from the host of the search service",
        ),
        "Write": ({"file_path": "/a", "content": "x"}, [WritesPath("/a", Change.CREATES)], "creates `file_path`"),
    }

    services = Services(searches=WebSearches(backend=Brave("key")))
    tools = {tool.name: tool for tool in builtin_tools(services)}

    assert set(rows) - {"tool"} == set(samples)
    for name, (arguments, touches, words) in samples.items():
        tool = tools[name]
        assert list(tool.effects(tool.parse(arguments), bare_context(tmp_path)).touches) == touches
        assert words in rows[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_module_that_a_page_names_exists(page: Path) -> None:
    written_by_the_reader = {name for _, name, _ in _fences(page)}
    there = [f"/{path.relative_to(ROOT).as_posix()}" for folder in CODE for path in (ROOT / folder).rglob("*.py")]

    named = set(MODULE.findall(page.read_text())) - written_by_the_reader

    assert [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in there)] == []


def test_the_page_on_the_architecture_names_every_layer() -> None:
    (drawn,) = re.findall(
        r"^```\ncli (.*?)^```$", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE | re.DOTALL
    )
    named = {name for line in f"cli {drawn}".splitlines() for name in re.split("  +", line)[0].split(" · ")}

    assert named == {path.parent.name for path in (ROOT / "src/ferrule").glob("*/__init__.py")}


def test_every_decision_is_numbered_without_a_gap() -> None:
    numbers = [int(path.name[:4]) for path in sorted((ROOT / "docs" / "adr").glob("*.md"))]

    assert numbers == list(range(1, len(numbers) + 1))


def _fences(page: Path) -> list[tuple[str, str, str]]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


def _python(page: Path) -> list[str]:
    return [content for language, name, content in _fences(page) if language == "python" and not name]


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    paths = [str(folder / "src")] if (folder / "src").exists() else []
    own = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "xdg-state")}
    environment = {**os.environ, **own, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False
    )


def _pytest(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    return _run(folder, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *names)
