"""JSON as the standard has it, and errors that say what to do."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.settings.json_places import Parsed, Repeated, parse
from ferrule.text.json_reader import DEEPEST, NotJson

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=12,
)
jsonish = st.text(alphabet="{}[]\",:\\/ \n\tu0d8aeE+-.1tfn#'“é\ud800", max_size=40)


@given(values, st.sampled_from([None, 2]), st.booleans())
def test_what_a_program_writes_is_read_as_it_was(value: Any, indent: int | None, plain: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain)

    parsed = parse(text)

    assert parsed.value == json.loads(text)
    assert parsed.repeated == ()


@given(jsonish | st.text())
def test_any_text_is_read_as_others_read_it_or_refused_with_words(text: str) -> None:
    outcome = _outcome(text)
    elsewhere = _read_elsewhere(text.removeprefix("\ufeff"))

    if isinstance(outcome, Parsed):
        assert [outcome.value] == elsewhere
    else:
        assert outcome.endswith(".")
        assert not elsewhere or "surrogate" in outcome or "too large" in outcome


def _outcome(text: str) -> Parsed | str:
    try:
        return parse(text)
    except NotJson as error:
        return str(error)


def _read_elsewhere(text: str) -> list[Any]:
    """What the standard library reads, in a list; empty where it finds no JSON."""
    try:
        return [json.loads(text, parse_constant=_no_constant)]
    except ValueError:
        return []


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\ufeff{}", {}),
        (' \r\n\t{"a":1}\n', {"a": 1}),
        ("30.0", 30),
        ("1e3", 1000),
        ("1.5", 1.5),
        ("-0", 0),
        (r'"\ud83d\ude00\u00e9\/\n"', "\U0001f600é/\n"),
        ('{"":{"":[]}}', {"": {"": []}}),
    ],
)
def test_valid_text_is_read(text: str, value: Any) -> None:
    parsed = parse(text).value

    assert (parsed, type(parsed)) == (value, type(value))


def test_a_repeated_key_is_reported_with_its_place_and_lines_and_the_last_counts() -> None:
    parsed = parse('{"a": [{"b": 1,\n"b": 2}],\r\n"b": 1, "b": 3}')

    assert parsed.value == {"a": [{"b": 2}], "b": 3}
    assert parsed.repeated == (Repeated(("a", 0, "b"), 1, 2), Repeated(("b",), 3, 3))


def test_nesting_has_a_bound_and_never_runs_out_of_stack() -> None:
    deep = "[" * DEEPEST + "]" * DEEPEST

    assert parse(deep).value
    assert _refusal("[" * 100_000) == snapshot(
        "invalid JSON in line 1, column 102: the value is nested more than 100 levels deep. Flatten it."
    )


def test_a_number_stays_finite() -> None:
    assert math.isfinite(parse("1e308").value)
    assert parse("9" * 300).value == int("9" * 300)
    assert "the number 999999999999999999999999999... is too large." in _refusal("9" * 5000)
    assert "the number -1e999 is too large." in _refusal("[-1e999]")


def test_errors_say_where_and_what_stands_there_and_what_to_do() -> None:
    broken = [
        "",
        '{"a": 1,}',
        '{"a": [1, 2,\n]}',
        '{\n  "a": 1, // why\n}',
        "# why\n{}",
        "{a: 1}",
        "{'a': 1}",
        '{"a": 1\n "b": 2}',
        '{"a" 1}',
        '{"a": True}',
        '{"a": NaN}',
        '{"a": 01}',
        '{"a": "b\nc"}',
        '{"a": "C:\\Users"}',
        '{"a": "\\ud800"}',
        '{"a": "\udc80"}',
        '{"a": "\x00"}',
        '{"a": \u00a01}',
        '{"a": “b”}',
        "{} {}",
        '{"a": {"b": 1}',
        "{}\r\n\r}",
    ]

    assert "\n".join(_refusal(text).removeprefix("invalid JSON in ") for text in broken) == snapshot("""\
the file is empty. Write at least an empty object or list, as its kind of file needs.
line 1, column 9: expected a key in double quotes, found `}`. Remove the comma before it.
line 2, column 1: expected a value, found `]`. Remove the comma before it.
line 2, column 11: expected a key in double quotes, found a comment. JSON has no comments; remove it.
line 1, column 1: expected a value, found a comment. JSON has no comments; remove it.
line 1, column 2: expected a key in double quotes or `}`, found `a`. Put strings and keys in double quotes.
line 1, column 2: expected a key in double quotes or `}`, found `'`. Use straight double quotes.
line 2, column 2: expected `,` or `}`, found `"`. A comma is missing before it.
line 1, column 6: expected `:` after the key, found `1`.
line 1, column 7: expected a value, found `True`. Write true.
line 1, column 7: expected a value, found `NaN`. JSON has no such number.
line 1, column 7: `01` is not a number. Write 30, -1 or 0.5, or put text in quotes.
line 1, column 7: this string is not closed. Add a double quote at its end; write a line break in it as \\n.
line 1, column 10: `\\U` is not a valid escape. Write `\\\\` for a backslash, or `\\uXXXX` for a character.
line 1, column 8: `\\ud800` is half of a surrogate pair and no character. Write both halves, or the character.
line 1, column 8: a string holds U+DC80, which is half of a surrogate pair and no character. Leave it out.
line 1, column 8: a string holds U+0000. Write it as \\u0000, or leave it out.
line 1, column 7: expected a value, found U+00A0 (no-break space).
line 1, column 7: expected a value, found `“`. Use straight double quotes.
line 1, column 4: expected the end of the file, found `{`. Remove what follows the first value.
line 1, column 15: expected `,` or `}`, found the end of the file.
line 3, column 1: expected the end of the file, found `}`. Remove what follows the first value.\
""")


def _refusal(text: str) -> str:
    with pytest.raises(NotJson) as caught:
        parse(text)
    return str(caught.value)
