"""A repository with a secret in every place where git may keep one: what is denied is `vault`."""

from __future__ import annotations

import os
import subprocess
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.testing import Answering, allow
from tests.permissions.scene import rules_of

SECRET = "xyzzy-7f3a"
STAGED = "xyzzy-staged"
CHANGED = "xyzzy-changed"
SECRETS = (SECRET, STAGED, CHANGED)
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    **{f"GIT_{who}_{what}": "somebody@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout.strip()


def make_repository(folder: Path) -> None:
    """Packed and loose objects, a branch, tags, a stash, a note, an index that differs from all of these."""
    (folder / "vault").mkdir(parents=True)
    (folder / "src").mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "somebody")
    git(folder, "config", "user.email", "somebody@example.com")
    _commit(folder, "one", {"README.md": "open one\n", "src/app.py": "print(1)\n", "vault/key.txt": f"{SECRET}\n"})
    git(folder, "tag", "-a", "v1", "-m", "first")
    git(folder, "gc", "-q")
    _commit(folder, "only the vault", {"vault/key.txt": f"{SECRET}\nmore\n"})
    _commit(folder, "both", {"vault/key.txt": f"{SECRET} again\n", "README.md": "open two\n"})
    git(folder, "tag", "a-file", git(folder, "rev-parse", "HEAD:vault/key.txt"))
    git(folder, "branch", "other", "HEAD~1")
    (folder / "vault" / "key.txt").write_text(f"{SECRET} in a stash\n")
    git(folder, "stash", "-q")
    (folder / "vault" / "key.txt").write_text(f"{STAGED}\n")
    git(folder, "add", "vault")
    (folder / "vault" / "key.txt").write_text(f"{CHANGED}\n")
    (folder / "src" / "app.py").write_text("print(2)\n")


def _commit(folder: Path, message: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def opened(
    folder: Path, mode: Mode, *deny: str, says_yes: bool = False, allows: tuple[str, ...] = ()
) -> AbstractAsyncContextManager[Session]:
    """A session in the folder; whoever is asked says yes every time, or nobody is there."""
    settings = Settings(
        cwd=str(folder),
        rules=rules_of({"deny": list(deny), "allow": list(allows)}),
        mode=mode,
        state_folder=folder.parent / "state",
    )
    return open_session(settings, approver=Answering(allow())) if says_yes else open_session(settings)


async def said(session: Session, command: str) -> str:
    (outcome,) = await session.run([ToolCall(command, "Bash", {"command": command})])
    return plain_text(outcome.content)
