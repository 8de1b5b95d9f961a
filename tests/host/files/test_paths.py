"""Where paths are, and where their links lead."""

from __future__ import annotations

import os
import shutil
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.files.local_paths import MAX_LINKS, LocalPaths
from tests.drawing import examples
from tests.requirement import requirement

PATHS = LocalPaths()


# Absolute and normal


@requirement("CON-8")
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a.txt", "/project/a.txt"),
        ("./a/../b", "/project/b"),
        ("../x", "/x"),
        ("../../../x", "/x"),
        ("/abs//path/", "/abs/path"),
        ("//host/share", "/host/share"),
        ("/", "/"),
        (".", "/project"),
        ("a b/c", "/project/a b/c"),
    ],
)
def test_a_path_is_made_absolute_and_normal(written: str, meant: str) -> None:
    assert PATHS.anchor(written, "/project") == meant


@requirement("CON-8")
def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")

    assert PATHS.anchor("~", "/project") == "/home/ada"
    assert PATHS.anchor("~/a.txt", "/project") == "/home/ada/a.txt"
    assert PATHS.anchor("a/~", "/project") == "/project/a/~"
    assert PATHS.anchor("~no-such-user/a", "/project") == "/project/~no-such-user/a"


@requirement("CON-8")
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30))
def test_anchoring_twice_is_anchoring_once(written: str) -> None:
    once = PATHS.anchor(written, "/no/such/folder")

    assert once.startswith("/")
    assert PATHS.anchor(once, "/elsewhere") == once


@requirement("CON-8")
@pytest.mark.parametrize(("on_disk", "written"), [("NFC", "NFD"), ("NFD", "NFC"), ("NFC", "NFC"), ("NFD", "NFD")])
def test_a_name_is_found_under_the_unicode_form_that_exists(tmp_path: Path, on_disk: str, written: str) -> None:
    there = unicodedata.normalize(on_disk, "résumé.txt")
    (tmp_path / there).write_text("x")

    assert PATHS.anchor(unicodedata.normalize(written, "résumé.txt"), str(tmp_path)) == str(tmp_path / there)


@requirement("CON-8")
def test_each_part_of_a_path_has_its_own_unicode_form(tmp_path: Path) -> None:
    folder = tmp_path / unicodedata.normalize("NFD", "café")
    folder.mkdir()
    (folder / unicodedata.normalize("NFC", "menü")).write_text("x")

    for form in ("NFC", "NFD"):
        anchored = PATHS.anchor(unicodedata.normalize(form, "café/menü"), str(tmp_path))
        assert os.path.exists(anchored)


@requirement("CON-8")
def test_a_new_file_goes_into_the_folder_that_exists(tmp_path: Path) -> None:
    folder = tmp_path / unicodedata.normalize("NFD", "café")
    folder.mkdir()

    anchored = PATHS.anchor(unicodedata.normalize("NFC", "café") + "/new.txt", str(tmp_path))

    assert anchored == str(folder / "new.txt")


@requirement("CON-8")
def test_two_files_that_differ_only_in_form_stay_apart(tmp_path: Path) -> None:
    names = [unicodedata.normalize(form, "é") for form in ("NFC", "NFD")]
    for name in names:
        (tmp_path / name).write_text(name)

    assert [PATHS.anchor(name, str(tmp_path)) for name in names] == [str(tmp_path / name) for name in names]


# Links resolved


@requirement("SCHED-5")
def test_links_on_the_way_are_followed_and_reported(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "again").symlink_to(tmp_path / "link")

    resolved = PATHS.resolve(str(tmp_path / "again" / "a.txt"))

    assert resolved == (str(tmp_path / "real" / "a.txt"), (str(tmp_path / "again"), str(tmp_path / "link")))


@requirement("SCHED-5")
def test_a_path_without_links_is_itself(tmp_path: Path) -> None:
    assert PATHS.resolve(str(tmp_path / "missing" / "deep")) == (str(tmp_path / "missing" / "deep"), ())
    assert PATHS.resolve("/") == ("/", ())


@requirement("SCHED-5")
def test_a_relative_path_is_never_taken_from_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert PATHS.resolve("etc") == (str(tmp_path / "etc"), ())


@requirement("SCHED-5")
def test_a_link_to_a_missing_file_leads_to_where_it_would_be(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("not/yet")

    assert PATHS.resolve(str(tmp_path / "link")) == (str(tmp_path / "not" / "yet"), (str(tmp_path / "link"),))


@requirement("SCHED-5")
def test_the_parent_of_a_link_is_the_parent_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")

    assert PATHS.resolve(f"{tmp_path}/link/../c")[0] == str(tmp_path / "a" / "c")


@requirement("SCHED-5")
def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")

    real, links = PATHS.resolve(str(tmp_path / "one" / "x"))

    assert len(links) == MAX_LINKS
    assert real in (str(tmp_path / "one" / "x"), str(tmp_path / "two" / "x"))


@requirement("SCHED-5")
@pytest.mark.parametrize("path", ["/a\0b", "/\udc80", "/" + "x" * 5000])
def test_a_path_that_cannot_exist_resolves_to_itself(path: str) -> None:
    assert PATHS.resolve(path) == (path, ())


_names = st.sampled_from(["a", "b", "c"])
_steps = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=4)
_nodes = st.tuples(
    st.lists(_names, min_size=1, max_size=3),
    st.one_of(st.none(), st.tuples(st.booleans(), _steps)),
)


@requirement("SCHED-5")
@examples(100)
@given(nodes=st.lists(_nodes, max_size=8), asked=_steps)
def test_links_lead_where_the_standard_library_says(
    tmp_path_factory: pytest.TempPathFactory,
    nodes: list[tuple[list[str], tuple[bool, list[str]] | None]],
    asked: list[str],
) -> None:
    """A node is a folder, or a link with a relative or an absolute target; loops are welcome."""
    root = Path(os.path.realpath(tmp_path_factory.getbasetemp())) / "tree"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for where, target in nodes:
        path = root.joinpath(*where)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if target is None:
                path.mkdir(exist_ok=True)
            else:
                path.symlink_to("/".join(([str(root)] if target[0] else []) + target[1]))
        except OSError:
            continue  # the draw wants a folder where a file or a loop already is
    path = "/".join([str(root), *asked])

    real, links = PATHS.resolve(path)

    if len(links) < MAX_LINKS:
        assert real == os.path.realpath(path)
    else:
        with pytest.raises(OSError, match=r"Too many levels|No such file"):
            os.stat(path)
    assert all(os.path.islink(link) for link in links)
