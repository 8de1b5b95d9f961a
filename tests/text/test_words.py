"""What the model reads when an edit cannot be made."""

from __future__ import annotations

from typing import assert_never

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.text import edit_messages as words
from ferrule.text.lines import split_lines
from ferrule.text.matching import Ambiguous, Edited, How, NoChange, NotFound, apply, find
from ferrule.text.nearest import nearest
from tests.requirement import requirement
from tests.text.strategies import held, texts, tiny

PROGRAM = """\
import os


def first(path):
\tif not path:
\t\treturn None
\treturn os.listdir(path)[0]


def second(path):
    names = sorted(os.listdir(path))  \n\
    return names[1]
"""


@requirement("EDIT-1")
def test_an_ambiguous_text_is_said_to_be_so() -> None:
    assert said("a = 1\nb = 2\na = 1\n", "a = 1") == snapshot(
        "`old_string` occurs 2 times in src/a.py, on lines 1 and 3. "
        "Add surrounding lines until it is unique, or set `replace_all`."
    )
    assert said("x x x", "x") == snapshot(
        "`old_string` occurs 3 times in src/a.py, on line 1. "
        "Add surrounding lines until it is unique, or set `replace_all`."
    )
    assert said("x\n" * 2_000, "x") == snapshot(
        "`old_string` occurs 2,000 times in src/a.py, "
        "on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 and more. "
        "Add surrounding lines until it is unique, or set `replace_all`."
    )
    assert said("x" * 900, "x" * 500) == snapshot(
        "`old_string` occurs more than 100 times in src/a.py, on line 1. "
        "Add surrounding lines until it is unique, or set `replace_all`."
    )


@requirement("EDIT-5")
def test_a_change_that_is_none_is_said_to_be_so() -> None:
    assert said("a", "a", "a") == snapshot(
        "`old_string` and `new_string` are the same, so src/a.py would not change. Give the text it should have."
    )
    assert said("a\nb\n", "a\nb", "a\r\nb") == snapshot(
        "src/a.py would not change: an edit keeps the line endings and quotes of the text it matches. "
        "Convert line endings with a command, if you want that."
    )
    assert said("\u201ca\u201d", '"a"', "\u201ca\u201d") == snapshot(
        "src/a.py would not change: an edit keeps the line endings and quotes of the text it matches. "
        "To change them, give `old_string` with the quotes that the file has."
    )


@requirement("EDIT-7")
def test_an_empty_old_text_is_explained() -> None:
    assert said("text", "") == snapshot(
        "`old_string` is empty, which fits only a missing or empty file, and src/a.py has text. "
        "Give the text to replace, or use Write to replace all of it."
    )
    assert said("", "text") == snapshot(
        "`old_string` is not in src/a.py, which is empty. Leave `old_string` empty to fill it."
    )


@requirement("EDIT-2")
def test_a_text_that_resembles_nothing_is_said_to_do_so() -> None:
    assert said(PROGRAM, "SELECT count(*) FROM users;") == snapshot(
        "`old_string` is not in src/a.py, nor is anything like it. Read the file again, or find the text with Grep."
    )


@requirement("EDIT-2", "EDIT-4")
def test_tabs_and_spaces_are_told_apart() -> None:
    assert said(PROGRAM, "def first(path):\n    if not path:\n        return None\n") == snapshot("""\
`old_string` is not in src/a.py. The nearest text is on lines 4 to 6.
It differs in indentation: the file has tabs where `old_string` has spaces.

(- `old_string`, + the file; · is a space, → a tab)
     4   def first(path):
       - ····if·not·path:
       - ········return·None
     5 + →if·not·path:
     6 + →→return·None

Copy `old_string` from there; this is lines 4 to 6, exactly:
def first(path):
	if not path:
		return None\
""")


@requirement("EDIT-2", "EDIT-4")
def test_trailing_whitespace_is_shown() -> None:
    assert said(PROGRAM, "    names = sorted(os.listdir(path))\n    return names[1]") == snapshot("""\
`old_string` is not in src/a.py. The nearest text is on lines 11 to 12.
It differs in trailing whitespace: the file has 2 spaces where `old_string` has none.

(- `old_string`, + the file; · is a space, → a tab)
       - ····names·=·sorted(os.listdir(path))
    11 + ····names·=·sorted(os.listdir(path))··
    12       return names[1]

Copy `old_string` from there; this is lines 11 to 12, exactly:
    names = sorted(os.listdir(path))  \n\
    return names[1]\
""")


@requirement("EDIT-2")
def test_a_missing_line_is_shown() -> None:
    assert said(PROGRAM, "def first(path):\n\treturn os.listdir(path)[0]\n") == snapshot("""\
`old_string` is not in src/a.py. The nearest text is on lines 4 to 7.
It differs in 2 lines that the file has there and `old_string` does not.

(- `old_string`, + the file; · is a space, → a tab)
     4   def first(path):
     5 + →if·not·path:
     6 + →→return·None
     7   	return os.listdir(path)[0]

Copy `old_string` from there; this is lines 4 to 7, exactly:
def first(path):
	if not path:
		return None
	return os.listdir(path)[0]\
""")


