"""Writing files: old or new and never half, whatever fails and whenever it is killed."""

from __future__ import annotations

import errno
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ferrule.host.files.atomic_writes import NotWritten, sweep, write_file
from ferrule.host.files.open_files import read_document
from ferrule.host.files.text_files import NotText
from tests.host.processes.forking import Forks, forks
from tests.requirement import requirement

from .rewriting import failed_with, names, refused

WRITING = """
from ferrule.host.files.open_files import read_document
from ferrule.host.files.atomic_writes import write_file

def run(path):
    number = 0
    while True:
        number += 1
        write_file(path, (b"%07d\\n" % number) * 20_000, expected=read_document(path).identity)
        write_file(f"{path}-{number % 50}-{number}", (b"%07d\\n" % number) * 20_000, expected=None)
        print(number, flush=True)
"""


@requirement("FILE-5")
def test_a_kill_at_any_moment_leaves_old_or_new_and_nothing_that_is_not_swept(tmp_path: Path) -> None:
    chance = random.Random(5)
    total = 0
    strays = 0
    with forks(WRITING) as writer:
        for round in range(40):
            folder = tmp_path / str(round)
            folder.mkdir()
            path = folder / "a.txt"
            path.write_bytes(b"0000000\n" * 20_000)

            total += _writes_until_killed(writer, path, writes=chance.randint(3, 8), then=chance.random() * 0.01)

            for file in folder.glob("a.txt*"):
                lines = file.read_bytes().splitlines()
                assert (len(lines), len(set(lines))) == (20_000, 1)
            strays += len(sweep(str(folder), older_than=0))
            assert not list(folder.glob(".*"))

    assert total >= 200
    assert strays  # or the kills did not hit a write


def _writes_until_killed(writer: Forks, path: Path, *, writes: int, then: float) -> int:
    """Kill it after so many rounds of two writes and a moment more; how many writes it reported."""
    writer.start(str(path))
    writer.wait_for(writes)
    moment = time.perf_counter() + then
    while time.perf_counter() < moment:
        pass
    return 2 * (writes + writer.kill())


@requirement("FILE-5")
def test_a_sweep_takes_only_what_is_ours_and_old_and_nobody_uses(tmp_path: Path) -> None:
    ours = ".a.txt.ferrule-0123456789abcdef.tmp"
    used = ".b.txt.ferrule-0123456789abcdef.tmp"
    others = (".c.txt.ferrule-0123456789abcdef.saved", ".c.txt.swp", "a.txt.ferrule-0123456789abcdef.tmp", ".x.tmp")
    for name in (ours, used, *others):
        (tmp_path / name).touch()
    link = tmp_path / ".d.txt.ferrule-0123456789abcdef.tmp"
    link.symlink_to("a.txt.ferrule-0123456789abcdef.tmp")

    assert sweep(str(tmp_path)) == ()
    with _locked_by_another(tmp_path / used):
        assert sweep(str(tmp_path), older_than=0) == (ours,)
    assert set(names(tmp_path)) == {used, link.name, *others}
    assert sweep(str(tmp_path / "missing")) == ()


@contextmanager
def _locked_by_another(path: Path) -> Iterator[None]:
    program = "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, 2); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout
        child.stdout.readline()
        yield
        child.kill()


@contextmanager
def _largest_file(size: int) -> Iterator[None]:
    """No file can grow beyond this: as on a full disk, a write fails in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@requirement("FILE-5")
@pytest.mark.parametrize("links", [1, 2])
def test_a_write_that_fails_in_the_middle_leaves_the_old_file_whole(tmp_path: Path, links: int) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old" * 1000)
    if links == 2:
        (tmp_path / "b.txt").hardlink_to(path)
    before = read_document(str(path))

    with _largest_file(100_000):
        failure = failed_with(path, b"new" * 100_000, before)
        fresh = failed_with(tmp_path / "c.txt", b"new" * 100_000)

    assert failure == fresh == (errno.EFBIG, "it would be larger than files may be here")
    assert path.read_bytes() == b"old" * 1000
    assert names(tmp_path) == ["a.txt", "b.txt"][:links]


@requirement("FILE-5")
def test_a_full_disk_leaves_the_old_file_whole(tmp_path: Path) -> None:
    with _tiny_disk(tmp_path / "disk") as disk:
        path = disk / "a.txt"
        path.write_bytes(b"old" * 1000)
        before = read_document(str(path))

        number, words = failed_with(path, b"new" * 100_000, before)

        assert (number, words) == (errno.ENOSPC, "the disk is full. Free some space, then try again")
        assert (path.read_bytes(), names(disk)) == (b"old" * 1000, ["a.txt"])


@contextmanager
def _tiny_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@requirement("FILE-5")
@pytest.mark.parametrize("mode", [0o555, 0o755])
def test_no_permission_is_said_and_leaves_nothing(tmp_path: Path, mode: int) -> None:
    """Of the folder (0555), or of the file, which is read-only in a folder that is not."""
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere; the same is shown by a child without its rights")
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "a.txt"
    path.write_bytes(b"old")
    path.chmod(0o644 if mode == 0o555 else 0o444)
    folder.chmod(mode)
    try:
        assert failed_with(path, b"new", read_document(str(path)))[0] == errno.EACCES
        assert (path.read_bytes(), names(folder)) == (b"old", ["a.txt"])
    finally:
        folder.chmod(0o755)


TRYING = """
import os, sys
from ferrule.host.files.open_files import read_document
from ferrule.host.files.atomic_writes import NotWritten, write_file
os.setgid(65534); os.setuid(65534)
try:
    write_file(sys.argv[1], b"new", expected=read_document(sys.argv[1]).identity)
