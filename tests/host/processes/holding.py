"""A workspace with links of all kinds beside files that nobody may touch, and commands held to what they declared."""

from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.host.processes.command import Command
from ferrule.host.processes.sandbox import Profile, Sandbox
from tests.host.processes.shell import command, offers

LINKS = {"alias.py": "src/main.py", "folder": "src", "away": "../outside/canary.txt", "far": "../outside"}
TEXTS = ("src/main.py", "src/util.py", "src/deep/core.py", "docs/guide.md", "notes.txt", "out/bin/tool.o")


def furnish(base: Path) -> Path:
    """The workspace; `base / "outside"` is beside it."""
    workspace, outside = base / "work", base / "outside"
    for folder in ("src/deep", "docs", "hollow", "out/bin", ".git/hooks"):
        (workspace / folder).mkdir(parents=True)
    outside.mkdir()
    for name in TEXTS:
        (workspace / name).write_text(f"one of {name}\ntwo\nthree\n")
    (workspace / "table.json").write_text('{"z": 1, "a": [1, 2]}\n')
    (workspace / "start.sh").write_text("#!/bin/sh\necho started\n")
    (workspace / "start.sh").chmod(0o755)
    (workspace / ".git/config").write_text("[core]\n")
    (outside / "canary.txt").write_text("CANARY\n")
    (outside / "main.py").write_text("outside\n")
    os.link(outside / "canary.txt", workspace / "twin.txt")
    for name, target in LINKS.items():
        (workspace / name).symlink_to(target)
    return workspace


def snapshot(root: Path, *, exact: bool = False) -> dict[str, tuple[object, ...]]:
    """All below a folder: kind, mode and content; `exact` adds which file it is and when it was changed."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            info = path.lstat()
            content = _content(path, info)
            more = (info.st_ino, info.st_uid, 0 if stat.S_ISDIR(info.st_mode) else info.st_mtime_ns) if exact else ()
            found[str(path.relative_to(root))] = (info.st_mode, content, *more)
    return found


def _content(path: Path, info: os.stat_result) -> object:
    if stat.S_ISLNK(info.st_mode):
        return str(path.readlink())
    return path.read_bytes() if stat.S_ISREG(info.st_mode) else None


def supervised(text: str, workspace: Path, *names: str, trees: tuple[str, ...] = (), **variables: str) -> Command:
    """Held by the supervisor to these names, relative to the workspace, and to all below `trees`."""
    sandbox = held_sandbox(workspace, *names, trees=trees)
    return replace(command(text, workspace, **variables), jail=offers().jail(sandbox))


def held_sandbox(workspace: Path, *names: str, trees: tuple[str, ...] = ()) -> Sandbox:
    declared = [(str(workspace / name), False) for name in names] + [(str(workspace / name), True) for name in trees]
    return Sandbox(profile=Profile.READ_ONLY, declared=tuple(declared), keep="supervisor", workspace=(str(workspace),))


def need_supervisor() -> None:
    if not offers().supervisor:
        pytest.skip("; ".join(offers().trouble))


def run_unheld(text: str, workspace: Path, **variables: str) -> None:
    subprocess.run(
        ["bash", "-c", text],
        cwd=workspace,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
