from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.hooks.event_names import MOMENTS
from ferrule.hooks.hook import HookBook
from ferrule.hooks.hook_matching import BadMatcher, matcher
from tests.requirement import requirement

from .scripts import program

CASES = [
    ("", "Bash", True),
    ("*", "Bash", True),
    ("Bash", "Bash", True),
    ("bash", "Bash", False),
    ("Edit", "NotebookEdit", False),
    ("Edit|Write", "Write", True),
    ("Edit, Write", "Write", True),
    ("Edit|Write", "Read", False),
    ("Edit.*", "NotebookEdit", True),
    ("^Edit$", "NotebookEdit", False),
    ("mcp__memory", "mcp__memory__save", False),
    ("mcp__memory__.*", "mcp__memory__save", True),
    ("mcp__.*__write.*", "mcp__files__write_file", True),
    ("mcp__my-server__do", "mcp__my-server__do", True),
    ("(?<verb>Ba)sh", "Bash", True),
]


@requirement("HOOK-1")
@pytest.mark.parametrize(("text", "name", "matches"), CASES)
def test_a_matcher_is_a_list_of_names_or_an_expression(text: str, name: str, matches: bool) -> None:
    assert matcher(text, "PreToolUse")(name) is matches


def test_an_event_without_a_subject_matches_whatever_the_matcher() -> None:
    assert matcher("Bash", "Stop")("")


def test_a_broken_expression_is_named() -> None:
    with pytest.raises(BadMatcher, match=r"`Bash\(` is not a valid regular expression"):
        matcher("Bash(", "PreToolUse")


@given(st.text(max_size=30), st.sampled_from(sorted(MOMENTS)), st.text(max_size=30))
def test_a_matcher_matches_or_is_refused(text: str, event: str, name: str) -> None:
    try:
        matches = matcher(text, event)
    except BadMatcher:
        return
    assert matches(name) in (True, False)


@requirement("HOOK-1")
def test_of_hooks_that_would_do_the_same_only_the_first_runs() -> None:
    one, same, other = program("x", name="one"), program("x", name="same"), program("y")

    assert HookBook([one, same, other]).choose("PreToolUse", "Bash") == (one, other)
