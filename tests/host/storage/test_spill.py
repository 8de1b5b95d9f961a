"""The session's folder: private, named after the calls, forgotten after a while."""

from __future__ import annotations

import logging
import os
import re
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.storage.session_folder import SessionFolder, prune
from tests.requirement import requirement

DAY = 86_400


def _folder(root: Path, **options: int) -> SessionFolder:
    return SessionFolder(root / "sessions", "s1", **options)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _session(root: Path, name: str, *, days_old: float) -> Path:
    results = root / "sessions" / name / "results"
    results.mkdir(parents=True)
    (results / "a.txt").write_text("old")
    for path in (results, results.parent):
        os.utime(path, times=(time.time() - days_old * DAY,) * 2)
    return results.parent


@requirement("BUD-1")
def test_a_result_is_saved_whole_under_the_id_of_its_call(tmp_path: Path) -> None:
    saved = _folder(tmp_path).save("toolu_01AbC", "one\r\ntwo 😀\n")

    assert saved == str(tmp_path / "sessions" / "s1" / "results" / "toolu_01AbC.txt")
    assert Path(saved).read_bytes() == "one\r\ntwo 😀\n".encode()


@requirement("BUD-1")
def test_what_is_saved_is_private(tmp_path: Path) -> None:
    saved = Path(_folder(tmp_path).save("a", "secret"))
    folders = (saved.parent, saved.parent.parent, tmp_path / "sessions")

    assert (_mode(saved), [_mode(folder) for folder in folders]) == (0o600, [0o700] * 3)


@requirement("BUD-1")
def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    _folder(tmp_path)

    assert list(tmp_path.iterdir()) == []


HOSTILE = ["../../x", "", "x" * 300, "a/b", "a\0b", "naïve", "..", ".", ".hidden", "a\nb", "\ud800", "-rf", "con:"]


@requirement("BUD-1")
@pytest.mark.parametrize("call_id", HOSTILE)
def test_a_hostile_id_cannot_leave_the_folder(tmp_path: Path, call_id: str) -> None:
    folder = _folder(tmp_path)

    saved = Path(folder.save(call_id, "kept"))

    assert (saved.parent, saved.read_text()) == (folder.path / "results", "kept")
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,103}\.txt", saved.name)


@requirement("BUD-1")
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=40), max_size=8))
def test_every_result_has_a_file_of_its_own(tmp_path_factory: pytest.TempPathFactory, ids: list[str]) -> None:
    folder = _folder(tmp_path_factory.mktemp("spill"))

    saved = [folder.save(call_id, str(number)) for number, call_id in enumerate(ids)]

    assert [Path(path).read_text() for path in saved] == [str(number) for number in range(len(ids))]


@requirement("BUD-1")
def test_a_repeated_id_leaves_what_was_saved_before(tmp_path: Path) -> None:
    folder = _folder(tmp_path)

    saved = [Path(folder.save("a", text)) for text in ("first", "second", "third")]

    assert [path.name for path in saved] == ["a.txt", "a-2.txt", "a-3.txt"]
    assert [path.read_text() for path in saved] == ["first", "second", "third"]


@requirement("BUD-1")
def test_a_link_planted_under_the_name_is_not_written_through(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    folder.save("other", "")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (folder.path / "results" / "a.txt").symlink_to(victim)

    saved = Path(folder.save("a", "spilled"))

    assert (saved.name, saved.read_text(), victim.read_text()) == ("a-2.txt", "spilled", "mine")


@requirement("BUD-1")
def test_text_that_utf_8_has_no_bytes_for_is_saved_readable(tmp_path: Path) -> None:
    saved = Path(_folder(tmp_path).save("a", "bad \udc80 byte"))

    assert saved.read_text(encoding="utf-8") == "bad \\udc80 byte"


@requirement("BUD-1")
def test_a_folder_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file where the folder should be")

    with pytest.raises(OSError, match=r"exists|Not a directory"):
        _folder(tmp_path).save("a", "x")


# Forgotten after a while


@requirement("BUD-1")
def test_old_sessions_are_removed_when_a_new_one_saves(tmp_path: Path) -> None:
    old = _session(tmp_path, "old", days_old=31)
    recent = _session(tmp_path, "recent", days_old=29)

    _folder(tmp_path).save("a", "x")

    assert (old.exists(), recent.exists()) == (False, True)


@requirement("BUD-1")
def test_how_long_sessions_are_kept_is_a_setting(tmp_path: Path) -> None:
    old = _session(tmp_path, "old", days_old=3)
    recent = _session(tmp_path, "recent", days_old=1)

    _folder(tmp_path, cleanup_days=2).save("a", "x")

    assert (old.exists(), recent.exists()) == (False, True)


@requirement("BUD-1")
def test_a_session_that_still_saves_results_is_kept(tmp_path: Path) -> None:
    busy = _session(tmp_path, "busy", days_old=100)
    os.utime(busy / "results")

    prune(tmp_path / "sessions", 30)

    assert busy.exists()


@requirement("BUD-1")
def test_tidying_up_does_not_follow_links(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "results").mkdir(parents=True)
    (precious / "keep.txt").write_text("mine")
    old = _session(tmp_path, "old", days_old=100)
    (old / "inside").symlink_to(precious)
    os.utime(old, times=(0, 0))
    (tmp_path / "sessions" / "link").symlink_to(precious)
    for path in (precious / "results", precious):
        os.utime(path, times=(0, 0))

    prune(tmp_path / "sessions", 30)

    assert not old.exists()
    assert (precious / "keep.txt").read_text() == "mine"
    assert (tmp_path / "sessions" / "link").is_symlink()


@requirement("BUD-1")
def test_what_cannot_be_tidied_up_is_left_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "sessions"
    root.mkdir()
    (root / "stray").write_text("not a folder")
    os.utime(root / "stray", times=(0, 0))

    with caplog.at_level(logging.WARNING):
        saved = _folder(tmp_path).save("a", "x")

    assert Path(saved).read_text() == "x"
    assert (root / "stray").exists()
    assert "could not tidy up" in caplog.text


@requirement("BUD-1")
def test_a_session_that_somebody_else_just_removed_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "sessions").mkdir()
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([folder / "gone"]))

    with caplog.at_level(logging.WARNING):
        prune(tmp_path / "sessions", 30)

    assert caplog.text == ""
