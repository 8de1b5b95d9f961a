"""Folders held open: no link leads away from the one that was meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferrule.host.files.held_folders import ChangedMeanwhile, hold_folder, is_still_at
from tests.requirement import requirement


@requirement("SEC-3")
def test_a_folder_is_held_by_what_it_is(tmp_path: Path) -> None:
    with hold_folder(str(tmp_path)) as folder:
        assert os.path.samestat(os.fstat(folder), tmp_path.stat())
        assert is_still_at(str(tmp_path), folder)
    with hold_folder("/") as folder:
        assert is_still_at("/", folder)


@requirement("SEC-3")
def test_no_link_is_followed_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")

    for path in (tmp_path / "link", tmp_path / "link" / "inner", tmp_path / "link" / "new"):
        with (
            pytest.raises(ChangedMeanwhile, match=r"link has become a link since this was decided"),
            hold_folder(str(path), made=True),
        ):
            pass

    assert os.listdir(tmp_path / "real") == ["inner"]


@requirement("SEC-3")
def test_a_folder_that_was_moved_or_replaced_is_not_still_there(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()

    with hold_folder(str(path)) as folder:
        path.rename(tmp_path / "moved")
        gone = is_still_at(str(path), folder)
        path.mkdir()
        replaced = is_still_at(str(path), folder)
        path.rmdir()
        path.symlink_to("moved")
        linked = is_still_at(str(path), folder)

    assert (gone, replaced, linked) == (False, False, False)


def test_missing_folders_are_made_only_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "x" / "y"

    with pytest.raises(FileNotFoundError), hold_folder(str(path)):
        pass
    with hold_folder(str(path), made=True):
        pass

    assert path.is_dir()


def test_a_file_on_the_way_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NotADirectoryError), hold_folder(str(tmp_path / "file" / "inner"), made=True):
        pass
