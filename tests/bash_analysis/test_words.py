"""Words, as far as they are certain; the rest is covered by comparing with bash."""

from __future__ import annotations

import pytest

from ferrule.bash_analysis.quoting import decode_ansi
from ferrule.bash_analysis.shell_state import is_influential
from tests.bash_analysis.looking import is_read_only, look, runs


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("x=a; echo $x", "echo a"),
        ("x='a b'; echo $x \"$x\"", "echo a b a b"),
        ("x=a; x=b; echo $x", "echo b"),
        ("x=a; (x=b); echo $x", "echo a"),
        ("x=a; x=b | cat; echo $x", "echo a"),
        ("x=a; if ls; then x=b; fi; echo $x", "echo $x"),
        ("x=a; while ls; do x=b; done; echo $x", "echo $x"),
        ("x=a; read x; echo $x", "echo $x"),
        ("x=a; f() { x=b; }; f; echo $x", "echo $x"),
        ("x=$(ls); echo $x", "echo $x"),
        ("echo ${x:-a}", "echo ${x:-a}"),
        ("x=; echo ${x:-a}", "echo a"),
        ("x=abc; echo ${x:1:1}", "echo b"),
        ("unset HOME; echo ~x", "echo ~x"),
        ("x=1; echo $((x + 1))", "echo $((x + 1))"),
    ],
)
def test_a_variable_is_known_as_long_as_nothing_else_may_have_set_it(command: str, argv: str) -> None:
    assert argv in runs(command)


@pytest.mark.parametrize(
    "command",
    [
        "echo $((x))",
        "echo $((x=1))",
        "x=y; echo $((x))",
        "echo $(($x))",
        "x=1; echo $((x++))",
        "[[ $x -eq 1 ]]",
        "((x=1))",
    ],
)
def test_arithmetic_on_what_is_no_number_is_unknown(command: str) -> None:
    assert look(command).effects.unknown


@pytest.mark.parametrize("command", ["echo $((1 + 2))", "x=3; echo $((x * 2))", "x=3; [[ $x -gt 2 ]]", "[ $x -gt 2 ]"])
def test_arithmetic_on_numbers_only_reads(command: str) -> None:
    assert is_read_only(command) == (command != "[ $x -gt 2 ]")


INFLUENTIAL = """
PATH IFS LD_PRELOAD BASH_ENV ENV GIT_DIR GIT_SSH_COMMAND PAGER MANPAGER EDITOR VISUAL PYTHONPATH PROMPT_COMMAND PS4
SHELLOPTS CDPATH HOME NODE_OPTIONS LESSOPEN GREP_OPTIONS TAR_OPTIONS RIPGREP_CONFIG_PATH http_proxy SSLKEYLOGFILE
GLOBIGNORE TMPDIR _ ANY_RSH_COMMAND
"""


@pytest.mark.parametrize("name", INFLUENTIAL.split())
def test_setting_a_variable_that_programs_listen_to_makes_the_rest_unknown(name: str) -> None:
    assert is_influential(name)
    assert look(f"{name}=x ls").effects.unknown
    assert look(f"{name}=x; ls").effects.unknown
    assert look(f"export {name}=x; ls").effects.unknown
    assert look(f"for {name} in x; do ls; done").effects.unknown
    assert look(f"read {name}; ls").effects.unknown


def test_one_plain_variable_before_a_program_without_settings_is_nothing() -> None:
    assert is_read_only("FOO=1 ls")
    assert not is_read_only("A=1 B=2 ls")
    assert not is_read_only("FOO=/tmp/x ls")
    assert not is_read_only("FOO=1 git log")


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        (r"\x72m", "rm"),
        (r"\162m", "rm"),
        (r"\u0072", "r"),
        (r"a\nb\tc", "a\nb\tc"),
        (r"\'", "'"),
        (r"\q", None),
        (r"\xff", None),
    ],
)
def test_the_escapes_of_ansi_quoting(text: str, decoded: str | None) -> None:
    assert decode_ansi(text) == decoded


@pytest.mark.parametrize(
    "character", ["\u00a0", "\u200b", "\u202e", "\ufeff", "\r", "\x0b", "\x00", "\x7f", "\u2028", "\ue000"]
)
def test_a_character_that_cannot_be_seen_makes_a_command_unknown(character: str) -> None:
    assert look(f"ls {character}x").effects.unknown
    assert look(f"echo 'a{character}b'").effects.unknown
