"""Files, folders and resources that a prompt names with an `@`, read for the model before it is asked.

Each is a call of the tool that would read it, so rules, hooks and people judge
it like any other call, and a file that is read counts as read. A word that
names nothing that exists is plain text: an e-mail address, a decorator.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ...core.calls import Status, ToolOutcome
from ...core.content import Block, Text, plain_text
from ...core.values import named_value, plain_value
from ...skills.rendering import Invoke

MOST_MENTIONS: Final = 20
MOST_FOLDERS: Final = 200
_MOST_LOOKED_AT: Final = 500
"""Words with an `@` whose files are looked for; a pasted file may have thousands."""

Objection: TypeAlias = Callable[[str], str | None]

_CODE: Final = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_WORD: Final = re.compile(r'(?:^|(?<=[\s(]))@(?:"([^"\n]+)"|([^\s"`@]+))')
_LINES: Final = re.compile(r"(.+)#L(\d{1,9})(?:-L?(\d{1,9}))?", re.DOTALL)
_AFTER: Final = ".,;:!?)]}'*_"


@plain_value
class FileMention:
    path: str
    lines: tuple[int, int] | None = None
    """The first and the last one to read; `None` for the whole file."""


@plain_value
class FolderMention:
    path: str


@plain_value
class ResourceMention:
    server: str
    uri: str


Mention: TypeAlias = FileMention | FolderMention | ResourceMention


@named_value
class ReadMentions:
    blocks: tuple[Block, ...] = ()
    refused: tuple[ToolOutcome, ...] = ()
    """The calls that were not allowed; the blocks say so too."""


def find_mentions(text: str, cwd: str, servers: Collection[str] = ()) -> tuple[Mention, ...]:
    """What the text names and exists, each once and in its order, outside of fenced code."""
    found: dict[Mention, None] = {}
    for number, word in enumerate(_WORD.finditer(_CODE.sub("", text))):
        if number == _MOST_LOOKED_AT:
            break
        if mention := _mention_of(word[1] or word[2], cwd, servers):
            found[mention] = None
    return tuple(found)


def _mention_of(word: str, cwd: str, servers: Collection[str]) -> Mention | None:
    for name in dict.fromkeys((word, word.rstrip(_AFTER))):
        server, colon, uri = name.partition(":")
        if colon and uri and server in servers:
            return ResourceMention(server, uri)
        for path, lines in _paths_in(name, cwd):
            if os.path.isdir(path):
                return FolderMention(path) if lines is None else None
            if os.path.lexists(path):
                return FileMention(path, lines)
    return None


def _paths_in(name: str, cwd: str) -> Iterator[tuple[str, tuple[int, int] | None]]:
    """The name as a path, then as a path with lines."""
    if not name or "\0" in name:
        return
    yield os.path.normpath(os.path.join(cwd, os.path.expanduser(name))), None
    if found := _LINES.fullmatch(name):
        first = max(1, int(found[2]))
        path = os.path.normpath(os.path.join(cwd, os.path.expanduser(found[1])))
        yield path, (first, max(first, int(found[3] or first)))


async def read_mentions(mentions: Collection[Mention], invoke: Invoke, objection: Objection) -> ReadMentions:
    """`objection` says why a folder may not be named to the model, if it may not."""
    blocks: list[Block] = []
    refused: list[ToolOutcome] = []
    for number, mention in enumerate(mentions):
        if number == MOST_MENTIONS:
            left = len(mentions) - MOST_MENTIONS
            blocks.append(Text(f"{left} more that the prompt names were not read: {MOST_MENTIONS} is the limit."))
            break
        name, tool, arguments = _call_for(mention)
        outcome = await invoke(tool, arguments)
        if outcome.status is Status.DENIED:
            refused.append(outcome)
        if outcome.is_error:
            blocks.append(Text(f"{name} was not read: {plain_text(outcome.content)}"))
        elif isinstance(mention, FolderMention):
            blocks.append(Text(_listing(mention.path, plain_text(outcome.content), objection)))
        else:
            blocks += (Text(f"Content of {name}:"), *outcome.content)
    return ReadMentions(blocks=tuple(blocks), refused=tuple(refused))


def _call_for(mention: Mention) -> tuple[str, str, Mapping[str, Any]]:
    """How it is called, and the tool that reads it with its arguments."""
    match mention:
        case FileMention(path, lines):
            if lines is None:
                return path, "Read", {"file_path": path}
            first, last = lines
            name = f"{path}, lines {first} to {last}"
            return name, "Read", {"file_path": path, "offset": first, "limit": last - first + 1}
        case FolderMention(path):
            return path, "Glob", {"pattern": "*", "path": path}
        case ResourceMention(server, uri):
            return f"{server}:{uri}", "ReadMcpResource", {"server": server, "uri": uri}


def _listing(path: str, files: str, objection: Objection) -> str:
    """Of one level: Glob finds the files there, and the folders are added."""
    try:
        with os.scandir(path) as entries:
            inner = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        inner = []
    shown = [name for name in inner[:MOST_FOLDERS] if name != ".git" and objection(os.path.join(path, name)) is None]
    folders = f"Folders: {', '.join(f'{name}/' for name in shown)}\n" if shown else ""
    return f"Content of the folder {path}:\n{folders}{files}"
