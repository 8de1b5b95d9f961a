"""Transcripts on disk: one file for each session, in a folder for each project, for this user alone."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from ...core.values import named_value
from ...engine.transcript_entries import PEEKED, UnreadableEntry, entry_of, kind_of, line_of, peek
from .project_marks import ProjectMarks
from .session_folder import make_private

log = logging.getLogger(__name__)

ENDING = ".jsonl"
LONGEST_NAME = 200
"""Characters of a folder's name; a longer path is cut, and identified by a digest."""
LONGEST_BEFORE = 150
"""What it was at first; folders with such names are still used."""
FIRST_PROMPT = 200


class TranscriptError(OSError):
    """The session does not exist, or cannot be opened. The message says what to do."""


@named_value
class ListedSession:
    """A session that can be resumed."""

    id: str
    first_prompt: str
    last_used: float
    """In seconds since 1970."""
    turns: int
    path: Path


class TranscriptFile:
    """Satisfies `core.ports.TranscriptStore`. The file is made with its first line, and held until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._is_torn = False

    @classmethod
    def resume(cls, path: Path) -> TranscriptFile:
        """A file that is there, without the half line that a kill may have left. Raises `TranscriptError`."""
        file = cls(path)
        file._descriptor = _open_locked(path, os.O_RDWR | os.O_APPEND)
        _cut_half_a_line(file._descriptor)
        return file

    def append(self, line: bytes, /) -> None:
        if self._descriptor is None:
            make_private(self.path.parent)
            self._descriptor = _open_locked(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            _sync_folder(self.path.parent)
        data = b"\n" + line if self._is_torn else line  # what a full disk cut short stays a line of its own
        self._is_torn = True
        while data:
            data = data[os.write(self._descriptor, data) :]
        self._is_torn = False

    def sync(self) -> None:
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    async def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class Transcripts:
    """All transcripts below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._marks = ProjectMarks(root.parent / "project-marks")

    def mark(self, workspace: str) -> str:
        """What the project is known by after a move; left in its folder if it has none. Empty if it cannot have one."""
        return self._marks.leave(workspace)

    def path(self, workspace: str, session_id: str) -> Path:
        """Where the transcript of this session is, or is to be. Raises `TranscriptError` for an invalid id."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", session_id):
            raise TranscriptError(
                f"{session_id!r} is not a session id. Use letters, digits, `-` and `_`, with a letter or digit first."
            )
        return self._folder(workspace) / (session_id + ENDING)

    def find(self, workspace: str, session_id: str, *, anywhere: bool = False) -> Path:
        """The transcript of a session of this project, or `anywhere`. Raises `TranscriptError`, with the way to it."""
        path = self.path(workspace, session_id)
        if path.is_file():
            return path
        for folder, _ in self._folders_before(workspace):
            if (moved := folder / path.name).is_file():
                return moved
        for other in self._root.glob(f"*/{path.name}"):
            if anywhere:
                return other
            head = _head(other)
            raise _of_another_project(
                session_id, self._marks.place_now(str(head.get("project") or "")) or head.get("workspace")
            )
        raise TranscriptError(
            f"Session {session_id} was not found here. `ferrule sessions` lists this project's sessions."
        )

    def listing(self, workspace: str) -> tuple[ListedSession, ...]:
        """The sessions of this project, the last used one first; also those from before it was moved here."""
        real = os.path.realpath(workspace)
        marks = self._marks.of(real)
        place_now = cache(self._marks.place_now)
        listed: dict[str, ListedSession] = {}
        for folder, place in [(self._folder(workspace), real), *self._folders_before(workspace)]:
            for path in folder.glob(f"*{ENDING}"):
                with suppress(OSError):  # one that goes away meanwhile, or that is not ours to read
                    head = _head(path)
                    mark = str(head.get("project") or "")
                    # A project that moved away took its sessions along, whatever is at its old place now.
                    is_ours = mark in marks or (place == real and not place_now(mark))
                    if head.get("workspace", place) == place and is_ours and (one := _list_entry(path)):
                        listed.setdefault(one.id, one)
        return tuple(sorted(listed.values(), key=lambda one: (-one.last_used, one.id)))

    def _folders_before(self, workspace: str) -> Iterator[tuple[Path, str]]:
        """Where the sessions are that began before the project was moved, with the path that it had."""
        return ((self._folder(place), place) for place in self._marks.left_behind(workspace))

    def copy(self, source: Path, target: Path, first: bytes, *, last: str | None = None) -> None:
        """The whole lines of a transcript in a new one, after a first line of its own. The old one stays as it is.

        The copies have the id of the new session.
        Up to the entry with the id `last`, where one is given. Raises `TranscriptError` where there is none.
        """
        make_private(target.parent)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(first)
                whole = (line for line in lines_of(source) if line.endswith(b"\n"))
                file.writelines(_rename(line, source.stem, target.stem) for line in _up_to(last, whole))
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            target.unlink(missing_ok=True)
            raise

    def replace(self, path: Path, lines: Iterable[bytes]) -> None:
        """Make a transcript of these lines; it replaces one that nobody has open. Raises `TranscriptError`."""
        make_private(path.parent)
        held = _open_locked(path, os.O_RDWR) if path.exists() else None
        new = path.with_suffix(f".{os.urandom(4).hex()}")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            new.rename(path)
        except OSError as error:
            raise TranscriptError(f"The transcript {path} cannot be written: {error.strerror}.") from None
        finally:
            new.unlink(missing_ok=True)
            if held is not None:
                os.close(held)

    def prune(self, workspace: str, days: int) -> None:
        """Remove the transcripts of this project that nobody has used for that many days."""
        oldest = time.time() - days * 86_400
        for folder in (self._folder(workspace), *(folder for folder, _ in self._folders_before(workspace))):
            for path in folder.glob(f"*{ENDING}"):
                try:
                    if path.lstat().st_mtime < oldest:
                        path.unlink()
                except OSError as error:
                    log.warning("could not tidy up %s: %s", path, error)

    def _folder(self, workspace: str) -> Path:
        real = os.path.realpath(workspace)
        folder, before = (self._root / folder_name(real, longest) for longest in (LONGEST_NAME, LONGEST_BEFORE))
        return before if before != folder and before.is_dir() else folder


def _of_another_project(session_id: str, place: object) -> TranscriptError:
    copied = f"with `--resume {session_id} --fork-session`"
    if isinstance(place, str) and not os.path.isdir(place):
        return TranscriptError(
            f"The session {session_id} belongs to {place}, which does not exist here. If that is this project at "
            f"another path, continue a copy of the session {copied}. `ferrule sessions --cwd {place}` lists the others."
        )
    where = place if isinstance(place, str) else "another project"
    return TranscriptError(
        f"The session {session_id} belongs to {where}. Resume it from there, or continue a copy of it here {copied}."
    )


def folder_name(real_path: str, longest: int = LONGEST_NAME) -> str:
    """The path as one name. Two paths may have the same; a transcript says in its first line which is meant.

    >>> folder_name("/home/me/my project")
    '-home-me-my-project'
    """
    name = re.sub(r"[^A-Za-z0-9]", "-", real_path)
    if len(name) <= longest:
        return name
    return f"{name[:longest]}-{sha256(os.fsencode(real_path)).hexdigest()[:12]}"


def lines_of(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from file


def add_line(path: Path, line: bytes) -> None:
    """Append to a transcript that somebody may be writing."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        is_torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
        os.write(descriptor, b"\n" + line if is_torn else line)
    finally:
        os.close(descriptor)


