"""Writing files: old or new and never half, for whoever looks and whatever happens."""

from __future__ import annotations

import errno
import os
import random
import resource
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ferrule.host.files import FileSnapshot, read_document
from ferrule.host.folders import ChangedMeanwhile
from ferrule.host.text import NotText
from ferrule.host.writing import NotWritten, Written, sweep, write_file
from ferrule.text.matching import Edit
from tests.host.forking import Forks, forks
from tests.requirement import requirement

NOBODY = 65534


def _rewritten(path: Path, data: bytes) -> Written:
    return write_file(str(path), data, expected=read_document(str(path)).identity)


def _refusal(path: Path, data: bytes, before: FileSnapshot | None) -> str:
    with pytest.raises(ChangedMeanwhile) as caught:
        write_file(str(path), data, expected=before and before.identity)
    return str(caught.value)


def _failure(path: Path, data: bytes, before: FileSnapshot | None = None) -> tuple[int | None, str]:
    with pytest.raises(NotWritten) as caught:
        write_file(str(path), data, expected=before and before.identity)
    return caught.value.errno, caught.value.strerror or ""


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# What is written, and what is kept


@requirement("FILE-5")
def test_a_file_is_replaced_and_its_new_identity_returned(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    written = _rewritten(path, b"new\n")

    assert (path.read_bytes(), _names(tmp_path)) == (b"new\n", ["a.txt"])
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
    assert (written.created, written.identity.links, _names(path.parent)) == (True, 1, ["a.txt"])
    assert written.identity == read_document(str(path)).identity


@requirement("FILE-5")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4711])
def test_the_mode_stays(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    path.chmod(mode)

    _rewritten(path, b"new")

    assert stat.S_IMODE(path.stat().st_mode) == mode


@requirement("FILE-5")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    os.chown(path, NOBODY, NOBODY)

    _rewritten(path, b"new")

    assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)


@requirement("FILE-5")
def test_extended_attributes_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.origin", b"somewhere")
    except OSError as error:
        pytest.skip(f"this file system has no extended attributes: {error.strerror}")

    _rewritten(path, b"new")

    assert os.getxattr(path, "user.origin") == b"somewhere"


@requirement("FILE-5")
def test_a_link_stays_a_link_and_its_target_is_named(tmp_path: Path) -> None:
    target = tmp_path / "target.txt"
    target.write_bytes(b"old")
    path = tmp_path / "link.txt"
    path.symlink_to("target.txt")

    written = _rewritten(path, b"new")

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

    written = _rewritten(path, data)

    assert (other.read_bytes(), other.samefile(path), _names(tmp_path)) == (data, True, ["a.txt", "b.txt"])
    assert written.remarks == ("The file has 2 hard links, and all of them show the change.",)


@requirement("FILE-5")
def test_a_name_as_long_as_names_can_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 127)

    write_file(str(path), b"old", expected=None)
    _rewritten(path, b"new")

    assert (path.read_bytes(), _names(tmp_path)) == (b"new", [path.name])


@requirement("FILE-5", "FILE-6")
def test_an_edit_of_a_file_changes_its_span_only(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("größer\r\nkleiner\n".encode("latin-1"))
    before = read_document(str(path))

    write_file(str(path), before.document.splice([Edit(8, 15, "kürzer")]), expected=before.identity)

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
        _rewritten(path, (b"b", b"a")[number % 2] * 300_000)
    done.set()
    looking.join()

    assert seen <= versions


# What changed meanwhile


@requirement("FILE-7")
def test_content_that_changed_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    before = read_document(str(path))
    stamp = path.stat()
    path.write_bytes(b"own")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert _refusal(path, b"new", before) == (
        f"{path} changed since it was read. Read it again, then repeat the change."
    )
    assert (path.read_bytes(), _names(tmp_path)) == (b"own", ["a.txt"])


@requirement("FILE-7")
def test_a_file_that_was_only_touched_or_replaced_by_its_like_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    before = read_document(str(path))
    (tmp_path / "again").write_bytes(b"old")
    (tmp_path / "again").rename(path)
    os.utime(path, (1, 1))

    write_file(str(path), b"new", expected=before.identity)

    assert path.read_bytes() == b"new"


@requirement("FILE-7")
def test_a_file_that_is_gone_or_became_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    before = read_document(str(path))

    path.unlink()
    assert _refusal(path, b"new", before) == f"{path} does not exist any more. Look what became of it."

    os.mkfifo(path)
    assert _refusal(path, b"new", before) == f"{path} is a named pipe now. Look what became of it."
    assert _names(tmp_path) == ["a.txt"]


@requirement("FILE-7")
def test_a_file_that_somebody_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"own")

    assert _refusal(path, b"new", None) == f"{path} exists by now. Read it before you overwrite it."
    assert (path.read_bytes(), _names(tmp_path)) == (b"own", ["a.txt"])


