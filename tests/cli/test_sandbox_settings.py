"""The `sandbox` of a settings file, by commands that really run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import ferrule
from tests.requirement import requirement


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    (workspace / ".git").mkdir(parents=True)
    (workspace / "key.txt").write_text("xyzzy\n")
    return workspace


def ran(folder: Path, command: str, *flags: str, disable: bool = False, **sandbox: Any) -> tuple[int, str]:
    settings = json.dumps({"sandbox": {"enabled": True, **sandbox}})
    call = json.dumps({"command": command, **({"dangerouslyDisableSandbox": True} if disable else {})})
    done = ferrule(folder, "call", "Bash", call, "--settings", settings, *flags)
    return done.returncode, (done.stdout + done.stderr).decode()


def writes(path: str) -> str:
    return f'python3 -c \'open("{path}", "w").write("x")\''


@requirement("BOX-3")
def test_a_program_runs_unasked_and_writes_the_workspace_alone(folder: Path) -> None:
    inside, _ = ran(folder, writes("made.txt"))
    outside, said = ran(folder, writes("../made.txt"))
    protected, _ = ran(folder, writes(".git/config"))

    assert (inside, (folder / "made.txt").exists()) == (0, True)
    assert (outside, (folder.parent / "made.txt").exists()) == (1, False)
    assert "Read-only file system" in said or "Permission denied" in said
    assert (protected, (folder / ".git" / "config").exists()) == (1, False)


@requirement("BOX-3")
def test_it_reaches_nobody(folder: Path) -> None:
    program = 'import socket; socket.create_connection(("127.0.0.1", 9), 1)'

    code, said = ran(folder, f"python3 -c '{program}'")

    assert code == 1
    assert "refused" not in said.lower()


def test_what_the_settings_add_may_be_written_and_what_they_deny_cannot_be_read(folder: Path) -> None:
    (folder.parent / "more").mkdir()
    files = {"allowWrite": [str(folder.parent / "more")], "denyRead": ["./key.txt"]}

    shows = "python3 -c 'print(open(\"key.txt\").read())'"

    _, said = ran(folder, f"{writes('../more/made.txt')}; {shows}", filesystem=files)

    assert (folder.parent / "more" / "made.txt").exists()
    assert "xyzzy" not in said


def test_leaving_it_is_a_question_and_can_be_ruled_out(folder: Path) -> None:
    asked, _ = ran(folder, writes("made.txt"), disable=True)
    bypassing = ("--permission-mode", "bypassPermissions")
    granted, _ = ran(folder, writes("made.txt"), *bypassing, disable=True)
    never, said = ran(folder, writes("other.txt"), *bypassing, disable=True, allowUnsandboxedCommands=False)

    assert (asked, granted, never) == (1, 0, 1)
    assert "do not allow commands outside of the sandbox" in said


def test_where_it_does_not_answer_the_question_is_still_asked(folder: Path) -> None:
    code, said = ran(folder, writes("made.txt"), autoAllowBashIfSandboxed=False)
    denied, _ = ran(folder, writes("made.txt"), "--deny", "Bash(python3 *)")

    assert (code, denied) == (1, 1)
    assert "needs a person's approval" in said
    assert not (folder / "made.txt").exists()


def test_a_command_that_it_is_not_for_runs_as_without_it(folder: Path) -> None:
    code, said = ran(folder, writes("../made.txt"), excludedCommands=["python3"])

    assert code == 1
    assert "needs a person's approval" in said


@requirement("HELD-12")
def test_what_the_settings_add_is_read_by_a_held_command_without_a_sandbox_being_enabled(folder: Path) -> None:
    (folder.parent / "data").mkdir()
    (folder.parent / "data" / "x").write_text("found\n")
    call = json.dumps({"command": "python3 -c 'print(open(\"../data/x\").read())'"})
    more = json.dumps({"sandbox": {"filesystem": {"allowRead": ["../data"]}}})

    without, given = (
        ferrule(folder, "call", "Bash", call, "--permission-mode", "plan", *flags)
        for flags in ((), ("--settings", more))
    )

    assert b"found" not in without.stdout
    assert b"found" in given.stdout, given.stdout + given.stderr
