"""What files, models and servers say, at a real terminal and in a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import tty
from pathlib import Path

import pytest

from tests.cli.prompting import script
from tests.cli.running import FERRULE, HANG, environment, ferrule
from tests.requirement import requirement

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[8mhidden\x9b1A\x7f\x08\r\u202eback"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OWN = re.compile("\x1b\\[[0-9;]*m")


def shown(folder: Path, *arguments: str) -> str:
    """All that a terminal gets of stdout and stderr, byte by byte."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    child = subprocess.Popen(
        [*FERRULE, *arguments],
        cwd=folder,
        env=environment(folder, TERM="xterm"),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 4096):
            said += chunk
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    child.wait(HANG)
    return said.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "evil.txt").write_text(EVIL, newline="")
    (tmp_path / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"evil": {"command": "run", "args": [f"--now={EVIL}"]}}})
    )
    return tmp_path


def cases(folder: Path) -> dict[str, tuple[str, ...]]:
    return {
        "a file": ("call", "Read", json.dumps({"file_path": "evil.txt"})),
        "a rule": ("explain", "Bash", json.dumps({"command": f"frobnicate '{EVIL}'"})),
        "a model": ("-p", "go", "--model", script(folder, {"text": f"Look: {EVIL}"})),
        "a server": ("mcp", "list"),
        "an error": ("call", "Read", json.dumps({"file_path": f"missing{EVIL}"})),
        "stderr": ("call", f"No{EVIL}", "{}"),
        "trust": ("trust", "--show"),
    }


@requirement("HELD-9")
@pytest.mark.parametrize("what", ["a file", "a rule", "a model", "a server", "an error", "stderr", "trust"])
def test_no_control_character_of_others_reaches_a_terminal(what: str, folder: Path) -> None:
    said = shown(folder, *cases(folder)[what])

    assert "owned" in said
    assert CONTROL.search(OWN.sub("", said)) is None, ascii(said)
    assert "\x1b[8m" not in said


@requirement("HELD-9")
def test_a_pipe_gets_every_byte(folder: Path) -> None:
    read, said = (ferrule(folder, *cases(folder)[what]) for what in ("a file", "a model"))

    assert said.stdout == f"Look: {EVIL}\n".encode()
    for piece in ("\x1b]0;owned\x07", "\x9b1A", "\u202eback"):
        assert piece.encode() in read.stdout


@requirement("HELD-9")
def test_our_own_colours_are_left(folder: Path) -> None:
    assert "\x1b[1mRead" in shown(folder, "tools")
