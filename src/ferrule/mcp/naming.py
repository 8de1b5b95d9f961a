"""Names of servers' tools: `mcp__server__tool`, in characters that every model's service takes.

A server's part never holds a double underscore, nor begins or ends with one
underscore, so the first double underscore after the prefix ends it. Where two
names would become the same, all but the first carry a digest of what they were.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Final

PREFIX: Final = "mcp__"
LONGEST: Final = 128
"""Characters, as the contract of tools has it."""
_DIGEST: Final = 8


def server_part(name: str, taken: Collection[str] = ()) -> str:
    """
    >>> server_part("my.server__2"), server_part("_"), server_part("a b", ("a_b",))
    ('my_server_2', 'server', 'a_b_c8687a08')
    """
    plain = re.sub("__+", "_", _plain(name)).strip("_")[:48].strip("_") or "server"
    return f"{plain}_{_digest(name)}" if plain in taken else plain


def server_parts(names: Iterable[str]) -> dict[str, str]:
    """The part of each name, in the order in which they come."""
    parts = dict[str, str]()
    for name in names:
        parts[name] = server_part(name, parts.values())
    return parts


def tool_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """`server` is a server's part.

    >>> tool_name("files", "read.file"), tool_name("files", "read/file", ("mcp__files__read_file",))
    ('mcp__files__read_file', 'mcp__files__read_file_9cc468c6')
    """
    name = f"{PREFIX}{server}__{_plain(tool)}"
    if len(name) <= LONGEST and name not in taken:
        return name
    return f"{name[: LONGEST - _DIGEST - 1]}_{_digest(tool)}"


def split(name: str) -> tuple[str, str] | None:
    """The parts of a tool's name; `None` for the name of another tool.

    >>> split("mcp__files__read__all"), split("Read")
    (('files', 'read__all'), None)
    """
    server, found, tool = name.removeprefix(PREFIX).partition("__")
    return (server, tool) if name.startswith(PREFIX) and found and server else None


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _digest(name: str) -> str:
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
