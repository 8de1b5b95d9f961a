from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.core.content import Code, Diff, Line, Listing, Markdown, Picture, Table, Terminal, Todo, TodoItem, View
from ferrule.output.plain import Style, clean, columns, fit, lines, summary, width_of
from tests.requirement import requirement

EVERY_KIND: tuple[View, ...] = (
    Line("one line"),
    Markdown("# Title\n\ntext"),
    Code("a\nb", "f.py", 9),
    Diff("f.py", "--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
    Listing(("x", "y"), 7),
    Terminal("false", "oh no", 1),
    Todo((TodoItem("this", "completed"), TodoItem("that", "in_progress"))),
    Table(("name", "size"), (("a", "1"), ("long name", "22"))),
    Picture("image/png", "iVBORw==", 1200, 800),
)


@requirement("CON-12")
def test_every_kind_of_view_has_a_summary() -> None:
    assert [summary(view) for view in EVERY_KIND] == snapshot(
        [
            "one line",
            "# Title",
            "2 lines",
            "f.py +1 -1",
            "2 of 7",
            "false (exit 1)",
            "1 of 2 done",
            "2 rows",
            "image/png, 1,200 by 800 pixels",
        ]
    )


@requirement("CON-12")
def test_every_kind_of_view_can_be_shown_in_full() -> None:
    assert [lines(view) for view in EVERY_KIND] == snapshot(
        [
            ["one line"],
            ["# Title", "", "text"],
            ["     9  a", "    10  b"],
            ["--- a/f.py", "+++ b/f.py", "@@ -1,2 +1,2 @@", " a", "-b", "+c"],
            ["x", "y", "... and 5 more"],
            ["$ false", "oh no", "(exit 1)"],
            ["[x] this", "[>] that"],
            ["name       size", "a          1", "long name  22"],
            ["image/png, 1,200 by 800 pixels"],
        ]
    )


@given(st.text())
def test_nothing_a_terminal_would_obey_is_left(text: str) -> None:
    cleaned = clean(text)

    assert not any(char < " " or "\x7f" <= char <= "\x9f" for char in cleaned if char != "\n")


@given(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc"))), st.integers(min_value=1, max_value=40))
def test_a_fitted_text_is_exactly_as_wide_as_asked(text: str, width: int) -> None:
    assert columns(fit(text, width)) == width


@pytest.mark.parametrize(
    ("environment", "terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
    ],
)
def test_colour_is_for_terminals_unless_somebody_says_otherwise(
    environment: dict[str, str], terminal: bool, colour: bool
) -> None:
    class Stream(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return terminal

    assert Style.of(Stream(), environment) == Style(colour=colour, unicode=True)


def test_the_width_is_what_columns_says_or_a_default() -> None:
    assert width_of(io.StringIO(), {"COLUMNS": "50"}) == 50
    assert width_of(io.StringIO(), {"COLUMNS": "3"}) == 20
    assert width_of(io.StringIO(), {"COLUMNS": "many"}) == 100
