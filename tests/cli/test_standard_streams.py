"""Standard streams that are closed, full or gone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Literal

import pytest

from tests.cli.forked import run_forked
from tests.cli.prompting import call, script
from tests.cli.running import FERRULE, HANG, environment
from tests.requirement import requirement

TURNS = ({"calls": [call("Bash", command="touch made")]}, {"text": "The answer."})
ANY_ONE = '{"id": 1, "tool": "Bash", "input": {"command": "echo out; echo err >&2"}}'
BYPASS = "--dangerously-skip-permissions"
"""Has something to say on stderr when it is root that asks for it."""


def run(
    folder: Path, *arguments: str, closed: tuple[int, ...] = (), stderr: int | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[bytes]:
    return run_forked(
        arguments,
        stdin=stdin.encode(),
        cwd=str(folder),
        env=environment(folder),
        timeout=HANG,
        closed=closed,
        stderr=stderr,
    )


@contextmanager
def unwritable(kind: Literal["full", "pipe"]) -> Generator[int]:
    """A full disk, or a pipe whose reader is gone."""
    if kind == "full":
        descriptor = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, descriptor = os.pipe()
        os.close(reader)
    yield descriptor
    os.close(descriptor)


@requirement("FAULT-1")
@pytest.mark.parametrize("kind", ["full", "pipe"])
def test_a_stderr_that_takes_nothing_costs_words_and_not_the_answer(
    kind: Literal["full", "pipe"], tmp_path: Path
) -> None:
    model = script(tmp_path, *TURNS)
    answered = {
        ("-p", "go", "--deny", "Bash"): (3, b"The answer.\n"),
        ("-p", "go", "--verbose", BYPASS): (0, b"The answer.\n"),
    }
    for arguments, expected in answered.items():
        with unwritable(kind) as stderr:
            done = run(tmp_path, *arguments, "--model", model, stderr=stderr)

        assert (done.returncode, done.stdout) == expected
    with unwritable(kind) as stderr:
        assert run(tmp_path, "call", "Bash", '{"command": "echo hi"}', BYPASS, stderr=stderr).stdout == b"hi\n"
    with unwritable(kind) as stderr:
        assert run(tmp_path, "--no-such-flag", stderr=stderr).returncode == 2


CLOSED = [numbers for count in (1, 2, 3) for numbers in combinations((0, 1, 2), count)]


@requirement("FAULT-1")
@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_whatever_is_closed_stdout_has_the_result_and_nothing_else(closed: tuple[int, ...], tmp_path: Path) -> None:
    shows = 1 not in closed
    arguments = '{"command": "echo out"}'

    called = run(tmp_path, "call", "Bash", arguments, BYPASS, closed=closed)
    asked = run(tmp_path, "-p", "go", BYPASS, "--model", script(tmp_path, *TURNS), closed=closed)
    explained = run(tmp_path, "explain", "Bash", '{"command": "ls"}', "--json", BYPASS, closed=closed)

    assert (called.returncode, called.stdout) == ((0, b"out\n") if shows else (2, b""))
    assert (asked.returncode, asked.stdout) == ((0, b"The answer.\n") if shows else (2, b""))
    assert explained.returncode == (0 if shows else 2)
    assert not shows or json.loads(explained.stdout)["decision"]
    assert (tmp_path / "made").exists() is shows
    if 2 not in closed and not shows:
        assert called.stderr.endswith(b"stdout is closed, so the result cannot be written.\n")


@requirement("FAULT-1")
@pytest.mark.parametrize("closed", [(2,), (0, 2)], ids=str)
def test_lines_of_json_stay_lines_of_json_without_a_stderr(closed: tuple[int, ...], tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    readers = 0 not in closed
    streams = ("--output-format", "stream-json", "--model", script(tmp_path, *TURNS))
    commands: dict[tuple[str, ...], str] = {
        ("call", "--jsonl", BYPASS): ANY_ONE,
        ("explain", "--jsonl", BYPASS): ANY_ONE,
        ("serve", BYPASS): json.dumps(opening),
    }
    for command, stdin in commands.items():
        done = run(tmp_path, *command, closed=closed, stdin=stdin)

        assert done.returncode == (0 if readers else 2)
        assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1] * readers
    done = run(tmp_path, "-p", "go", BYPASS, *streams, closed=closed)
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()][-1] == "result"


@requirement("FAULT-1")
def test_a_process_that_starts_without_a_stderr_says_nothing_of_it_on_stdout(tmp_path: Path) -> None:
    command = f"{' '.join(FERRULE)} call --jsonl {BYPASS} 2>&-"

    done = subprocess.run(
        ["bash", "-c", command],
        input=ANY_ONE.encode(),
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=HANG,
        check=True,
    )

    (answer,) = map(json.loads, done.stdout.splitlines())
    assert answer["content"] == [{"type": "text", "text": "out\nerr"}]


@requirement("FAULT-1")
@pytest.mark.parametrize("command", ["tools", "sessions", "doctor"])
def test_a_command_that_only_prints_says_that_it_cannot(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{' '.join(FERRULE)} {command} --json >/dev/full"],
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=HANG,
        check=False,
    )

    expected = f"ferrule {command}: the result cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr.decode()) == (1, expected)
    assert run(tmp_path, command, closed=(1,)).returncode == 2
