"""Instructions of folders below the workspace, and rules for some files, included when a file there is touched."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

from ..core.calls import ToolOutcome
from ..core.ports import Amendment, Proposal
from ..core.threads import in_a_thread
from ..host.search.globs import BadGlob, compile_glob
from ..settings.levels import Level
from .instruction_loading import Instruction, Reader
from .instruction_places import places_in

MOST_FILES = 50
"""The most files of one call that are considered; a call that touches more scans a tree and is about none of them."""


class NestedInstructions:
    """Satisfies `core.ports.AfterCall`. Each agent gets each file once."""

    def __init__(
        self, workspace: str, reader: Reader, levels: frozenset[Level], waiting: Iterable[Instruction] = ()
    ) -> None:
        """`waiting` are rules for some files, already read."""
        self._below = os.path.realpath(workspace).rstrip("/") + "/"
        self._reader = reader
        self._levels = levels
        self._known: dict[str, tuple[Instruction, ...]] = {}
        self._reading = asyncio.Lock()
        self._waiting = list(waiting)
        self._told: dict[str, dict[str, str]] = {}
        """For each agent, the calls after which each file was included."""

    async def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> Amendment | None:
        files = [] if outcome.is_error else self._files(proposal)
        if not files:
            return None
        if self._unread(files):
            async with self._reading:  # the reader gives nothing twice, so two calls must not read one folder
                await in_a_thread(self._read, self._unread(files))
        new = self._news(proposal.ctx.facts.agent, proposal.call.id, files)
        return Amendment(messages=tuple(map(str, new))) if new else None

    def keep_only(self, agent: str, call_ids: frozenset[str]) -> None:
        """Text after other calls can no longer be read, and is included again when it matters."""
        told = self._told.get(agent, {})
        self._told[agent] = {path: call for path, call in told.items() if call in call_ids}

    def _files(self, proposal: Proposal) -> list[str]:
        touches = (*proposal.effects.reads, *proposal.effects.writes)
        paths = {touch.real or touch.path for touch in touches}
        below = sorted(path for path in paths if path.startswith(self._below))
        return below if len(below) <= MOST_FILES else []

    def _news(self, agent: str, call_id: str, paths: list[str]) -> list[Instruction]:
        told = self._told.setdefault(agent, {})
        new: list[Instruction] = []
        for path in paths:
            if not os.path.isfile(path):
                continue
            for instruction in self._about(path):
                if instruction.path not in told:
                    told[instruction.path] = call_id
                    new.append(instruction)
        return new

    def _unread(self, paths: list[str]) -> list[str]:
        folders = dict.fromkeys(folder for path in paths for folder in self._folders(path))
        return [folder for folder in folders if folder not in self._known]

    def _read(self, folders: list[str]) -> None:
        for folder in folders:
            self._known[folder] = tuple(self._reader.read(places_in(folder, self._levels)))

    def _about(self, path: str) -> list[Instruction]:
        here = (one for folder in self._folders(path) for one in self._known[folder])
        return [one for one in (*self._waiting, *here) if _concerns(one, path)]

    def _folders(self, path: str) -> list[str]:
        """Those of a file, from the one below the workspace down."""
        parts = path.removeprefix(self._below).split("/")
        return [self._below + "/".join(parts[:count]) for count in range(1, len(parts))]


def _concerns(instruction: Instruction, path: str) -> bool:
    if not instruction.paths:
        return True
    relative = os.path.relpath(path, os.path.realpath(instruction.base))
    return any(_matches(pattern, relative) for pattern in instruction.paths)


def _matches(pattern: str, relative: str) -> bool:
    """A pattern without a slash is about names at any depth."""
    glob = pattern.removeprefix("./").removeprefix("/")
    try:
        return bool(compile_glob(glob if "/" in glob else f"**/{glob}").fullmatch(relative))
    except BadGlob:
        return False
