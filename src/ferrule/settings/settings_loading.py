"""One settings file, as far as it is valid.

A file that is not valid JSON, or has the wrong structure, is skipped as a whole;
an invalid entry is skipped alone. Each is reported with file, line and key.
Nothing here raises, and nothing invalid is read as something else.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..core.values import plain_value
from ..host.files.open_files import kind_of, open_for_reading
from ..host.files.text_files import NotText
from ..text.json_reader import NotJson
from .json_places import Parsed, Place, as_in_file, parse, without, write_place
from .levels import SettingsPath, Source
from .plain_servers import is_plain
from .settings_files import SettingsKind

if TYPE_CHECKING:
    from .faults import Fault

LARGEST: Final = 1 << 20
"""Bytes of a settings file. People write them, and even a list of thousands of rules stays below it."""


@plain_value
class Skipped:
    """Something in a settings file that is ignored."""

    source: Source
    place: Place
    """Empty for the whole file."""
    words: str
    may_forbid: bool
    """It could have forbidden something, so that without it more might be allowed."""
    unknown: bool = False
    """It is a key that this version does not know, and nothing else is left out with it."""

    @property
    def is_harmless(self) -> bool:
        """Whether leaving it out changes nothing that this version understands."""
        return self.unknown and not self.may_forbid

    def __str__(self) -> str:
        verb = "ignored" if self.is_harmless else "skipped"
        what = f"`{write_place(self.place)}` is {verb}" if self.place else "the file is skipped"
        return f"{self.source}: {what}: {self.words}"

    @property
    def fault(self) -> str:
        """For callers that cannot continue without it."""
        return (
            f"{self.source}: `{write_place(self.place)}`: {self.words}"
            if self.place
            else f"{self.source}: {self.words}"
        )


@plain_value
class Loaded:
    """The valid part of a file."""

    at: SettingsPath
    value: Any
    """As JSON; `None` if the file does not exist or cannot be used."""
    skipped: tuple[Skipped, ...] = ()
    _gone: frozenset[Place] = frozenset()
    _lines: Mapping[Place, int] | None = None

    def source(self, place: Place) -> Source:
        """The position of a value in the file; the place is one in `value`."""
        lines = self._lines or {}
        return Source(self.at.level, self.at.path, lines.get(as_in_file(place, self._gone)))


def load(at: SettingsPath) -> Loaded:
    """Loads a file from disk. A missing file is empty, which is not an error."""
    try:
        data = content_of(at.path)
    except (FileNotFoundError, NotADirectoryError):
        return Loaded(at, None)
    except (OSError, NotText, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Loaded(at, None, (_whole(at, f"it cannot be read: {words}."),))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Loaded(at, None, (_whole(at, "it is not UTF-8. Save it as UTF-8.", line),))
    return load_text(at, text)


def load_text(at: SettingsPath, text: str) -> Loaded:
    """Loads a given text, such as the value of a flag."""
    try:
        parsed = parse(text)
    except NotJson as error:
        broken = _whole(at, str(error))
        return Loaded(at, None, (broken if text.strip() else replace(broken, may_forbid=False),))
    if is_plain(at.kind, parsed):
        return Loaded(at, parsed.value, (), frozenset(), parsed.lines)
    from .faults import faults_in

    gone, faults = faults_in(at.kind, parsed)
    if gone is None:
        return Loaded(at, None, tuple(_whole(at, fault.words) for fault in faults))
    skipped = tuple(_skip(at, parsed, fault) for fault in faults)
    return Loaded(at, without(parsed.value, gone), skipped, frozenset(gone), parsed.lines)


def content_of(path: str) -> bytes:
    """Of a regular file that is not too large. Raises `NotText` or `OSError`."""
    with open_for_reading(path) as descriptor:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotText(f"it is {kind_of(status.st_mode)}")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise NotText(f"it has more than {LARGEST:,} bytes")
    return data


def _skip(at: SettingsPath, parsed: Parsed, fault: Fault) -> Skipped:
    may_forbid = fault.may_forbid and at.kind is not SettingsKind.MCP
    return Skipped(_source(at, parsed, fault.place), fault.place, fault.words, may_forbid, fault.unknown)


def _whole(at: SettingsPath, words: str, line: int | None = None) -> Skipped:
    return Skipped(Source(at.level, at.path, line), (), words, may_forbid=at.kind is not SettingsKind.MCP)


def _source(at: SettingsPath, parsed: Parsed, place: Place) -> Source:
    """The position of the place, or of the nearest one around it if its key is missing."""
    lines = (parsed.lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in parsed.lines)
    return Source(at.level, at.path, next(lines, None))