@requirement("EDIT-2")
def test_a_word_that_differs_is_shown() -> None:
    assert said(PROGRAM, "names = sorted(os.scandir(path))") == snapshot("""\
`old_string` is not in src/a.py. The nearest text is on line 11.
It differs in its words.

(- `old_string`, + the file; · is a space, → a tab)
       - names·=·sorted(os.scandir(path))
    11 + ····names·=·sorted(os.listdir(path))··

Copy `old_string` from there; this is line 11, exactly:
    names = sorted(os.listdir(path))  \
""")


@pytest.mark.parametrize(
    ("text", "old", "difference"),
    [
        ("  a = 1\n", "    a = 1\n", "indentation: the file has 2 spaces where `old_string` has 4 spaces"),
        ("if x:\n  a = 1\n", "if x:\na = 1\n", "indentation: the file has 2 spaces where `old_string` has none"),
        ("  a = 1\n", "\ta = 1\n", "indentation: `old_string` has tabs where the file has spaces"),
        ("a = 1\n", "a = 1  \n", "trailing whitespace: the file has none where `old_string` has 2 spaces"),
        ("call(a, b)\n", "call(a,b)", "the spaces inside a line"),
        ("call(a, b)\n", " call(a,", "whitespace where it begins or ends"),
        ("Value = 1\n", "value = 1", "upper and lower case"),
        ("Value = 1\n", "value  = 1", "upper and lower case, and in whitespace"),
        ("one\n\ntwo\n", "one\ntwo\n", "blank lines"),
        ("call(a, b)\n", "call(a,\n     b)\n", "where the lines break"),
        (
            "caf\u00e9 open\n",
            "cafe\u0301 open",
            "characters that look alike or cannot be seen: U+00E9 in the file, U+0301 in `old_string`",
        ),
        ("a\u200bbcd\n", "abcd", "characters that look alike or cannot be seen: U+200B in the file"),
        ("total\u3000sum\n", "total sum", "whitespace: U+3000 is not a plain space"),
        ("one\nthree\n", "one\ntwo\nthree\n", "1 line of `old_string` that the file does not have there"),
        (
            "first = 1\nsecond = 2\nthird = 3\n",
            "first = 1\nthird = 3\n",
            "1 line that the file has there and `old_string` does not",
        ),
        ("result = compute(x)\n", "result = computed(y)\n", "its words"),
        ("alpha = 1\nbeta = 2\ngamma = 3\n", "alpha = 1\nbeta = 3\ngamma = 3\n", "1 of the 3 lines of `old_string`"),
        (
            "a = 1\nb = 2\n",
            "1\ta = 1\n2\tb = 2",
            "its line numbers, which Read adds and the file does not have",
        ),
        (
            "a = 1\nb = 2\n",
            "a = 1\\nb = 2",
            "its escapes: `old_string` has a backslash where the file has the character itself",
        ),
        ("a = 1", "a = 1\n", "line endings where it begins or ends, which the file does not have there"),
    ],
)
@requirement("EDIT-2")
def test_the_kind_of_difference_is_named(text: str, old: str, difference: str) -> None:
    near = nearest(f"# above\n\n{text}", old)

    assert find(text, old).spans == ()
    assert near is not None
    assert near.difference == difference


@requirement("EDIT-2")
def test_the_nearest_of_several_places_is_taken() -> None:
    text = "".join(f"def handle_{n}(request):\n    return {n} * request.size\n\n" for n in range(500))

    near = nearest(text, "def handle_321(request):\n    return 321 * request.length\n")

    assert near is not None
    assert (near.first, near.last) == (964, 965)
    assert near.there == "def handle_321(request):\n    return 321 * request.size\n"


@requirement("EDIT-2")
def test_of_a_long_line_only_the_part_is_shown() -> None:
    text = "".join(f"var name{n}={n};" for n in range(100_000))

    message = words.not_found("a.js", text, "var name500=500;var nameX=501;")

    assert "name500=500;var·name501=501;" in message
    assert len(message) < 1_000


@given(st.tuples(texts, texts.filter(bool)) | held() | held(tiny))
@requirement("EDIT-2")
def test_the_nearest_place_is_a_place_of_the_text(place: tuple[str, str]) -> None:
    text, old = place
    near = nearest(text, old)

    if near is not None:
        assert near.there in text
        assert 1 <= near.first <= near.last <= len(split_lines(text))
        assert near.is_part or near.there == "".join(split_lines(text)[near.first - 1 : near.last])


@given(st.text(max_size=200), st.text(min_size=1, max_size=200), st.integers(1, 300))
@requirement("EDIT-2")
def test_a_message_is_short_whatever_it_is_about(text: str, old: str, times: int) -> None:
    message = words.not_found("f", text * times, old * times)

    assert len(message) < 60_000
    assert message.count("\n") < 120


def test_how_a_text_was_matched_is_said() -> None:
    assert [words.describe_match(how) for how in How] == snapshot(
        [
            "",
            "Matched apart from line endings; those of the file were kept.",
            "Matched apart from curly and straight quotes; those of the file were kept.",
        ]
    )


def said(text: str, old: str, new: str = "new") -> str:
    match apply(text, old, new, replace_all=False):
        case NotFound():
            return words.not_found("src/a.py", text, old)
        case Ambiguous() as found:
            return words.ambiguous("src/a.py", found)
        case NoChange() as found:
            return words.no_change("src/a.py", found)
        case Edited():
            return "edited"
        case other:
            assert_never(other)
