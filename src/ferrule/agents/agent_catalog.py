"""The kinds of agents of a session, found once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Final

from ..settings.definition_files import BadPage, DefinitionFiles, WrittenPage, describe_faults
from ..settings.trust_items import ItemKind
from .agent_kinds import BUILT_IN, AgentKind, kind_of

MOST: Final = 1000
LISTING: Final = 8000
"""Characters that names and descriptions may take in a request."""


class Agents:
    """The kinds of one session: those given by a program, then an administrator's, the folder's, the user's, ours."""

    def __init__(self, pages: DefinitionFiles | None = None, given: Iterable[AgentKind] = ()) -> None:
        self._pages = pages
        self._given = {kind.name: kind for kind in given}

    @property
    def all(self) -> Mapping[str, AgentKind]:
        return self._discovered[0]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of files that are skipped, and of keys that are not used."""
        return self._discovered[1]

    @cached_property
    def _discovered(self) -> tuple[Mapping[str, AgentKind], tuple[str, ...]]:
        with self._pages.at_one_moment() if self._pages else nullcontext():
            return self._discover()

    def _discover(self) -> tuple[Mapping[str, AgentKind], tuple[str, ...]]:
        found = dict(self._given)
        warnings: list[str] = []
        read: list[WrittenPage] = []
        for kind in self._kinds_from_files(warnings, read):
            if len(found) == MOST:
                warnings.append(f"There are more than {MOST} agents; {kind.path} and those after it are skipped.")
                break
            if kind.name not in found:
                found[kind.name] = kind
                warnings += kind.warnings
        return {**{kind.name: kind for kind in BUILT_IN}, **found}, (*warnings, *describe_faults(read))

    def get(self, name: str) -> AgentKind | None:
        """By its name, whatever the case."""
        return self.all.get(name) or next(
            (kind for known, kind in self.all.items() if known.lower() == name.lower()), None
        )

    def list_for_model(self, budget: int = LISTING) -> str:
        kinds = list(self.all.values())
        each = budget // len(kinds)
        return "\n".join(_line(kind)[:each] for kind in kinds)

    def _kinds_from_files(self, warnings: list[str], read: list[WrittenPage]) -> Iterator[AgentKind]:
        pages = self._pages
        if pages is None:
            return
        for shelf in pages.shelves(ItemKind.AGENT):
            for path, _ in shelf.files():
                if os.path.basename(path).lower() == "readme.md":
                    continue  # about the folder, and for people
                try:
                    written = pages.read(shelf, path)
                    kind = kind_of(written)
                    kind = replace(kind, name=shelf.prefix + kind.name) if shelf.prefix else kind
                except BadPage as reason:
                    warnings.append(str(reason))
                    continue
                read.append(written)
                yield kind


def _line(kind: AgentKind) -> str:
    tools = "all tools" if kind.tools is None else ", ".join(kind.tools)
    return f"- {kind.name} ({tools}): {kind.description}"
