"""What command lines mean, those of Claude Code above all."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.cli.exits import UsageError
from ferrule.cli.parser import parse_prompt
from tests.requirement import requirement

TABLE = Path(__file__).with_name("command_lines.txt")
FEWEST = 120
REFUSED = "!"


def _rows() -> Iterator[tuple[str, str]]:
    for row in TABLE.read_text().splitlines():
        if row and not row.startswith("#"):
            line, _, meaning = row.partition(" => ")
            yield line.strip().removeprefix("claude").strip(), meaning.strip()


ROWS = tuple(_rows())


def _meaning(line: str) -> dict[str, Any]:
    plain = vars(parse_prompt([]))
    chosen = vars(parse_prompt(shlex.split(line)))
    return {name: value for name, value in chosen.items() if name != "last_taken" and value != plain[name]}


@requirement("PROG-1")
def test_there_are_enough_lines_to_stand_for_the_others() -> None:
    taken = [line for line, meaning in ROWS if not meaning.startswith(REFUSED)]

    assert len(taken) >= FEWEST
    assert len(set(ROWS)) == len(ROWS)


@pytest.mark.parametrize(("line", "meaning"), ROWS)
@requirement("PROG-1")
def test_a_command_line_means_what_it_means_in_claude_code(line: str, meaning: str) -> None:
    if meaning.startswith(REFUSED):
        with pytest.raises(UsageError) as refused:
            parse_prompt(shlex.split(line))
        assert meaning.removeprefix(REFUSED) in str(refused.value)
    else:
        assert _meaning(line) == json.loads(meaning)


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(lambda word: word[0] != "-")


@given(
    st.lists(WORDS, min_size=1), st.sampled_from(["--allowedTools", "--deny", "--tools", "--add-dir", "--mcp-config"])
)
@requirement("PROG-1")
def test_no_word_of_a_list_becomes_the_prompt(words: list[str], flag: str) -> None:
    for line in (["-p", flag, *words], [flag, *words, "-p"], ["-p", flag, *words, "--", "go"]):
        chosen = parse_prompt(line)

        taken = chosen.allow or chosen.deny or chosen.tools or chosen.add_dir or chosen.mcp_config
        assert (taken, chosen.prompt) == (words, "go" if "go" in line[-1:] and "--" in line else None)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_follows_two_dashes_is_the_prompt_as_it_is(prompt: str) -> None:
    assert parse_prompt(["-p", "--model", "m", "--", prompt]).prompt == prompt


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_follows_an_equals_sign_is_the_value_as_it_is(value: str) -> None:
    chosen = parse_prompt(["-p", f"--append-system-prompt={value}", f"--deny={value}", "go"])

    assert (chosen.append_system_prompt, chosen.deny, chosen.prompt) == (value, [value], "go")
