"""Sessions travel: with a project that moves, with a state folder that is copied, through other JSON writers."""

from __future__ import annotations

import json
import os
import shutil
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferrule import Session, Settings, ToolCall
from ferrule.app.kept_sessions import (
    TranscriptError,
    begin_session,
    continue_session,
    list_sessions,
    resume_session,
)
from ferrule.cli.commands import sessions
from ferrule.cli.exits import UsageError
from ferrule.host.storage.project_marks import ATTRIBUTE, ProjectMarks
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel


def has_attributes(folder: Path) -> bool:
    try:
        os.setxattr(folder, "user.ferrule.test", b"1")
    except OSError:
        return False
    return True


@pytest.fixture(params=["git", "plain"])
def settings(tmp_path: Path, request: pytest.FixtureRequest) -> Settings:
    workspace = tmp_path / "work"
    workspace.mkdir()
    if request.param == "git":
        make_repository(workspace)
    elif not has_attributes(tmp_path):
        pytest.skip("this file system has no attributes")
    return Settings(cwd=str(workspace), state_folder=tmp_path / "state", mode=Mode.BYPASS)


def make_repository(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


async def talk(settings: Settings, prompt: str, session: Session | None = None) -> Session:
    model = RecordingModel(says(f"Answer to {prompt}."))
    async with session or begin_session(settings) as session, session.ask(prompt, model) as events:
        assert [envelope async for envelope in events]
    return session


def at(settings: Settings, place: Path) -> Settings:
    return replace(settings, cwd=str(place))


def prompts(settings: Settings) -> list[str]:
    return sorted(one.first_prompt for one in list_sessions(settings))


async def test_a_renamed_project_finds_its_sessions(settings: Settings, tmp_path: Path) -> None:
    old = await talk(settings, "before")
    os.rename(settings.cwd, tmp_path / "renamed")
    moved = at(settings, tmp_path / "renamed")

    assert prompts(moved) == ["before"]
    await talk(moved, "after", continue_session(moved))
    async with resume_session(old.id, moved) as session:
        assert [turn.__class__.__name__ for turn in session.history].count("UserTurn") == 2


async def test_it_is_moved_again_and_finds_all_of_them(settings: Settings, tmp_path: Path) -> None:
    await talk(settings, "first")
    os.rename(settings.cwd, tmp_path / "second")
    await talk(at(settings, tmp_path / "second"), "second")
    os.rename(tmp_path / "second", tmp_path / "third")

    assert prompts(at(settings, tmp_path / "third")) == ["first", "second"]


async def test_the_model_is_told_of_the_new_place(settings: Settings, tmp_path: Path) -> None:
    (Path(settings.cwd) / "sub").mkdir()
    going = RecordingModel(
        says("Going.", ToolCall("1", "Bash", {"command": "cd sub", "description": "Go"})), says("Ok.")
    )
    async with begin_session(settings) as session, session.ask("before", going) as events:
        assert [envelope async for envelope in events]
    os.rename(settings.cwd, tmp_path / "renamed")
    moved = at(settings, tmp_path / "renamed")

    model = RecordingModel(says("I see."))
    async with continue_session(moved) as session:
        assert session.state.cwd == str(tmp_path / "renamed" / "sub")
        async with session.ask("and now?", model) as events:
            assert [envelope async for envelope in events]

    sent = str(model.requests[0])
    assert f"took place in {settings.cwd}. It goes on in {moved.cwd}" in sent


async def test_a_copy_of_a_project_is_another_project_while_both_exist(settings: Settings, tmp_path: Path) -> None:
    await talk(settings, "of the original")
    shutil.copytree(settings.cwd, tmp_path / "copy")
    copy = at(settings, tmp_path / "copy")
    if not ProjectMarks(tmp_path).of(copy.cwd):  # copytree takes attributes along on some systems only
        os.setxattr(copy.cwd, ATTRIBUTE, os.getxattr(settings.cwd, ATTRIBUTE))

    assert prompts(copy) == []
    await talk(copy, "of the copy")
    assert prompts(settings) == ["of the original"]
    shutil.rmtree(settings.cwd)
    assert prompts(copy) == ["of the copy", "of the original"]


async def test_another_project_at_the_old_place_has_none_of_them(settings: Settings, tmp_path: Path) -> None:
    await talk(settings, "of the first")
    os.rename(settings.cwd, tmp_path / "moved")
    Path(settings.cwd).mkdir()

    assert prompts(at(settings, tmp_path / "moved")) == ["of the first"]
    assert prompts(settings) == []
    await talk(settings, "of the second")
    assert prompts(settings) == ["of the second"]
    assert prompts(at(settings, tmp_path / "moved")) == ["of the first"]


async def test_a_project_that_is_made_anew_at_its_place_keeps_them(settings: Settings) -> None:
    await talk(settings, "before")
    shutil.rmtree(settings.cwd)
    Path(settings.cwd).mkdir()

    assert prompts(settings) == ["before"]


async def test_a_state_folder_on_another_machine_finds_the_project_by_its_mark(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    make_repository(here)
    settings = Settings(cwd=str(here), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    await talk(settings, "on the first machine")
    there = tmp_path / "there"
    there.mkdir()
    shutil.copytree(here, there / "project")
    shutil.copytree(settings.state_folder, there / "state")
    shutil.rmtree(here)

    other = Settings(cwd=str(there / "project"), state_folder=there / "state", mode=Mode.BYPASS)
    assert prompts(other) == ["on the first machine"]


async def test_a_session_of_a_path_that_is_not_there_says_how_to_continue_it(tmp_path: Path) -> None:
    """Without a mark nobody can know that it is the same project, but its user can say so."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    settings = Settings(cwd=str(old), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    session = await talk(settings, "before")
    old.rmdir()
    here = at(settings, new)

    assert prompts(here) == []
    with pytest.raises(TranscriptError, match=f"{old}, which does not exist here.*--resume {session.id} --fork-sess"):
        resume_session(session.id, here)
    assert prompts(settings) == ["before"]
    await talk(here, "after", resume_session(session.id, here, fork=True))
    assert prompts(here) == ["before"]


async def test_the_sessions_of_a_folder_that_is_gone_are_listed_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "old").mkdir()
    session = await talk(Settings(cwd=str(tmp_path / "old"), mode=Mode.BYPASS), "before")
    (tmp_path / "old").rmdir()

    assert sessions.run(Namespace(cwd=str(tmp_path / "old"), json=True)) == 0
    assert [one["session_id"] for one in json.loads(capsys.readouterr().out)] == [session.id]
    with pytest.raises(UsageError, match="is not a directory"):
        sessions.run(Namespace(cwd=str(tmp_path / "never"), json=True))


async def test_a_folder_that_takes_no_mark_has_its_sessions_by_path(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    (workspace / ".git").mkdir(parents=True)
    (workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (workspace / ".git" / "ferrule-project").symlink_to(tmp_path / "nowhere")
    settings = Settings(cwd=str(workspace), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    await talk(settings, "hello")

    assert prompts(settings) == ["hello"]
    assert not (tmp_path / "nowhere").exists()


async def test_subfolders_of_a_repository_are_projects_of_their_own(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    for name in ("one", "two"):
        (repository / name).mkdir(parents=True)
    make_repository(repository)
    settings = Settings(cwd=str(repository / "one"), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    await talk(settings, "in one")
    await talk(at(settings, repository), "above")
    repository.rename(tmp_path / "moved")

    assert prompts(at(settings, tmp_path / "moved" / "one")) == ["in one"]
    assert prompts(at(settings, tmp_path / "moved" / "two")) == []
    assert prompts(at(settings, tmp_path / "moved")) == ["above"]


# Other writers


def rewrite(path: Path, **how: Any) -> None:
    lines = [json.dumps(json.loads(line), **how) for line in path.read_text().splitlines()]
    path.write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    "how", [{}, {"sort_keys": True}, {"separators": (",", ":"), "sort_keys": True}, {"ensure_ascii": False}], ids=str
)
async def test_a_transcript_of_another_json_writer_is_listed_continued_and_forked(
    how: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    settings = Settings(cwd=str(tmp_path / "work"), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    written = await talk(settings, "grüß dich")
    (path,) = settings.state_folder.glob("projects/*/*.jsonl")
    rewrite(path, **how)

    (listed,) = list_sessions(settings)
    assert (listed.id, listed.first_prompt, listed.turns) == (written.id, "grüß dich", 1)
    async with continue_session(settings) as session:
        assert session.history == written.history
    async with resume_session(written.id, settings, fork=True, fork_id="forked") as fork:
        assert fork.history == written.history
    copied = path.with_name("forked.jsonl").read_text().splitlines()
    assert {json.loads(line)["sessionId"] for line in copied} == {"forked"}
