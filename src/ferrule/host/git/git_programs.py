"""Whether git would start other programs while it changes a repository: hooks, filters, drivers, signatures.

Only git's own words are read, and listing its configuration runs nothing. What
the user's own files configure is included: they are files like any other.
"""

from __future__ import annotations

import asyncio
import os
import re
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Mapping
from typing import Final

from .git_places import Repository, find_repository

_PROGRAMS: Final = re.compile(
    r"filter\..+\.(clean|smudge|process)|core\.(fsmonitor|alternaterefscommand)|merge\..+\.driver"
    r"|diff\.(external|.+\.(command|textconv))|gpg\..*program|gpg\.ssh\.defaultkeycommand|trailer\..+\.(command|cmd)"
    r"|lfs\.extension\..+",
    re.DOTALL,
)
_HARMLESS: Final = re.compile(r"(true|false|yes|no|on|off|0|1|git-lfs (clean|smudge|filter-process).*|)", re.DOTALL)
_STARTING: Final = re.compile(r"(commit|tag|push)\.gpgsign|submodule\.recurse")
"""What starts a program, or goes on in other repositories, unless it is off."""
_OFF: Final = frozenset({"false", "no", "off", "0"})


async def starts_programs(repository: Repository, git: str, environment: Mapping[str, str]) -> bool:
    """In the repository or in one that is checked out inside of it. Where that is not known, the answer is yes."""
    staged = await git_output((git, "-C", repository.root, "ls-files", "--stage", "-z"), environment)
    if staged is None:
        return True
    links = (os.path.join(repository.root, path) for path in _links(os.fsdecode(staged)))
    inside = [found for path in links if (found := find_repository(path)) is not None]
    for each in (repository, *inside):
        if await _starts(each, git, environment):
            return True
    return False


async def git_output(command: tuple[str, ...], environment: Mapping[str, str], cwd: str | None = None) -> bytes | None:
    """What git prints; `None` where it fails."""
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd=cwd, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output if process.returncode == 0 else None


def _links(staged: str) -> Iterator[str]:
    """The paths of an index at which other repositories are checked out."""
    for entry in staged.split("\0"):
        head, _, path = entry.partition("\t")
        if head.startswith("160000 "):
            yield path


async def _starts(repository: Repository, git: str, environment: Mapping[str, str]) -> bool:
    listed = await git_output((git, "-C", repository.root, "config", "--list", "-z"), environment)
    if listed is None:
        return True
    hooks = [os.path.join(repository.common, "hooks")]
    for entry in os.fsdecode(listed).split("\0"):
        key, _, value = entry.partition("\n")
        lowered = key.lower()
        if lowered == "core.hookspath":
            hooks.append(os.path.join(repository.root, os.path.expanduser(value)))
        elif _is_started(lowered, value):
            return True
    return any(map(_holds_hooks, hooks))


def _is_started(key: str, value: str) -> bool:
    if _STARTING.fullmatch(key):
        return value.lower() not in _OFF
    return _PROGRAMS.fullmatch(key) is not None and _HARMLESS.fullmatch(value) is None


def _holds_hooks(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(not entry.name.endswith(".sample") and os.access(entry.path, os.X_OK) for entry in entries)
    except OSError:
        return False
