"""Changes of conversations that are kept: named, tagged, forked, removed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ...app.build import new_session_id
from ...engine.entries import line_of
from ...engine.transcript import entry_about, first_line
from ...host.transcripts import add_line
from .errors import ClaudeSDKError, not_built
from .sessions import TAG, TITLE, head_of, path_of, transcripts


class NoSuchSession(ClaudeSDKError, FileNotFoundError):
    """There is no conversation with that id."""


@dataclass
class ForkSessionResult:
    session_id: str


def rename_session(session_id: str, title: str, directory: str | os.PathLike[str] | None = None) -> None:
    """Raises `NoSuchSession`, and `ValueError` for a title that is empty."""
    if not title.strip():
        raise ValueError("The title is empty. Give one that says what the conversation is about.")
    _add(_found(session_id, directory), session_id, TITLE, title.strip())


def tag_session(session_id: str, tag: str | None, directory: str | os.PathLike[str] | None = None) -> None:
    """`None` takes the tag away. Raises `NoSuchSession`, and `ValueError` for a tag that is empty."""
    if tag is not None and not tag.strip():
        raise ValueError("The tag is empty. Give None to take it away.")
    _add(_found(session_id, directory), session_id, TAG, tag if tag is None else tag.strip())


def fork_session(
    session_id: str,
    directory: str | os.PathLike[str] | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
) -> ForkSessionResult:
    """A copy under an id of its own, which can be resumed. Raises `ClaudeSDKError`."""
    path = _found(session_id, directory)
    workspace = str(head_of(path).get("workspace") or os.getcwd())
    forked = new_session_id()
    copied = transcripts().path(workspace, forked)
    meta = {"workspace": os.path.realpath(workspace), "forked_from": session_id}
    try:
        transcripts().copy(path, copied, first_line(forked, meta), last=up_to_message_id)
    except OSError as error:
        raise ClaudeSDKError(f"{session_id} cannot be copied: {error}") from None
    if title is not None:
        rename_session(forked, title, workspace)
    return ForkSessionResult(forked)


def delete_session(session_id: str, directory: str | os.PathLike[str] | None = None) -> None:
    """Raises `NoSuchSession`."""
    _found(session_id, directory).unlink()


def _found(session_id: str, directory: str | os.PathLike[str] | None) -> Path:
    path = path_of(session_id, directory)
    if path is None:
        raise NoSuchSession(f"There is no session {session_id}. List those that there are.")
    return path


def _add(path: Path, session_id: str, kind: str, text: str | None) -> None:
    try:
        add_line(path, line_of(entry_about(kind, None, session_id, "main", {"text": text})))
    except OSError as error:
        raise ClaudeSDKError(f"{path} cannot be written: {error.strerror}.") from None


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
