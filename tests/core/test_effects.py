"""What a call would touch, and what follows from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.effects import (
    CWD,
    Change,
    ChangesState,
    Effects,
    Opaque,
    ReachesHost,
    ReadsPath,
    ReadsState,
    RunsCommand,
    Touch,
    WritesPath,
    describe_touch,
)
from tests.requirement import requirement

_names = st.sampled_from(["/a", "/a/b", "/c", "x"])
_touches: st.SearchStrategy[Touch] = st.one_of(
    st.builds(ReadsPath, _names),
    st.builds(WritesPath, _names, st.sampled_from(Change)),
    st.builds(RunsCommand, st.tuples(_names), st.just(""), st.booleans()),
    st.builds(ReachesHost, _names, st.booleans()),
    st.builds(ReadsState, _names),
    st.builds(ChangesState, _names),
    st.just(Opaque()),
)
_effects = st.lists(_touches, max_size=6).map(lambda touches: Effects.of(*touches))


@requirement("CON-5")
@given(_effects)
def test_no_effects_are_both_read_only_and_destructive(effects: Effects) -> None:
    assert not (effects.read_only and effects.destructive)


@requirement("CON-5")
@given(_effects)
def test_unknown_effects_are_never_read_only_and_always_destructive(effects: Effects) -> None:
    assert not effects.unknown or (effects.destructive and not effects.read_only)


@requirement("CON-5")
@given(_effects, _touches)
def test_one_more_touch_never_makes_effects_look_safer(effects: Effects, touch: Touch) -> None:
    more = Effects((*effects.touches, touch))

    assert effects.read_only or not more.read_only
    assert not effects.destructive or more.destructive
    assert not effects.unknown or more.unknown


@requirement("CON-5")
@given(st.permutations([ReadsPath("/a"), WritesPath("/b"), Opaque(), ReachesHost("h"), ChangesState("k")]))
def test_the_order_of_touches_says_nothing(touches: list[Touch]) -> None:
    effects = Effects.of(*touches)

    assert (effects.read_only, effects.destructive, effects.unknown) == (False, True, True)


@requirement("CON-5")
@pytest.mark.parametrize(
    ("effects", "read_only", "destructive", "unknown"),
    [
        (Effects(), False, True, True),
        (Effects.of(), True, False, False),
        (Effects.reading("/a", "/b"), True, False, False),
        (Effects.of(WritesPath("/a")), False, True, False),
        (Effects.of(WritesPath("/a", Change.CREATES)), False, False, False),
        (Effects.of(WritesPath("/a", Change.REPLACES)), False, True, False),
        (Effects.of(RunsCommand(("ls",))), False, True, True),
        (Effects.of(RunsCommand(("ls",), accounted=True), ReadsPath("/a")), True, False, False),
        (Effects.of(RunsCommand(("rm", "a"), accounted=True), WritesPath("/a")), False, True, False),
        (Effects.of(ReachesHost("h")), False, False, False),
        (Effects.of(ReachesHost("h", sends=False)), True, False, False),
        (Effects.of(ReadsState(CWD)), True, False, False),
        (Effects.of(ChangesState(CWD)), False, False, False),
    ],
)
def test_effects_say_what_follows_from_them(
    effects: Effects, read_only: bool, destructive: bool, unknown: bool
) -> None:
    assert (effects.read_only, effects.destructive, effects.unknown) == (read_only, destructive, unknown)


@requirement("CON-5")
def test_effects_give_their_touches_by_kind() -> None:
    reads, writes = ReadsPath("/a"), WritesPath("/b")
    host, command = ReachesHost("h"), RunsCommand(("ls",))

    effects = Effects.of(reads, writes, host, command)

    assert (effects.reads, effects.writes, effects.hosts, effects.commands) == (
        (reads,),
        (writes,),
        (host,),
        (command,),
    )


@requirement("CON-5")
def test_unknown_effects_may_change_any_state() -> None:
    assert Effects().changes_state("anything")
    assert Effects.of(ChangesState("todo")).changes_state("todo")
    assert not Effects.of(ChangesState("todo"), ReadsState(CWD)).changes_state(CWD)


@requirement("CON-5")
@pytest.mark.parametrize(
    ("touch", "words"),
    [
        (ReadsPath("/a"), "reads /a"),
        (WritesPath("/a"), "deletes /a"),
        (WritesPath("/a", Change.REPLACES), "replaces /a"),
        (RunsCommand(("git", "status")), "runs git status"),
        (RunsCommand(("git",), source="git status | cat"), "runs git status | cat"),
        (ReachesHost("example.org"), "sends to example.org"),
        (ReachesHost("example.org", sends=False), "fetches from example.org"),
        (ReadsState(CWD), "depends on the session's cwd"),
        (ChangesState(CWD), "changes the session's cwd"),
        (Opaque(), "may do anything: the tool cannot say"),
    ],
)
def test_a_touch_has_words_for_a_person(touch: Touch, words: str) -> None:
    assert describe_touch(touch) == words
