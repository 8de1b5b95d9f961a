"""Fields that a service sends in pieces and wants back whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..core.calls import ServiceFields

_JOINED = frozenset({"text", "summary", "data", "thinking", "thought_signature", "signature"})
"""Fields whose text is streamed: the pieces belong together. Of any other field the last value is right."""


def fields_from(origin: str, extras: ServiceFields | None) -> Mapping[str, Any]:
    """The fields, if they came from there."""
    return extras.fields if extras is not None and extras.origin == origin else {}


def merge_pieces(before: Any, piece: Any, name: str = "") -> Any:
    """One value of what came so far and the next piece. Items of a list belong together by their `index`.

    >>> merge_pieces([{"index": 0, "text": "One "}], [{"index": 0, "text": "word", "id": "r1"}])
    [{'index': 0, 'text': 'One word', 'id': 'r1'}]
    """
    match before, piece:
        case dict(), dict():
            old, new = cast(dict[str, Any], before), cast(dict[str, Any], piece)
            return {**old, **{key: merge_pieces(old.get(key), value, key) for key, value in new.items()}}
        case list(), list():
            merged = list(cast(list[Any], before))
            for item in cast(list[Any], piece):
                _merge_item(merged, item)
            return merged
        case str(), str() if name in _JOINED:
            return before + piece
        case _, None:
            return before
        case _:
            return piece


def _merge_item(items: list[Any], item: Any) -> None:
    for at, earlier in enumerate(items):
        if _is_same_item(earlier, item):
            items[at] = merge_pieces(earlier, item)
            return
    items.append(item)


def _is_same_item(one: Any, other: Any) -> bool:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return False
    first, second = cast(dict[str, Any], one), cast(dict[str, Any], other)
    return first.get("index") is not None and all(first.get(key) == second.get(key) for key in ("index", "type"))