def _rename(line: bytes, old: str, new: str) -> bytes:
    if peek(line):
        head, rest = line[:PEEKED], line[PEEKED:]
        return head.replace(f'"sessionId":"{old}"'.encode(), f'"sessionId":"{new}"'.encode(), 1) + rest
    entry = _entry(line)
    return line_of({**entry, "sessionId": new}) if entry.get("sessionId") == old else line


def _up_to(last: str | None, lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line
        if last is not None and last.encode() in line and _entry(line).get("uuid") == last:
            return
    if last is not None:
        raise TranscriptError(f"Message {last} was not found in the session. Use the id of a message read from it.")


def _open_locked(path: Path, flags: int) -> int:
    """Open for nobody but us. Raises `TranscriptError` where another process has it."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TranscriptError(f"The transcript {path} cannot be opened: {error.strerror}.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise TranscriptError(
            f"The session {path.stem} is open in another process. Fork it, or end that process first."
        ) from None
    except OSError as error:
        log.debug("%s cannot be locked: %s", path, error)  # a file system without locks must not prevent writing
    return descriptor


def _cut_half_a_line(descriptor: int) -> None:
    end = os.lseek(descriptor, 0, os.SEEK_END)
    step = 1 << 16
    at = end
    while at > 0:
        start = max(0, at - step)
        newline = os.pread(descriptor, at - start, start).rfind(b"\n")
        if newline >= 0:
            at = start + newline + 1
            break
        at = start
    if at < end:
        os.ftruncate(descriptor, at)


def _sync_folder(folder: Path) -> None:
    """Make the new name in the folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _head(path: Path) -> dict[str, Any]:
    """The first entry; empty where it cannot be read."""
    with open(path, "rb") as file:
        return _entry(file.readline())


def _list_entry(path: Path) -> ListedSession | None:
    """`None` for a session to which nobody said anything."""
    turns, prompt = 0, ""
    for line in lines_of(path):
        if _is_prompt(line):
            turns += 1
            prompt = prompt or prompt_of(_entry(line))
    if not turns:
        return None
    return ListedSession(id=path.stem, first_prompt=prompt, last_used=path.stat().st_mtime, turns=turns, path=path)


def _is_prompt(line: bytes) -> bool:
    """Whether it is a prompt of the main conversation, whoever wrote the line."""
    if peeked := peek(line):
        return (peeked.kind, peeked.agent) == ("user", "main")
    if b'"user"' not in line:
        return False
    entry = _entry(line)
    return (kind_of(entry), entry.get("agent")) == ("user", "main")


def prompt_of(entry: Mapping[str, Any]) -> str:
    """The beginning of what was said, on one line."""
    message = entry.get("message")
    content: object = cast(dict[str, Any], message).get("content") if isinstance(message, dict) else None
    blocks = cast(list[Any], content) if isinstance(content, list) else [{"text": content}]
    texts = [cast(dict[str, Any], block).get("text") for block in blocks if isinstance(block, dict)]
    return " ".join(" ".join(text.split()) for text in texts if isinstance(text, str))[:FIRST_PROMPT]


def _entry(line: bytes) -> dict[str, Any]:
    try:
        return entry_of(line)
    except UnreadableEntry:
        return {}
