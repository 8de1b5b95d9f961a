"""What the tests of held commands share: a workspace beside canaries, and ways to look at both."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.host.processes.command import Command
from ferrule.host.processes.sandbox import Profile, Sandbox
from tests.host.processes.shell import command, offers

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/proc", "/sys")
TARGET = "src/x.py"
SECRET = "hush-hush"


def furnish(base: Path) -> Path:
    """A workspace `ws` with links of all kinds, beside a folder `outside` that nobody may touch or read."""
    ws, outside = base / "ws", base / "outside"
    for folder in ("src/pkg", "docs", "empty", ".git/hooks", "build/out"):
        (ws / folder).mkdir(parents=True)
    outside.mkdir()
    for name in ("src/x.py", "src/y.py", "src/pkg/__init__.py", "docs/a.md", "notes.txt", "build/out/o.bin"):
        (ws / name).write_text(f"alpha of {name}\nbeta\n")
    (ws / "data.json").write_text('{"b": 1, "a": [1,2]}\n')
    (ws / "run.sh").write_text("#!/bin/sh\necho run\n")
    (ws / "run.sh").chmod(0o755)
    (ws / ".git/config").write_text("[core]\n")
    (outside / "secret.txt").write_text(SECRET)
    (outside / "x.py").write_text("outside x\n")
    (outside / "twin.txt").write_text("twin\n")
    os.link(outside / "twin.txt", ws / "hard.txt")
    links = {"link.py": "src/x.py", "dirlink": "src", "outlink": "../outside/secret.txt", "outdir": "../outside"}
    for name, to in links.items():
        (ws / name).symlink_to(to)
    return ws


def seen(root: Path, *, exact: bool = False) -> dict[str, tuple[object, ...]]:
    """All below a folder: kind, mode, owner and contents; with `exact` also which file it is, and when it changed."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            about = path.lstat()
            kind = stat.S_IFMT(about.st_mode)
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if stat.S_ISREG(kind) else b""
            more = (about.st_ino, about.st_ctime_ns if kind == stat.S_IFREG else 0) if exact else ()
            found[str(path.relative_to(root))] = (kind, about.st_mode & 0o7777, content, about.st_uid, *more)
    return found


def held(
    text: str,
    ws: Path,
    names: Iterable[str] = (),
    trees: Iterable[str] = (),
    *,
    root: Path | None = None,
    hidden: Iterable[Path] = (),
    **env: str,
) -> Command:
    """The command, held to these names below the workspace, and to reading what most need."""
    declared = (*((str(ws / name), False) for name in names), *((str(ws / name), True) for name in trees))
    sandbox = Sandbox(
        profile=Profile.WORKSPACE_WRITE,
        readable=(*SYSTEM, str(ws)),
        hidden=tuple(map(str, hidden)),
        declared=declared,
        keep="overlay",
        workspace=(str(root or ws),),
    )
    return replace(command(text, ws, **env), jail=offers().jail(sandbox))


def reading(text: str, ws: Path, *hidden: Path, **env: str) -> Command:
    """The command, held to reading."""
    sandbox = Sandbox(
        profile=Profile.READ_ONLY, readable=(*SYSTEM, str(ws)), hidden=tuple(map(str, hidden)), declared=()
    )
    return replace(command(text, ws, **env), jail=offers().jail(sandbox))


def need_layers() -> None:
    if not offers().mounts or not offers().reads:
        pytest.skip("; ".join(offers().trouble) or "Landlock is too old here")
