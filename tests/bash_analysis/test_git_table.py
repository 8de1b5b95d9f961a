"""What the tables say of git is true of the git that is installed."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from ferrule.bash_analysis.analysis import analyse
from ferrule.bash_analysis.commands.git import CHANGING, READING
from ferrule.bash_analysis.git_showing import Showing, showing
from ferrule.bash_analysis.git_use import git_use
from ferrule.bash_analysis.table import usage
from tests.permissions.git_scene import ENVIRONMENT, git

ITEM = re.compile(
    r"-[A-Za-z0-9]+|-[A-Za-z0-9][:?](read|write|shell)?|--[a-z][a-z0-9]*(-[a-z0-9]+)*([=?](read|write|shell)?)?"
)
UNKNOWN = re.compile(r"unknown (option|switch)|unrecognized argument|invalid option")
LATER = {"--default-prefix", "--dd", "--exclude", "--stdin", "--branches", "--exists", "--source", "--no-regexp"}
"""Options of versions after the oldest one that this runs with (2.39)."""
SAME = {
    "show",
    "whatchanged",
    "reflog",
    "stash list",
    "stash show",
    "shortlog",
    "diff-tree",
    "diff-index",
    "diff-files",
} | {"range-diff"}
"""They take what log or diff take."""
NEED_MORE = {"--merge-base"}
"""Not known to be options where revisions are missing."""
LATER_COMMANDS = {"config get", "config list"}
TABLES = {**{f"{name} ": entry for name, entry in READING.items()}, **CHANGING}


@pytest.mark.parametrize("name", TABLES)
def test_every_item_of_an_entry_is_one_option(name: str) -> None:
    for item in TABLES[name].partition("|")[0].split():
        assert ITEM.fullmatch(item), item


def test_git_knows_every_option_of_the_tables(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    tried = [
        (name, option, f"{option}=1" if what.takes == "value" else option)
        for table in (READING, CHANGING)
        for name, entry in table.items()
        if name not in SAME | LATER_COMMANDS
        for option, what in usage(entry).longs.items()
        if option not in NEED_MORE
    ]
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(partial(is_known, tmp_path), [name for name, _, _ in tried], [as_ for *_, as_ in tried]))
    unknown = {(name, option) for (name, option, _), known in zip(tried, told, strict=True) if not known}

    assert {(name, option) for name, option in unknown if option not in LATER} == set()
    assert not is_known(tmp_path, "log", "--debug--format")
    assert not is_known(tmp_path, "commit", "--debug--format")


def is_known(folder: Path, name: str, option: str) -> bool:
    more = ["-h"] if name in CHANGING else []
    done = subprocess.run(
        ["git", *name.split(), option, *more],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return UNKNOWN.search(done.stderr) is None


@pytest.mark.parametrize("name", READING)
def test_it_is_decided_for_every_command_what_it_shows(name: str) -> None:
    """One that is not in any list may show anything; these are the only ones that are meant to be."""
    anything = showing(name.split()) is Showing.ANYTHING
    assert anything == (name in {"stash show", "notes show", "rerere diff"})


@pytest.mark.parametrize(
    ("command", "guarded"),
    [
        ("git diff", True),
        ("git diff | head", True),
        ("git add . && git commit -m x", True),
        ('git commit -m "$(cat notes.txt)"', True),
        ('git commit -am "$message"', True),
        ("git commit -m $message", False),
        ('git commit -m -m "$message"', False),
        ('git commit "$message"', False),
        ("git commit -v", False),
        ("git add -p", False),
        ("git checkout -p", False),
        ("git log -p --full-diff", False),
        ("git --literal-pathspecs diff", False),
        ("/usr/bin/git diff", False),
        ("git diff; python3 x.py", False),
        ("git diff $x", False),
        ("PATH=. git diff", False),
        ("git archive HEAD", False),
        ("cat README.md", False),
        ("git diff; x=$(", False),
    ],
)
def test_a_guard_is_enough_only_for_what_is_understood(command: str, guarded: bool) -> None:
    assert git_use(analyse(command, cwd="/srv/repo", home="/home/u")).guarded is guarded


def test_ls_files_has_both_options_that_were_written_as_one() -> None:
    for option in ("--debug", "--format='%(path)'"):
        assert analyse(f"git ls-files {option}", cwd="/srv", home="/home/u").effects.read_only
