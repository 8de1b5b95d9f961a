"""Server files that can be recognized as valid without a model.

The models take longer to build than a start may take, and nearly every such file
contains only servers of the common shape. Everything else is left to the models,
which accept whatever is accepted here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from .json_places import Parsed
from .settings_files import SettingsKind

RESERVED_NAMES: Final = ("workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser")
REMOTE: Final = ("http", "streamable-http", "sse", "ws")
"""The possible values of `type` for a server with a URL."""
SHORTEST_TIMEOUT: Final = 1000
"""Milliseconds."""


def is_plain(kind: SettingsKind, parsed: Parsed) -> bool:
    """Whether it contains only servers, all of them valid."""
    content = _object(parsed.value)
    if parsed.repeated or content is None or (kind is SettingsKind.SETTINGS and len(content) > 1):
        return False
    servers = _object(content.get("mcpServers")) if kind in (SettingsKind.MCP, SettingsKind.SETTINGS) else None
    return servers is not None and all(
        name not in RESERVED_NAMES and _is_plain_server(_object(server)) for name, server in servers.items()
    )


def _object(value: Any) -> dict[str, Any] | None:
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _is_plain_server(entry: Mapping[str, Any] | None) -> bool:
    if entry is None:
        return False
    kind = entry.get("type", "stdio")
    if kind == "stdio":
        return "command" in entry and _hold(_OF_COMMANDS, entry)
    return kind in REMOTE and "url" in entry and "oauth" not in entry and _hold(_OF_ADDRESSES, entry)


def _hold(checks: Mapping[str, Callable[[Any], bool]], entry: Mapping[str, Any]) -> bool:
    return all(check(entry[key]) for key, check in checks.items() if key in entry)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, cast(list[Any], value)))


def _are_named_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, cast(dict[str, Any], value).values()))


_OF_BOTH: Final[Mapping[str, Callable[[Any], bool]]] = {
    "timeout": lambda value: type(value) is int and value >= SHORTEST_TIMEOUT,
    "alwaysLoad": lambda value: isinstance(value, bool),
}
_OF_COMMANDS: Final = {**_OF_BOTH, "command": _is_name, "args": _are_texts, "env": _are_named_texts}
_OF_ADDRESSES: Final = {**_OF_BOTH, "url": _is_name, "headers": _are_named_texts, "headersHelper": _is_text}
