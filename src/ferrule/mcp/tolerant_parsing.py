"""Answers that almost follow the protocol. Imported through `lazy_imports.py` only.

The protocol's package refuses an answer as a whole for one wrong entry in it,
so that a server with one bad tool would have none. Here an entry that can be
understood is corrected, one that cannot is left out, and the log names it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, cast

from mcp.types.methods import validate_server_result
from pydantic import ValidationError

log = logging.getLogger(__name__)

REVISION: Final = "2025-11-25"
"""The version whose shapes are checked. Newer members are ignored."""
CALL: Final = "tools/call"
_LISTS: Final[Mapping[str, str]] = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}


def mend_result(result: dict[str, Any], server: str) -> dict[str, Any]:
    """Of a request, whichever it was: its members tell."""
    changed: dict[str, Any] = {}
    for key, method in _LISTS.items():
        if isinstance(entries := result.get(key), list):
            all_of_them = cast(list[Any], entries)
            tidied = [_with_schema(one) for one in all_of_them] if key == "tools" else all_of_them
            changed[key] = _entries(key, method, tidied, server)
    if "content" in result:
        changed["content"] = _parts(result["content"])
    return {**result, **changed}


def _entries(key: str, method: str, entries: list[Any], server: str) -> list[Any]:
    if _fits(method, {key: entries}):
        return entries
    kept: list[Any] = []
    for entry in entries:
        if _fits(method, {key: [entry]}):
            kept.append(entry)
        else:
            log.warning("%s: left out of its %s, because it is invalid: %s", server, key, repr(entry)[:200])
    return kept


def _with_schema(entry: Any) -> Any:
    """Tools that take nothing often have no schema, and those with choices at its root often no `type`.

    >>> _with_schema({"name": "a", "inputSchema": {"anyOf": []}})["inputSchema"]
    {'type': 'object', 'anyOf': []}
    """
    if not isinstance(entry, dict):
        return entry
    tool = cast(dict[str, Any], entry)
    schema: Any = tool.get("inputSchema")
    if schema is None:
        return {**tool, "inputSchema": {"type": "object", "properties": {}}}
    return (
        {**tool, "inputSchema": {"type": "object", **cast(dict[str, Any], schema)}}
        if isinstance(schema, dict)
        else tool
    )


def _parts(content: Any) -> Any:
    """The result of a call, as parts that can be shown."""
    if content is None or isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list) or _fits(CALL, {"content": content}):
        return cast(Any, content)
    return [one if _fits(CALL, {"content": [one]}) else _in_words(one) for one in cast(list[Any], content)]


def _in_words(part: Any) -> dict[str, str]:
    kind = cast(dict[str, Any], part).get("type") if isinstance(part, dict) else None
    return {"type": "text", "text": f"[a part of the kind `{kind}`, which cannot be shown]"}


def _fits(method: str, result: Mapping[str, Any]) -> bool:
    try:
        validate_server_result(method, REVISION, result)
    except ValidationError:
        return False
    return True
