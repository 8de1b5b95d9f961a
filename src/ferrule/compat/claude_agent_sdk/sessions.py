"""Conversations that are kept, read from their transcripts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

from ...app.build import new_session_id
from ...app.settings import Settings
from ...engine.entries import Unreadable, entry_of
from ...engine.transcript import first_line
from ...host.transcripts import ENDING, Listed, TranscriptError, Transcripts, lines_of
from .errors import ClaudeSDKError, not_built


@dataclass
class SDKSessionInfo:
    session_id: str
    summary: str
    last_modified: int
    """In milliseconds since 1970, like `created_at`."""
    file_size: int | None = None
    custom_title: str | None = None
    first_prompt: str | None = None
    git_branch: str | None = None
    cwd: str | None = None
    tag: str | None = None
    created_at: int | None = None


@dataclass
class SessionMessage:
    type: Literal["user", "assistant"]
    uuid: str
    session_id: str
    message: Any
    """In the form of the model's service: `role` and `content`."""
    parent_tool_use_id: str | None = None
    parent_agent_id: str | None = None


@dataclass
class ForkSessionResult:
    session_id: str


def list_sessions(
    directory: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_worktrees: bool = True,
) -> list[SDKSessionInfo]:
    """The last used one first. Of all directories where none is given; each worktree is a directory of its own."""
    folders = [os.fspath(directory)] if directory is not None else list(_folders())
    found = [one for folder in folders for one in _transcripts().listing(folder)]
    found.sort(key=lambda one: (-one.last_used, one.id))
    return [_info(one) for one in found[offset : None if limit is None else offset + limit]]


def get_session_info(session_id: str, directory: str | os.PathLike[str] | None = None) -> SDKSessionInfo | None:
    """`None` where there is no such conversation."""
    return next((one for one in list_sessions(directory) if one.session_id == session_id), None)


def get_session_messages(
    session_id: str, directory: str | os.PathLike[str] | None = None, limit: int | None = None, offset: int = 0
) -> list[SessionMessage]:
    """What was said in it, from the beginning. Empty where there is no such conversation."""
    path = _path(session_id, directory)
    found = [] if path is None else list(_messages(path, session_id))
    return found[offset : None if limit is None else offset + limit]


def fork_session(
    session_id: str,
    directory: str | os.PathLike[str] | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
) -> ForkSessionResult:
    """A copy under an id of its own, which can be resumed. Raises `ClaudeSDKError`."""
    if up_to_message_id is not None or title is not None:
        not_built("fork_session with up_to_message_id or title")()
    path = _path(session_id, directory)
    if path is None:
        raise ClaudeSDKError(f"There is no session {session_id}. List those that there are.")
    workspace = str(_head(path).get("workspace") or os.getcwd())
    forked = new_session_id()
    transcripts = _transcripts()
    meta = {"workspace": os.path.realpath(workspace), "forked_from": session_id}
    try:
        transcripts.copy(path, transcripts.path(workspace, forked), first_line(forked, meta))
    except OSError as error:
        raise ClaudeSDKError(f"{session_id} cannot be copied: {error}.") from None
    return ForkSessionResult(forked)


def delete_session(session_id: str, directory: str | os.PathLike[str] | None = None) -> None:
    """Raises `ClaudeSDKError` where there is none."""
    path = _path(session_id, directory)
    if path is None:
        raise ClaudeSDKError(f"There is no session {session_id}. List those that there are.")
    path.unlink()


def project_key_for_directory(directory: str | os.PathLike[str] | None = None) -> str:
    """The name of the folder that holds a directory's transcripts."""
    workspace = os.getcwd() if directory is None else os.fspath(directory)
    return _transcripts().path(workspace, "any").parent.name


