"""Being held costs nobody a question and no command its work."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import plain_text
from ferrule.permissions.modes import Mode
from tests.host.processes.shell import need_sandbox
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
STILL_RUNNING = "Still running: "
SAID_ABOUT = rf"Exit code \d+\.$|\(no output\)$|It ran where|left out: |{STILL_RUNNING}"
SIDE_BY_SIDE = {"ls & cat file"}
"""Two programs that write to one pipe, of which the shell waits for one: what the other prints late is lost."""


@requirement("HELD-1")
async def test_sixty_everyday_commands_run_unasked_and_end_as_in_a_plain_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_sandbox()
    assert len(EVERYDAY["ran"]) >= 60
    model = make_project(tmp_path / "model")
    held, plain = tmp_path / "held", tmp_path / "plain"
    for folder in (held, plain, tmp_path / "home"):
        folder.mkdir()
    for name, value in {**PLAIN, "HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)

    wrong: dict[str, str] = {}
    settings = Settings(cwd=str(held), mode=Mode.ACCEPT_EDITS, state_folder=tmp_path / "state")
    async with open_session(settings) as session:
        for command in (*EVERYDAY["ran"], *EVERYDAY["asked"]):
            _refill(held, model)
            (outcome,) = await session.run([ToolCall("1", "Bash", {"command": command, "timeout": 30_000})])
            if outcome.status is Status.DENIED and command in EVERYDAY["asked"]:
                continue
            _refill(plain, model)
            await asyncio.to_thread(_run_plainly, command, plain)
            if outcome.status is not Status.OK or tree_of(held) != tree_of(plain):
                wrong[command] = plain_text(outcome.content)[:300]
            await session.run([ToolCall("2", "Bash", {"command": f"cd {held}"})])

    assert wrong == {}


def _refill(folder: Path, model: Path) -> None:
    """All that is in it made anew; the folder itself stays."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    shutil.copytree(model, folder, symlinks=True, dirs_exist_ok=True)


def _run_plainly(command: str, folder: Path) -> None:
    subprocess.run(
        ["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30
    )


# Reading


@requirement("HELD-1")
def test_the_reading_commands_of_the_corpus_run_unasked_and_say_what_a_plain_shell_says() -> None:
    """The plain shell is in a room where nothing but a throw-away folder can be written."""
    need_sandbox()
    with tempfile.TemporaryDirectory(prefix="ferrule-held-", dir="/var/tmp") as name:
        base = Path(name)
        project = _reading_project(base)
        held = asyncio.run(_read_held(base, project))
        plain = _read_plainly(base, project)

    unasked = [command for command, (status, _) in held.items() if status is not Status.DENIED]
    there = [c for c in unasked if "rg: command not found" not in plain[c]]  # Ferrule has a ripgrep of its own
    differing = {c: (held[c][1], plain[c]) for c in there if not _says_the_same(c, held[c][1], plain[c])}
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
            (outcome,) = await session.run([ToolCall("1", "Bash", {"command": command, "timeout": 30_000})])
            said[command] = (outcome.status, plain_text(outcome.content))
            await session.run([ToolCall("2", "Bash", {"command": f"cd {project}"})])
    return said


PLAINLY = """
import json, subprocess, sys
said = {}
for command in json.load(sys.stdin):
    try:
        done = subprocess.run(["bash", "-c", command], cwd=sys.argv[1], stdin=subprocess.DEVNULL, timeout=30,
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


def _says_the_same(command: str, held: str, plain: str) -> bool:
    if command not in SIDE_BY_SIDE:
        return STILL_RUNNING not in held and _shown(held) == _shown(plain)
    some, all_words = (Counter(_shown(text).split()) for text in (held, plain))
    return some <= all_words if STILL_RUNNING in held else some == all_words


def _shown(text: str) -> str:
    """Its lines in any order, as of two programs at once, without what Ferrule says about it and without numbers."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not re.match(SAID_ABOUT, line)]
    return re.sub(r"\d+", "0", "\n".join(sorted(lines)))