@requirement("SEC-3")
def test_a_link_planted_after_the_decision_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_bytes(b"old")
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    before = read_document(str(path))
    path.unlink()
    path.symlink_to(victim)

    refusal = _refusal(path, b"new", before)

    assert refusal == f"{path} led to {path} and leads to {victim} now. Look at it again, then ask again."
    with pytest.raises(ChangedMeanwhile):
        read_document(str(path), judged=str(path))
    with pytest.raises(ChangedMeanwhile):
        write_file(str(path), b"new", expected=None, judged=str(path))
    assert victim.read_bytes() == b"old"


@requirement("SEC-3")
def test_a_folder_that_became_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "elsewhere").mkdir()
    for name in ("folder", "elsewhere"):
        (tmp_path / name / "a.txt").write_bytes(b"old")
    path = tmp_path / "folder" / "a.txt"
    before = read_document(str(path))
    (tmp_path / "folder").rename(tmp_path / "moved")
    (tmp_path / "folder").symlink_to("elsewhere")

    _refusal(path, b"new", before)

    assert {(tmp_path / name / "a.txt").read_bytes() for name in ("moved", "elsewhere")} == {b"old"}


@requirement("SEC-3")
@pytest.mark.parametrize("swapped", ["a.txt", "folder"])
def test_no_swap_at_any_moment_leads_a_write_astray(tmp_path: Path, swapped: str) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    for each in (folder, elsewhere):
        each.mkdir()
        (each / "a.txt").write_bytes(b"secret" if each is elsewhere else b"old")
    place = folder if swapped == "folder" else folder / "a.txt"
    lure = elsewhere if swapped == "folder" else elsewhere / "a.txt"
    refused = written = 0

    with _swapping(place, lure):
        ends = time.monotonic() + 30
        while min(written, refused) < 50 and time.monotonic() < ends:
            path, fresh = str(folder / "a.txt"), str(folder / f"{written}.txt")
            try:
                before = read_document(path, judged=path)
                assert before.document.text != "secret"
                write_file(path, b"new %d" % written, expected=before.identity)
                write_file(fresh, b"new", expected=None, judged=fresh)
                written += 1
            except (ChangedMeanwhile, OSError):
                refused += 1

    assert (elsewhere / "a.txt").read_bytes() == b"secret"
    assert _names(elsewhere) == ["a.txt"]
    assert min(written, refused) == 50


