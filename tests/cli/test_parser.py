"""Which command a line means."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ferrule.cli.exits import CLOSED_PIPE
from ferrule.cli.parser import is_prompt, parse_command, run
from ferrule.cli.prompt_flags import COMMANDS

from .running import FERRULE, HANG, environment


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_help_and_its_flags(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", command]) == 0

    said = capsys.readouterr().out
    assert said.startswith(f"usage: ferrule {command}")
    assert is_prompt([f"-{command}"])
    assert not is_prompt([command, "add", "server", "--", "npx", "-p", "package"])


def test_the_help_names_every_command_and_fits_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    with pytest.raises(SystemExit) as ended:
        run(["--help"])

    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert max(map(len, said.splitlines())) <= 80
    assert all(f"\n  {command} " in said for command in COMMANDS)
    assert said.count(":\n") >= 9, "the flags are in groups"


def test_the_help_of_a_command_that_does_not_exist_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "explian"]) == 2

    assert "there is no command explian. Did you mean explain?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["call", "--alow", "Bash"], "ferrule call: there is no flag --alow. Did you mean --allow?"),
        (["tools", "--jsno"], "ferrule tools: there is no flag --jsno. Did you mean --json?"),
        (["call", "Bash", "{}", "more"], "ferrule call: `more` is one word too many."),
        (["trust", "a", "b"], "ferrule trust: `b` is one word too many."),
        (["serve", "--idle-timeout", "soon"], "soon is not a number of seconds"),
    ],
)
def test_a_wrong_flag_is_named_with_the_command_and_the_nearest(
    line: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line) == 2

    assert words in capsys.readouterr().err


def test_a_flag_before_the_words_of_a_command_takes_one_value() -> None:
    chosen = parse_command(["call", "--deny", "Read(a)", "--deny", "Read(b)", "--add-dir", "c", "Bash", "{}"])

    assert (chosen.deny, chosen.add_dir, chosen.tool, chosen.input) == (["Read(a)", "Read(b)"], ["c"], "Bash", "{}")


@pytest.mark.parametrize("command", [("tools", "--json"), ("doctor", "--json")])
def test_a_reader_that_has_had_enough_ends_a_command_in_silence(tmp_path: Path, command: tuple[str, ...]) -> None:
    with subprocess.Popen(
        [*FERRULE, *command],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()

        assert process.wait(HANG) == CLOSED_PIPE
        assert process.stderr.read() == b""
