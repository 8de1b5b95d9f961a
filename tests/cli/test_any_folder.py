"""Every command starts wherever it is started."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ferrule.instructions.instruction_places import folders_down_to
from ferrule.settings.folder_items import MOST_FILES, markdown_below
from tests.cli.forked import run_forked
from tests.cli.prompting import script
from tests.cli.running import HANG, environment
from tests.requirement import requirement

COMMANDS = {
    ("tools", "--json"): 0,
    ("call", "Bash", '{"command": "echo here"}'): 0,
    ("explain", "Bash", '{"command": "ls"}'): 0,
    ("mcp", "list"): 0,
    ("trust", "--show"): 0,
    ("sessions",): 0,
    ("doctor",): 0,
    ("serve",): 0,
    ("-p", "hello", "--model", "MODEL"): 0,
}


def deep(folder: Path) -> str:
    path = folder.joinpath(*["down"] * 250)
    path.mkdir(parents=True)
    return str(path)


def looping(folder: Path) -> str:
    """Links to above, to each other and to everything, where instructions, skills and agents are looked for."""
    for place in ("skills", "agents", "commands", "rules"):
        inner = folder / "loops" / ".claude" / place
        inner.mkdir(parents=True)
        for number in range(20):
            (inner / f"up{number}").symlink_to("..")
        (inner / "one").symlink_to("two")
        (inner / "two").symlink_to("one")
    return str(folder / "loops")


def leading_out(folder: Path) -> str:
    (folder / "out" / ".claude").mkdir(parents=True)
    for place in ("skills", "agents", "commands", "rules"):
        (folder / "out" / ".claude" / place).symlink_to("/proc")
    return str(folder / "out")


def home(folder: Path) -> str:
    (folder / "home").mkdir()
    return str(folder / "home")


FOLDERS: dict[str, Callable[[Path], str]] = {
    "/": lambda _: "/",
    "/proc": lambda _: "/proc",
    "home": home,
    "deep": deep,
    "looping": looping,
    "leading out": leading_out,
}


@requirement("FAULT-3")
@pytest.mark.parametrize("kind", FOLDERS)
def test_every_command_starts_in_any_folder(kind: str, tmp_path: Path) -> None:
    cwd = FOLDERS[kind](tmp_path)
    model = script(tmp_path, {"text": "Done."})
    around = environment(tmp_path)

    for command, expected in COMMANDS.items():
        arguments = [model if word == "MODEL" else word for word in command]

        done = run_forked(arguments, stdin=b"", cwd=cwd, env=around, timeout=HANG)

        assert (command, done.returncode, b"Traceback" in done.stderr) == (command, expected, False), done.stderr


@requirement("FAULT-3")
def test_a_maze_of_links_is_walked_once_and_to_a_bound(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"up{number}").symlink_to(tmp_path)
    (tmp_path / "one.md").touch()

    assert list(markdown_below(str(tmp_path))) == [str(tmp_path / "one.md")]
    assert len({os.path.dirname(path) for path in markdown_below("/proc")}) <= MOST_FILES


@requirement("FAULT-3")
def test_the_folders_above_a_very_deep_one_are_found_without_recursion() -> None:
    path = "/d" * 2000

    assert folders_down_to(path)[-1] == path
    assert folders_down_to(path)[:2] == ["/", "/d"]
    assert len(folders_down_to(path)) == 2001
