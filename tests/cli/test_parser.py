"""Which command a line means."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import pytest

from ferrule.cli.exits import CLOSED_PIPE
from ferrule.cli.parser import COMMANDS, is_prompt, make_parser

from .running import FERRULE, HANG, environment


def test_every_command_is_known_as_one() -> None:
    (commands,) = (one for one in make_parser()._actions if isinstance(one, argparse._SubParsersAction))

    assert sorted(commands.choices) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_flags_of_a_command_do_not_make_it_a_prompt(command: str) -> None:
    assert not is_prompt([command, "add", "server", "--", "npx", "-p", "package"])


def test_a_prompt_is_told_by_its_flag_wherever_it_stands() -> None:
    assert is_prompt(["-p", "hello"])
    assert is_prompt(["--model", "a", "hello", "--print"])
    assert not is_prompt([])


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
