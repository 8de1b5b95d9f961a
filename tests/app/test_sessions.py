"""Sessions that are kept: listed, resumed, continued, forked; whole after a kill."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ferrule import Session, Settings, ToolCall
from ferrule.app.kept_sessions import (
    TranscriptError,
    begin_session,
    continue_session,
    list_sessions,
    resume_session,
)
from ferrule.core.content import Text, plain_text
from ferrule.core.events import Event
from ferrule.core.model import AssistantTurn, ModelProvider, ResultTurn, UserTurn
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel, well_formed
from tests.host.processes.shell import GENEROUS
from tests.requirement import requirement


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    workspace = tmp_path / "work"
    workspace.mkdir()
    return Settings(cwd=str(workspace), state_folder=tmp_path / "state", mode=Mode.BYPASS)


async def ask(session: Session, prompt: str, model: ModelProvider) -> list[Event]:
    async with session.ask(prompt, model) as events:
        return [envelope.event async for envelope in events]


async def talked(settings: Settings, *prompts: str, session_id: str | None = None) -> Session:
    """A session that was closed after these prompts."""
    async with begin_session(settings, session_id=session_id) as session:
        for prompt in prompts:
            await ask(session, prompt, RecordingModel(says(f"Answer to {prompt}.")))
    return session


def transcript(settings: Settings, session_id: str) -> Path:
    (path,) = settings.state_folder.glob(f"projects/*/{session_id}.jsonl")
    return path


# Where they are


@requirement("LOOP-2")
async def test_transcripts_are_for_their_owner_alone(settings: Settings) -> None:
    session = await talked(settings, "hello")

    path = transcript(settings, session.id)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in path.parents[:2]} == {0o700}
    assert path.parent.name == settings.cwd.replace("/", "-").replace("_", "-")


async def test_a_session_without_a_prompt_leaves_no_file(settings: Settings) -> None:
    await talked(settings)

    assert list_sessions(settings) == ()
    assert not (settings.state_folder / "projects").exists()


@pytest.mark.parametrize("session_id", ["../x", "", "a/b", "a\n", ".hidden", "x" * 200])
def test_an_id_that_is_no_plain_name_is_refused(settings: Settings, session_id: str) -> None:
    with pytest.raises(TranscriptError, match="is not a session id"):
        resume_session(session_id, settings)


# Listing


@requirement("LOOP-2")
async def test_sessions_are_listed_the_last_used_one_first(settings: Settings, tmp_path: Path) -> None:
    older = await talked(settings, "Fix the\n  bug, please.", "And the other.")
    newer = await talked(settings, "Write docs.")
    os.utime(transcript(settings, older.id), (1, 1_000))
    (tmp_path / "elsewhere").mkdir()
    await talked(Settings(cwd=str(tmp_path / "elsewhere"), state_folder=settings.state_folder), "Not here.")

    listed = [(one.id, one.first_prompt, one.turns) for one in list_sessions(settings)]

    assert listed == [(newer.id, "Write docs.", 1), (older.id, "Fix the bug, please.", 2)]


async def test_two_folders_whose_names_fall_together_keep_their_sessions_apart(tmp_path: Path) -> None:
    for name in ("a-b", "a b"):
        (tmp_path / name).mkdir()
        await talked(Settings(cwd=str(tmp_path / name), state_folder=tmp_path / "state"), name)

    listed = list_sessions(Settings(cwd=str(tmp_path / "a b"), state_folder=tmp_path / "state"))

    assert [one.first_prompt for one in listed] == ["a b"]


async def test_transcripts_that_nobody_used_for_a_month_go(settings: Settings) -> None:
    old = await talked(settings, "old")
    os.utime(transcript(settings, old.id), (1, 1_000))

    await talked(settings, "new")

    assert [one.first_prompt for one in list_sessions(settings)] == ["new"]


# Resuming


@requirement("LOOP-2")
async def test_a_resumed_session_goes_on_where_it_was(settings: Settings) -> None:
    first = await talked(settings, "one", "two")

    async with resume_session(first.id, settings) as session:
        model = RecordingModel(says("Three."))
        await ask(session, "three", model)

    _, history = model.requests[0]
    assert history[:4] == tuple(first.history)
    prompt = history[4]
    assert isinstance(prompt, UserTurn)
    assert prompt.content[0] == Text("three")
    assert "Files that were read before are treated as unread" in plain_text(prompt.content[1:])
    assert (session.id, session.turn) == (first.id, 3)
    assert [one.turns for one in list_sessions(settings)] == [3]


@requirement("LOOP-2", "FILE-1")
async def test_after_a_resume_files_must_be_read_again(settings: Settings) -> None:
    file = Path(settings.cwd) / "a.txt"
    file.write_text("old\n")
    read, write = ToolCall("1", "Read", {"file_path": "a.txt"}), {"file_path": "a.txt", "content": "new\n"}
    async with begin_session(settings) as session:
        await ask(session, "read", RecordingModel(says("", read), says("ok")))

    async with continue_session(settings) as session:
        await ask(session, "write", RecordingModel(says("", ToolCall("2", "Write", write)), says("hm")))

    turn = session.history[-2]
    assert isinstance(turn, ResultTurn)
    assert "has not been read yet" in plain_text(turn.results[0].content)
    assert file.read_text() == "old\n"


async def test_continue_takes_the_last_used_session(settings: Settings) -> None:
    older, newer = await talked(settings, "older"), await talked(settings, "newer")
    os.utime(transcript(settings, older.id), (1, 10**9 * 4))

    async with continue_session(settings) as session:
        assert session.id == older.id
    os.utime(transcript(settings, newer.id), (1, 10**9 * 4 + 1))
    async with continue_session(settings) as session:
        assert session.id == newer.id


def test_there_may_be_nothing_to_continue(settings: Settings) -> None:
    with pytest.raises(TranscriptError, match="can be resumed"):
        continue_session(settings)


async def test_a_session_of_another_project_is_named_with_its_place(settings: Settings, tmp_path: Path) -> None:
    session = await talked(settings, "here")
    (tmp_path / "elsewhere").mkdir()

    with pytest.raises(TranscriptError, match=f"belongs to {settings.cwd}"):
        resume_session(session.id, Settings(cwd=str(tmp_path / "elsewhere"), state_folder=settings.state_folder))
    with pytest.raises(TranscriptError, match="Session nobody was not found"):
        resume_session("nobody", settings)


async def test_a_session_that_is_open_elsewhere_can_only_be_forked(settings: Settings) -> None:
    async with begin_session(settings, session_id="mine") as session:
        await ask(session, "hello", RecordingModel(says("Hi.")))

        with pytest.raises(TranscriptError, match="open in another process"):
            resume_session("mine", settings)
        with pytest.raises(TranscriptError, match="The session mine already exists"):
            begin_session(settings, session_id="mine")
        async with resume_session("mine", settings, fork=True) as fork:
            assert fork.history == session.history


@requirement("LOOP-2")
async def test_a_fork_leaves_the_old_session_as_it_was(settings: Settings) -> None:
    old = await talked(settings, "one")
    before = transcript(settings, old.id).read_bytes()

    async with resume_session(old.id, settings, fork=True) as fork:
        await ask(fork, "two", RecordingModel(says("Two.")))

    assert fork.id != old.id
    assert transcript(settings, old.id).read_bytes() == before
    lines = [json.loads(line) for line in transcript(settings, fork.id).read_bytes().splitlines()]
    assert lines[0]["forked_from"] == old.id
    assert {line["sessionId"] for line in lines} == {fork.id}
    async with resume_session(fork.id, settings) as again:
        assert again.history == fork.history
    assert sorted(one.turns for one in list_sessions(settings)) == [1, 2]


async def test_half_a_last_line_is_dropped_and_the_record_goes_on_behind_it(settings: Settings) -> None:
    old = await talked(settings, "one")
    path = transcript(settings, old.id)
    with path.open("ab") as file:
        file.write(b'{"type":"assistant","uuid":"half')

    async with resume_session(old.id, settings) as session:
        assert session.history == old.history
        await ask(session, "two", RecordingModel(says("Two.")))

    assert all(json.loads(line) for line in path.read_bytes().splitlines())
    async with resume_session(old.id, settings) as session:
        assert [turn for turn in session.history if isinstance(turn, AssistantTurn)][-1].text == "Two."


async def test_a_working_directory_that_is_gone_is_not_gone_back_to(settings: Settings) -> None:
    (Path(settings.cwd) / "sub").mkdir()
    move = ToolCall("1", "Bash", {"command": "cd sub"})
    async with begin_session(settings) as session:
        await ask(session, "go", RecordingModel(says("", move), says("ok")))
    async with continue_session(settings) as session:
        assert session.state.cwd == str(Path(settings.cwd) / "sub")

    (Path(settings.cwd) / "sub").rmdir()

    async with continue_session(settings) as session:
        assert session.state.cwd == settings.cwd


# Kills

TALKER = """
import asyncio, os, sys
from pathlib import Path
from ferrule.app.kept_sessions import begin_session, continue_session, list_sessions
from ferrule.app.build import Settings
from ferrule.core.calls import ToolCall
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import ScriptedModel, says

