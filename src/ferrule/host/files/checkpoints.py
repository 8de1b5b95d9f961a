"""What files contained before a conversation changed them, so that they can be restored.

A point is a moment of the conversation. For each file that is changed after it
the first content is kept, so how a file was at a point is what the first
record since then says; a file without one is unchanged. Restoring files is
a change like any other, and can itself be undone.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any, Final, cast

from ...core.values import named_value, plain_value
from ..storage.session_folder import make_private
from .atomic_writes import NotWritten, Written, remove_file, write_file
from .held_folders import ChangedMeanwhile
from .open_files import FileIdentity, digest_of, open_file
from .text_files import NotText

log = logging.getLogger(__name__)

INDEX: Final = "index.jsonl"
NO_FILE: Final = ""
"""Used instead of a digest."""
OTHERS: Final = "somebody else has changed it since"


class NoSuchPoint(LookupError):
    """Nothing was kept under this id."""


@plain_value
class Stood:
    """What a path held: the digest of a file, or no file."""

    digest: str = NO_FILE
    mode: int = 0


@named_value
class Rewound:
    restored: tuple[str, ...]
    """The files that were changed back."""
    left: Mapping[str, str]
    """Those that were not touched, and why."""


@dataclass(slots=True)
class _Point:
    id: str
    stood: dict[str, Stood] = field(default_factory=dict[str, Stood])
    others: set[str] = field(default_factory=set[str])
    """Files that somebody else changed between two changes of ours."""


class Checkpoints:
    """One session's, in a folder of its own. Whoever resumes the session finds them there."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._lock = RLock()
        self._points = [_Point("")]
        self._written: dict[str, str] = {}
        """The digest of what we last left in each file's place."""

    def open(self, folder: Path) -> None:
        """Keep what is to be kept here, and take up what is there."""
        self._folder = folder
        for record in _records(folder / INDEX):
            self._take(record)

    def mark(self, id: str) -> None:
        """Files can be restored to this moment, unless the disk fails: then the conversation continues without it."""
        try:
            with self._lock:
                self._note({"point": id})
        except OSError as error:
            log.warning("files cannot be restored to their present state later: %s", error)

    def write_file(
        self, path: str, data: bytes, *, expected: FileIdentity | None, judged: str | None = None, owner: str = ""
    ) -> Written:
        """As `atomic_writes.write_file`, once the previous content is kept."""
        real_path = expected.real_path if expected else judged or os.path.realpath(path)
        stood = self._keep(real_path, expected)
        written = write_file(path, data, expected=expected, judged=judged, owner=owner)
        self._wrote(real_path, stood, written.identity.digest)
        return written

    def rewind(self, id: str, *, force: bool = False) -> Rewound:
        """Restore every file that was changed through this object to its state when the point was marked.

        What somebody else has changed since is left, unless `force` is given. Raises `NoSuchPoint`.
        """
        with self._lock:
            at = self._at(id)
            wanted, others = self._since(at)
        restored: list[str] = []
        left: dict[str, str] = {}
        for path, stood in sorted(wanted.items()):
            try:
                if self._restore(path, stood, spare=not force, mixed=path in others):
                    self._settle(path, at)
                    restored.append(path)
            except OSError as error:
                left[path] = error.strerror or str(error)
            except (ChangedMeanwhile, NotText) as reason:
                left[path] = str(reason)
        return Rewound(restored=tuple(restored), left=left)

    # Restoring

    def _at(self, id: str) -> int:
        for at in range(1, len(self._points)):
            if self._points[at].id == id:
                return at
        raise NoSuchPoint(f"Nothing was kept for {id!r}. Give the id of a message of this conversation.")

    def _since(self, at: int) -> tuple[dict[str, Stood], set[str]]:
        wanted: dict[str, Stood] = {}
        others: set[str] = set()
        for point in self._points[at:]:
            wanted = {**point.stood, **wanted}
            others |= point.others
        return wanted, others

    def _restore(self, path: str, stood: Stood, *, spare: bool, mixed: bool) -> bool:
        """False for a file that is already in that state."""
        now = _identity(path)
        if (now.digest if now else NO_FILE) == stood.digest:
            return False
        if spare and now is not None and (mixed or now.digest != self._written.get(path)):
            raise ChangedMeanwhile(OTHERS)
        data = self._data(stood)
        before = self._keep(path, now)
        if data is not None:
            write_file(path, data, expected=now, judged=path, mode=stood.mode)
        elif now is not None:
            remove_file(path, expected=now)
        self._wrote(path, before, stood.digest)
        return True

    def _settle(self, path: str, at: int) -> None:
        """What others have made of it since that point is gone, so nobody need spare it again."""
        with self._lock:
            if any(path in point.others for point in self._points[at:]):
                self._note({"path": path, "settled": at})

    def _data(self, stood: Stood) -> bytes | None:
        """`None` where there was no file."""
        if stood.digest == NO_FILE:
            return None
        try:
            data = self._path_of(stood.digest).read_bytes()
        except FileNotFoundError:
            data = b""
        if digest_of(data) != stood.digest:
            raise FileNotFoundError(errno.ENOENT, "its previous content has been lost")
        return data

    # Keeping

    def _keep(self, path: str, expected: FileIdentity | None) -> Stood:
        """Raises `NotWritten` where it cannot be kept: nothing is changed then."""
        stood = Stood(expected.digest, expected.mode) if expected else Stood()
        try:
            with self._lock:
                if expected and not self._path_of(stood.digest).exists():
                    self._save(expected)
                if path in self._written and self._written[path] != stood.digest:
                    self._note({"path": path, "others": True})
                self._note_previous(path, stood)
        except (OSError, NotText) as error:
            words = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise NotWritten(errno.EIO, f"its previous content cannot be kept ({words})", path) from None
        return stood

    def _wrote(self, path: str, stood: Stood, digest: str) -> None:
        with self._lock:
            self._note_previous(path, stood)  # a point may have been marked between the record and the change
            self._note({"path": path, "is": digest})

    def _note_previous(self, path: str, stood: Stood) -> None:
        if path not in self._points[-1].stood:
            self._note({"path": path, "was": stood.digest, "mode": stood.mode})

    def _save(self, expected: FileIdentity) -> None:
        with open_file(expected.real_path, judged=expected.real_path) as file:
            data = file.content()
        if digest_of(data) != expected.digest:
            raise ChangedMeanwhile(f"{expected.real_path} changed since it was read. Read it again, then ask again.")
        kept = self._path_of(expected.digest)
        make_private(kept.parent)
        unfinished = kept.with_suffix(f".{os.urandom(4).hex()}")
        try:
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as copy:
                copy.write(data)
            unfinished.rename(kept)
        finally:
            unfinished.unlink(missing_ok=True)

    def _path_of(self, digest: str) -> Path:
        return self._home / digest

    @property
    def _home(self) -> Path:
        assert self._folder is not None, "nothing is kept before there is a folder for it"
        return self._folder

    def _note(self, record: Mapping[str, Any]) -> None:
        """On disk before it takes effect. One write, so that a kill leaves whole lines but for the last."""
        make_private(self._home)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        with open(os.open(self._home / INDEX, flags, 0o600), "ab") as index:
            index.write(json.dumps(record).encode() + b"\n")
        self._take(record)

    def _take(self, record: Mapping[str, Any]) -> None:
        last = self._points[-1]
        match record:
            case {"point": str(id)}:
                self._points.append(_Point(id))
            case {"path": str(path), "was": str(digest), "mode": int(mode)}:
                last.stood.setdefault(path, Stood(digest, mode))
            case {"path": str(path), "is": str(digest)}:
                self._written[path] = digest
            case {"path": str(path), "others": True}:
                last.others.add(path)
            case {"path": str(path), "settled": int(at)}:
                for point in self._points[at:]:
                    point.others.discard(path)
            case _:
                pass


def _records(index: Path) -> Iterator[Mapping[str, Any]]:
    """What can be read of an index; a kill may have cut its last line short."""
    try:
        lines = index.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and _is_sound(cast(dict[str, Any], record)):
            yield cast(dict[str, Any], record)


def _is_sound(record: Mapping[str, Any]) -> bool:
    """A digest becomes the name of a file."""
    return re.fullmatch(r"[0-9a-f]*", str(record.get("was", ""))) is not None


def _identity(path: str) -> FileIdentity | None:
    try:
        with open_file(path, judged=path) as file:
            return FileIdentity.of(path, file.status, file.content())
    except (FileNotFoundError, NotADirectoryError):
        return None