rename_session = not_built("rename_session")
tag_session = not_built("tag_session")
list_subagents = not_built("list_subagents")
get_subagent_messages = not_built("get_subagent_messages")
list_sessions_from_store = not_built("list_sessions_from_store")
get_session_info_from_store = not_built("get_session_info_from_store")
get_session_messages_from_store = not_built("get_session_messages_from_store")
list_subagents_from_store = not_built("list_subagents_from_store")
get_subagent_messages_from_store = not_built("get_subagent_messages_from_store")
rename_session_via_store = not_built("rename_session_via_store")
tag_session_via_store = not_built("tag_session_via_store")
delete_session_via_store = not_built("delete_session_via_store")
fork_session_via_store = not_built("fork_session_via_store")
import_session_to_store = not_built("import_session_to_store")
fold_session_summary = not_built("fold_session_summary")


def _root() -> Path:
    return Settings().state_folder / "projects"


def _transcripts() -> Transcripts:
    return Transcripts(_root())


def _folders() -> Iterator[str]:
    """Every directory that a transcript was begun in."""
    heads = (_head(path).get("workspace") for path in sorted(_root().glob(f"*/*{ENDING}")))
    yield from dict.fromkeys(folder for folder in heads if isinstance(folder, str))


def _path(session_id: str, directory: str | os.PathLike[str] | None) -> Path | None:
    transcripts = _transcripts()
    for folder in [os.fspath(directory)] if directory is not None else _folders():
        try:
            return transcripts.found(folder, session_id)
        except TranscriptError:
            continue
    return None


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    for line in lines_of(path):
        try:
            yield entry_of(line)
        except Unreadable:  # what a kill or a disk cut short is left out, as it is when it is resumed
            continue


def _head(path: Path) -> dict[str, Any]:
    return next(_entries(path), dict[str, Any]())


def _info(one: Listed) -> SDKSessionInfo:
    head = _head(one.path)
    return SDKSessionInfo(
        session_id=one.id,
        summary=one.first_prompt,
        last_modified=round(one.last_used * 1000),
        file_size=one.path.stat().st_size,
        first_prompt=one.first_prompt,
        cwd=head.get("workspace"),
        created_at=_milliseconds(head.get("time")),
    )


def _milliseconds(time: object) -> int | None:
    try:
        return round(datetime.fromisoformat(cast(str, time)).timestamp() * 1000)
    except (TypeError, ValueError):
        return None


def _messages(path: Path, session_id: str) -> Iterator[SessionMessage]:
    for entry in _entries(path):
        if entry.get("agent") != "main":
            continue
        uuid = str(entry.get("uuid", ""))
        match entry:
            case {"type": "user", "content": list(content)}:  # pyright: ignore[reportUnknownVariableType]
                said = {"role": "user", "content": [_block(part) for part in cast(list[dict[str, Any]], content)]}
                yield SessionMessage("user", uuid, session_id, said)
            case {"type": "assistant", "parts": list(parts)}:  # pyright: ignore[reportUnknownVariableType]
                written = [_part(part) for part in cast(list[dict[str, Any]], parts)]
                said = {"role": "assistant", "model": entry.get("model"), "content": written}
                yield SessionMessage("assistant", uuid, session_id, said)
            case {"type": "results", "results": list(results)}:  # pyright: ignore[reportUnknownVariableType]
                said = {"role": "user", "content": [_result(one) for one in cast(list[dict[str, Any]], results)]}
                yield SessionMessage("user", uuid, session_id, said)
            case _:
                pass


def _block(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text", "")}
    source = {"type": "base64", "media_type": part.get("media_type"), "data": part.get("base64")}
    return {"type": part.get("type"), "source": source}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    match part.get("type"):
        case "call":
            return {"type": "tool_use", "id": part["id"], "name": part["name"], "input": part["arguments"]}
        case "thought":
            return {"type": "thinking", "thinking": part.get("text", ""), "signature": part.get("signature", "")}
        case _:
            return {"type": "text", "text": part.get("text", "")}


def _result(one: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"type": "tool_result", "tool_use_id": one.get("call")}
    said["content"] = [_block(part) for part in one.get("content", ())]
    return {**said, "is_error": True} if one.get("error") else said
