"""The kernel holds a command to what it was taken for: a wrong reading costs a refusal, never a file.

The analysis is replaced by one that lies. Each attack first does its harm without the sandbox.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.requirement import requirement

from .attacks import attacks
from .starting import SITUATIONS, run_attacks

CORPUS = Path(__file__).parent.parent / "corpus"
PARTS = 2
WITHOUT_LAYER = ("root without capabilities", "an ordinary user without user namespaces")
"""There a supervisor holds commands. It gives a declared name to a neighbour as well, whose content stays as it is."""


def test_there_are_more_than_eight_hundred_attacks_and_most_are_tried_without_the_sandbox() -> None:
    there = attacks()

    assert len({attack.command for attack in there}) == len(there)
    assert sum(not attack.untried for attack in there) >= 800


def test_no_attack_is_a_command_of_the_corpus_that_must_not_be_run() -> None:
    lines = [line for name in ("bash", "bash_own") for line in (CORPUS / f"{name}.jsonl").read_text().splitlines()]
    forbidden = {case["command"] for case in map(json.loads, lines) if case["expect"] != "read_only"}

    assert not forbidden & {attack.command for attack in attacks()}


def _check_harm(*options: str) -> int:
    report = run_attacks("plainly", *options)
    assert report["harmless"] == {}
    ran: int = report["ran"]
    return ran


def _check_held(liar: str, *options: str, situation: str = "whoever runs the tests") -> int:
    is_supervised = liar == "background" or situation in WITHOUT_LAYER
    report = run_attacks(liar, *options, *(["--may-link"] if is_supervised else []), situation=situation)
    assert report["hits"] == {}
    assert report["refused"] == {}, "what did not run shows nothing"
    ran: int = report["ran"]
    return ran


@pytest.mark.timeout(300)
def test_attacks_do_their_harm_where_nothing_holds_them() -> None:
    """Some of them; those marked `harm` are all."""
    assert _check_harm("--every=15") > 80


@pytest.mark.harm
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_attack_does_its_harm_where_nothing_holds_it(part: int) -> None:
    assert _check_harm(f"--every={PARTS}", f"--first={part}") >= 800 // PARTS


@requirement("HELD-1")
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("liar", ["reading", "writing"])
def test_no_attack_touches_or_reads_a_canary_whatever_the_analysis_says(liar: str, part: int) -> None:
    assert _check_held(liar, f"--every={PARTS}", f"--first={part}") >= 800 // PARTS


@requirement("HELD-1")
@pytest.mark.harm
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_attack_gets_past_the_supervisor(part: int) -> None:
    assert _check_held("background", f"--every={PARTS}", f"--first={part}") >= 800 // PARTS


@requirement("HELD-1")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("liar", ["reading", "writing", "background"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_it_is_the_same_for_everybody(situation: str, liar: str) -> None:
    """Some of the attacks, others for each."""
    first = 3 * list(SITUATIONS).index(situation) + len(liar)

    assert _check_held(liar, "--every=45", f"--first={first}", situation=situation) > 20