settings = Settings(cwd=sys.argv[1], state_folder=Path(sys.argv[2]), mode=Mode.BYPASS)

async def main():
    session = continue_session(settings) if list_sessions(settings) else begin_session(settings)
    async with session:
        for _ in range(10_000):
            number = session.turn + 1
            call = ToolCall(f"c{number}", "Write", {"file_path": f"{number % 5}.txt", "content": "x" * 3000})
            look = ToolCall(f"r{number}", "Glob", {"pattern": "*"})
            model = ScriptedModel([says("a" * 500, look, call), says("ok")])
            async with session.ask(f"prompt {number}", model) as events:
                async for _ in events:
                    pass
            print(number, flush=True)

for _ in sys.stdin:  # a new process each time, without loading everything anew
    child = os.fork()
    if child == 0:
        print(os.getpid(), flush=True)
        asyncio.run(main())
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


@requirement("LOOP-2", "PIPE-4")
async def test_after_kills_at_random_moments_nothing_that_was_finished_is_lost(settings: Settings) -> None:
    draw = random.Random(11)
    finished = 0
    with talking(settings) as (say, hear):
        for _ in range(6):
            say("go")
            process = int(hear())
            for _ in range(draw.randint(0, 8)):
                finished = int(hear())
            await asyncio.sleep(draw.uniform(0, 0.02))  # until no particular moment
            os.kill(process, signal.SIGKILL)
            while (line := hear()) != "gone":
                finished = int(line)

            if not list_sessions(settings):
                continue
            async with await _continue_when_free(settings) as session:
                prompts = [plain_text(turn.content[:1]) for turn in session.history if isinstance(turn, UserTurn)]
            assert well_formed(session.history)
            assert prompts[:finished] == [f"prompt {number}" for number in range(1, finished + 1)]
            assert len(prompts) <= finished + 1
    assert finished > 6


async def _continue_when_free(settings: Settings) -> Session:
    """What the killed process was just starting has its descriptors, and with them the lock, until its own `exec`."""
    end = time.monotonic() + GENEROUS
    while True:
        try:
            return continue_session(settings)
        except TranscriptError:
            assert time.monotonic() < end, "the lock outlived the process"
            await asyncio.sleep(0.005)


@contextmanager
def talking(settings: Settings) -> Generator[tuple[Callable[[str], None], Callable[[], str]]]:
    """A program that goes on with the last session whenever it is told to, and how to speak with it."""
    program = [sys.executable, "-c", TALKER, settings.cwd, str(settings.state_folder)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        to, from_it = process.stdin, process.stdout
        try:
            yield lambda line: print(line, file=to, flush=True), lambda: from_it.readline().strip()
        finally:
            to.close()
