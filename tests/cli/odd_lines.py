"""Lines of JSON that nobody would write: requests with something else in the place of any of their parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from hypothesis import strategies as st

HALVES = ["\ud800", "a\udfffb", "/etc/\udc80"]
"""Texts that cannot be encoded."""
DEPTHS = [5, 300, 900, 985, 1000]
"""Below, at and above what Python's parser follows."""


def nested(depth: int) -> str:
    """
    >>> nested(2)
    '[[]]'
    """
    return "[" * depth + "]" * depth


def odd_lines(*requests: dict[str, Any]) -> st.SearchStrategy[bytes]:
    return st.sampled_from(requests).flatmap(_mutated)


def _mutated(request: dict[str, Any]) -> st.SearchStrategy[bytes]:
    paths = list(_paths(request))
    return st.builds(
        _line,
        st.just(request),
        st.lists(st.tuples(st.sampled_from(paths), ODD), min_size=1, max_size=3),
        st.booleans(),
    )


ODD = st.one_of(
    st.sampled_from(HALVES).map(json.dumps),
    st.sampled_from(DEPTHS).map(nested),
    st.sampled_from(["1" * 4000, "1" * 5000, "-1e999", "1e308", "0.1", "true", "null", "{}", "[]", '"a/b"', '""']),
    st.text(max_size=8).map(json.dumps),
    st.dictionaries(st.text(max_size=4) | st.sampled_from(HALVES), st.integers(), max_size=2).map(json.dumps),
)


def _paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, inner in cast(dict[str, Any], value).items():
            yield (*path, key)
            yield from _paths(inner, (*path, key))


def _line(request: dict[str, Any], changes: list[tuple[tuple[str, ...], str]], escaped: bool) -> bytes:
    marks = {f"@{number}@": text for number, (_, text) in enumerate(changes)}
    changed: Any = json.loads(json.dumps(request))
    for mark, (path, _) in zip(marks, changes, strict=True):
        changed = _replaced(changed, path, mark)
    text = json.dumps(changed)
    for mark, odd in marks.items():
        text = text.replace(f'"{mark}"', odd)
    if not escaped:  # half a character as it is, in bytes that are not UTF-8
        text = text.replace("\\ud800", "\ud800")
    return text.encode("utf-8", "surrogatepass")


def _replaced(value: Any, path: tuple[str, ...], mark: str) -> Any:
    if not path or not isinstance(value, dict):
        return mark
    fields = cast(dict[str, Any], value)
    return {**fields, path[0]: _replaced(fields.get(path[0]), path[1:], mark)}
