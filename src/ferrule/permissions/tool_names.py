"""Which tools a rule names: by name, by glob, by MCP server.

A server is matched by its name, not by where its tool's name could be split: the
tool of server `a__b` does not belong to server `a`.
"""

from __future__ import annotations

import re
from typing import Final

from ..core.tool import AnyTool
from ..core.verdicts import Behavior
from .patterns import TextPattern

MCP: Final = "mcp__"
CANONICAL: Final = {"Task": "Agent"}
"""Old names of tools that rules still use."""

SPEAKS_FOR: Final = {
    "Edit": frozenset({"Write", "MultiEdit", "NotebookEdit"}),
    "Read": frozenset({"Grep", "Glob", "LSP"}),
}
"""Tools that do the same as another in a different way: a rule for that one applies to them too."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_GLOB: Final = re.compile(r"[A-Za-z0-9_.*?-]+")
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")


def why_no_name(name: str, behavior: Behavior) -> str | None:
    """What is wrong with the name of a rule, for a rule of this kind; `None` if nothing is.

    >>> why_no_name("mcp__github__get_*", Behavior.ALLOW), why_no_name("*", Behavior.DENY)
    (None, None)
    """
    if name.startswith(MCP):
        server, _, tool = name.removeprefix(MCP).partition("__")
        if not server:
            return "names no server. Write `mcp__server` or `mcp__server__tool`"
        if behavior is Behavior.ALLOW and _is_glob(server):
            return "allows tools of any server. Name the server: `mcp__server__*`"
        return None if tool or "__" not in name.removeprefix(MCP) else "names no tool. Write `mcp__server`"
    if _NAME.fullmatch(name):
        return None
    if _GLOB.fullmatch(name) and _is_glob(name):
        return "allows every tool of that kind. Name each tool" if behavior is Behavior.ALLOW else None
    return "is not a rule. Write a tool name, such as Read"


class NamePattern:
    """The name part of a rule.

    >>> NamePattern("mcp__srv").exact is None, NamePattern("Task").exact
    (True, 'Agent')
    """

    __slots__ = ("_glob", "_server", "exact", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.exact: str | None = None
        self._server: str | None = None
        """The server that it names as a whole. `a__b` can be a server too, besides the tool b of server a."""
        self._glob: TextPattern | None = None
        if name.startswith(MCP):
            self._of_server(name.removeprefix(MCP))
        elif _is_glob(name):
            self._glob = TextPattern(name)
        else:
            self.exact = CANONICAL.get(name, name)

    def _of_server(self, rest: str) -> None:
        server = rest.removesuffix("__*")
        if not _is_glob(server):
            self._server = normalise_server(server)
        if _is_glob(rest):
            self._glob = TextPattern(MCP + rest)
        elif "__" in rest:
            self.exact = MCP + normalise_server(rest)

    def names(self, tool: AnyTool, behavior: Behavior) -> bool:
        """Whether a rule of this kind matches the tool, under its own name or an old one."""
        return any(self._names(name, tool.server, behavior) for name in names_of(tool))

    def _names(self, name: str, server: str | None, behavior: Behavior) -> bool:
        if self._server is not None and _is_of_server(name, self._server, server, behavior):
            return True
        if self.exact is not None:
            return name == self.exact or (server is None and name in SPEAKS_FOR.get(self.exact, ()))
        return self._glob is not None and self._glob_names(name, server, behavior)

    def _glob_names(self, name: str, server: str | None, behavior: Behavior) -> bool:
        if self._glob is None or not self._glob.matches(name):
            return False
        if behavior is not Behavior.ALLOW or not name.startswith(MCP):
            return True
        named = self._glob.text.removeprefix(MCP).partition("__")[0]
        return _is_of_server(name, normalise_server(named), server, behavior)


def names_of(tool: AnyTool) -> tuple[str, ...]:
    names = (tool.name, *(alias.name for alias in tool.aliases))
    return tuple(dict.fromkeys(CANONICAL.get(name, name) for name in names))


def normalise_server(server: str) -> str:
    """As it appears in the names of its tools.

    >>> normalise_server("my server.v2")
    'my_server_v2'
    """
    return _FOREIGN.sub("_", server)


def _is_glob(text: str) -> bool:
    return "*" in text or "?" in text


def _is_of_server(name: str, wanted: str, server: str | None, behavior: Behavior) -> bool:
    if server is not None:
        return normalise_server(server) == wanted and name.startswith(MCP)
    if not name.startswith(f"{MCP}{wanted}__"):
        return False
    # The server is unknown. A rule that restricts accepts every reading of the name, one that allows accepts only
    # a name with a single reading.
    return behavior is not Behavior.ALLOW or name.removeprefix(MCP).count("__") == 1
