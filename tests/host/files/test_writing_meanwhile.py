"""Writing files that somebody else changes, replaces or writes at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ferrule.host.files.atomic_writes import write_file
from ferrule.host.files.held_folders import ChangedMeanwhile
from ferrule.host.files.open_files import read_document
from tests.requirement import requirement

from .rewriting import names, refused


@requirement("FILE-7")
def test_content_that_changed_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    before = read_document(str(path))
    stamp = path.stat()
    path.write_bytes(b"own")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert refused(path, b"new", before) == (
        f"{path} changed since it was read. Read it again, then repeat the change."
    )
    assert (path.read_bytes(), names(tmp_path)) == (b"own", ["a.txt"])


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
    assert refused(path, b"new", before) == f"{path} does not exist any more. Check what became of it."

    os.mkfifo(path)
    assert refused(path, b"new", before) == f"{path} is a named pipe now. Check what became of it."
    assert names(tmp_path) == ["a.txt"]


@requirement("FILE-7")
def test_a_file_that_somebody_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"own")

    assert refused(path, b"new", None) == f"{path} exists by now. Read it before you overwrite it."
    assert (path.read_bytes(), names(tmp_path)) == (b"own", ["a.txt"])


@requirement("SEC-3")
def test_a_link_planted_after_the_decision_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_bytes(b"old")
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    before = read_document(str(path))
    path.unlink()
    path.symlink_to(victim)

    refusal = refused(path, b"new", before)

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

    refused(path, b"new", before)

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
        ends = time.monotonic() + 8
        while min(written, refused) < 50 and time.monotonic() < ends:  # how often each comes is up to the machine
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
    assert names(elsewhere) == ["a.txt"]
    assert written
    assert refused


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


COUNTING = """
import sys
from ferrule.host.files.open_files import read_document
from ferrule.host.files.held_folders import ChangedMeanwhile
from ferrule.text.matching import TextEdit
from ferrule.host.files.atomic_writes import write_file
path, name, count = sys.argv[1:]
sys.stdin.readline()
number = 0
while number < int(count):
    before = read_document(path)
    end = len(before.document.text)
    line = f"{name} {number}\\n"
    try:
        write_file(path, before.document.splice([TextEdit(end, end, line)]), expected=before.identity)
    except ChangedMeanwhile:
        continue
    print(line, end="")
    number += 1
"""
"""A count and no time: beside other load one may be kept waiting until the other has ended, which loses nothing."""


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
            [sys.executable, "-c", COUNTING, path, name, "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for path, name in zip(paths, ("one", "two"), strict=True)
    ]

    reported = [child.communicate("go\n", timeout=60)[0].splitlines() for child in _started(children)]

    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith("one")] == reported[0]
    assert [line for line in lines if line.startswith("two")] == reported[1]
    assert [len(lines), *map(len, reported)] == [120, 60, 60]
    assert not [name for name in names(tmp_path) if "ferrule" in name]


def _started(children: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    for child in children:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    return children


INTERFERING = """
import os, sys
from ferrule.host.files.open_files import read_document
from ferrule.host.files.held_folders import ChangedMeanwhile
from ferrule.host.files.atomic_writes import write_file
path, moment, act = sys.argv[1:]
before, done = read_document(path), []
def interfere(event, arguments):
    if event != moment or done:
        return
    done.append(event)
    if act == "append":
        with open(path, "ab") as file:
            file.write(b"theirs\\n")
    elif act == "replace":
        with open(path + ".new", "wb") as file:
            file.write(b"theirs\\n")
        os.rename(path + ".new", path)
    else:
        os.unlink(path)
sys.addaudithook(interfere)
try:
    write_file(path, b"ours\\n", expected=before.identity)
except ChangedMeanwhile as change:
    print(change)
assert done
"""
AFTER_THE_LAST_LOOK = {1: "ctypes.dlopen", 2: "os.rename"}
"""What Python does between the last look at the file and the change: by the number of its links."""


@requirement("FILE-7")
@pytest.mark.parametrize(
    ("links", "act", "left"),
    [
        (1, "append", b"old\ntheirs\n"),
        (1, "replace", b"theirs\n"),
        (1, "remove", None),
        (2, "append", b"old\ntheirs\n"),
    ],
)
def test_what_another_program_does_between_the_last_look_and_the_change_is_found_and_kept(
    tmp_path: Path, links: int, act: str, left: bytes | None
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old\n")
    if links == 2:
        (tmp_path / "b.txt").hardlink_to(path)
    moment = AFTER_THE_LAST_LOOK[links]

    done = subprocess.run(
        [sys.executable, "-c", INTERFERING, str(path), moment, act], capture_output=True, check=True, timeout=60
    )

    assert done.stdout.decode() == f"{path} changed since it was read. Read it again, then repeat the change.\n"
    assert (path.read_bytes() if path.exists() else None) == left
    assert not [name for name in names(tmp_path) if "ferrule" in name]


MOVING = """
import os, sys
from ferrule.host.files.held_folders import ChangedMeanwhile
from ferrule.host.files.atomic_writes import write_file
path, act = sys.argv[1:]
folder, done = os.path.dirname(path), []
def interfere(event, arguments):
    if event != "open" or done or not str(arguments[0]).endswith(".tmp"):
        return
    done.append(event)
    os.rename(folder, folder + ".moved")
    if act == "replaced":
        os.mkdir(folder)
    elif act == "a link":
        os.symlink(folder + ".moved", folder)
sys.addaudithook(interfere)
try:
    write_file(path, b"ours", expected=None)
except ChangedMeanwhile as change:
    print(change)
assert done
"""


@requirement("SEC-3")
@pytest.mark.parametrize("act", ["gone", "replaced", "a link"])
def test_no_file_is_made_in_a_folder_that_is_moved_away_while_it_is_written(tmp_path: Path, act: str) -> None:
    path = tmp_path / "folder" / "a.txt"
    path.parent.mkdir()

    done = subprocess.run([sys.executable, "-c", MOVING, str(path), act], capture_output=True, check=True, timeout=60)

    words = f"the folder of {path} was moved or replaced meanwhile. Look at it again, then ask again.\n"
    assert done.stdout.decode() == words
    assert names(tmp_path / "folder.moved") == []
    assert not path.exists()


READING = """
import sys
from ferrule.host.files.open_files import read_document
path = sys.argv[1]
print(flush=True)
while (text := read_document(path).document.text) != "the end\\n":
    assert text.count("\\n") == len(text) // 5, text
"""


@requirement("FILE-7")
def test_nobody_who_asks_for_the_lock_reads_half_of_a_file_with_several_links(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"line\n")
    (tmp_path / "b.txt").hardlink_to(path)
    with subprocess.Popen([sys.executable, "-c", READING, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        for number in range(150):
            write_file(str(path), b"line\n" * (1 + number % 7 * 400), expected=read_document(str(path)).identity)
        write_file(str(path), b"the end\n", expected=read_document(str(path)).identity)

        assert child.wait(60) == 0
