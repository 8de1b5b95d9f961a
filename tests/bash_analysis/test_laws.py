"""Laws of the analysis, for any command."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.bash_analysis.analysis import explain_analysis
from ferrule.bash_analysis.analysis_budget import AnalysisBudget
from ferrule.bash_analysis.command_effects import ENTRIES
from tests.bash_analysis.looking import is_read_only, look
from tests.drawing import examples
from tests.requirement import requirement

CORPUS = Path(__file__).parent.parent / "corpus"
COMMANDS = [
    json.loads(line)["command"] for line in (CORPUS / "bash_own.jsonl").read_text(encoding="utf-8").splitlines()
]
ASKING = [command for command in COMMANDS if not is_read_only(command)]

WRAPS = [
    "{ %s\n}",
    "(%s\n)",
    "! %s",
    "ls; %s",
    "%s\nls",
    "ls && %s",
    "ls || %s",
    "ls | %s",
    "%s | cat",
    "if ls; then %s\nfi",
    "if %s\nthen ls; fi",
    "for f in a; do %s\ndone",
    "while false; do %s\ndone",
    "case a in a) %s\n;; esac",
    "echo $(%s\n)",
    'echo "$(%s\n)"',
    "cat <(%s\n)",
    "f() { %s\n}; f",
    "unused=1; %s",
    "cd . && %s",
    "timeout 5 %s",
    "nice %s",
    "command %s",
    "env %s",
    "nohup %s",
    "time %s",
    "FOO=1 %s",
    "LANG=C %s",
    "\\\n%s",
    "   %s",
    ": ${x:-$(%s\n)}",
]
# fmt: off
PIECES = (
    "ls", "rm x", " ", "\n", ";", "|", "&", "(", ")", "{", "}", "$", "$(", "${", "$((", "))", "`", "\"", "'", "\\",
    "<", ">", "<<E\n", "\nE\n", "[[", "]]", "=", "x=", "*", "?", "[", "]", "~", "#", "!", "if", "then", "fi", "for",
    "in", "do", "done", "case", "esac", ";;", "function", "f()", "-o", "--", "\u00e9", "\u200b", "\r", "\u0000",
    "{a,b}", "{1..9}", "1", "2>&1",
)
# fmt: on


@given(st.sampled_from(ASKING), st.lists(st.sampled_from(WRAPS), min_size=1, max_size=3))
@examples(100)
@requirement("SHELL-2")
def test_wrapping_a_command_never_makes_it_safer(command: str, wraps: list[str]) -> None:
    for wrap in wraps:
        command = wrap.replace("%s", command)

    assert not is_read_only(command)


@given(st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@examples(100)
def test_any_text_gets_an_answer_that_agrees_with_itself(text: str) -> None:
    analysis = look(text)

    assert analysis.effects.unknown == bool(analysis.reasons)
    assert explain_analysis(analysis)
    assert not (analysis.effects.read_only and analysis.effects.unknown)


@given(st.sampled_from(sorted(ENTRIES)), st.sampled_from(["--no-such-option", "--zzz=1", "-\u00e9", "--\u00e9"]))
def test_an_option_that_is_not_in_the_table_makes_a_call_unknown(name: str, option: str) -> None:
    if name in ("echo", "true", "false", ":", "expr"):
        return  # they take every word as text
    if name == "printf" and not option.startswith("-"):
        return

    assert look(f"{name} {option}").effects.unknown


@given(st.sampled_from(PIECES), st.sampled_from(PIECES), st.integers(min_value=1, max_value=400))
@examples(80)
@requirement("SHELL-1")
def test_repeated_pieces_cannot_stall_it(one: str, other: str, count: int) -> None:
    text = (one + other) * count
    start = time.process_time()

    look(text)

    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "text",
    [
        "{|" * 5000,
        "[[ <function f " * 500,
        "function f do " * 1000,
        "ls; " * 500 + "(" * 20,
        "echo " + "$((1+2)) " * 150,
        "w " * 5_900,
        "a" * 99_900 + "(",
        "\n" * 90_000,
        "$[" * 4900,
        "x=aaaaaaaa; " + "x=$x$x; " * 40 + "ls $x",
        "sed 's/" + "[a" * 4900 + "/b/' f",
        "awk '/" + "[][]" * 2400 + "' f",
        "x='" + "[" * 3900 + "'; ls " + "$x " * 100,
        'x="' + "ls;" * 1000 + '"; ' + 'bash -c "$x"; ' * 40,
        "echo " + "{a,b}" * 40,
        "xargs " * 590,
        "a" * 9_900 + "(",
        "ls " + "((" * 4000,
        "'" * 9_999,
        "\n" * 10_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_texts_are_answered_at_once(text: str) -> None:
    start = time.process_time()

    look(text)

    assert time.process_time() - start < 1


def test_a_budget_ends() -> None:
    budget = AnalysisBudget()

    assert sum(budget.simple() for _ in range(1000)) < 1000
    assert sum(budget.script(1) for _ in range(1000)) < 50
    assert not AnalysisBudget().script(100_000)
    assert not budget.words(1000)
