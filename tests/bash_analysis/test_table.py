"""The table of known commands, entry by entry, and the languages inside arguments."""

from __future__ import annotations

import re

import pytest

from ferrule.bash_analysis.command_effects import ENTRIES, READERS, WRITING
from ferrule.bash_analysis.commands import awk, git, sed
from ferrule.bash_analysis.commands.machine import ONLY_VERSION
from ferrule.bash_analysis.shell_words import Word
from ferrule.bash_analysis.table import arguments, usage
from tests.bash_analysis import examples
from tests.bash_analysis.looking import is_read_only, look, writes


@pytest.mark.parametrize("command", [*examples.READING.values(), *examples.GIT.values()])
def test_an_ordinary_call_of_a_reading_program_only_reads(command: str) -> None:
    assert is_read_only(command)


@pytest.mark.parametrize("command", examples.WRITING.values())
def test_an_ordinary_call_of_a_writing_program_says_what_it_writes(command: str) -> None:
    assert writes(command)
    assert not look(command).effects.unknown


@pytest.mark.parametrize("name", sorted(ONLY_VERSION))
def test_a_version_can_be_asked_for_and_nothing_with_it(name: str) -> None:
    for flag in ONLY_VERSION[name]:
        assert is_read_only(f"{name} {flag}")
        assert name in READERS or not is_read_only(f"{name} {flag} x")


@pytest.mark.parametrize("name", sorted(WRITING))
def test_a_writing_program_never_only_reads_whatever_its_options(name: str) -> None:
    for arguments_of_it in ("", "x", "--reference=a f", "-t", "-- x", "$x", "*"):
        assert not is_read_only(f"{name} {arguments_of_it}")


def test_every_entry_has_an_example() -> None:
    assert {*examples.READING, *examples.WRITING} == set(ENTRIES)
    assert set(examples.GIT) == set(git.READING)
    assert set(examples.WRITING) == set(WRITING)


def test_every_entry_is_well_formed() -> None:
    option = re.compile(r"--[a-z0-9][a-z0-9.-]*([=?][a-z]*)?|-[A-Za-z0-9.#@]+|-[A-Za-z0-9@][:?][a-z]*")
    for name, entry in {**ENTRIES, **git.READING, "sed": sed.USAGE, "awk": awk.USAGE}.items():
        options, *rest = entry.split("|")
        assert all(option.fullmatch(item) for item in options.split()), name
        assert 1 <= len(rest) <= 2, name


def test_arguments_are_told_apart_by_the_rules_of_getopt() -> None:
    known = usage("-ab -o:write -n: --long --output=write --color? | reads | digits")

    given = arguments(
        [Word.of_text(text) for text in ["-abofile", "x", "-n", "5", "--output=y", "--color", "-7", "--", "-a"]], known
    )

    assert [(option.name, option.value.text if option.value else None) for option in given.options] == [
        ("-a", None),
        ("-b", None),
        ("-o", "file"),
        ("-n", "5"),
        ("--output", "y"),
        ("--color", None),
        ("-#", "-7"),
    ]
    assert [word.text for word in given.operands] == ["x", "-a"]
    assert not given.doubt


@pytest.mark.parametrize(
    "words",
    ["-z", "--unknown", "--long=x", "-o", "--output", "--lo", "-n -a", "--colo"],
)
def test_what_getopt_might_read_otherwise_is_a_doubt(words: str) -> None:
    known = usage("-a -o:write -n: --long --output=write --color? | reads")

    assert arguments([Word.of_text(text) for text in words.split()], known).doubt


def test_a_shortened_option_that_writes_is_believed() -> None:
    given = arguments([Word.of_text("--outp=x")], usage("--output=write --outer | reads"))

    assert given.options[0].role == "write"


@pytest.mark.parametrize(
    "script",
    [
        "p",
        "1,5p",
        "$!N;P;D",
        "/a/,/b/d",
        "s/a/b/g",
        "s|/x|/y|2p",
        "y/ab/cd/",
        "a text",
        ":a;N;ba",
        "1!G;h;$!d",
        "{p;p}",
    ],
)
def test_a_script_of_sed_that_only_edits_passes(script: str) -> None:
    sed.check_script(script)


@pytest.mark.parametrize(
    "script",
    [
        "w f",
        "1w f",
        "/x/w f",
        "s/a/b/w f",
        "s/a/b/e",
        "e",
        "1e ls",
        "r f",
        "R f",
        "W f",
        "{p",
        "s/a/b",
        "p w",
        "k",
        "M",
    ],
)
def test_a_script_of_sed_that_does_more_does_not(script: str) -> None:
    with pytest.raises(sed.UnsafeSed):
        sed.check_script(script)


@pytest.mark.parametrize(
    "program",
    [
        "{print $1}",
        "$1 > 5",
        "/a/,/b/",
        "NR==5",
        "{a[$1]++} END {for (k in a) print k, a[k]}",
        "{print ($1 > 5)}",
        "$1 ~ /x/",
    ],
)
def test_a_program_of_awk_that_only_prints_passes(program: str) -> None:
    awk.check_program(program)


@pytest.mark.parametrize(
    "program",
    [
        '{print > "f"}',
        '{print | "sh"}',
        'BEGIN{system("ls")}',
        '"ls" | getline',
        "@load",
        '{print $1,\n$2 > "f"}',
        "`",
        "/a",
    ],
)
def test_a_program_of_awk_that_does_more_does_not(program: str) -> None:
    with pytest.raises(awk.UnsafeAwk):
        awk.check_program(program)
