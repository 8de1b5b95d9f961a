"""A small project to work on, and all that can be seen of it."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

PLAIN = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b")


def make_project(folder: Path) -> Path:
    for name in ("src/pkg", "docs", "empty", "build/out", "empty2/nested"):
        (folder / name).mkdir(parents=True)
    for name in (
        "src/x.py",
        "src/y.py",
        "src/pkg/__init__.py",
        "docs/a.md",
        "docs/b.md",
        "notes.txt",
        "build/out/o.bin",
    ):
        (folder / name).write_text(f"alpha of {name}\nbeta\ngamma\n")
    (folder / "data.json").write_text('{"b": 1, "a": [1, 2]}\n')
    (folder / "run.sh").write_text("#!/bin/sh\necho run\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "change.diff").write_text(
        "--- docs/a.md\n+++ docs/a.md\n@@ -1,3 +1,3 @@\n-alpha of docs/a.md\n+omega of docs/a.md\n beta\n gamma\n"
    )
    (folder / "link.py").symlink_to("src/x.py")
    (folder / "dirlink").symlink_to("src")
    for words in (("init", "-q", "--template=", "-b", "main"), ("add", "."), ("commit", "-qm", "first words")):
        stamp = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
        subprocess.run([*GIT, *words], cwd=folder, env={**PLAIN, **stamp, "HOME": str(folder.parent)}, check=True)
    return folder


def tree_of(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Names, kinds, modes and contents; times are those of the run, and git's index holds such."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(at, name)
            mode = path.lstat().st_mode
            content = os.readlink(path) if stat.S_ISLNK(mode) else path.read_bytes() if stat.S_ISREG(mode) else b""
            found[str(path.relative_to(folder))] = (mode, content)
    found.pop(".git/index", None)
    return found
