"""Where the work happens, in a few lines for the model. Taken once, when the session begins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

from .git_facts import GitFacts, git_facts

MOST_FILES: Final = 20


def environment(cwd: str, added: Sequence[str], today: date, *, with_git: bool = True) -> str:
    lines = _machine(cwd, added, today)
    return "\n".join((*lines, *_git(git_facts(cwd))) if with_git else lines)


def _machine(cwd: str, added: Sequence[str], today: date) -> Iterator[str]:
    system = os.uname()
    yield f"Working directory: {_on_one_line(cwd)}"
    for directory in added:
        yield f"Further directory: {_on_one_line(directory)}"
    yield f"Platform: {system.sysname} {system.release} ({system.machine})"
    yield f"Date: {today.isoformat()}"


def _git(git: GitFacts | None) -> Iterator[str]:
    if git is None:
        yield "Git: not a repository"
        return
    branch = _on_one_line(git.branch) if git.branch else "no branch is checked out"
    yield f"Git: {branch}, repository at {_on_one_line(git.root)}"
    if git.changed is not None:
        yield from _changes("Modified", git.changed.modified)
        yield from _changes("Deleted", git.changed.deleted)
        if not (git.changed.modified or git.changed.deleted):
            yield "No tracked file is modified."
    if git.commits:
        yield "Latest commits:"
        yield from (f"  {_on_one_line(commit)}" for commit in git.commits)


def _changes(word: str, paths: Sequence[str]) -> Iterator[str]:
    if paths:
        named = ", ".join(_on_one_line(path) for path in paths[:MOST_FILES])
        more = f" and {len(paths) - MOST_FILES:,} more" if len(paths) > MOST_FILES else ""
        yield f"{word} files: {named}{more}"


def _on_one_line(text: str) -> str:
    """Names come from the disk: on one line, whatever stands in them."""
    return "".join(char if char.isprintable() else "?" for char in text)
