"""Writing files: what is written, and what is kept of the file that was there."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from ferrule.host.files.atomic_writes import Written, write_file
from ferrule.host.files.open_files import read_document
from ferrule.text.matching import TextEdit
from tests.requirement import requirement

from .rewriting import NOBODY, names, rewritten


@requirement("FILE-5")
def test_a_file_is_replaced_and_its_new_identity_returned(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    written = rewritten(path, b"new\n")

    assert (path.read_bytes(), names(tmp_path)) == (b"new\n", ["a.txt"])
    assert written == Written(str(path), read_document(str(path)).identity, created=False, followed_link=False)
    assert written.remarks == ()


@requirement("FILE-5")
def test_a_new_file_gets_its_folders_and_the_usual_mode(tmp_path: Path) -> None:
    path = tmp_path / "x" / "y" / "a.txt"
    before = os.umask(0o027)
    try:
        written = write_file(str(path), b"new", expected=None)
    finally:
        os.umask(before)

    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)
    assert (written.created, written.identity.links, names(path.parent)) == (True, 1, ["a.txt"])
    assert written.identity == read_document(str(path)).identity


@requirement("FILE-5")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4711])
def test_the_mode_stays(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    path.chmod(mode)

    rewritten(path, b"new")

    assert stat.S_IMODE(path.stat().st_mode) == mode


@requirement("FILE-5")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    os.chown(path, NOBODY, NOBODY)

    rewritten(path, b"new")

    assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)


@requirement("FILE-5")
def test_extended_attributes_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.origin", b"somewhere")
    except OSError as error:
        pytest.skip(f"this file system has no extended attributes: {error.strerror}")

    rewritten(path, b"new")

    assert os.getxattr(path, "user.origin") == b"somewhere"


@requirement("FILE-5")
def test_a_link_stays_a_link_and_its_target_is_named(tmp_path: Path) -> None:
    target = tmp_path / "target.txt"
    target.write_bytes(b"old")
    path = tmp_path / "link.txt"
    path.symlink_to("target.txt")

    written = rewritten(path, b"new")

    assert (os.readlink(path), target.read_bytes()) == ("target.txt", b"new")
    assert written.remarks == (f"{path} is a link; what was written is {target}.",)


@requirement("FILE-5")
def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    path = tmp_path / "link.txt"
    path.symlink_to("target.txt")

    written = write_file(str(path), b"new", expected=None)

    assert (path.is_symlink(), (tmp_path / "target.txt").read_bytes()) == (True, b"new")
    assert (written.created, written.followed_link) == (True, True)


@requirement("FILE-5")
@pytest.mark.parametrize("data", [b"new", b"much longer than before", b""])
def test_hard_links_stay_one_file_and_are_named(tmp_path: Path, data: bytes) -> None:
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_bytes(b"old text")
    other.hardlink_to(path)

    written = rewritten(path, data)

    assert (other.read_bytes(), other.samefile(path), names(tmp_path)) == (data, True, ["a.txt", "b.txt"])
    assert written.remarks == ("The file has 2 hard links, and all of them show the change.",)


@requirement("FILE-5")
def test_a_name_as_long_as_names_can_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 127)

    write_file(str(path), b"old", expected=None)
    rewritten(path, b"new")

    assert (path.read_bytes(), names(tmp_path)) == (b"new", [path.name])


@requirement("FILE-5", "FILE-6")
def test_an_edit_of_a_file_changes_its_span_only(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("größer\r\nkleiner\n".encode("latin-1"))
    before = read_document(str(path))

    write_file(str(path), before.document.splice([TextEdit(8, 15, "kürzer")]), expected=before.identity)

    assert path.read_bytes() == "größer\r\nkürzer\n".encode("latin-1")


@requirement("FILE-5")
def test_whoever_reads_meanwhile_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    versions = {letter * 300_000 for letter in (b"a", b"b")}
    path.write_bytes(b"a" * 300_000)
    seen: set[bytes] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(path.read_bytes())

    looking = threading.Thread(target=look)
    looking.start()
    for number in range(40):
        rewritten(path, (b"b", b"a")[number % 2] * 300_000)
    done.set()
    looking.join()

    assert seen <= versions


@requirement("FILE-5")
@pytest.mark.parametrize("before", [None, b"old"])
def test_content_is_on_the_disk_before_it_gets_its_name_and_the_name_afterwards(
    tmp_path: Path, before: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`os.fsync` is listened to: only a power cut would show that it was left out."""
    path = tmp_path / "a.txt"
    if before is not None:
        path.write_bytes(before)
    expected = read_document(str(path)).identity if before is not None else None
    synced: list[tuple[int, int | None, bytes | None]] = []
    sync = os.fsync

    def listening(descriptor: int) -> None:
        status = os.fstat(descriptor)
        size = status.st_size if stat.S_ISREG(status.st_mode) else None
        synced.append((status.st_ino, size, path.read_bytes() if path.exists() else None))
        sync(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", listening)
        write_file(str(path), b"new content", expected=expected)

    file, folder = path.stat().st_ino, tmp_path.stat().st_ino
    assert synced == [(file, len(b"new content"), before), (folder, None, b"new content")]
