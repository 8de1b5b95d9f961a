"""What somebody else changed is told once, and what the agent itself changed never."""

from __future__ import annotations

import asyncio
import os
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.core.content import Text
from ferrule.core.events import NoteAdded
from ferrule.core.model import ResultTurn, UserTurn
from ferrule.host.files.changed_files import ChangedFiles
from ferrule.host.files.ledger import Ledgers, Stamp
from ferrule.host.files.open_files import FileIdentity
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel
from tests.host.files.seeing import see, see_lines, snapshot_of
from tests.requirement import requirement

SEEN = "one\ntwo\nthree\n"


class Watched:
    """A folder with one file that was seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "a.txt"
        self.path.write_text(SEEN)
        self.ledgers = Ledgers()
        self.source = ChangedFiles(self.ledgers, str(folder))
        see(self.ledgers.of("main"), self.path)

    def told(self, agent: str = "main") -> str:
        return "".join(f"{note.kind}: {note.text}" for note in asyncio.run(self.source.notes(agent)))


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


@requirement("FILE-4")
def test_a_change_from_outside_is_told_once_with_its_diff(watched: Watched) -> None:
    assert watched.told() == ""
    watched.path.write_text(SEEN.replace("two", "2"))

    assert watched.told() == snapshot("""\
changed_files: a.txt has changed since you saw it.
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+2
 three
