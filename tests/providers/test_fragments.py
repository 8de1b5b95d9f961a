"""Turns are encoded once, however long the conversation and however many there are."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.model import Turn, UserTurn
from ferrule.providers.json_fragments import MOST_CONVERSATIONS, TurnFragments, encode_json, join_fragments


class Counting:
    """The encoder that a wire would bring, and what it was given."""

    def __init__(self) -> None:
        self.given: list[Turn] = []

    def __call__(self, turn: Turn) -> bytes:
        self.given.append(turn)
        assert isinstance(turn, UserTurn)
        return turn.content[0].text.encode()  # type: ignore[union-attr]


def test_a_growing_conversation_costs_its_new_turns_only() -> None:
    encode = Counting()
    fragments = TurnFragments(encode)
    history: list[Turn] = []
    for number in range(50):
        history.append(UserTurn.saying(str(number)))
        assert fragments.of(history) == [str(one).encode() for one in range(number + 1)]

    assert encode.given == history


def test_conversations_side_by_side_do_not_cost_each_other() -> None:
    encode = Counting()
    fragments = TurnFragments(encode)
    histories = [[UserTurn.saying(f"{one}.{turn}") for turn in range(3)] for one in range(MOST_CONVERSATIONS)]
    for length in (1, 2, 3):
        for history in histories:
            fragments.of(history[:length])

    assert len(encode.given) == 3 * MOST_CONVERSATIONS


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=60))
def test_whatever_was_asked_before_the_fragments_are_those_of_the_history(asked: list[list[int]]) -> None:
    turns = [UserTurn.saying(str(number)) for number in range(10)]
    fragments = TurnFragments(Counting())
    for numbers in asked:
        assert fragments.of([turns[number] for number in numbers]) == [str(number).encode() for number in numbers]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(values)
def test_anything_a_model_may_have_written_can_be_sent_as_json(value: Any) -> None:
    assert json.loads(encode_json([value])) is not None


@given(st.text(st.characters()))
def test_half_characters_are_replaced_and_the_rest_stays(text: str) -> None:
    (back,) = json.loads(encode_json([text]))

    assert back == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def test_fragments_that_are_empty_leave_no_trace() -> None:
    assert join_fragments(b"[", [b"", b"1", b"", b"2", b""], b"]") == b"[1,2]"
    assert join_fragments(b"[", [b""], b"]") == b"[]"