@contextmanager
def _swapping(place: Path, lure: Path) -> Iterator[None]:
    """Another process puts a link in this place and takes it away again, as fast as it can."""
    program = (
        "import os, random, shutil, sys\n"
        "from contextlib import suppress\n"
        "place, lure = sys.argv[1:]\n"
        "aside = place + '.aside'\n"
        "print(flush=True)\n"
        "while os.getppid() != 1:\n"
        "    with suppress(OSError): os.rename(place, aside)\n"
        "    with suppress(OSError): os.symlink(lure, place)\n"
        "    with suppress(OSError): os.unlink(place)\n"
        "    try: os.rename(aside, place)\n"
        "    except OSError: shutil.rmtree(place, True); os.rename(aside, place)\n"
        "    for _ in range(random.randrange(400_000)): pass\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(place), str(lure)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout
        child.stdout.readline()
        yield
        child.kill()


# Two who write one file


COUNTING = """
import sys, time
from ferrule.host.files import read_document
from ferrule.host.folders import ChangedMeanwhile
from ferrule.text.matching import Edit
from ferrule.host.writing import write_file
path, name = sys.argv[1:]
sys.stdin.readline()
ends = time.monotonic() + 1
number = 0
while time.monotonic() < ends:
    before = read_document(path)
    end = len(before.document.text)
    line = f"{name} {number}\\n"
    try:
        write_file(path, before.document.splice([Edit(end, end, line)]), expected=before.identity)
    except ChangedMeanwhile:
        continue
    print(line, end="")
    number += 1
"""


@requirement("FILE-7")
@pytest.mark.parametrize("links", [1, 2])
def test_of_two_processes_that_edit_one_file_neither_loses_a_change(tmp_path: Path, links: int) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"")
    if links == 2:
        (tmp_path / "b.txt").hardlink_to(path)
    paths = [str(path), str(tmp_path / "b.txt" if links == 2 else path)]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTING, path, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for path, name in zip(paths, ("one", "two"), strict=True)
    ]

    reported = [child.communicate("go\n")[0].splitlines() for child in _started(children)]

    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith("one")] == reported[0]
    assert [line for line in lines if line.startswith("two")] == reported[1]
    assert len(lines) == sum(map(len, reported))
    assert all(reported)
    assert not [name for name in _names(tmp_path) if "ferrule" in name]


def _started(children: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    for child in children:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    return children


# Kill -9


WRITING = """
from ferrule.host.files import read_document
from ferrule.host.writing import write_file

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
    assert set(_names(tmp_path)) == {used, link.name, *others}
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


# What cannot be done


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
        failure = _failure(path, b"new" * 100_000, before)
        fresh = _failure(tmp_path / "c.txt", b"new" * 100_000)

    assert failure == fresh == (errno.EFBIG, "it would be larger than files may be here")
    assert path.read_bytes() == b"old" * 1000
    assert _names(tmp_path) == ["a.txt", "b.txt"][:links]


@requirement("FILE-5")
def test_a_full_disk_leaves_the_old_file_whole(tmp_path: Path) -> None:
    with _tiny_disk(tmp_path / "disk") as disk:
        path = disk / "a.txt"
        path.write_bytes(b"old" * 1000)
        before = read_document(str(path))

        number, words = _failure(path, b"new" * 100_000, before)

        assert (number, words) == (errno.ENOSPC, "there is no space left on the disk. Free some, then try again")
        assert (path.read_bytes(), _names(disk)) == (b"old" * 1000, ["a.txt"])


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
        assert _failure(path, b"new", read_document(str(path)))[0] == errno.EACCES
        assert (path.read_bytes(), _names(folder)) == (b"old", ["a.txt"])
    finally:
        folder.chmod(0o755)


TRYING = """
import os, sys
from ferrule.host.files import read_document
from ferrule.host.writing import NotWritten, write_file
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
        assert (path.read_bytes(), _names(folder)) == (b"old", ["a.txt"])


@requirement("FILE-5")
def test_what_cannot_be_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))

    assert _failure(tmp_path, b"new") == (errno.EEXIST, "it is a directory")
    assert _failure(tmp_path / "socket", b"new") == (errno.EEXIST, "it is a socket")
    assert _failure(tmp_path / "loop", b"new") == (errno.ELOOP, "it is a link that leads back to itself")
    assert _failure(tmp_path / "file" / "a.txt", b"new") == (
        errno.ENOTDIR,
        "a part of its path is a file, not a folder",
    )
    assert _failure(tmp_path / ("x" * 300), b"new") == (errno.ENAMETOOLONG, "its name is too long for the file system")
    assert _names(tmp_path) == ["file", "loop", "socket"]


@requirement("FILE-5")
def test_a_folder_that_vanished_is_said(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.txt"
    path.parent.mkdir()
    path.write_bytes(b"old")
    before = read_document(str(path))
    path.unlink()
    path.parent.rmdir()

    assert _failure(path, b"new", before) == (
        errno.ENOENT,
        "its folder does not exist any more. Look for the folder, or make it, then try again",
    )
    assert _names(tmp_path) == []


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
        _refusal(path, b"new", snapshot)
        _refusal(path, b"new", None)

    assert len(os.listdir("/proc/self/fd")) == before