""")
    assert watched.told() == ""


@requirement("FILE-4")
def test_a_second_change_is_told_again(watched: Watched) -> None:
    watched.path.write_text("2\n")
    watched.told()
    watched.path.write_text("3\n")

    assert "+3\n" in watched.told()


@requirement("FILE-4")
def test_a_change_that_keeps_size_and_time_is_told(watched: Watched) -> None:
    before = watched.path.stat()
    watched.path.write_text(SEEN.replace("two", "tow"))
    os.utime(watched.path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert "+tow" in watched.told()


@requirement("FILE-4")
def test_a_deleted_file_is_told_once_and_told_of_again_when_it_is_back_changed(watched: Watched) -> None:
    watched.path.unlink()
    assert watched.told() == "changed_files: a.txt was deleted."
    assert watched.told() == ""

    watched.path.write_text("other\n")
    assert "a.txt has changed since you saw it." in watched.told()


@requirement("FILE-4")
def test_the_folder_may_vanish_altogether(watched: Watched) -> None:
    shutil.rmtree(watched.folder)

    assert watched.told() == "changed_files: a.txt was deleted."


@requirement("FILE-4")
def test_a_new_file_is_not_told(watched: Watched) -> None:
    (watched.folder / "new.txt").write_text("x")

    assert watched.told() == ""


@requirement("FILE-4")
def test_what_the_agent_wrote_itself_is_not_told(watched: Watched) -> None:
    watched.path.write_text("mine\n")
    now = snapshot_of(watched.path)
    watched.ledgers.of("main").wrote(now.identity, now.document.text)

    assert watched.told() == ""


@requirement("FILE-4")
def test_a_touched_or_equal_file_is_not_told(watched: Watched) -> None:
    os.utime(watched.path)
    assert watched.told() == ""

    other = watched.folder / "b.txt"
    other.write_text(SEEN)
    os.replace(other, watched.path)
    assert watched.told() == ""


def test_a_change_outside_of_what_was_seen_is_not_told(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    long = tmp_path / "long.txt"
    long.write_text("".join(f"{n}\n" for n in range(100)))
    see_lines(watched.ledgers.of("main"), long, 1, 10)

    long.write_text(long.read_text().replace("99\n", "ninety-nine\n"))
    assert watched.told() == ""
    long.write_text(long.read_text().replace("5\n", "five\n", 1))
    assert "+five\n" in watched.told()


@requirement("FILE-4")
def test_a_look_at_other_lines_does_not_hide_a_change(watched: Watched) -> None:
    watched.path.write_text(SEEN.replace("three", "3"))
    see_lines(watched.ledgers.of("main"), watched.path, 1, 1)

    assert "+3\n" in watched.told()


@requirement("FILE-4")
def test_a_diff_has_at_most_a_hundred_lines(watched: Watched) -> None:
    watched.path.write_text("".join(f"{n}\n" for n in range(5_000)))

    lines = watched.told().splitlines()

    assert len(lines) == 101
    assert lines[-1].endswith("more lines of this diff]")


def test_a_file_that_is_no_text_any_more_is_named(watched: Watched) -> None:
    watched.path.write_bytes(b"\x00\x01\x02\x03" * 100)

    assert watched.told() == "changed_files: a.txt has changed since you saw it: it is binary."


def test_a_picture_that_was_only_touched_is_not_told_and_a_changed_one_is(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG" + bytes(100))
    identity = FileIdentity.of(str(picture), picture.stat(), picture.read_bytes())
    watched.ledgers.of("main").saw_whole(identity, None)

    os.utime(picture)
    assert watched.told() == ""
    picture.write_bytes(b"\x89PNG" + bytes(99) + b"x")
    assert watched.told() == "changed_files: a.png has changed since you saw it."


def test_of_a_large_file_only_what_was_seen_is_looked_at(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    log = tmp_path / "large.log"
    log.write_text("".join(f"line {n}\n" for n in range(600_000)))
    ledger = watched.ledgers.of("main")
    ledger.saw_lines(str(log), Stamp.of(log.stat()), first=11, lines=[f"line {n}" for n in range(10, 20)])

    with log.open("a") as file:
        file.write("one more\n")
    assert watched.told() == ""
    log.write_text(log.read_text().replace("line 15\n", "line fifteen\n", 1))
    assert watched.told() == "changed_files: large.log has changed since you saw it."


def test_an_agent_hears_only_of_what_it_has_seen_itself(watched: Watched) -> None:
    watched.path.write_text("2\n")

    assert watched.told("other") == ""
    assert watched.told("main") != ""


def test_of_many_changes_some_are_told_now_and_the_others_next(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    paths = [tmp_path / f"{n}.txt" for n in range(30)]
    for path in paths:
        path.write_text("x\n")
        see(watched.ledgers.of("main"), path)
    for path in paths:
        path.write_text("y\n")

    first, second = watched.told(), watched.told()

    assert (first.count("has changed"), second.count("has changed")) == (20, 10)
    assert watched.told() == ""


# In a conversation


@requirement("FILE-4")
@pytest.mark.parametrize("told", [True, False])
async def test_the_next_request_tells_of_it_behind_all_that_was_sent_before(tmp_path: Path, told: bool) -> None:
    path = tmp_path / "a.txt"
    path.write_text(SEEN)

    class Formatter:
        """Changes the file after each call, as a program of the user might."""

        def after(self, proposal: object, outcome: object, /) -> None:
            path.write_text(path.read_text().upper())

    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state", tell_changes=told)
    session = open_session(settings, after=[Formatter()])
    look = ToolCall("1", "Grep", {"pattern": "t", "path": "a.txt", "output_mode": "content"})
    model = RecordingModel(says("", look), says("done"), says("done"))

    async with session.ask("go", model) as events:
        noted = [envelope.event async for envelope in events if isinstance(envelope.event, NoteAdded)]
    path.unlink()
    async with session.ask("go on", model) as events:
        noted += [envelope.event async for envelope in events if isinstance(envelope.event, NoteAdded)]

    assert [event.text.splitlines()[0] for event in noted] == (
        ["a.txt has changed since you saw it.", "a.txt was deleted."] if told else []
    )
    sent = [history for _, history in model.requests]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(sent))
    results, prompt = sent[1][-1], sent[2][-1]
    assert isinstance(results, ResultTurn)
    assert isinstance(prompt, UserTurn)
    assert bool(results.messages) == told
    assert prompt.content[1:] == ((Text("<changed_files>\na.txt was deleted.\n</changed_files>"),) if told else ())
