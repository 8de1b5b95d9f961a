"""What can be read and changed of conversations in a store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ferrule.compat.claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKError,
    InMemorySessionStore,
    ResultMessage,
    SessionKey,
    SessionStore,
    delete_session_via_store,
    fork_session_via_store,
    get_session_info,
    get_session_info_from_store,
    get_session_messages,
    get_session_messages_from_store,
    get_subagent_messages,
    get_subagent_messages_from_store,
    import_session_to_store,
    list_sessions_from_store,
    list_subagents,
    list_subagents_from_store,
    project_key_for_directory,
    query,
    rename_session_via_store,
    tag_session_via_store,
)
from ferrule.core.calls import ToolCall
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.testing import RecordingModel

from ..requirement import requirement
from ..sdk.scenes import of, read

AGENT = ToolCall("1", "Agent", {"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"})


async def _asked(prompt: str, *script: Any, **more: Any) -> str:
    """The id of the conversation."""
    chosen: dict[str, Any] = {"model_provider": ScriptedModel(script), "setting_sources": [], **more}
    return of(ResultMessage, await read(query(prompt=prompt, options=ClaudeAgentOptions(**chosen))))[0].session_id


def _key(session_id: str) -> SessionKey:
    return {"project_key": project_key_for_directory(), "session_id": session_id}


class Minimal(SessionStore):
    """Only what a store must have."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    async def append(self, key: SessionKey, entries: list[Any]) -> None:
        self.kept += entries

    async def load(self, key: SessionKey) -> list[Any] | None:
        return self.kept


@requirement("SDK-1")
async def test_the_store_says_the_same_as_the_disk() -> None:
    store = InMemorySessionStore()
    id = await _asked("Look around.", says("", AGENT), says("Seen."), says("Done."), session_store=store)

    stored, kept = await get_session_info_from_store(store, id), get_session_info(id)
    assert stored is not None
    assert kept is not None
    assert replace(stored, last_modified=0) == replace(kept, last_modified=0, file_size=None)
    assert await get_session_messages_from_store(store, id) == get_session_messages(id)
    assert await get_session_messages_from_store(store, id, limit=1, offset=1) == get_session_messages(id)[1:2]
    (agent,) = await list_subagents_from_store(store, id)
    assert [agent] == list_subagents(id)
    assert await get_subagent_messages_from_store(store, id, agent) == get_subagent_messages(id, agent) != []


async def test_conversations_are_listed_with_what_they_were_called() -> None:
    store = InMemorySessionStore()
    ids = [await _asked(prompt, says("."), session_store=store) for prompt in ("one", "two")]
    await rename_session_via_store(store, ids[0], " The first ")
    await tag_session_via_store(store, ids[1], "work")

    listed = {one.session_id: one for one in await list_sessions_from_store(store)}

    assert {id: (one.summary, one.first_prompt, one.tag) for id, one in listed.items()} == {
        ids[0]: ("The first", "one", None),
        ids[1]: ("two", "two", "work"),
    }
    assert len(await list_sessions_from_store(store, limit=1)) == 1
    assert await list_sessions_from_store(store, directory="/") == []


async def test_a_fork_in_the_store_can_be_resumed(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    store, model = InMemorySessionStore(), RecordingModel(says("."))
    id = await _asked("Walnut.", says("1."), session_store=store)
    await _asked("Hazel.", says("2."), session_store=store, resume=id)
    messages = await get_session_messages_from_store(store, id)

    forked = await fork_session_via_store(store, id, up_to_message_id=messages[1].uuid, title="Another way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-elsewhere"))
    await _asked("third", session_store=store, resume=forked.session_id, model_provider=model)

    said = str(model.requests[0])
    assert "Walnut." in said
    assert "Hazel." not in said
    info = await get_session_info_from_store(store, forked.session_id)
    assert info is not None
    assert info.custom_title == "Another way"
    with pytest.raises(ClaudeSDKError, match="message nowhere was not found"):
        await fork_session_via_store(store, id, up_to_message_id="nowhere")


async def test_a_transcript_of_the_disk_is_brought_to_a_store_once() -> None:
    store = InMemorySessionStore()
    id = await _asked("x", says("", AGENT), says("Seen."), says("Done."))

    await import_session_to_store(id, store, include_subagents=False, batch_size=2)
    assert await list_subagents_from_store(store, id) == []
    await store.delete(_key(id))

    for _ in range(2):
        await import_session_to_store(id, store)
    assert len(await get_session_messages_from_store(store, id)) == len(get_session_messages(id))
    assert len(store.get_entries(_key(id))) == len({entry.get("uuid") for entry in store.get_entries(_key(id))})


async def test_a_conversation_is_removed_from_the_store_alone() -> None:
    store = InMemorySessionStore()
    id = await _asked("x", says("."), session_store=store)

    await delete_session_via_store(store, id)

    assert await list_sessions_from_store(store) == []
    assert await get_session_info_from_store(store, id) is None
    assert get_session_info(id) is not None


async def test_what_there_is_not_is_said() -> None:
    store = InMemorySessionStore()
    for changing in (
        rename_session_via_store(store, "x", "title"),
        tag_session_via_store(store, "x", None),
        fork_session_via_store(store, "x"),
        import_session_to_store("x", store),
    ):
        with pytest.raises(FileNotFoundError, match="session x was not found"):
            await changing
    with pytest.raises(ValueError, match="title is empty"):
        await rename_session_via_store(store, "x", " ")
    with pytest.raises(ValueError, match="list_sessions"):
        await list_sessions_from_store(Minimal())
    with pytest.raises(ClaudeSDKError, match="delete"):
        await delete_session_via_store(Minimal(), "x")


async def test_the_store_in_memory_keeps_parts_of_a_session_apart() -> None:
    store = InMemorySessionStore()
    main, part = _key("a"), SessionKey(project_key=project_key_for_directory(), session_id="a", subpath="parts/b")
    await store.append(main, [{"type": "user"}])
    await store.append(part, [{"type": "x"}])
    await store.append(_key("ab"), [{"type": "user"}])

    assert await store.list_subkeys({"project_key": main["project_key"], "session_id": "a"}) == ["parts/b"]
    assert await store.load(part) == [{"type": "x"}]
    assert store.size == 2

    await store.delete(main)
    assert await store.load(part) is None
    assert store.size == 1
    with pytest.raises(NotImplementedError):
        await store.list_session_summaries(main["project_key"])
    store.clear()
    assert await store.load(_key("ab")) is None
