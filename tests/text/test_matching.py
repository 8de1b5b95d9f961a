"""Where a text is found, and what an edit leaves alone."""

# ruff: noqa: RUF001 - quotes that look alike are what this is about

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ferrule.text.lines import to_lf
from ferrule.text.matching import (
    Ambiguous,
    Edited,
    How,
    NoChange,
    NotFound,
    Span,
    TextEdit,
    TextMatch,
    apply,
    find,
    replacement,
    splice_edits,
)
from ferrule.text.styles import straight
from tests.requirement import requirement
from tests.text.strategies import QUOTES, contents, endings, held, plain, texts, tiny


@given(held() | held(tiny) | st.tuples(tiny, tiny.filter(bool)))
def test_what_is_found_is_what_a_plain_search_finds(place: tuple[str, str]) -> None:
    text, old = place
    by_rank = [(how, plain_search(text, old, how)) for how in How]

    assert (find(text, old).how, find(text, old).spans) == next(
        ((how, spans) for how, spans in by_rank if spans), (How.EXACT, ())
    )


@given(held() | held(tiny), st.integers(2, 5))
def test_the_first_places_are_those_of_all_places_and_the_others_are_counted(place: tuple[str, str], most: int) -> None:
    every, first = find(*place), find(*place, most=most)

    assert first == replace(every, spans=every.spans[:most], more=len(every.spans) - len(first.spans))


@given(texts, texts, texts)
@requirement("EDIT-1")
def test_an_exact_match_always_wins(before: str, old: str, after: str) -> None:
    assume(old and not (before.endswith("\r") and old.startswith("\n")))

    assert find(before + old + after, old).how is How.EXACT


@given(st.lists(st.tuples(contents, endings, endings), min_size=1, max_size=8))
@requirement("EDIT-4")
def test_the_same_lines_match_whatever_their_endings(lines: list[tuple[str, str, str]]) -> None:
    text = "".join(content + ending for content, ending, _ in lines) + "end"
    old = "".join(content + ending for content, _, ending in lines) + "end"

    match = find(text, old)

    assert match.spans == (Span(0, len(text)),)
    assert match.how is (How.EXACT if text == old else How.LINE_ENDINGS)


@given(st.lists(st.sampled_from(QUOTES), min_size=1, max_size=8), st.data())
@requirement("EDIT-3")
def test_the_same_words_match_whatever_their_quotes(quotes: list[str], data: st.DataObject) -> None:
    others = [data.draw(st.sampled_from([q for q in QUOTES if straight(q) == straight(quote)])) for quote in quotes]
    text, old = (f"x{'y'.join(chars)}z" for chars in (quotes, others))

    assert find(text, old) == TextMatch((Span(0, len(text)),), How.EXACT if text == old else How.QUOTES)


@given(held() | held(tiny), texts, st.booleans())
@requirement("EDIT-4")
def test_nothing_outside_the_spans_changes(place: tuple[str, str], new: str, replace_all: bool) -> None:
    text, old = place
    done = apply(text, old, new, replace_all=replace_all)
    if not isinstance(done, Edited):
        return

    result = splice_edits(text, done.edits)

    gaps = [
        text[one.end : two.start]
        for one, two in pairwise([TextEdit(0, 0, ""), *done.edits, TextEdit(len(text), 0, "")])
    ]
    assert result != text
    assert result == gaps[0] + "".join(edit.new + gap for edit, gap in zip(done.edits, gaps[1:], strict=True))
    assert all(edit.start <= edit.end for edit in done.edits)
    assert all(one.end <= two.start for one, two in pairwise(done.edits))


@given(st.lists(plain, min_size=2, max_size=4), plain.filter(bool), plain)
@requirement("EDIT-1")
def test_replacing_all_replaces_every_span(parts: list[str], old: str, new: str) -> None:
    assume(old != new)
    text = old.join(parts)

    done = apply(text, old, new, replace_all=True)

    assert isinstance(done, Edited)
    assert done.count == len(done.edits) == len(find(text, old).spans) == text.count(old)
    assert splice_edits(text, done.edits) == text.replace(old, new)


@given(st.lists(contents, min_size=1, max_size=6), endings, plain, st.data())
@requirement("EDIT-5")
def test_an_edit_and_its_inverse_give_back_the_text(
    lines: list[str], ending: str, new: str, data: st.DataObject
) -> None:
    units = [unit for line in lines for unit in (*line, ending)]
    low = data.draw(st.integers(0, len(units) - 1))
    high = data.draw(st.integers(low + 1, len(units)))
    text, old = "".join(units), "".join(units[low:high])

    done = apply(text, old, f"<{new}>", replace_all=False)
    if not isinstance(done, Edited):
        return
    (edit,) = done.edits
    result = splice_edits(text, done.edits)
    back = apply(result, edit.new, old, replace_all=False)

    assert isinstance(back, Edited)
    assert splice_edits(result, back.edits) == text


