"""One settings file, as far as it is valid.

A file that is no JSON, or of the wrong shape altogether, is skipped as a whole;
one bad entry is skipped alone. Each is named with file, line and key. Nothing
here raises, and nothing bad is read as something else.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from pydantic import ValidationError

from ..core.values import plain_value
from ..host.files import digest_of, kind_of, opened
from ..host.text import NotText
from .files import SettingsKind
from .levels import SettingsPath, Source
from .models import MODELS
from .strict_json import NotJson, Parsed, Place, parse
from .violations import Violation, of_error, of_repeated, written

LARGEST: Final = 1 << 20
"""Bytes of a settings file. People write them, and even a list of thousands of rules stays below it."""
MOST_FAULTS: Final = 1000
"""Bad entries beyond which a file is not worth being picked apart."""

_ONLY_GRANT: Final = frozenset(
    {"allow", "allowed_tools", "additionalDirectories", "allowed_domains", "auto_approve_https"}
)
"""What only ever allows; without it less is allowed."""
_MAY_FORBID: Final = frozenset(
    {
        "permissions",
        "hooks",
        "sandbox",
        "allowManagedPermissionRulesOnly",
        "allowManagedHooksOnly",
        "allowManagedInputChangesOnly",
        "allowManagedMcpServersOnly",
        "allowedMcpServers",
        "deniedMcpServers",
        "disabledMcpjsonServers",
        "allowedHttpHookUrls",
        "httpHookAllowedEnvVars",
        "disableSkillShellExecution",
        "skillOverrides",
    }
)


@plain_value
class Skipped:
    """Something in a settings file that does not count."""

    source: Source
    place: Place
    """Empty for the whole file."""
    words: str
    may_forbid: bool
    """It could have forbidden something, so that without it more might be allowed."""

    def __str__(self) -> str:
        what = f"`{written(self.place)}` is skipped" if self.place else "the file is skipped"
        return f"{self.source}: {what}: {self.words}"

    @property
    def fault(self) -> str:
        """For when nothing goes on without it."""
        return f"{self.source}: `{written(self.place)}`: {self.words}" if self.place else f"{self.source}: {self.words}"


@plain_value
class Loaded:
    """What a file holds that is valid."""

    at: SettingsPath
    value: Any
    """As JSON; `None` where there is no file, or none that can be used."""
    skipped: tuple[Skipped, ...] = ()
    digest: str | None = None
    """Of the bytes that were read; `None` where there were none."""
    _gone: frozenset[Place] = frozenset()
    _lines: Mapping[Place, int] | None = None

    def source(self, place: Place) -> Source:
        """Where a value stands in the file; the place is one in `value`."""
        lines = self._lines or {}
        return Source(self.at.level, self.at.path, lines.get(_as_in_file(place, self._gone)))


def load(at: SettingsPath) -> Loaded:
    """From the disk. A file that is not there holds nothing, and that is no fault."""
    try:
        data = content_of(at.path)
    except (FileNotFoundError, NotADirectoryError):
        return Loaded(at, None)
    except (OSError, NotText, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Loaded(at, None, (_whole(at, f"it cannot be read: {words}."),))
    digest = digest_of(data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Loaded(at, None, (_whole(at, "it is not UTF-8. Save it as UTF-8.", line),), digest)
    return load_text(at, text, digest)


def load_text(at: SettingsPath, text: str, digest: str | None = None) -> Loaded:
    """From a text that is there already, such as the value of a flag."""
    try:
        parsed = parse(text)
    except NotJson as error:
        broken = _whole(at, str(error))
        return Loaded(at, None, (broken if text.strip() else replace(broken, may_forbid=False),), digest)
    gone, faults = _faults(at.kind, parsed)
    if gone is None:
        return Loaded(at, None, tuple(_whole(at, fault.words) for fault in faults), digest)
    skipped = [Skipped(_source(at, parsed, fault.place), fault.place, fault.words, _forbids(at.kind, fault.place))
               for fault in faults]  # fmt: skip
    return Loaded(at, _without(parsed.value, gone), tuple(skipped), digest, frozenset(gone), parsed.lines)


def content_of(path: str) -> bytes:
    """Of a regular file that is not too large. Raises `NotText` or `OSError`."""
    with opened(path) as descriptor:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotText(f"it is {kind_of(status.st_mode)}")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise NotText(f"it has more than {LARGEST:,} bytes")
    return data


def _faults(kind: SettingsKind, parsed: Parsed) -> tuple[set[Place] | None, list[Violation]]:
    """The entries to leave out and why, until the rest is valid; `None` where no part of the file can be used."""
    gone = set[Place]()
    faults = [of_repeated(repeated) for repeated in parsed.repeated]
    while violations := _violations(kind, _without(parsed.value, gone)):
        before = frozenset(gone)
        for violation in violations:
            entry = _as_in_file(_entry(violation.place), before)
            if not entry or entry in before:
                return None, [violation]
            if entry not in gone:
                gone.add(entry)
                inside = _as_in_file(violation.place, before)[len(entry) :]
                faults.append(
                    Violation(entry, f"`{written(inside)}`: {violation.words}" if inside else violation.words)
                )
    return gone, faults


def _violations(kind: SettingsKind, value: Any) -> list[Violation]:
    model = MODELS[kind]
    try:
        model.model_validate(value)
    except ValidationError as error:
        if error.error_count() > MOST_FAULTS:
            return [Violation((), f"it has {error.error_count():,} faults. Correct it, or remove it.")]
        return list(of_error(error, model))
    return []


def _entry(place: Place) -> Place:
    """The part to leave out with a fault in it: an item of a list, one hook, one server, else the key itself.

    A hook without its faulty `if` would run more often than was meant, so a
    hook goes as a whole, and so does a group whose matcher is wrong.

    >>> _entry(("permissions", "allow", 2)), _entry(("hooks", "Stop", 0, "hooks", 1, "if"))
    (('permissions', 'allow', 2), ('hooks', 'Stop', 0, 'hooks', 1))
    """
    if place[:1] == ("mcpServers",):
        return place[:2]
    if place[:1] == ("hooks",) and place[3:4] == ("hooks",) and len(place) > 4:
        return place[:5]
    first = next((index for index, part in enumerate(place) if isinstance(part, int)), len(place))
    return place[: first + 1]


def _without(value: Any, gone: Collection[Place], place: Place = ()) -> Any:
    match value:
        case dict():
            members = cast(dict[str, Any], value).items()
            return {key: _without(inner, gone, (*place, key)) for key, inner in members if (*place, key) not in gone}
        case list():
            items = enumerate(cast(list[Any], value))
            return [_without(inner, gone, (*place, at)) for at, inner in items if (*place, at) not in gone]
        case _:
            return value


def _as_in_file(place: Place, gone: Collection[Place]) -> Place:
    """A place in what is left, as a place in the file: items before it may have been left out."""
    if not gone:
        return place
    found: Place = ()
    for part in place:
        if isinstance(part, int):
            left, part = part, 0
            while left or (*found, part) in gone:
                left -= (*found, part) not in gone
                part += 1
        found = (*found, part)
    return found


def _forbids(kind: SettingsKind, place: Place) -> bool:
    """
    >>> _forbids(SettingsKind.SETTINGS, ("permissions", "deny", 1)), _forbids(SettingsKind.SETTINGS, ("env", "A"))
    (True, False)
    """
    match kind:
        case SettingsKind.HOOKS:
            return True
        case SettingsKind.MCP:
            return False
        case SettingsKind.PERMISSIONS:
            return not _ONLY_GRANT & set(place)
        case SettingsKind.SETTINGS:
            granting = place[0] == "permissions" and bool(_ONLY_GRANT & set(place))
            return place[0] in _MAY_FORBID and not granting


def _whole(at: SettingsPath, words: str, line: int | None = None) -> Skipped:
    return Skipped(Source(at.level, at.path, line), (), words, may_forbid=at.kind is not SettingsKind.MCP)


def _source(at: SettingsPath, parsed: Parsed, place: Place) -> Source:
    """Where the place is, or else the nearest around it: a key that is missing stands nowhere."""
    lines = (parsed.lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in parsed.lines)
    return Source(at.level, at.path, next(lines, None))
