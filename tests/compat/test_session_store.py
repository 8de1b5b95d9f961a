"""`session_store`: conversations that are kept elsewhere too, and go on from there."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ferrule.compat.claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIConnectionError,
    HookMatcher,
    InMemorySessionStore,
    MirrorErrorMessage,
    ResultMessage,
    SessionKey,
    SessionStore,
    get_session_messages,
    list_sessions,
    project_key_for_directory,
    query,
)
from ferrule.core.calls import ToolCall
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.testing import RecordingModel

from ..requirement import requirement
from ..sdk.scenes import HANG, of, read

AGENT = ToolCall("1", "Agent", {"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"})


def _options(*messages: Any, **more: Any) -> ClaudeAgentOptions:
    chosen: dict[str, Any] = {"model_provider": ScriptedModel(messages), "setting_sources": [], **more}
    return ClaudeAgentOptions(**chosen)


async def _asked(prompt: str, *script: Any, **more: Any) -> list[Any]:
    return await read(query(prompt=prompt, options=_options(*script, **more)))


def _id(messages: list[Any]) -> str:
    return of(ResultMessage, messages)[0].session_id


def _key(session_id: str) -> SessionKey:
    return {"project_key": project_key_for_directory(), "session_id": session_id}


def _here(session_id: str) -> list[Any]:
    """The transcript on this machine."""
    (path,) = Path(os.environ["XDG_STATE_HOME"]).glob(f"ferrule/projects/*/{session_id}.jsonl")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Go on as another machine, which has nothing but the same working directory."""
    return lambda: monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-elsewhere"))


