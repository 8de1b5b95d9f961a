"""Changes to kept conversations: rename, tag, fork, delete."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ...core.ids import new_uuid
from ...engine.transcript import first_line
from ...engine.transcript_entries import line_of
from ...host.storage.transcript_files import add_line
from .errors import ClaudeSDKError
from .sessions import TAG, TITLE, head_of, label_entry, path_of, transcripts


class NoSuchSession(ClaudeSDKError, FileNotFoundError):
    """The conversation does not exist."""


@dataclass
class ForkSessionResult:
    session_id: str


def rename_session(session_id: str, title: str, directory: str | os.PathLike[str] | None = None) -> None:
    """Raises `NoSuchSession`, and `ValueError` for a title that is empty."""
    title = check_title(title)
    _add(_find_transcript(session_id, directory), session_id, TITLE, title)


def tag_session(session_id: str, tag: str | None, directory: str | os.PathLike[str] | None = None) -> None:
    """`None` removes the tag. Raises `NoSuchSession`, and `ValueError` for a tag that is empty."""
    tag = check_tag(tag)
    _add(_find_transcript(session_id, directory), session_id, TAG, tag)


def fork_session(
    session_id: str,
    directory: str | os.PathLike[str] | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
) -> ForkSessionResult:
    """A copy under a new id, which can be resumed. Raises `ClaudeSDKError`."""
    path = _find_transcript(session_id, directory)
    workspace = str(head_of(path).get("workspace") or os.getcwd())
    forked = new_uuid()
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
    _find_transcript(session_id, directory).unlink()


def check_title(title: str) -> str:
    """Raises `ValueError`."""
    if not title.strip():
        raise ValueError("The title is empty. Give one that says what the conversation is about.")
    return title.strip()


def check_tag(tag: str | None) -> str | None:
    """Raises `ValueError`."""
    if tag is not None and not tag.strip():
        raise ValueError("The tag is empty. Give None to remove it.")
    return tag if tag is None else tag.strip()


def _find_transcript(session_id: str, directory: str | os.PathLike[str] | None) -> Path:
    path = path_of(session_id, directory)
    if path is None:
        raise no_such(session_id)
    return path


def no_such(session_id: str) -> NoSuchSession:
    return NoSuchSession(f"The session {session_id} was not found. List the sessions to see them.")


def _add(path: Path, session_id: str, kind: str, text: str | None) -> None:
    try:
        add_line(path, line_of(label_entry(session_id, kind, text)))
    except OSError as error:
        raise ClaudeSDKError(f"{path} cannot be written: {error.strerror}.") from None
