"""Being held costs nobody a question and no command its work."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import plain_text
from ferrule.permissions.modes import Mode
from tests.host.shell import need_sandbox
from tests.requirement import requirement

from . import guard
from .project import PLAIN, make_project, tree_of

HERE = Path(__file__).parent
EVERYDAY: dict[str, list[str]] = tomllib.loads((HERE / "everyday.toml").read_text(encoding="utf-8"))
CORPUS = HERE.parent / "corpus" / "bash.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
READING = [case["command"] for case in CASES if case["expect"] == "read_only" and case["layer"] == "command"]
CONTESTED = {case["command"] for case in CASES if case["contested"]}
ASKED_BEFORE = {"git ls-remote --help", 'ls "$HOME"', "man ls"}
"""At b624c0a."""
SAID_ABOUT = r"Exit code \d+\.$|\(no output\)$|It ran where|left out: "


@dataclass(frozen=True)
class Ended:
    status: Status
    text: str
    tree: Mapping[str, object]


async def _held(folder: Path, command: str, mode: Mode) -> Ended:
    """In a project of its own."""
    project = make_project(folder / "project")
    (folder / "home").mkdir()
    environment = {**PLAIN, "HOME": str(folder / "home")}
    settings = Settings(cwd=str(project), mode=mode, state_folder=folder / "state", environment=environment)
    async with open_session(settings) as session:
        (outcome,) = await session.run([ToolCall("1", "Bash", {"command": command, "timeout": 30_000})])
    return Ended(outcome.status, plain_text(outcome.content), tree_of(project))


def _plain(folder: Path, command: str) -> Mapping[str, object]:
    project = make_project(folder / "project")
    (folder / "home").mkdir()
    subprocess.run(
        ["bash", "-c", command],
        cwd=project,
        env={**PLAIN, "HOME": str(folder / "home"), "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=30,
    )
    return tree_of(project)


@requirement("HELD-20")
def test_sixty_everyday_commands_run_unasked_and_end_as_in_a_plain_shell(tmp_path: Path) -> None:
    need_sandbox()
    assert len(EVERYDAY["ran"]) >= 60
    wrong: dict[str, str] = {}
    for number, command in enumerate((*EVERYDAY["ran"], *EVERYDAY["asked"])):
        for name in ("held", "plain"):
            (tmp_path / f"{number}" / name).mkdir(parents=True)
        held = asyncio.run(_held(tmp_path / f"{number}/held", command, Mode.ACCEPT_EDITS))
        if held.status is Status.DENIED and command in EVERYDAY["asked"]:
            continue
        if held.status is not Status.OK or held.tree != _plain(tmp_path / f"{number}/plain", command):
            wrong[command] = held.text[:300]

    assert wrong == {}


# Reading


@requirement("HELD-20")
def test_the_reading_commands_of_the_corpus_run_unasked_and_say_what_a_plain_shell_says() -> None:
    """The plain shell is in a room where nothing but a throw-away folder can be written."""
    need_sandbox()
    with tempfile.TemporaryDirectory(prefix="ferrule-held-", dir="/var/tmp") as name:
        base = Path(name)
        project = _reading_project(base)
        held = asyncio.run(_read_held(base, project))
        plain = _read_plainly(base, project)

    unasked = [command for command, (status, _) in held.items() if status is not Status.DENIED]
    differing = {c: (held[c][1], plain[c]) for c in unasked if _shown(held[c][1]) != _shown(plain[c])}
    asked = set(READING) - set(unasked)
    assert asked <= ASKED_BEFORE
    assert len(asked - CONTESTED) <= 0.03 * len(set(READING) - CONTESTED)
    assert differing == {}


def _reading_project(base: Path) -> Path:
    (base / "home").mkdir()
    project = make_project(base / "project")
    for name in ("README.md", "Cargo.toml", "package.json", "app.log", "a.txt", "b.txt", "src/main.py"):
        (project / name).write_text("{}\n")
    return project


async def _read_held(base: Path, project: Path) -> dict[str, tuple[Status, str]]:
    environment = {**PLAIN, "HOME": f"{base}/home"}
    settings = Settings(cwd=str(project), state_folder=base / "state", environment=environment)
    said: dict[str, tuple[Status, str]] = {}
    async with open_session(settings) as session:
        for command in READING:
            (outcome,) = await session.run([ToolCall("1", "Bash", {"command": command, "timeout": 5_000})])
            said[command] = (outcome.status, plain_text(outcome.content))
            await session.run([ToolCall("2", "Bash", {"command": f"cd {project}"})])
    return said


PLAINLY = """
import json, subprocess, sys
said = {}
for command in json.load(sys.stdin):
    try:
        done = subprocess.run(["bash", "-c", command], cwd=sys.argv[1], stdin=subprocess.DEVNULL, timeout=5,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said[command] = done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        said[command] = "did not end"
print(json.dumps(said))
"""


def _read_plainly(base: Path, project: Path) -> dict[str, str]:
    command = guard.inside(base, [sys.executable, "-c", PLAINLY, str(project)])
    done = subprocess.run(
        command,
        input=json.dumps(READING),
        env={**PLAIN, "HOME": f"{base}/home", "TMPDIR": str(base)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        pytest.skip(f"no room to run them in: {done.stderr[-200:]}")
    said: dict[str, str] = json.loads(done.stdout)
    return said


def _shown(text: str) -> str:
    """Without what Ferrule says about it, and without numbers, which may be those of processes and of the hour."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not re.match(SAID_ABOUT, line)]
    return re.sub(r"\d+", "0", "\n".join(lines))
