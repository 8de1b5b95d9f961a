"""What the analysis makes of a text, beside what bash makes of it.

bash is given no program to find: every command it would run ends in
`command_not_found_handle`, which only tells its words.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.bash_analysis.analysis_budget import AnalysisBudget
from ferrule.bash_analysis.shell_state import ShellState
from ferrule.bash_analysis.shell_words import Word
from ferrule.bash_analysis.syntax import parse_command
from ferrule.bash_analysis.tokens import Unreadable
from ferrule.bash_analysis.walk import walk_syntax
from tests.drawing import examples
from tests.requirement import requirement

BASH = shutil.which("bash")
VALUES = {"v": "q r", "w": "zz"}

# fmt: off
QUOTING = (
    "'", "\"", "\\", " ", "a", "b", "$", "$'", "{", ",", "}", "~", "#", "\n", "\\\n", "..", "1", "3", "\t", "x",
    "n", "[", "]", "=", "!", "%", "${v}", "$v", "\"$v\"", "${v:-b}", "-", "\u00e9", "${w}", "\\'", "\\\"", "=~",
    "${v:1}",
)
# fmt: on
# fmt: off
GRAMMAR = (
    "pa ", "pb ", "x ", "y ", "\n", "; ", "&& ", "|| ", "| ", "& ", "(", ") ", "{ ", "; }", "$(", "`", "\"", "'",
    "\\", "#", " #", "<<E\n", "\nE\n", "<<'E'\n", "<<<", "<(", "[[ ", " ]]", "if ", "; then ", "; else ", "; fi",
    "for i in ", "; do ", "; done", "case x in ", "x) ", ";; ", "esac", "! ", "${x:-", "}", "\"$(pa ", "v=1 ",
    "{a,b}", "2>&1 ",
)
# fmt: on

pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash to compare with")


@given(st.lists(st.sampled_from(QUOTING), min_size=1, max_size=9).map("".join))
@examples(60)
@requirement("SHELL-1")
def test_a_word_that_is_certain_is_what_bash_makes_of_it(body: str) -> None:
    command = f"pa {body}"
    simples = understood(command)
    if simples is None or len(simples) != 1 or simples[0][0] != "pa" or any(word is None for word in simples[0]):
        return

    assert run_by_bash(command) == [simples[0]]


@given(st.lists(st.sampled_from(GRAMMAR), min_size=2, max_size=14).map("".join))
@examples(60)
@requirement("SHELL-1")
def test_bash_runs_nothing_that_was_not_found(command: str) -> None:
    if re.search(r"\(\s*\)", command):
        return  # it defines a function, which may call itself for ever
    simples = understood(command)
    if simples is None:
        return

    missed = [words for words in run_by_bash(command) if not any(is_like(words, simple) for simple in simples)]

    assert missed == []


@pytest.mark.parametrize(
    "command",
    [
        "pa 'a b' \"c d\" e\\ f $'g\\th'",
        "pa {a,b}{1..3} x{,y}z {a} {a,b",
        "pa $v \"$v\" ${v} '$v' \\$v",
        "pa ~ ~/x 'a'~ a~ \"~\"",
        "pa # comment\npb",
        "pa a#b '#' \\#",
        "pa \\\n  b",
        'pa "a\\\nb" "\\q\\"\\\\"',
        "if pa; then pb; else x; fi",
        "for i in a b; do pa $i; done",
        "case x in x|y) pa;; *) pb;; esac",
        "pa $(pb x) `x y`",
        'pa "$(pb "$(x "y z")")"',
        "pa <<E\n$(pb)\nE\nx",
        "pa <<'E'\n$(pb)\nE\nx",
        "pa <<< $(pb)",
        "pa 2>&1 | pb & x",
        "{ pa; pb; } && (x; y)",
        "pa ${u:-$(pb)}",
        "v=1 pa; w=2 pb $w",
    ],
)
def test_ordinary_commands_are_read_as_bash_reads_them(command: str) -> None:
    simples = understood(command)

    assert simples is not None
    ran = run_by_bash(command)
    assert ran
    assert [words for words in ran if not any(is_like(words, simple) for simple in simples)] == []


def understood(command: str) -> list[list[str | None]] | None:
    """The simple commands, an uncertain word as `None`; `None` where the analysis says it cannot tell."""
    state = ShellState(("/",), {name: Word.of_text(value) for name, value in VALUES.items()} | HOME, "/home/u")
    try:
        syntax = parse_command(command)
    except Unreadable:
        return None
    simples, doubts = walk_syntax(syntax, state, AnalysisBudget())
    if syntax.doubts or doubts:
        return None
    return [[None if word.many else word.text for word in simple.words] for simple in simples if simple.words]


HOME = {"HOME": Word.of_text("/home/u")}


def is_like(words: list[str], simple: list[str | None]) -> bool:
    certain = simple[: simple.index(None)] if None in simple else simple
    return words[: len(certain)] == certain if None in simple else words == simple


def run_by_bash(command: str) -> list[list[str]]:
    """The words of every command that bash tried to run, one list each."""
    assert BASH is not None
    reading, writing = os.pipe()
    tell = 'command_not_found_handle() { local s; printf -v s "%s\\37" "$@"; printf "\\36%s" "$s" >&9; }\n'
    try:
        subprocess.run(
            [BASH, "--norc", "--noprofile", "-c", f"exec 9>&{writing}\n{tell}{command}"],
            env={"PATH": "/nonexistent", "HOME": "/home/u", "LC_ALL": "C.UTF-8", **VALUES},
            cwd=Path("/"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[writing],
            timeout=30,
            check=False,
        )
    finally:
        os.close(writing)
    with open(reading, encoding="utf-8", errors="replace", newline="") as told:
        return [words.split("\x1f")[:-1] for words in told.read().split("\x1e")[1:]]
