"""What the agents, skills and commands of a folder define.

Their files are Markdown with a head in YAML. Only what is plainly harmless
passes: a head of simple lines with keys that only describe, and a text that
runs nothing. Anything else is an item by its whole content, so no reading of
YAML that differs from another one can hide something from a person.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from ..host.files.open_files import digest_of
from ..host.files.text_files import NotText
from .settings_files import FOLDERS
from .settings_loading import content_of
from .trust_items import Item, ItemKind, ProjectFolder, digest_for, digest_named_files, is_below, shorten, uncovered_by

MOST_FILES: Final = 2000
"""Files that are looked at, and folders. Anything beyond that can never be trusted, and is ignored."""

SKILL_FILE: Final = "SKILL.md"

PLACES: Final = (
    *((os.path.join(folder, "agents"), ItemKind.AGENT) for folder in FOLDERS),
    *((os.path.join(folder, "skills"), ItemKind.SKILL) for folder in (*FOLDERS, ".agents")),
    *((os.path.join(folder, "commands"), ItemKind.COMMAND) for folder in FOLDERS),
)

_HEAD: Final = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)(?:^---[ \t]*\r?$|\Z)", re.DOTALL | re.MULTILINE)
_SIMPLE: Final = re.compile(r"([A-Za-z][A-Za-z_-]*):(?:[ \t]+([^\s&*!|>{\[%@`].*))?")
_DESCRIBING: Final = frozenset(
    {
        "agent",
        "argument-hint",
        "arguments",
        "background",
        "color",
        "compatibility",
        "description",
        "disable-model-invocation",
        "disallowed-tools",
        "disallowedTools",
        "effort",
        "license",
        "maxTurns",
        "name",
        "tools",
        "user-invocable",
        "version",
        "when_to_use",
    }
)
FAMILIES: Final = frozenset({"", "inherit", "fable", "haiku", "opus", "sonnet"})
"""Models by the short names that programs of this kind share. Any other name chooses where requests go."""
_RUNS: Final = re.compile(r"!\s*`|`{3,}\s*!|~{3,}\s*!")
"""A command in the text that is run before the text is read."""
_COMMAND: Final = re.compile(r"!\s*`([^`]*)`|(?:`{3,}|~{3,})\s*!([^`~]*)")
_STARTS: Final = re.compile(r"hooks|mcp[-_]?servers|command", re.IGNORECASE)
"""Keys of a head that start programs. A rule in `allowed-tools` names programs too, but starts none."""
_TELLING: Final = re.compile(
    r"allowed[-_]?tools|hooks|mcp[-_]?servers|permission[-_]?mode|initial[-_]?prompt|isolation|shell|\bmodel(?=:)",
    re.IGNORECASE,
)


def items_of_folder(ground: ProjectFolder) -> Iterator[Item]:
    """Of every file from the folder of the start up to the root of its checkout."""
    left = MOST_FILES
    for folder in _folders(ground):
        for place, kind in PLACES:
            for path in _definitions_below(os.path.join(folder, place), kind):
                if left == 0:
                    return
                left -= 1
                try:
                    item = item_of_file(kind, path, content_of(path), ground)
                except (OSError, NotText, ValueError):
                    continue  # it cannot be loaded either
                if item is not None:
                    yield item


def item_of_file(kind: ItemKind, path: str, content: bytes, ground: ProjectFolder) -> Item | None:
    """`None` for a file that contains only text. For whoever loads it, with the content that is loaded."""
    text = content.decode("utf-8", "replace")
    head = _HEAD.match(text)
    runs = "!" in text and _RUNS.search(text) is not None
    if not runs and _is_plain(text, head):
        return None
    commands = [found[1] or found[2] or "" for found in _COMMAND.finditer(text)] if runs else []
    file = ground.name_of(path)
    started = (head[1],) if head and _STARTS.search(head[1]) else ()
    named = digest_named_files((*started, *commands), (ground.cwd, os.path.dirname(path)), ground)
    return Item(
        kind=kind,
        file=file,
        words=_words(head, runs=runs),
        digest=digest_for(kind, file, [digest_of(content), named]),
        uncovered=uncovered_by(commands, ground),
    )


def _is_plain(text: str, head: re.Match[str] | None) -> bool:
    """Whether all of the head is lines `key: text` whose keys only describe."""
    if head is None:
        return not text.lstrip("\ufeff \t\r\n").startswith("---")  # a head to some readers, if not to this one
    for line in head[1].splitlines():
        if line.strip() and not line.startswith("#"):
            simple = _SIMPLE.fullmatch(line.rstrip())
            if simple is None or not _describes(simple[1], simple[2] or ""):
                return False
    return True


def _describes(key: str, value: str) -> bool:
    return key in _DESCRIBING or (key == "model" and value in FAMILIES)


def _words(head: re.Match[str] | None, *, runs: bool) -> str:
    contents = sorted({found[0].lower() for found in _TELLING.finditer(head[1])}) if head else []
    if runs:
        contents.append("commands that run when it is used")
    return shorten(f"contains {', '.join(contents)}" if contents else "has a head that is not plain")


def _folders(ground: ProjectFolder) -> Iterator[str]:
    folder, root = ground.real_cwd, ground.roots[0]
    yield folder
    while is_below(folder, root):
        folder = os.path.dirname(folder)
        yield folder


def _definitions_below(folder: str, kind: ItemKind) -> Iterator[str]:
    """The files that define something there: beside its own file, what is in a skill's folder is only read by calls."""
    return (path for _, path in skills_in(folder)) if kind is ItemKind.SKILL else markdown_below(folder)


def skills_in(folder: str) -> Iterator[tuple[str, str]]:
    """The name and the file of each skill."""
    try:
        names = sorted(os.listdir(folder))[:MOST_FILES]
    except (OSError, ValueError):
        return
    for name in names:
        path = os.path.join(folder, name, SKILL_FILE)
        if os.path.lexists(path):
            yield name, path


def markdown_below(folder: str) -> Iterator[str]:
    """Links are followed, as those who load such files do, and each folder is entered once."""
    seen = set[tuple[int, int]]()
    for path, folders, names in os.walk(folder, followlinks=True):
        identity = _identity_of(path)
        if identity is None or identity in seen or len(seen) == MOST_FILES:
            folders.clear()
            continue
        seen.add(identity)
        folders.sort()
        yield from (os.path.join(path, name) for name in sorted(names) if name.lower().endswith(".md"))


def _identity_of(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino
