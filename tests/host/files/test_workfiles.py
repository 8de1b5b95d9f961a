"""What is said of a file that is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferrule.host.files import workfiles
from ferrule.host.files.workfiles import missing
from tests.requirement import requirement


@requirement("READ-9")
@pytest.mark.parametrize(
    ("there", "asked", "near"),
    [
        (["Readme.md"], "README.md", "Readme.md"),
        (["Readme.md", "readme.md", "READM.md"], "README.md", "Readme.md, readme.md"),
        (["a.txt", "b.md"], "a.md", "a.txt"),
        (["settings.py", "zebra"], "ettings.py", "settings.py"),
        (["SETTINGS.PY"], "setings.py", "SETTINGS.PY"),
        (["new\nline.txt"], "newline.txt", '"new\\nline.txt"'),
        ([f"part-{number}" for number in range(2_000)], "part_1999", "part-1999"),
        ([*(f"x{number}.txt" for number in range(2_000)), "notes.md"], "notes.mdx", "notes.md"),
    ],
)
def test_a_missing_file_names_what_is_most_like_it(tmp_path: Path, there: list[str], asked: str, near: str) -> None:
    for name in there:
        (tmp_path / name).touch()

    said = missing(str(tmp_path / asked))

    assert said.startswith(f"{tmp_path}/{asked} does not exist. In that folder there is {near}"), said


@requirement("READ-9")
@pytest.mark.parametrize("name", ["q", "x" * 255, "é" * 100, "a\nb"])
def test_nothing_like_it_is_said_as_that(tmp_path: Path, name: str) -> None:
    (tmp_path / "zebra").touch()

    assert missing(str(tmp_path / name)) == f"{tmp_path}/{name} does not exist. Use Glob to find the file."


@requirement("READ-9")
def test_a_link_to_nothing_says_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("further")
    (tmp_path / "further").symlink_to("gone/away")

    assert missing(str(tmp_path / "link")) == (
        f"{tmp_path}/link does not exist. That name is a link to {tmp_path}/gone/away, and nothing is there."
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
@requirement("READ-9")
def test_a_folder_that_may_not_be_listed_is_not_said_to_be_missing(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o311)
    try:
        assert missing(str(folder / "a")) == (
            f"{folder}/a does not exist, and what else is in that folder cannot be listed. Ask for the name."
        )
    finally:
        folder.chmod(0o700)


@requirement("READ-9")
def test_only_so_many_names_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workfiles, "NAMES_TRIED", 0)
    (tmp_path / "settings.py").touch()

    assert missing(str(tmp_path / "setings.py")).endswith("Use Glob to find the file.")
