"""What the head of a skill says."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..core.values import named_value
from ..settings.definition_files import BadPage, WrittenPage
from ..settings.heads import NAME, names_of, text_of, truth_of
from ..settings.levels import Level
from ..settings.trust_items import ItemKind

LONGEST_DESCRIPTION: Final = 1536
"""Characters of a description that are listed."""

_FOLDER: Final = re.compile(r"\$\{(?:CLAUDE|FERRULE)_SKILL_DIR\}")


@named_value
class SkillDefinition:
    name: str
    description: str
    path: str
    folder: str
    """The folder of its other files."""
    level: Level
    body: str
    argument_names: tuple[str, ...] = ()
    argument_hint: str = ""
    allowed: tuple[str, ...] = ()
    """Rules that apply in the turn in which it is used; none where the folder is not trusted."""
    disallowed: tuple[str, ...] = ()
    may_run: bool = True
    """Whether the commands in its text and its hooks are run: whether it is trusted."""
    hooks: str = ""
    """As its head gives them, as JSON; empty for none."""
    forks: bool = False
    agent: str = ""
    """The kind of agent that carries it out where it forks."""
    model: str = ""
    for_model: bool = True
    for_user: bool = True
    paths: tuple[str, ...] = ()
    """Globs: it is made known when a file that matches one is read. Without any it is known from the start."""


def skill_of(written: WrittenPage, name: str) -> SkillDefinition:
    """Raises `BadPage` if the file is not a skill."""
    head = written.page.head
    if not all(NAME.fullmatch(part) for part in name.split(":")):
        raise BadPage(f"{written.path!r} is skipped: {name!r} is not a valid name. Use letters, digits, `-` and `_`")
    words = " ".join(filter(None, (text_of(head, "description"), text_of(head, "when_to_use"))))
    is_command = written.shelf.kind is ItemKind.COMMAND
    description = words or _first_line(written.page.body)
    if not description:
        raise BadPage(f"{written.path} is skipped: it has neither a `description` nor a text")
    return SkillDefinition(
        name=name,
        description=description[:LONGEST_DESCRIPTION],
        path=written.path,
        folder=os.path.dirname(written.path),
        level=written.shelf.level,
        body=written.page.body.strip(),
        argument_names=names_of(head, "arguments") or (),
        argument_hint=_hint(head),
        allowed=_rules(names_of(head, "allowed-tools"), written.path) if written.counts else (),
        disallowed=names_of(head, "disallowed-tools") or (),
        may_run=written.counts,
        hooks=json.dumps(head["hooks"]) if head.get("hooks") else "",
        forks=text_of(head, "context") == "fork",
        agent=text_of(head, "agent"),
        model=written.model,
        for_model=not truth_of(head, "disable-model-invocation", default=False),
        for_user=truth_of(head, "user-invocable", default=True),
        paths=() if is_command else tuple(_globs(names_of(head, "paths"))),
    )


def _hint(head: Mapping[str, Any]) -> str:
    """Text in brackets is a list in YAML, but is meant as a hint.

    >>> _hint({"argument-hint": ["file", "line"]}), _hint({"argument-hint": "<file>"})
    ('[file, line]', '<file>')
    """
    if isinstance(head.get("argument-hint"), list):
        return f"[{', '.join(names_of(head, 'argument-hint') or ())}]"
    return text_of(head, "argument-hint")


def _rules(given: tuple[str, ...] | None, path: str) -> tuple[str, ...]:
    folder = os.path.dirname(path)
    return tuple(_FOLDER.sub(lambda _: folder, rule) for rule in given or ())


def _globs(given: tuple[str, ...] | None) -> Iterator[str]:
    for glob in given or ():
        yield from filter(None, glob.split(","))


def _first_line(body: str) -> str:
    lines = (line.strip("# \t") for line in body.splitlines())
    return next((line for line in lines if line), "")
