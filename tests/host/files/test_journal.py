"""After a kill, the next start leaves nothing behind that nobody wants."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.host.files.journal import Journal, recover
from ferrule.permissions.modes import Mode
from tests.host.processes.forking import forks
from tests.requirement import requirement

WRITER = """
import asyncio, os
from pathlib import Path
from ferrule.core.calls import ToolCall
from ferrule.app.build import Settings, open_session
from ferrule.permissions.modes import Mode

def run(folder, state):
    asyncio.run(write(open_session(Settings(cwd=folder, state_folder=Path(state), mode=Mode.BYPASS))))

async def write(session):
    number = 0
    while True:
        number += 1
        content = f"{number}\\n" * 5000
        path = f"sub/{os.getpid()}-{number % 3}.txt"
        (outcome,) = await session.run([ToolCall("1", "Write", {"file_path": path, "content": content})])
        assert not outcome.is_error, outcome.content
        print(number, flush=True)
"""


@requirement("FILE-5")
def test_kills_at_random_moments_of_two_hundred_writes_leave_whole_files_and_no_strays(tmp_path: Path) -> None:
    folder, state = tmp_path / "work", tmp_path / "state"
    folder.mkdir()
    draw = random.Random(7)
    writes = kills = 0
    with forks(WRITER) as writer:
        while writes < 200:
            some = draw.randint(1, 30)
            writer.start(str(folder), str(state))
            writer.wait_for(some)
            writes += some + writer.kill()
            kills += 1
            for path in folder.rglob("*.txt"):
                lines = path.read_text().split("\n")
                assert len(lines) == 5_001
                assert len(set(lines[:-1])) == 1
            open_session(Settings(cwd=str(folder), state_folder=state))
            assert [path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".txt"] == []
    assert kills > 5


def test_what_a_killed_process_was_writing_is_removed_at_the_next_start(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "writing")
    journal.note(str(tmp_path))
    (tmp_path / f".a.txt.ferrule-{journal.owner}00000000.tmp").write_text("half")
    (tmp_path / ".b.txt.ferrule-ffffffff00000000.tmp").write_text("somebody else's")
    del journal

    assert recover(tmp_path / "writing") == ()
    assert sorted(os.listdir(tmp_path)) == [".b.txt.ferrule-ffffffff00000000.tmp", "writing"]
    assert os.listdir(tmp_path / "writing") == []


def test_what_a_living_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "writing")
    journal.note(str(tmp_path))
    stray = tmp_path / f".a.txt.ferrule-{journal.owner}00000000.tmp"
    stray.write_text("half")

    assert recover(tmp_path / "writing") == ()
    assert stray.exists()


def test_the_copy_of_a_file_with_several_links_is_named_and_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "writing")
    journal.note(str(tmp_path))
    saved = tmp_path / f".a.txt.ferrule-{journal.owner}00000000.saved"
    saved.write_text("old")
    del journal

    assert recover(tmp_path / "writing") == (str(saved),)
    assert saved.read_text() == "old"


def test_a_folder_that_is_gone_is_no_trouble(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "writing")
    journal.note(str(tmp_path / "gone"))
    del journal

    assert recover(tmp_path / "writing") == ()
    assert recover(tmp_path / "nowhere") == ()


def test_where_no_journal_can_be_kept_files_are_written_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    Journal(tmp_path / "file" / "writing").note(str(tmp_path))


def test_nothing_is_made_before_something_is_written(tmp_path: Path) -> None:
    open_session(Settings(cwd=str(tmp_path), state_folder=tmp_path / "state"))

    assert os.listdir(tmp_path) == []


@requirement("FAULT-2")
def test_threads_that_write_first_at_the_same_time_share_one_journal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folders = [tmp_path / f"folder {number}" for number in range(16)]
    for round in range(20):
        root = tmp_path / f"writing {round}"
        journal, together = Journal(root), Barrier(len(folders))

        def write(folder: Path, journal: Journal = journal, together: Barrier = together) -> None:
            together.wait()
            journal.note(str(folder))
            folder.mkdir(exist_ok=True)
            (folder / f".a.txt.ferrule-{journal.owner}00000000.tmp").write_text("half")

        threads = [Thread(target=write, args=(folder,)) for folder in folders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del write, journal, threads  # as after a kill: nobody holds it

        recover(root)
        assert [path for folder in folders for path in folder.iterdir()] == []
    assert caplog.messages == []


@requirement("FAULT-2")
async def test_a_closed_session_leaves_no_journal_open_or_on_disk(tmp_path: Path) -> None:
    state = tmp_path / "state"
    sessions = [open_session(Settings(cwd=str(tmp_path), state_folder=state, mode=Mode.BYPASS)) for _ in range(3)]
    for number, session in enumerate(sessions):
        async with session:
            call = ToolCall("1", "Write", {"file_path": f"{number}.txt", "content": "new"})
            (outcome,) = await session.run([call])
            assert not outcome.is_error
            assert len(os.listdir(state / "writing")) == 1

        assert os.listdir(state / "writing") == []
    assert not [path for path in _open_files() if path.startswith(str(state / "writing"))]
    assert sessions  # they are still held, so this was not the garbage collector's doing


def test_a_closed_journal_is_kept_while_something_is_left_and_begins_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "writing")
    journal.note(str(tmp_path))
    saved = tmp_path / f".a.txt.ferrule-{journal.owner}00000000.saved"
    saved.write_text("old")

    journal.close()
    assert recover(tmp_path / "writing") == (str(saved),)

    journal.note(str(tmp_path))
    assert os.listdir(tmp_path / "writing") == [journal.owner]
    assert recover(tmp_path / "writing") == ()  # somebody holds it
    assert os.listdir(tmp_path / "writing") == [journal.owner]


def test_a_journal_that_cannot_be_kept_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").write_text("")
    journal = Journal(tmp_path / "state" / "writing")
    for _ in range(3):
        journal.note(str(tmp_path))
    assert len(caplog.messages) == 1

    (tmp_path / "state").unlink()
    journal.note(str(tmp_path))

    assert os.listdir(tmp_path / "state" / "writing") == [journal.owner]


@requirement("FAULT-2")
def test_a_journal_is_not_taken_away_between_its_making_and_its_lock(tmp_path: Path) -> None:
    root, over = tmp_path / "writing", Event()

    def tidy() -> None:
        while not over.is_set():
            recover(root)

    others = [Thread(target=tidy) for _ in range(3)]
    for other in others:
        other.start()
    kept = [Journal(root) for _ in range(300)]
    for journal in kept:
        journal.note(str(tmp_path))
    over.set()
    for other in others:
        other.join()

    assert sorted(os.listdir(root)) == sorted(journal.owner for journal in kept)


def _open_files() -> list[str]:
    found: list[str] = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return found
