"""Conversations in a store of the program: read, rename, fork, delete, import."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from ...core.ids import new_uuid
from ...engine.transcript import first_line
from ...engine.transcript_entries import entry_of, kind_of
from ...host.storage.transcript_files import prompt_of
from ...sdk.mirroring import once
from ...sdk.stores import SessionKey, SessionStore, SessionStoreEntry
from .errors import ClaudeSDKError, in_their_words
from .session_changes import ForkSessionResult, check_tag, check_title, no_such
from .sessions import (
    TAG,
    TITLE,
    SDKSessionInfo,
    SessionMessage,
    agents_in,
    entries_of,
    label_entry,
    labels_in,
    messages_in,
    milliseconds,
    path_of,
    project_key_for_directory,
)

AT_ONCE: Final = 500

Directory = str | os.PathLike[str] | None


async def list_sessions_from_store(
    session_store: SessionStore, directory: Directory = None, limit: int | None = None, offset: int = 0
) -> list[SDKSessionInfo]:
    """Those of one directory, the last used one first. Raises `ValueError` for a store that cannot list."""
    try:
        listed = await session_store.list_sessions(project_key_for_directory(directory))
    except (NotImplementedError, AttributeError):
        raise ValueError("This store has no `list_sessions`. Name the conversation instead.") from None
    infos = [
        _info(one["session_id"], await _load_entries(session_store, one["session_id"], directory), one["mtime"])
        for one in sorted(listed, key=lambda one: one["mtime"], reverse=True)
    ]
    found = [info for info in infos if info is not None]
    return found[offset : None if limit is None else offset + limit]


async def get_session_info_from_store(
    session_store: SessionStore, session_id: str, directory: Directory = None
) -> SDKSessionInfo | None:
    """`None` if the conversation does not exist."""
    return _info(session_id, await _load_entries(session_store, session_id, directory))


async def get_session_messages_from_store(
    session_store: SessionStore, session_id: str, directory: Directory = None, limit: int | None = None, offset: int = 0
) -> list[SessionMessage]:
    """Its messages, from the beginning. Empty if the conversation does not exist."""
    found = list(messages_in(await _load_entries(session_store, session_id, directory), session_id))
    return found[offset : None if limit is None else offset + limit]


async def list_subagents_from_store(
    session_store: SessionStore, session_id: str, directory: Directory = None
) -> list[str]:
    """The ids of the agents that worked in a conversation, in the order in which they started."""
    return agents_in(await _load_entries(session_store, session_id, directory))


async def get_subagent_messages_from_store(
    session_store: SessionStore,
    session_id: str,
    agent_id: str,
    directory: Directory = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[SessionMessage]:
    """The messages of an agent. Empty if the conversation, or the agent in it, does not exist."""
    found = list(messages_in(await _load_entries(session_store, session_id, directory), session_id, agent_id))
    return found[offset : None if limit is None else offset + limit]


async def rename_session_via_store(
    session_store: SessionStore, session_id: str, title: str, directory: Directory = None
) -> None:
    """Raises `NoSuchSession`, and `ValueError` for a title that is empty."""
    await _add(session_store, session_id, directory, TITLE, check_title(title))


async def tag_session_via_store(
    session_store: SessionStore, session_id: str, tag: str | None, directory: Directory = None
) -> None:
    """`None` removes the tag. Raises `NoSuchSession`, and `ValueError` for a tag that is empty."""
    await _add(session_store, session_id, directory, TAG, check_tag(tag))


async def delete_session_via_store(session_store: SessionStore, session_id: str, directory: Directory = None) -> None:
    """Raises `ClaudeSDKError` for a store that cannot delete."""
    try:
        await session_store.delete(_key(session_id, directory))
    except (NotImplementedError, AttributeError):
        raise ClaudeSDKError("This store has no `delete`, so the session cannot be removed.") from None


async def fork_session_via_store(
    session_store: SessionStore,
    session_id: str,
    directory: Directory = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
) -> ForkSessionResult:
    """A copy under a new id, which can be resumed. Raises `ClaudeSDKError`."""
    entries = await _existing(session_store, session_id, directory)
    if up_to_message_id is not None:
        ids = [entry["uuid"] for entry in entries]
        if up_to_message_id not in ids:
            raise ClaudeSDKError(
                f"The message {up_to_message_id} was not found in {session_id}. Give the id of one of its messages."
            )
        entries = entries[: ids.index(up_to_message_id) + 1]
    forked = new_uuid()
    meta = {"workspace": entries[0].get("workspace", ""), "forked_from": session_id}
    await _send(session_store, _key(forked, directory), iter([entry_of(first_line(forked, meta)), *entries]), AT_ONCE)
    if title is not None:
        await rename_session_via_store(session_store, forked, title, directory)
    return ForkSessionResult(forked)


async def import_session_to_store(
    session_id: str,
    store: SessionStore,
    *,
    directory: Directory = None,
    include_subagents: bool = True,
    batch_size: int = AT_ONCE,
) -> None:
    """Send a transcript of this machine to the store. Entries that it already has are not sent again."""
    path = path_of(session_id, directory)
    if path is None:
        raise no_such(session_id)
    key: SessionKey = {"project_key": path.parent.name, "session_id": session_id}
    with in_their_words():
        known = {entry["uuid"] for entry in once(await store.load(key) or [])}
    missing = (
        entry
        for entry in entries_of(path)
        if entry.get("uuid") not in known and (include_subagents or "/" not in str(entry.get("agent", "")))
    )
    await _send(store, key, missing, batch_size if batch_size > 0 else AT_ONCE)


def _key(session_id: str, directory: Directory) -> SessionKey:
    return {"project_key": project_key_for_directory(directory), "session_id": session_id}


async def _load_entries(store: SessionStore, session_id: str, directory: Directory) -> list[dict[str, Any]]:
    with in_their_words():
        return once(await store.load(_key(session_id, directory)) or [])


async def _existing(store: SessionStore, session_id: str, directory: Directory) -> list[dict[str, Any]]:
    entries = await _load_entries(store, session_id, directory)
    if not entries:
        raise no_such(session_id)
    return entries


async def _add(store: SessionStore, session_id: str, directory: Directory, kind: str, text: str | None) -> None:
    await _existing(store, session_id, directory)
    await _send(store, _key(session_id, directory), iter([label_entry(session_id, kind, text)]), 1)


async def _send(store: SessionStore, key: SessionKey, entries: Iterator[dict[str, Any]], at_once: int) -> None:
    while batch := list(islice(entries, at_once)):
        await store.append(key, cast(list[SessionStoreEntry], batch))


def _info(session_id: str, entries: Sequence[Mapping[str, Any]], mtime: int | None = None) -> SDKSessionInfo | None:
    """`None` for an empty conversation."""
    prompts = (one for one in entries if kind_of(one) == "user" and one.get("agent") == "main")
    first = next(prompts, None)
    if first is None:
        return None
    said = labels_in(entries)
    return SDKSessionInfo(
        session_id=session_id,
        summary=said.get(TITLE) or prompt_of(first),
        custom_title=said.get(TITLE),
        tag=said.get(TAG),
        last_modified=mtime or milliseconds(entries[-1].get("timestamp")) or 0,
        first_prompt=prompt_of(first),
        git_branch=first.get("gitBranch") or None,
        cwd=entries[0].get("workspace"),
        created_at=milliseconds(entries[0].get("timestamp")),
    )