class Rows(SessionStore):
    """As a database keeps entries: as JSON, with the keys sorted, and each batch twice after a retry."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []

    async def append(self, key: SessionKey, entries: list[Any]) -> None:
        self.rows += [(key["session_id"], json.dumps(entry, sort_keys=True)) for entry in entries] * 2

    async def load(self, key: SessionKey) -> list[Any] | None:
        return [json.loads(row) for session_id, row in self.rows if session_id == key["session_id"]] or None


class Failing(InMemorySessionStore):
    is_down = True

    async def append(self, key: SessionKey, entries: list[Any]) -> None:
        if self.is_down:
            raise ConnectionError("the database is away")
        await super().append(key, entries)


@requirement("SDK-1")
async def test_the_store_has_all_of_the_transcript_when_the_result_is_told() -> None:
    store = InMemorySessionStore()
    async with ClaudeSDKClient(_options(says("", AGENT), says("Seen."), says("Done."), session_store=store)) as client:
        await client.query("x")
        id = _id(await read(client.receive_response()))
        assert store.get_entries(_key(id)) == _here(id)

    assert {entry["agent"].partition("/")[0] for entry in _here(id)} == {"main"}
    assert len({entry["agent"] for entry in _here(id)}) == 2, "the agent's entries are there too"
    assert store.size == 1


async def test_a_conversation_goes_on_on_another_machine(elsewhere: Any) -> None:
    store, model = Rows(), RecordingModel(says("Again."))
    id = _id(await _asked("My name is Ada.", says("Hello."), session_store=store))
    elsewhere()

    messages = await _asked("Who am I?", session_store=store, resume=id, model_provider=model)

    assert _id(messages) == id
    assert "My name is Ada." in str(model.requests[0])
    assert [one.summary for one in list_sessions()] == ["My name is Ada."]
    assert [one.type for one in get_session_messages(id)] == ["user", "assistant", "user", "assistant"]
    assert {row["uuid"] for row in await store.load(_key(id)) or ()} == {entry["uuid"] for entry in _here(id)}


async def test_what_went_on_elsewhere_is_there_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store, model = InMemorySessionStore(), RecordingModel(says("."))
    id = _id(await _asked("first", says("1."), session_store=store))
    with monkeypatch.context() as away:
        away.setenv("XDG_STATE_HOME", str(tmp_path / "state-elsewhere"))
        await _asked("Hazel.", says("2."), session_store=store, resume=id)

    await _asked("third", session_store=store, resume=id, model_provider=model)

    assert "Hazel." in str(model.requests[0])


async def test_what_went_on_in_both_places_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = InMemorySessionStore()
    id = _id(await _asked("first", says("1."), session_store=store))
    with monkeypatch.context() as away:
        away.setenv("XDG_STATE_HOME", str(tmp_path / "state-elsewhere"))
        await _asked("second", says("2."), session_store=store, resume=id)
    await _asked("other", says("2."), resume=id)
    before = _here(id)

    with pytest.raises(CLIConnectionError, match="both here and in the store"):
        await _asked("third", session_store=store, resume=id)
    assert _here(id) == before


async def test_the_last_conversation_is_the_stores(elsewhere: Any) -> None:
    store, model = InMemorySessionStore(), RecordingModel(says("."))
    await _asked("older", says("1."), session_store=store)
    newer = _id(await _asked("Hazel.", says("1."), session_store=store))
    elsewhere()

    messages = await _asked("x", session_store=store, continue_conversation=True, model_provider=model)

    assert _id(messages) == newer
    assert "Hazel." in str(model.requests[0])


async def test_a_store_that_cannot_list_has_no_last_conversation() -> None:
    with pytest.raises(CLIConnectionError, match="cannot list"):
        await _asked("x", session_store=Rows(), continue_conversation=True)


async def test_a_fork_stands_whole_in_the_store_under_its_own_id(elsewhere: Any) -> None:
    store = InMemorySessionStore()
    id = _id(await _asked("first", says("1."), session_store=store))
    before = store.get_entries(_key(id))
    elsewhere()

    forked = _id(await _asked("second", says("2."), session_store=store, resume=id, fork_session=True))

    assert forked != id
    assert store.get_entries(_key(id)) == before
    assert store.get_entries(_key(forked)) == _here(forked)


async def test_a_store_that_fails_breaks_nothing_and_is_told_and_gets_all_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ferrule.sdk.mirroring.PAUSES", ())
    store = Failing()
    async with ClaudeSDKClient(_options(says("One."), says("Two."), session_store=store)) as client:
        await client.query("x")
        messages = await read(client.receive_response())
        id = _id(messages)
        (told,) = of(MirrorErrorMessage, messages)
        assert told.error == "ConnectionError: the database is away"
        assert told.key == _key(id)
        assert of(ResultMessage, messages)[0].result == "One."

        store.is_down = False
        await client.query("y")
        assert of(MirrorErrorMessage, await read(client.receive_response())) == []

    assert store.get_entries(_key(id)) == _here(id)


async def test_what_a_store_missed_goes_there_when_the_conversation_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.sdk.mirroring.PAUSES", ())
    store = InMemorySessionStore()
    id = _id(await _asked("without a store", says("1.")))
    await _asked("with one", says("2."), session_store=store, resume=id)

    assert store.get_entries(_key(id)) == _here(id)


async def test_a_store_that_never_answers_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(InMemorySessionStore):
        async def append(self, key: SessionKey, entries: list[Any]) -> None:
            await asyncio.Event().wait()

        async def load(self, key: SessionKey) -> list[Any] | None:
            await asyncio.Event().wait()

    monkeypatch.setattr("ferrule.sdk.mirroring.WITHIN", 0.05)
    async with asyncio.timeout(HANG):
        messages = await _asked("x", says("Done."), session_store=Hanging())
        assert "did not answer" in of(MirrorErrorMessage, messages)[0].error
        with pytest.raises(CLIConnectionError, match="took too long"):
            await _asked("x", session_store=Hanging(), resume="abc", load_timeout_ms=50)


async def test_eager_entries_are_sent_while_the_turn_goes_on() -> None:
    came = asyncio.Event()

    class Eager(InMemorySessionStore):
        async def append(self, key: SessionKey, entries: list[Any]) -> None:
            await super().append(key, entries)
            came.set()

    async def wait(*_: Any) -> dict[str, Any]:
        await asyncio.wait_for(came.wait(), HANG)
        return {}

    hooks = {"PreToolUse": [HookMatcher(hooks=[wait])]}
    script = (says("", ToolCall("1", "Glob", {"pattern": "*"})), says("Done."))
    store = Eager()
    messages = await _asked("x", *script, session_store=store, session_store_flush="eager", hooks=hooks)

    assert of(ResultMessage, messages)[0].result == "Done."
    assert store.get_entries(_key(_id(messages))) == _here(_id(messages))


async def test_leaving_early_still_sends_what_was_written() -> None:
    store = InMemorySessionStore()
    async with ClaudeSDKClient(_options(says("Done."), session_store=store)) as client:
        await client.query("x")
        async for _ in client.receive_messages():
            break
        await client.interrupt()

    (listed,) = await store.list_sessions(project_key_for_directory())
    assert store.get_entries(_key(listed["session_id"])) == _here(listed["session_id"])


@pytest.mark.parametrize("given", [[{"type": "user"}], ["x"], 7], ids=str)
async def test_what_is_no_transcript_is_refused(given: Any) -> None:
    class Odd(InMemorySessionStore):
        async def load(self, key: SessionKey) -> Any:
            return given

    with pytest.raises(CLIConnectionError, match="session store returned"):
        await _asked("x", session_store=Odd(), resume="abc")


async def test_an_id_that_is_no_name_and_a_store_that_is_none_are_refused() -> None:
    with pytest.raises(CLIConnectionError, match="is not a session id"):
        await _asked("x", session_store=InMemorySessionStore(), resume="../../x")
    with pytest.raises(CLIConnectionError, match="append"):
        await _asked("x", session_store=object())
    with pytest.raises(CLIConnectionError, match="Session abc was not found"):
        await _asked("x", session_store=InMemorySessionStore(), resume="abc")
