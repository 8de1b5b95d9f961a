"""A worktree of a repository for one agent: made from the last commit, and removed only if nothing was done in it.

git is run without hooks, filters and whatever else the repository configures
to be run. A worktree with a commit, a change or a new file of any kind in it
stays, ignored files included.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from typing import Final

from ...core.values import named_value
from ..processes.child_environment import child_environment
from .checkouts import checkout_of
from .git_environment import CannotList, reading_environment

FOLDER: Final = ".claude/worktrees"
SECONDS: Final = 120.0


class NoWorktree(Exception):
    """There is none. The message says why, and what to do."""


@named_value
class Worktree:
    path: str
    branch: str
    base: str
    """The commit it was made from."""
    root: str
    """Of the checkout that it belongs to."""
    git: str
    environment: Mapping[str, str]

    async def finish(self) -> bool:
        """Remove it if nothing was done in it. False if it stays."""
        try:
            head = await self._run("rev-parse", "HEAD", at=self.path)
            changes = await self._run("status", "--porcelain", "--ignored", "--untracked-files=all", at=self.path)
            if head != self.base or changes:
                return False
            await self._run("worktree", "remove", self.path, at=self.root)
            await self._run("branch", "-d", self.branch, at=self.root)
        except NoWorktree:
            return not os.path.lexists(self.path)
        return True

    async def _run(self, *words: str, at: str) -> str:
        return await _run(self.git, self.environment, *words, at=at)


async def make_worktree(cwd: str, name: str) -> Worktree:
    """Of the checkout around a folder. Raises `NoWorktree`."""
    checkout = checkout_of(cwd)
    git = shutil.which("git")
    if checkout is None or git is None:
        why = "git is not installed" if checkout else f"{cwd} is not in a git repository"
        raise NoWorktree(f"An agent with `isolation: worktree` cannot be started: {why}. Leave the isolation out.")
    root = checkout.root
    path = os.path.join(root, FOLDER, name)
    above = os.path.dirname(path)
    if os.path.realpath(above) != above or os.path.lexists(path):
        why = "it exists" if os.path.lexists(path) else "a part of it is a link"
        raise NoWorktree(f"The worktree {path} cannot be made: {why}. Remove it, or leave the isolation out.")
    branch = f"worktree-{name}"
    try:
        environment = await reading_environment(child_environment(os.environ), root)
    except CannotList as error:
        raise NoWorktree(f"The worktree cannot be made: {error}") from None
    base = await _run(git, environment, "rev-parse", "HEAD", at=root)
    await _run(git, environment, "worktree", "add", "-b", branch, path, base, at=root)
    return Worktree(path=path, branch=branch, base=base, root=root, git=git, environment=environment)


async def _run(git: str, environment: Mapping[str, str], *words: str, at: str) -> str:
    process = await asyncio.create_subprocess_exec(
        git, "-C", at, *words, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(SECONDS):
            output, errors = await process.communicate()
    except TimeoutError:
        raise NoWorktree(f"`git {words[0]}` took longer than {SECONDS:g} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = " ".join(errors.decode("utf-8", "replace").split())[:300]
        raise NoWorktree(f"`git {' '.join(words[:2])}` failed: {said}")
    return output.decode("utf-8", "surrogateescape").strip()
