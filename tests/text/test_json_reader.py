"""JSON read with positions: what was walked and what was decoded lie where they are said to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.text.json_reader import (
    Array,
    NotJson,
    Object,
    Reader,
    Value,
    array_at,
    object_at,
    read_json,
    strict_reader,
    value_at,
)

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


def nodes(value: Value) -> Iterator[Value]:
    yield value
    match value.value:
        case Object(members):
            for member in members:
                yield from nodes(member.value)
        case Array(items):
            for item in items:
                yield from nodes(item)
        case _:
            pass


def unfolded(value: Value) -> Any:
    match value.value:
        case Object(members):
            return {member.key: unfolded(member.value) for member in members}
        case Array(items):
            return [unfolded(item) for item in items]
        case plain:
            return plain


@given(
    values,
    st.sampled_from([None, 0, 3]),
    st.booleans(),
    st.sampled_from([strict_reader(), value_at, array_at, partial(array_at, read=object_at), object_at]),
)
def test_each_value_lies_between_its_start_and_its_end_whoever_reads_it(
    value: Any, indent: int | None, plain: bool, read: Reader
) -> None:
    text = f" {json.dumps(value, indent=indent, ensure_ascii=plain)}\n"

    root = read_json(text, read)

    assert unfolded(root) == value
    for node in nodes(root):
        assert json.loads(text[node.start : node.end]) == unfolded(node)


@given(st.text(alphabet='{}[]",:\\ \n1tn', max_size=20))
def test_what_a_strict_reader_takes_all_readers_take_for_the_same(text: str) -> None:
    try:
        expected = unfolded(read_json(text, strict_reader()))
    except NotJson:
        return

    for read in (value_at, array_at, object_at):
        assert unfolded(read_json(text, read)) == expected


def test_an_error_below_the_walked_levels_is_reported_like_one_in_them() -> None:
    walked, decoded = ('{"a": 1,}', '{"b": {"a": 1,}}')

    for text in (walked, decoded):
        with pytest.raises(NotJson, match=r"expected a key in double quotes, found `}`\. Remove the comma before it\."):
            read_json(text, object_at)