except NotWritten as error:
    print(error.strerror, end="")
"""


@requirement("FILE-5")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o555, 0o666), (0o777, 0o444)])
def test_somebody_without_permission_is_told_and_leaves_nothing(folder_mode: int, file_mode: int) -> None:
    with tempfile.TemporaryDirectory() as made:  # pytest's own folders are closed to others
        folder = Path(made)
        path = folder / "a.txt"
        path.write_bytes(b"old")
        path.chmod(file_mode)
        folder.chmod(folder_mode)

        said = subprocess.run([sys.executable, "-c", TRYING, str(path)], capture_output=True, text=True, check=False)

        assert (said.stdout, said.stderr) == ("this user has no permission to write it, or to write in its folder", "")
        assert (path.read_bytes(), names(folder)) == (b"old", ["a.txt"])


@requirement("FILE-5")
def test_what_cannot_be_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))

    assert failed_with(tmp_path, b"new") == (errno.EEXIST, "it is a directory")
    assert failed_with(tmp_path / "socket", b"new") == (errno.EEXIST, "it is a socket")
    assert failed_with(tmp_path / "loop", b"new") == (errno.ELOOP, "it is a link that leads back to itself")
    assert failed_with(tmp_path / "file" / "a.txt", b"new") == (
        errno.ENOTDIR,
        "a part of its path is a file, not a folder",
    )
    assert failed_with(tmp_path / ("x" * 300), b"new") == (
        errno.ENAMETOOLONG,
        "its name is too long for the file system",
    )
    assert names(tmp_path) == ["file", "loop", "socket"]


@requirement("FILE-5")
def test_a_folder_that_vanished_is_said(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.txt"
    path.parent.mkdir()
    path.write_bytes(b"old")
    before = read_document(str(path))
    path.unlink()
    path.parent.rmdir()

    assert failed_with(path, b"new", before) == (
        errno.ENOENT,
        "its folder does not exist any more. Look for the folder, or make it, then try again",
    )
    assert names(tmp_path) == []


@requirement("SEC-3")
def test_what_is_read_for_a_change_is_refused_by_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path / "pipe", tmp_path, Path("/"), Path("/dev/zero")):
        with pytest.raises(NotText):
            read_document(str(path))
    with pytest.raises(FileNotFoundError):
        read_document(str(tmp_path / "missing"))


def test_nothing_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    before = len(os.listdir("/proc/self/fd"))

    for number in range(3):
        snapshot = read_document(str(path))
        write_file(str(path), b"%d" % number, expected=snapshot.identity)
        refused(path, b"new", snapshot)
        refused(path, b"new", None)

    assert len(os.listdir("/proc/self/fd")) == before


@requirement("FILE-5")
def test_a_path_that_nobody_could_open_is_not_made(tmp_path: Path) -> None:
    longest = 4095 - len(str(tmp_path))
    parts = ["d" * 200] * (longest // 201)
    rest = longest - 201 * len(parts) - 1
    fits = tmp_path.joinpath(*parts, "f" * rest) if rest > 0 else tmp_path.joinpath(*parts[:-1], "f" * (199 + rest))

    number, words = failed_with(Path(f"{fits}f"), b"new")

    assert (number, names(tmp_path)) == (errno.ENAMETOOLONG, [])
    assert words == "its path has 4,096 bytes, and no program can open one of more than 4,095. Use a shorter one"
    write_file(str(fits), b"new", expected=None)
    assert fits.read_bytes() == b"new"


@requirement("FILE-5")
def test_without_a_free_descriptor_that_is_what_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    before = read_document(str(path))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = {*map(int, os.listdir("/proc/self/fd"))}
    lowest = min({*range(max(open_now) + 2)} - open_now)
    said: list[str] = []
    try:
        for most in range(lowest, max(open_now) + 12):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            try:
                write_file(str(path), b"old", expected=before.identity)
                said.append("")
                break
            except NotWritten as error:
                said.append(error.strerror or "")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert said[-1] == ""
    assert {*said} == {
        "",
        "this program has too many open files. End something that it runs, or raise `ulimit -n`",
    }
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["a.txt"])