@given(texts, texts, st.booleans())
def test_an_edit_that_was_made_can_be_told_from_one_that_was_not(text: str, new: str, replace_all: bool) -> None:
    match apply(text, "a", new, replace_all=replace_all):
        case Edited(count=count):
            assert count == text.count("a")
        case Ambiguous(count=count, lines=lines):
            assert not replace_all
            assert count == text.count("a") == len(lines) > 1
        case NotFound():
            assert "a" not in text
        case NoChange(equal=equal):
            assert equal == (new == "a")


@pytest.mark.parametrize("new", ["$1", r"\1", r"\g<0>", "&", "$&$`$'", "%s", "{0}", "\\", "\\n"])
@requirement("EDIT-5")
def test_the_replacement_is_literal(new: str) -> None:
    assert edited("a b", "b", new) == f"a {new}"


@pytest.mark.parametrize("replace_all", [False, True])
@requirement("EDIT-5")
def test_old_equal_to_new_changes_nothing(replace_all: bool) -> None:
    assert apply("a", "a", "a", replace_all=replace_all) == NoChange(equal=True)
    assert apply("a", "zz", "zz", replace_all=replace_all) == NoChange(equal=True)


@requirement("EDIT-5")
def test_a_replacement_that_the_style_of_the_file_undoes_changes_nothing() -> None:
    assert apply("a\nb\n", "a\nb", "a\r\nb", replace_all=False) == NoChange(equal=False)
    assert apply("“a”", '"a"', "“a”", replace_all=False) == NoChange(equal=False, how=How.QUOTES)


@requirement("EDIT-1")
def test_several_occurrences_are_named_by_their_lines() -> None:
    assert apply("a\n\na a\r\nb\ra", "a", "c", replace_all=False) == Ambiguous(count=4, lines=(1, 3, 3, 4))
    assert apply("a\ra", "a", "c", replace_all=False) == Ambiguous(count=2, lines=(1, 2))


@requirement("EDIT-1")
def test_only_the_first_twenty_lines_are_named() -> None:
    assert apply("a\n" * 50, "a", "c", replace_all=False) == Ambiguous(count=50, lines=tuple(range(1, 21)))


@requirement("EDIT-1")
def test_places_that_overlap_are_ambiguous_where_it_matters_which_one_is_taken() -> None:
    assert apply("aaaa", "aaa", "b", replace_all=False) == Ambiguous(count=2, lines=(1, 1))
    assert edited("a\n\n\n\nb", "\n\n\n", "\n\n") == "a\n\n\nb"
    assert edited("aaaa", "aaa", "b", replace_all=True) == "ba"


@requirement("EDIT-1")
def test_of_very_many_places_that_overlap_only_so_many_are_counted() -> None:
    assert apply("a" * 500, "a" * 300, "b", replace_all=False) == Ambiguous(count=101, lines=(1,) * 20, is_least=True)
    assert apply("a" * 399, "a" * 300, "b", replace_all=False) == Ambiguous(count=100, lines=(1,) * 20)


@requirement("EDIT-1")
def test_millions_of_places_are_counted_and_not_edited_one_by_one() -> None:
    """Making the edits first would take minutes."""
    for text, old in (("a\r\n", "a\n"), ("“a”", '"a"'), ("ab\n", "a")):
        outcome = apply(text * 3_000_000, old, "x\n", replace_all=False)

        assert isinstance(outcome, Ambiguous)
        assert outcome.count == 3_000_000


@pytest.mark.parametrize("old", ["a  b", "a\tb", " a b", "a b ", "A b", "a\u00a0b"])
@requirement("EDIT-4")
def test_whitespace_is_not_guessed(old: str) -> None:
    assert apply("a b", old, "c", replace_all=True) == NotFound()


@requirement("EDIT-7")
def test_an_empty_old_text_stands_in_an_empty_text_only() -> None:
    assert apply("", "", "new", replace_all=False) == Edited(edits=(TextEdit(0, 0, "new"),), count=1, how=How.EXACT)
    assert apply("text", "", "new", replace_all=True) == NotFound()


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("one\r\ntwo\r\n", "\ntwo", "", "one\r\n"),
        ("one\r\ntwo\r\n", "\ntwo", "\n2\n3", "one\r\n2\r\n3\r\n"),
        ("one\r\ntwo\r\n", "one\n", "1\n", "1\r\ntwo\r\n"),
        ("one\r\ntwo\r\n", "two", "2\n3", "one\r\n2\r\n3\r\n"),
        ("one\rtwo\rthree", "one\ntwo", "1\n2\n2b", "1\r2\r2b\rthree"),
        ("one\ntwo\n", "one\r\ntwo", "1\r\n2", "1\n2\n"),
        ("one\ntwo\r\nthree\n", "one\ntwo\nthree", "one\n2\nthree", "one\n2\r\nthree\n"),
        ("one\ntwo\r\nthree\n", "one\ntwo\nthree\n", "two\nthree\n", "two\r\nthree\n"),
        ("one\ntwo\r\nthree\rfour", "one\ntwo\nthree\nfour", "1\n2\n3\n4\n5", "1\n2\r\n3\r4\r5"),
        ("one\r\ntwo\r\nthree\n", "three", "3\n4", "one\r\ntwo\r\n3\r\n4\n"),
        ("one", "one", "1\r\n2", "1\r\n2"),
        ("1\r2\nend\n", "1\r2\n", "1\n3\n", "1\n3\nend\n"),
        ("1\r2\nend\n", "1\r2", "1\n3", "1\n3\nend\n"),
        ("1\r2\nend\n", "1\n2", "1\n3", "1\r3\nend\n"),
        ("1\r2\r\nend\r\n", "1\r2", "1\n3", "1\r\n3\r\nend\r\n"),
        ("1\r2\r3\r4\nend\n", "end", "END\nmore", "1\r2\r3\r4\nEND\nmore\n"),
        ("1\r2\r3", "2", "2\n2b", "1\r2\r2b\r3"),
        ("one\n", "one", "progress\rdone", "progress\rdone\n"),
    ],
)
@requirement("EDIT-4")
def test_line_endings_stay_those_of_the_place(text: str, old: str, new: str, result: str) -> None:
    assert edited(text, old, new) == result


