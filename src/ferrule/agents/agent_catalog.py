"""The kinds of agents of a session, found once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from ..settings.definition_files import BadPage, DefinitionFiles
from ..settings.folder_items import markdown_below
from ..settings.trust_items import ItemKind
from .agent_kinds import BUILT_IN, AgentKind, kind_of

MOST: Final = 200
LISTING: Final = 8000
"""Characters that names and descriptions may take in a request."""


class Agents:
    """The kinds of one session: those given by a program, then an administrator's, the folder's, the user's, ours."""

    def __init__(self, pages: DefinitionFiles | None = None, given: Iterable[AgentKind] = ()) -> None:
        self._pages = pages
        self._given = {kind.name: kind for kind in given}
        self.warnings: list[str] = []

    @cached_property
    def all(self) -> Mapping[str, AgentKind]:
        found = dict(self._given)
        for kind in self._kinds_from_files():
            if len(found) == MOST:
                self.warnings.append(f"There are more than {MOST} agents; {kind.path} and those after it are skipped.")
                break
            if kind.name not in found:
                found[kind.name] = kind
                self.warnings += kind.warnings
        return {**{kind.name: kind for kind in BUILT_IN}, **found}

    def get(self, name: str) -> AgentKind | None:
        """By its name, whatever the case."""
        return self.all.get(name) or next(
            (kind for known, kind in self.all.items() if known.lower() == name.lower()), None
        )

    def list_for_model(self, budget: int = LISTING) -> str:
        kinds = list(self.all.values())
        each = budget // len(kinds)
        return "\n".join(_line(kind)[:each] for kind in kinds)

    def _kinds_from_files(self) -> Iterator[AgentKind]:
        pages = self._pages
        if pages is None:
            return
        for shelf in pages.shelves(ItemKind.AGENT):
            for path in markdown_below(shelf.path):
                try:
                    yield kind_of(pages.read(shelf, path))
                except BadPage as reason:
                    self.warnings.append(str(reason))


def _line(kind: AgentKind) -> str:
    tools = "all tools" if kind.tools is None else ", ".join(kind.tools)
    return f"- {kind.name} ({tools}): {kind.description}"
