"""How many tokens a text is taken to have, and what is learned of a window."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.model import ModelFacts, UserTurn
from ferrule.engine.window import LEAST_WINDOW, LearnedWindows, TurnSizes, estimate, estimate_text

from .conversing import Faulty

COUNTED = json.loads(Path(__file__).with_name("token_counts.json").read_text("utf-8"))
"""Texts with what the tokenizer o200k counts."""


@pytest.mark.parametrize("kind", COUNTED)
def test_an_estimate_is_within_thirty_percent_of_what_a_tokenizer_counts(kind: str) -> None:
    text, tokens = COUNTED[kind]["text"], COUNTED[kind]["tokens"]

    assert 0.7 <= estimate_text(text) / tokens <= 1.3


@pytest.mark.parametrize("kind", ["Python", "base64", "Chinese", "digits"])
def test_a_long_text_is_estimated_from_samples_of_it(kind: str) -> None:
    text, tokens = COUNTED[kind]["text"], COUNTED[kind]["tokens"]

    assert 0.7 <= estimate_text(text * 500) / (tokens * 500) <= 1.3


def test_an_estimate_of_a_hundred_megabytes_reads_a_small_part_of_them() -> None:
    class Watched(str):
        __slots__ = ()
        read = 0

        def __getitem__(self, key: Any) -> str:
            part = super().__getitem__(key)
            Watched.read += len(part)
            return part

    text = Watched(COUNTED["Python"]["text"] * 65_000)

    estimate_text(text)

    assert len(text) > 100_000_000
    assert 0 < Watched.read < len(text) / 20


def test_halves_of_characters_and_ruled_lines_are_estimated_too() -> None:
    assert estimate_text("\ud83d" * 30) > 0
    assert 0 < estimate_text("A" * 1_200) < 600
    assert estimate_text("") == 0


def test_sizes_that_are_remembered_are_the_same() -> None:
    turns = [UserTurn.saying(one["text"]) for one in COUNTED.values()]
    sizes = TurnSizes()

    assert sizes.estimate(turns) == sizes.estimate(turns) == estimate(turns)


def test_a_window_only_ever_turns_out_smaller_than_believed() -> None:
    model, learned = Faulty(facts=ModelFacts(window=128_000, most_output=16_000)), LearnedWindows()

    learned.learn(model, 400_000)
    assert learned.facts_of(model) == model.facts

    learned.learn(model, 32_768)
    learned.learn(model, 64_000)
    assert learned.facts_of(model) == ModelFacts(window=32_768, most_output=6_553)

    learned.learn(model, 5)
    assert learned.facts_of(model).window == LEAST_WINDOW
