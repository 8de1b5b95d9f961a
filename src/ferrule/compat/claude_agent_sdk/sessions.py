"""Conversations that are kept, read from their transcripts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, cast

from ...app.session_settings import Settings
from ...engine.transcript import new_entry
from ...engine.transcript_entries import UnreadableEntry, entry_of, kind_of, peek
from ...host.storage.transcript_files import ENDING, ListedSession, TranscriptError, Transcripts, lines_of

TITLE: Final = "title"
TAG: Final = "tag"
"""The kinds of entries that hold titles and tags of a conversation."""
_LABELS: Final = {TITLE: ("custom-title", "customTitle"), TAG: ("tag", "tag")}
"""The type that each has for other programs, and the field that holds its text."""


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


def list_sessions(
    directory: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_worktrees: bool = True,
) -> list[SDKSessionInfo]:
    """The last used one first. Of all directories if none is given; each worktree is a separate directory."""
    folders = [os.fspath(directory)] if directory is not None else list(_folders())
    found = [one for folder in folders for one in transcripts().listing(folder)]
    found.sort(key=lambda one: (-one.last_used, one.id))
    return [_info(one) for one in found[offset : None if limit is None else offset + limit]]


def get_session_info(session_id: str, directory: str | os.PathLike[str] | None = None) -> SDKSessionInfo | None:
    """`None` if the conversation does not exist."""
    return next((one for one in list_sessions(directory) if one.session_id == session_id), None)


def get_session_messages(
    session_id: str, directory: str | os.PathLike[str] | None = None, limit: int | None = None, offset: int = 0
) -> list[SessionMessage]:
    """Its messages, from the beginning. Empty if the conversation does not exist."""
    path = path_of(session_id, directory)
    found = [] if path is None else list(messages_in(entries_of(path), session_id))
    return found[offset : None if limit is None else offset + limit]


def project_key_for_directory(directory: str | os.PathLike[str] | None = None) -> str:
    """The name of the folder that holds a directory's transcripts."""
    workspace = os.getcwd() if directory is None else os.fspath(directory)
    return transcripts().path(workspace, "any").parent.name


def list_subagents(session_id: str, directory: str | os.PathLike[str] | None = None) -> list[str]:
    """The ids of the agents that worked in a conversation, in the order in which they started."""
    path = path_of(session_id, directory)
    return [] if path is None else agents_in(entries_of(path))


def get_subagent_messages(
    session_id: str,
    agent_id: str,
    directory: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[SessionMessage]:
    """The messages of an agent. Empty if the conversation, or the agent in it, does not exist."""
    path = path_of(session_id, directory)
    found = [] if path is None else list(messages_in(entries_of(path), session_id, agent_id))
    return found[offset : None if limit is None else offset + limit]


def _root() -> Path:
    return Settings().state_folder / "projects"


def transcripts() -> Transcripts:
    return Transcripts(_root())


def _folders() -> Iterator[str]:
    """Every directory in which a transcript was started."""
    heads = (head_of(path).get("workspace") for path in sorted(_root().glob(f"*/*{ENDING}")))
    yield from dict.fromkeys(folder for folder in heads if isinstance(folder, str))


def path_of(session_id: str, directory: str | os.PathLike[str] | None) -> Path | None:
    for folder in [os.fspath(directory)] if directory is not None else _folders():
        try:
            return transcripts().find(folder, session_id)
        except TranscriptError:
            continue
    return None


def entries_of(path: Path) -> Iterator[dict[str, Any]]:
    for line in lines_of(path):
        try:
            yield entry_of(line)
        except UnreadableEntry:  # what a kill or a disk cut short is left out, as it is when it is resumed
            continue


def head_of(path: Path) -> dict[str, Any]:
    return next(entries_of(path), dict[str, Any]())


def _info(one: ListedSession) -> SDKSessionInfo:
    head, said = head_of(one.path), _labels_of(one.path)
    created = milliseconds(head.get("timestamp"))
    return SDKSessionInfo(
        session_id=one.id,
        summary=said.get(TITLE) or one.first_prompt,
        custom_title=said.get(TITLE),
        tag=said.get(TAG),
        # The file system's clock may be some milliseconds behind the one that the head was written by.
        last_modified=max(round(one.last_used * 1000), created or 0),
        file_size=one.path.stat().st_size,
        first_prompt=one.first_prompt,
        git_branch=head.get("gitBranch") or None,
        cwd=head.get("workspace"),
        created_at=created,
    )


def _labels_of(path: Path) -> dict[str, str | None]:
    """Only lines that can hold one are parsed: a transcript may be long."""
    types = [f'"{type}"'.encode() for type in (TITLE, *(type for type, _ in _LABELS.values()))]
    found: list[dict[str, Any]] = []
    for line in lines_of(path):
        peeked = peek(line)
        if peeked.kind in _LABELS if peeked else any(type in line for type in types):
            with suppress(UnreadableEntry):
                found.append(entry_of(line))
    return labels_in(found)


def labels_in(entries: Iterable[Mapping[str, Any]]) -> dict[str, str | None]:
    """The titles and tags among them: the last one of each kind."""
    kinds = ((kind, entry) for entry in entries if (kind := kind_of(entry)) in _LABELS)
    return {kind: entry.get(_LABELS[kind][1]) for kind, entry in kinds}


def label_entry(session_id: str, kind: str, text: str | None) -> dict[str, Any]:
    type, field = _LABELS[kind]
    return new_entry(type, None, session_id, "main", {field: text}, kind="" if type == kind else kind)


def milliseconds(time: object) -> int | None:
    try:
        return round(datetime.fromisoformat(cast(str, time)).timestamp() * 1000)
    except (TypeError, ValueError):
        return None


def agents_in(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    agents = (str(entry.get("agent", "")) for entry in entries)
    return list(dict.fromkeys(agent.rpartition("/")[2] for agent in agents if "/" in agent))


def messages_in(entries: Iterable[Mapping[str, Any]], session_id: str, agent: str = "main") -> Iterator[SessionMessage]:
    for entry in entries:
        above, _, own = str(entry.get("agent", "")).rpartition("/")
        if own == agent:
            parent = above.rpartition("/")[2] or None
            for one in _message(entry, session_id):
                yield replace(one, parent_agent_id=None if parent == "main" else parent)


def _message(entry: Mapping[str, Any], session_id: str) -> Iterator[SessionMessage]:
    kind, said = kind_of(entry), entry.get("message")
    if isinstance(said, dict) and kind in ("user", "results", "assistant"):
        type = "assistant" if kind == "assistant" else "user"
        yield SessionMessage(type, str(entry.get("uuid", "")), session_id, said)
