from __future__ import annotations

import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from inline_snapshot import snapshot

import ferrule as package
from ferrule.cli.main import main
from ferrule.tools import builtin_tools
from tests.cli.running import FERRULE, HANG, environment, ferrule
from tests.requirement import requirement

OFF = {"Skill", "WebSearch", "CallMcpTool", "ListMcpResources", "ReadMcpResource"}
"""Without skills, a search service and a server."""
ROOM = 300
"""Bytes: more than the demo's first line, and less than all that it prints."""
OFFERED = [tool.name for tool in builtin_tools() if tool.name not in OFF]


@requirement("CLI-3")
def test_version_is_one_line(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "--version")

    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, f"ferrule {package.__version__}\n", b"")


@requirement("CLI-3")
def test_version_loads_nothing_but_itself(tmp_path: Path) -> None:
    loaded = _modules_after("from ferrule.cli.main import main; main(['--version'])")

    ours = {name for name in loaded if name.partition(".")[0] == "ferrule"}
    assert ours == {"ferrule", "ferrule._version", "ferrule.cli", "ferrule.cli.main"}
    assert not loaded & {"argparse", "asyncio", "json", "logging", "pydantic", "importlib.metadata"}


@requirement("CLI-3")
def test_help_loads_no_engine(tmp_path: Path) -> None:
    loaded = _modules_after(
        "import contextlib\nfrom ferrule.cli.main import main\nwith contextlib.suppress(SystemExit): main(['--help'])"
    )

    assert not loaded & {"asyncio", "pydantic", "ferrule.engine", "ferrule.core.tool"}


@requirement("CLI-3")
def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = _modules_after("import ferrule")

    assert not loaded & {"asyncio", "pydantic", "logging", "json", "ferrule.core", "ferrule.engine"}


def test_every_public_name_can_be_imported() -> None:
    assert [name for name in package.__all__ if getattr(package, name, None) is None] == []


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    assert not hasattr(package, "Manager")


@requirement("CLI-2")
def test_tools_are_listed_for_people(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "tools", env={"COLUMNS": "80"})

    assert done.returncode == 0
    assert done.stdout.decode() == snapshot("""\
Agent            Give a task to another agent, which works on it in its own
                 conversation and reports back once.
AskUserQuestion  Ask the person one to four questions, each with a few answers
                 to choose from.
Bash             Run a command in bash and get what it prints.
Edit             Replace text in a file. `old_string` must match the file
                 exactly and occur once.
EnterPlanMode    Start planning: from now on nothing is changed until a person
                 has approved your plan.
ExitPlanMode     Show your plan to the person and ask whether to carry it out.
Glob             Find files whose path matches a pattern, newest first.
Grep             Search the content of files with a regular expression, using
                 ripgrep.
KillShell        End a background command or agent and everything it started.
NotebookEdit     Replace, insert or delete a cell of a Jupyter notebook
                 (`.ipynb`).
Read             Read a file: text with line numbers, pictures, PDF documents,
                 or Jupyter notebooks.
TaskOutput       Show what a background command has printed since the last look
                 and whether it still runs, or the report of a background agent.
TodoWrite        Write the list of tasks for the work at hand, so that you and
                 the person see what is done and what is left.
ToolSearch       Load tools that you know by name only.
WebFetch         Fetch a page from the web by its URL and read it as Markdown.
Write            Write a whole file: create a new one, or replace an existing
                 one.
""")


@requirement("CLI-2")
def test_tools_are_listed_for_programs(tmp_path: Path) -> None:
    tools = json.loads(ferrule(tmp_path, "tools", "--json").stdout)

    assert [tool["name"] for tool in tools] == OFFERED
    assert {tool["name"]: tool["aliases"] for tool in tools}["Read"] == ["read_file", "FileRead"]
    assert {tool["name"]: tool["input_schema"].get("required") for tool in tools}["Read"] == ["file_path"]


@requirement("POOL-1")
def test_a_denied_tool_is_not_listed(tmp_path: Path) -> None:
    tools = json.loads(ferrule(tmp_path, "tools", "--json", "--deny", "Glob").stdout)

    assert [tool["name"] for tool in tools] == [name for name in OFFERED if name != "Glob"]


@requirement("CLI-2")
def test_the_demo_runs_to_its_end(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "demo", "--fast", env={"COLUMNS": "100"})

    shown = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert "\x1b" not in shown
    assert "passes after it. Nothing else was touched." in " ".join(shown.split())
    assert shown.count(" denied  ") == 1
    assert shown.count(" failed  ") == 2
    assert re.search(r"^12 calls, \d+ of them side by side with another, each with one result\.$", shown, re.MULTILINE)


def test_the_demo_fits_a_narrow_terminal(tmp_path: Path) -> None:
    shown = ferrule(tmp_path, "demo", "--fast", env={"COLUMNS": "48"}).stdout.decode()

    assert max(len(line) for line in shown.splitlines()) <= 48


def test_the_demo_has_colour_where_it_is_wanted(tmp_path: Path) -> None:
    shown = ferrule(tmp_path, "demo", "--fast", env={"FORCE_COLOR": "1"}).stdout.decode()

    assert "\x1b[32m█" in shown


def test_the_demo_does_with_ascii_where_it_must(tmp_path: Path) -> None:
    for width in ("40", "100"):
        plain = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "COLUMNS": width}

        done = subprocess.run(
            [*FERRULE, "demo", "--fast"],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env=environment(tmp_path, **plain),
        )

        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.isascii()


def test_an_interrupted_demo_says_so(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*FERRULE, "demo"], stdout=subprocess.PIPE, cwd=tmp_path, env=environment(tmp_path)
    ) as process:
        assert process.stdout is not None
        shown = iter(process.stdout.readline, b"")
        assert any(line.startswith("▸ ".encode()) for line in shown)

        process.send_signal(signal.SIGINT)

        assert list(shown)[-1] == b"Interrupted.\n"
        assert process.wait(60) == 130


def test_a_demo_whose_reader_goes_away_ends_quietly(tmp_path: Path) -> None:
    """The pipe has room for the beginning only, so it cannot have ended by itself, however slow its reader is."""
    reader, writer = os.pipe()
    filler = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096) - ROOM
    os.write(writer, b"x" * filler)

    with subprocess.Popen(
        [*FERRULE, "demo", "--fast"], stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, env=environment(tmp_path)
    ) as process:
        os.close(writer)
        while _waiting_in(reader) == filler and process.poll() is None:
            select.select([], [], [], 0.01)
        os.close(reader)

        assert process.stderr is not None
        assert (process.stderr.read(), process.wait(HANG)) == (b"", 141)


def _waiting_in(pipe: int) -> int:
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_no_word_at_a_terminal_shows_the_help_and_is_a_usage_error(tmp_path: Path) -> None:
    ours, terminal = os.openpty()
    try:
        done = subprocess.run(
            FERRULE, stdin=terminal, capture_output=True, env=environment(tmp_path), timeout=HANG, check=False
        )
    finally:
        os.close(ours)
        os.close(terminal)

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"usage: ferrule" in done.stderr


def test_no_word_and_an_empty_pipe_is_a_missing_prompt(tmp_path: Path) -> None:
    done = ferrule(tmp_path, env={"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"})

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"the prompt is missing" in done.stderr


def test_a_wrong_flag_is_a_usage_error(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "call", "--jsnl")

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--jsnl" in done.stderr


def _modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    return set(done.stderr.decode().split())


def test_the_demo_says_that_its_directory_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert main(["demo", "--fast"]) == 2
    assert "the working directory no longer exists" in capsys.readouterr().err
