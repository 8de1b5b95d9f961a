"""What is found below a folder by name, and found again after every kind of change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferrule.host.files import tree_index
from ferrule.host.files.tree_index import TooManyEntries, TreeIndex
from ferrule.host.processes.covering import HiddenPaths
from tests.requirement import requirement


def wanted(name: str, path: str, is_folder: bool) -> bool:
    return name.startswith("key")


@pytest.fixture(autouse=True)
def believing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The times of folders are believed at once, so that what is seen is seen by them."""
    monkeypatch.setattr(tree_index, "SETTLED_AFTER", -(10**18))


def written(path: Path) -> None:
    """A new file in a folder that has another time from then on, however coarse the clock is."""
    before = path.parent.stat().st_ctime_ns
    path.write_text("")
    while path.parent.stat().st_ctime_ns == before:
        path.unlink()
        path.write_text("")


@requirement("HELD-13")
def test_what_comes_and_goes_is_seen_the_next_time(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "key").write_text("")
    index = TreeIndex(str(tmp_path), wanted)
    first = index.find()
    written(tmp_path / "a" / "b" / "key2")
    second = index.find()
    written(tmp_path / "a" / "other")
    (tmp_path / "a" / "key").unlink()
    third = TreeIndex(str(tmp_path), wanted).find()

    assert first == (f"{tmp_path}/a/key",)
    assert set(second) == {f"{tmp_path}/a/key", f"{tmp_path}/a/b/key2"}
    assert third == (f"{tmp_path}/a/b/key2",)


@requirement("HELD-13")
def test_a_tree_that_did_not_change_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "key").write_text("")
    index = TreeIndex(str(tmp_path), wanted)
    found = index.find()

    monkeypatch.setattr(os, "scandir", None)  # whoever reads a folder now fails

    assert index.find() == found == (f"{tmp_path}/a/key",)


@requirement("HELD-13")
def test_a_folder_that_is_put_in_the_place_of_another_is_read_again(tmp_path: Path) -> None:
    for name in ("tree/sub", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "other" / "key").write_text("")
    index = TreeIndex(str(tmp_path / "tree"), wanted)
    assert index.find() == ()
    times = (tmp_path / "tree").stat()

    (tmp_path / "tree" / "sub").rmdir()
    (tmp_path / "other").rename(tmp_path / "tree" / "sub")
    os.utime(tmp_path / "tree", ns=(times.st_atime_ns, times.st_mtime_ns))  # as programs that copy trees do

    assert index.find() == (f"{tmp_path}/tree/sub/key",)


def test_what_is_behind_a_link_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key").write_text("")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "outside")

    assert TreeIndex(str(tmp_path / "tree"), wanted).find() == ()


def test_a_search_ends_where_there_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_index, "MOST_LOOKED_AT", 5)
    for number in range(6):
        (tmp_path / str(number)).write_text("")

    with pytest.raises(TooManyEntries, match="more below"):
        TreeIndex(str(tmp_path), wanted).find()


steps = st.lists(
    st.tuples(
        st.sampled_from(["make", "remove", "move"]),
        st.sampled_from(["a", "a/key", "a/b", "a/b/key", "c", "c/key", "key"]),
        st.sampled_from(["a", "c", "d", "a/d", "key"]),
    ),
    max_size=12,
)


@requirement("HELD-13")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_an_index_finds_what_a_fresh_one_finds(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, str, str]]
) -> None:
    monkeypatch.setattr(tree_index, "SETTLED_AFTER", 100_000_000)
    folder = tmp_path_factory.mktemp("tree")
    index = TreeIndex(str(folder), wanted)
    for what, name, other in steps:
        _step(folder, what, name, other)
        assert set(index.find()) == set(TreeIndex(str(folder), wanted).find())


def _step(folder: Path, what: str, name: str, other: str) -> None:
    try:
        if what == "make" and name.endswith("key"):
            (folder / name).write_text("")
        elif what == "make":
            (folder / name).mkdir(parents=True)
        elif what == "remove":
            (folder / name).unlink()
        else:
            (folder / name).rename(folder / other)
    except OSError:
        return


@requirement("HELD-13", "BOX-4")
def test_patterns_are_found_in_the_folders_that_are_searched_alone(tmp_path: Path) -> None:
    for name in ("work/sub/.env", "work/x.pem", "elsewhere/.env", "work/plain"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    patterns = [f"{tmp_path}/**/.env", f"{tmp_path}/work/*.pem", f"{tmp_path}/elsewhere", f"{tmp_path}/missing"]

    paths = HiddenPaths()
    everywhere = paths.matching(patterns)
    inside = paths.matching(patterns, within=[f"{tmp_path}/work"])

    assert set(everywhere) == {
        str(tmp_path / name) for name in ("work/sub/.env", "elsewhere/.env", "work/x.pem", "elsewhere")
    }
    assert set(inside) == {str(tmp_path / name) for name in ("work/sub/.env", "work/x.pem", "elsewhere")}
