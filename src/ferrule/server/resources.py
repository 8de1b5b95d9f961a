"""What a client may read besides its results: results that were saved, and files that its calls have changed."""

from __future__ import annotations

import base64
import mimetypes
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from mcp import types

from ..core.calls import Status, ToolOutcome
from ..core.content import encodable
from ..host.files.held_folders import ChangedMeanwhile
from ..host.files.open_files import open_file
from ..host.files.text_files import NotText
from .sources import Contents, NoSuchResource

MOST_LISTED: Final = 1_000
"""The oldest are forgotten first."""
MOST_BYTES: Final = 16 << 20
"""Bytes of a resource that is sent whole."""


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    kind: Literal["result", "file"]
    said: str

    @property
    def uri(self) -> str:
        return Path(self.path).as_uri()


class Resources:
    """Grows as calls end. Only listed resources can be read, so invented addresses fail."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def note(self, outcome: ToolOutcome) -> tuple[bool, tuple[str, ...]]:
        """Whether the list has grown, and the addresses of known resources that changed."""
        new, changed = False, list[str]()
        for entry in _left_by(outcome):
            if self._entries.pop(entry.path, None) is None:
                new = True
            else:
                changed.append(entry.uri)
            self._entries[entry.path] = entry
        while len(self._entries) > MOST_LISTED:
            del self._entries[next(iter(self._entries))]
        return new, tuple(changed)

    def list_current(self) -> list[types.Resource]:
        """Those that still exist, the newest first."""
        return [found for entry in reversed(self._entries.values()) if (found := _describe(entry)) is not None]

    def read(self, uri: str) -> Contents | None:
        """`None` if it is not listed. Raises `NoSuchResource` if it can no longer be read."""
        entry = self._entries.get(_path_of(uri))
        if entry is None:
            return None
        try:
            with open_file(entry.path, judged=entry.path) as file:
                data = file.content(MOST_BYTES)
        except (NotText, ChangedMeanwhile) as reason:
            raise NoSuchResource(f"{uri} cannot be read: {reason}.") from None
        except OSError as error:
            raise NoSuchResource(f"{uri} cannot be read: {error.strerror}.") from None
        try:
            return types.TextResourceContents(uri=uri, mime_type=_media_type(entry), text=data.decode())
        except UnicodeDecodeError:
            encoded = base64.b64encode(data).decode()
            return types.BlobResourceContents(uri=uri, mime_type=_media_type(entry), blob=encoded)


def _describe(entry: _Entry) -> types.Resource | None:
    try:
        status = os.stat(entry.path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return types.Resource(
        name=encodable(os.path.basename(entry.path)),
        uri=entry.uri,
        description=entry.said,
        mime_type=_media_type(entry),
        size=status.st_size,
    )


def _left_by(outcome: ToolOutcome) -> Iterator[_Entry]:
    record = outcome.record
    if record is None:
        return
    if record.saved_to is not None:
        yield _Entry(record.saved_to, "result", f"The whole result of {record.tool}, call {record.call_id}.")
    if outcome.status is Status.OK and record.effects is not None:
        for touch in record.effects.writes:
            yield _Entry(touch.real or touch.path, "file", f"Changed by {record.tool}.")


def _path_of(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.path, errors="surrogateescape") if parts.scheme == "file" and not parts.netloc else ""


def _media_type(entry: _Entry) -> str | None:
    return "text/plain" if entry.kind == "result" else mimetypes.guess_type(entry.path)[0]
