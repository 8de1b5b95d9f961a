"""Files brought back to how they were."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.files.atomic_writes import NotWritten
from ferrule.host.files.checkpoints import INDEX, OTHERS, Checkpoints, NoSuchPoint
from ferrule.host.files.held_folders import ChangedMeanwhile
from ferrule.host.files.open_files import FileIdentity


def _identity(path: Path) -> FileIdentity | None:
    return FileIdentity.of(str(path), path.stat(), path.read_bytes()) if path.exists() else None


def _opened(folder: Path) -> Checkpoints:
    checkpoints = Checkpoints()
    checkpoints.open(folder)
    return checkpoints


class Scene:
    """A folder of files, and what is kept of them."""

    def __init__(self, folder: Path) -> None:
        self.files = folder / "files"
        self.files.mkdir(parents=True)
        self.kept = folder / "kept"
        self.checkpoints = _opened(self.kept)

    def write(self, name: str, text: str) -> None:
        path = self.files / name
        self.checkpoints.write_file(str(path), text.encode(), expected=_identity(path))

    def all(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.files.iterdir())}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path.resolve())


def test_a_changed_file_a_new_one_and_a_binary_one_are_as_they_were(scene: Scene) -> None:
    (scene.files / "old").write_bytes(b"\xff\x00old")
    scene.checkpoints.mark("p")
    scene.write("old", "changed")
    scene.write("old", "changed twice")
    scene.write("new", "made")

    rewound = scene.checkpoints.rewind("p")

    assert (scene.files / "old").read_bytes() == b"\xff\x00old"
    assert not (scene.files / "new").exists()
    assert [os.path.basename(path) for path in rewound.restored] == ["new", "old"]
    assert rewound.left == {}


def test_another_process_brings_back_what_this_one_kept_although_it_was_killed(scene: Scene) -> None:
    scene.write("a", "1")
    scene.checkpoints.mark("p")
    scene.write("a", "2")
    with open(scene.kept / INDEX, "ab") as index:
        index.write(b'{"path": "/half')

    _opened(scene.kept).rewind("p")

    assert scene.all() == {"a": "1"}


def test_what_somebody_else_changed_since_is_left_and_named(scene: Scene) -> None:
    scene.write("theirs", "1")
    scene.write("ours", "1")
    scene.checkpoints.mark("p")
    scene.write("theirs", "2")
    scene.write("ours", "2")
    (scene.files / "theirs").write_text("by hand")

    rewound = scene.checkpoints.rewind("p")

    assert scene.all() == {"ours": "1", "theirs": "by hand"}
    assert rewound.left == {str(scene.files / "theirs"): OTHERS}


def test_what_somebody_else_changed_between_two_changes_is_left_too(scene: Scene) -> None:
    scene.write("a", "1")
    scene.checkpoints.mark("p")
    scene.write("a", "2")
    (scene.files / "a").write_text("2 and by hand")
    scene.write("a", "3 and by hand")

    assert list(_opened(scene.kept).rewind("p").left.values()) == [OTHERS]
    assert scene.all() == {"a": "3 and by hand"}


def test_with_force_it_is_brought_back_and_needs_no_force_again(scene: Scene) -> None:
    scene.write("a", "1")
    scene.checkpoints.mark("p")
    scene.write("a", "2")
    (scene.files / "a").write_text("by hand")
    assert scene.checkpoints.rewind("p", force=True).left == {}
    assert scene.all() == {"a": "1"}

    scene.write("a", "3")

    assert _opened(scene.kept).rewind("p").left == {}
    assert scene.all() == {"a": "1"}


def test_a_file_that_was_removed_since_comes_back_with_its_mode(scene: Scene) -> None:
    (scene.files / "a").write_text("1")
    (scene.files / "a").chmod(0o750)
    scene.checkpoints.mark("p")
    scene.write("a", "2")
    (scene.files / "a").unlink()

    scene.checkpoints.rewind("p")

    assert scene.all() == {"a": "1"}
    assert stat.S_IMODE((scene.files / "a").stat().st_mode) == 0o750


@pytest.mark.parametrize("became", ["folder", "fifo", "link"])
def test_what_is_no_file_any_more_is_left(scene: Scene, became: str, tmp_path: Path) -> None:
    path = scene.files / "a"
    scene.write("a", "1")
    scene.checkpoints.mark("p")
    scene.write("a", "2")
    path.unlink()
    match became:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case _:
            (tmp_path / "elsewhere").write_text("2")
            path.symlink_to(tmp_path / "elsewhere")

    assert list(scene.checkpoints.rewind("p").left) == [str(path)]
    assert became != "link" or (tmp_path / "elsewhere").read_text() == "2"


def test_without_what_was_kept_the_file_is_left(scene: Scene) -> None:
    scene.write("a", "1")
    scene.checkpoints.mark("p")
    scene.write("a", "2")
    for kept in scene.kept.iterdir():
        if kept.name != INDEX:
            kept.write_bytes(b"damaged")

    assert list(scene.checkpoints.rewind("p").left.values()) == ["its previous content has been lost"]
    assert scene.all() == {"a": "2"}


def test_nothing_is_changed_that_cannot_be_kept(scene: Scene) -> None:
    (scene.files / "a").write_text("1")
    scene.checkpoints.mark("p")
    (scene.kept / INDEX).unlink()
    (scene.kept / INDEX).mkdir()

    with pytest.raises(NotWritten, match="cannot be kept"):
        scene.write("a", "2")
    assert scene.all() == {"a": "1"}


def test_a_file_that_changed_since_it_was_read_is_not_written(scene: Scene) -> None:
    path = scene.files / "a"
    path.write_text("1")
    seen = _identity(path)
    path.write_text("by hand")

    with pytest.raises(ChangedMeanwhile):
        scene.checkpoints.write_file(str(path), b"2", expected=seen)
    assert scene.all() == {"a": "by hand"}


def test_a_point_that_was_never_marked_is_an_error(scene: Scene) -> None:
    for id in ("", "x"):
        with pytest.raises(NoSuchPoint):
            scene.checkpoints.rewind(id)


def test_a_point_that_is_marked_while_a_file_is_being_written_is_before_that(scene: Scene) -> None:
    path = scene.files / "a"
    path.write_text("1")
    with open(path, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        writing = Thread(target=scene.write, args=("a", "2"))
        writing.start()
        deadline = time.monotonic() + 8
        while not (scene.kept / INDEX).exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        scene.checkpoints.mark("p")
    writing.join()
    assert scene.all() == {"a": "2"}

    scene.checkpoints.rewind("p")

    assert scene.all() == {"a": "1"}


def test_what_is_kept_is_for_this_user_alone(scene: Scene) -> None:
    (scene.files / "a").write_text("secret")
    scene.write("a", "2")

    assert stat.S_IMODE(scene.kept.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in scene.kept.iterdir()} == {0o600}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from("abc"), st.sampled_from("1234")),
        st.just(("mark",)),
        st.tuples(st.just("rewind"), st.integers(0, 5)),
        st.just(("reopen",)),
    ),
    max_size=14,
)


@given(steps=STEPS)
def test_files_are_as_they_were_at_any_point_in_any_order(
    steps: list[tuple[str, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    scene = Scene(tmp_path_factory.mktemp("law").resolve())
    states: list[dict[str, str]] = []
    for step in (("mark",), *steps):
        match step:
            case ("write", name, text):
                scene.write(name, text)
            case ("mark",):
                scene.checkpoints.mark(str(len(states)))
                states.append(scene.all())
            case ("rewind", at):
                point = int(at) % len(states)
                assert scene.checkpoints.rewind(str(point)).left == {}
                assert scene.all() == states[point]
            case _:
                scene.checkpoints = _opened(scene.kept)