@requirement("EDIT-4")
def test_whoever_names_the_carriage_return_can_take_it_away() -> None:
    assert edited("a\r\nb\r\n", "\r", "", replace_all=True) == "a\nb\n"
    assert edited("a\r\nb", "a\r", "x\n\r") == "x\n\r\nb"


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("say “hi” now", 'say "hi"', 'say "bye"', "say “bye” now"),
        ("it’s", "it's", "it's not, isn't it", "it’s not, isn’t it"),
        ("‘a’ ‘b’", "'a' 'b'", "('c') 'b'", "(‘c’) ‘b’"),
        ('say "hi" now', "say “hi”", "say “bye” or “go”", 'say "bye" or "go" now'),
        ("5′ 3″", "5' 3\"", "6' 4\"", "6′ 4″"),
        ("’twas “so”", '\'twas "so"', '\'twas "not"', "’twas “not”"),
        ('f(“a”, "b")', 'f("a", "b")', 'g("a", "b", c)', 'g(“a”, "b", c)'),
        ("“one”\r\n“two”", '"one"\n"two"', '"one"\n"2"', "“one”\r\n“2”"),
        ("“a” b", '"a" b', '"a" it\'s', "“a” it's"),
    ],
)
@requirement("EDIT-3")
def test_quotes_stay_those_of_the_place(text: str, old: str, new: str, result: str) -> None:
    done = apply(text, old, new, replace_all=False)

    assert isinstance(done, Edited)
    assert done.how is How.QUOTES
    assert splice_edits(text, done.edits) == result


@requirement("EDIT-3")
def test_an_exact_match_may_change_the_quotes() -> None:
    assert edited("“a”", "“a”", '"a"') == '"a"'


@given(held(), texts)
def test_a_replacement_is_the_same_alone_as_in_an_edit(place: tuple[str, str], new: str) -> None:
    text, old = place
    done = apply(text, old, new, replace_all=True)
    if not isinstance(done, Edited):
        return

    assert [replacement(text, Span(edit.start, edit.end), new, done.how) for edit in done.edits] == [
        edit.new for edit in done.edits
    ]


def test_finding_takes_time_in_proportion() -> None:
    """Each of these would take hours if every position were compared anew."""
    pairs = "\r\n" * 500_000

    assert find(pairs, "\n" + "\r\n" * 200_000 + "x").spans == ()
    assert find("ab" * 500_000, "ab" * 200_000 + "c").spans == ()
    assert find(pairs, "\n" * 400_001).spans == (Span(0, 800_002),)
    assert find("’" * 1_000_000, "'" * 400_000 + "x").spans == ()


def edited(text: str, old: str, new: str, *, replace_all: bool = False) -> str:
    done = apply(text, old, new, replace_all=replace_all)
    assert isinstance(done, Edited), done
    return splice_edits(text, done.edits)


def plain_search(text: str, old: str, how: How) -> tuple[Span, ...]:
    """As the words say it, at any price."""
    fold = {How.EXACT: str, How.LINE_ENDINGS: to_lf, How.QUOTES: lambda part: straight(to_lf(part))}[how]
    spans, at = list[Span](), 0
    while at < len(text):
        ends = [] if in_pair(text, at) else [end for end in range(at + 1, len(text) + 1) if whole(text, end, how)]
        end = next((end for end in ends if fold(text[at:end]) == fold(old)), None)
        if end is not None:
            spans.append(Span(at, end))
        at = end or at + 1
    return tuple(spans)


def whole(text: str, end: int, how: How) -> bool:
    return how is How.EXACT or not in_pair(text, end)


def in_pair(text: str, at: int) -> bool:
    return text[max(at - 1, 0) : at + 1] == "\r\n"
