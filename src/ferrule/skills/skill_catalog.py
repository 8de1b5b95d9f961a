"""The skills of a session. Found once; the text of one is read again each time it is used."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Final

from ..host.search.globs import BadGlob, anywhere
from ..settings.definition_files import BadPage, DefinitionFiles, DefinitionFolder, WrittenPage, describe_faults
from ..settings.levels import Level
from ..settings.trust_items import ItemKind
from .definition import SkillDefinition, skill_of

LISTING: Final = 8000
"""Characters that names and descriptions may take in a request."""
MOST: Final = 2000

_ORDER: Final = (Level.MANAGED, Level.USER, Level.PROJECT)


class NoSuchSkill(LookupError):
    """The message names the available ones."""


class Skills:
    """The skills of one session. A person's own take precedence over those of the folder, and skills over commands."""

    def __init__(self, pages: DefinitionFiles, only: Collection[str] | None = None) -> None:
        """`only` are the names to include; `None` for all."""
        self._pages = pages
        self._only = only

    @property
    def all(self) -> Mapping[str, SkillDefinition]:
        """By name. The listing depends on it, so it stays as it was found."""
        return self._discovered[0]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of files that are skipped."""
        return self._discovered[1]

    @cached_property
    def _discovered(self) -> tuple[Mapping[str, SkillDefinition], tuple[str, ...]]:
        with self._pages.at_one_moment():
            return self._discover()

    def _discover(self) -> tuple[Mapping[str, SkillDefinition], tuple[str, ...]]:
        found = dict[str, SkillDefinition]()
        warnings: list[str] = []
        read: list[WrittenPage] = []
        seen = set[str]()
        for shelf, path, name in self._files():
            real = os.path.realpath(path)
            if real in seen or (self._only is not None and name not in self._only):
                continue
            seen.add(real)
            try:
                written = self._pages.read(shelf, path)
                skill = skill_of(written, name)
            except BadPage as reason:
                warnings.append(str(reason))
                continue
            if len(found) == MOST:
                warnings.append(f"There are more than {MOST} skills; {path} and those after it are skipped.")
                break
            read.append(written)
            found.setdefault(name, skill)
        return found, (*warnings, *describe_faults(read))

    def read(self, name: str) -> SkillDefinition:
        """As its file is now. Raises `NoSuchSkill`, or `BadPage` where the file has become unusable."""
        known = self.all.get(name)
        if known is None:
            names = ", ".join(sorted(self.all)) or "none"
            raise NoSuchSkill(f"No skill is named {name[:100]}. Available: {names}.")
        shelf = next(shelf for shelf, path, _ in self._files() if path == known.path)
        return skill_of(self._pages.read(shelf, known.path), name)

    def list_for_model(self, budget: int = LISTING) -> str:
        """One line for each skill that the model may use from the start, within the budget."""
        shown = [skill for _, skill in sorted(self.all.items()) if skill.for_model and not skill.paths]
        return _listing(shown, budget)

    def find_for_file(self, path: str, workspace: str) -> tuple[SkillDefinition, ...]:
        """Skills that are made known by a file that was read: those whose globs match it."""
        relative = os.path.relpath(path, workspace)
        if relative.startswith("../"):
            return ()
        return tuple(skill for skill in self.all.values() if skill.for_model and _is_about(skill, relative))

    def _files(self) -> Iterator[tuple[DefinitionFolder, str, str]]:
        shelves = (*self._pages.shelves(ItemKind.SKILL), *self._pages.shelves(ItemKind.COMMAND))
        for shelf in sorted(shelves, key=lambda shelf: (shelf.kind is ItemKind.COMMAND, _ORDER.index(shelf.level))):
            yield from ((shelf, path, name) for path, name in shelf.files())


def _is_about(skill: SkillDefinition, relative: str) -> bool:
    for glob in skill.paths:
        try:
            matches = anywhere(glob, by_name=False).matches
        except BadGlob:
            continue
        if matches is not None and matches(relative):
            return True
    return False


def _listing(skills: list[SkillDefinition], budget: int) -> str:
    """Descriptions are shortened before names are, all by the same proportion."""
    names = [f"- {skill.name}" + (f" {skill.argument_hint}" if skill.argument_hint else "") for skill in skills]
    room = budget - sum(len(name) + 3 for name in names)
    each = max(0, room // max(1, len(skills)))
    spare = sum(max(0, each - len(skill.description)) for skill in skills)
    longer = sum(len(skill.description) > each for skill in skills)
    each += spare // longer if longer else 0
    lines: list[str] = []
    left = budget
    for name, skill in zip(names, skills, strict=True):
        line = f"{name}: {_shorten(skill.description, each)}" if each >= 20 else name
        if len(line) + 1 > left:
            lines.append(f"- and {len(skills) - len(lines)} more, which can be used by name")
            break
        left -= len(line) + 1
        lines.append(line)
    return "\n".join(lines)


def _shorten(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(0, room - 1)].rstrip()}…"
