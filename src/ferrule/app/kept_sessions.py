"""Sessions that are kept: start, list, resume, continue the last one, fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from .._version import __version__
from ..core.ids import new_uuid
from ..core.ports import Note
from ..core.values import plain_value
from ..engine.message_history import MessageHistory
from ..engine.restoring import Restored, restore_conversation
from ..engine.session import Session
from ..engine.transcript import Transcript, first_line
from ..host.files.local_paths import LocalPaths
from ..host.storage.transcript_files import ListedSession, TranscriptError, TranscriptFile, Transcripts, lines_of
from ..instructions.git_facts import checked_out_branch
from ..skills.turn_rules import KEY as SKILL_RULES
from .build import open_session
from .session_settings import SessionParts, Settings

__all__ = ["ListedSession", "TranscriptError", "begin_session", "continue_session", "list_sessions", "resume_session"]

RESUMED = (
    "This conversation was resumed in a new process. Files that were read before are treated as unread: read a file "
    "again before you change it. Commands that ran in the background have ended. The working directory is {}."
)
MOVED = (
    " So far the conversation took place in {}. It goes on in {}: where a path below the first is meant, "
    "look below the second."
)
CUT_OFF = " The last turn was cut off before it was complete."


def begin_session(
    settings: Settings | None = None, *, session_id: str | None = None, **parts: Unpack[SessionParts]
) -> Session:
    """A new session with a transcript, which is made with the first prompt. Raises `TranscriptError` for a taken id."""
    settings = settings or Settings()
    transcripts, workspace = _transcripts(settings)
    session_id = session_id or new_uuid()
    path = _free(transcripts.path(workspace, session_id))
    transcripts.prune(workspace, settings.cleanup_days)
    session = open_session(settings, session_id=session_id, **parts)
    _record(session, transcripts, TranscriptFile(path), Restored(), parts.get("mirror"))
    return session


def list_sessions(settings: Settings | None = None) -> tuple[ListedSession, ...]:
    """The sessions of the settings' directory, the last used one first."""
    transcripts, workspace = _transcripts(settings or Settings())
    return transcripts.listing(workspace)


def continue_session(settings: Settings | None = None, *, fork: bool = False, **parts: Unpack[SessionParts]) -> Session:
    """The last used session of the settings' directory. Raises `TranscriptError` if none exists."""
    settings = settings or Settings()
    return resume_session(last_session(settings), settings, fork=fork, **parts)


def last_session(settings: Settings) -> str:
    """The id of the session that was used last. Raises `TranscriptError` if none exists."""
    listed = list_sessions(settings)
    if not listed:
        raise TranscriptError(f"No session of {settings.cwd} can be resumed. Start a new one.")
    return listed[0].id


def resume_session(
    session_id: str,
    settings: Settings | None = None,
    *,
    fork: bool = False,
    fork_id: str | None = None,
    fork_at: str | None = None,
    **parts: Unpack[SessionParts],
) -> Session:
    """The session as it was, with a history that is well-formed; a fork has an id and a transcript of its own.

    `fork_at` is the id of the last entry that a fork takes over. A session of another project can be forked.
    Permissions given in the session are not kept, and files have to be read again before they are changed;
    the model is notified. Raises `TranscriptError`.
    """
    settings = settings or Settings()
    transcripts, workspace = _transcripts(settings)
    path = transcripts.find(workspace, session_id, anywhere=fork)
    if fork:
        forked = fork_id or new_uuid()
        copied = _free(transcripts.path(workspace, forked))
        about = _about(transcripts, workspace)
        meta = {"cwd": workspace, **_surroundings(workspace), **about, "forked_from": session_id}
        transcripts.copy(path, copied, first_line(forked, meta), last=fork_at)
        session_id, path = forked, copied
    session = open_session(settings, session_id=session_id, **parts)
    store = TranscriptFile.resume(path)
    found = restore_conversation(lines_of(path))
    _record(session, transcripts, store, found, parts.get("mirror"))
    session.turn = found.prompts
    session.started_by = "resume"
    session.state.found_tools = found.found_tools
    found.values.pop(SKILL_RULES, None)  # a transcript allows and runs nothing, whoever wrote it
    session.state.values.update(found.values)
    now = os.path.realpath(workspace)
    has_moved = bool(found.workspace) and found.workspace != now
    cwd = _moved_path(found.cwd, found.workspace, now) if has_moved else found.cwd
    if os.path.isdir(cwd):
        session.state.cwd = cwd
    if found.turns:
        moved = MOVED.format(found.workspace, now) if has_moved else ""
        session.note(Note("resumed", RESUMED.format(session.state.cwd) + moved + (CUT_OFF if found.is_cut else "")))
    return session


def _moved_path(path: str, old: str, new: str) -> str:
    """
    >>> _moved_path("/old/sub", "/old", "/new"), _moved_path("/older", "/old", "/new")
    ('/new/sub', '/new')
    """
    return new + path.removeprefix(old) if f"{path}/".startswith(f"{old}/") else new


def _transcripts(settings: Settings) -> tuple[Transcripts, str]:
    return Transcripts(settings.state_folder / "projects"), LocalPaths().anchor(settings.cwd, os.getcwd())


def _free(path: Path) -> Path:
    if path.exists():
        raise TranscriptError(f"The session {path.stem} already exists. Resume it, or use another id.")
    return path


@plain_value
class _Mirrored:
    """Satisfies `core.ports.TranscriptStore`. The file comes first: what the mirror gets is already on disk."""

    file: TranscriptFile
    mirror: Callable[[bytes], None]

    def append(self, line: bytes, /) -> None:
        self.file.append(line)
        self.mirror(line)

    def sync(self) -> None:
        self.file.sync()


def _record(
    session: Session,
    transcripts: Transcripts,
    store: TranscriptFile,
    found: Restored,
    mirror: Callable[[bytes], None] | None = None,
) -> None:
    kept = store if mirror is None else _Mirrored(store, mirror)
    transcript = Transcript(
        kept,
        session.id,
        agent=session.agent,
        parent=found.last,
        meta=partial(_about, transcripts, session.workspace),
        cwd=session.state.cwd,
        surroundings=partial(_surroundings, session.workspace),
    )
    session.conversation = MessageHistory(found.turns, transcript, prompts=found.asked)
    session.transcript_path = str(store.path)
    session.closing = (*session.closing, store.close)


def _about(transcripts: Transcripts, workspace: str) -> dict[str, Any]:
    mark = transcripts.mark(workspace)
    return {"workspace": os.path.realpath(workspace), **({"project": mark} if mark else {})}


def _surroundings(workspace: str) -> dict[str, Any]:
    return {"version": __version__, "gitBranch": checked_out_branch(workspace), "userType": "external"}
