"""Facts of models that were found out, in a file of the state folder: what servers said, and what was learned."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from ..host.storage.session_folder import make_private

FILE_NAME: Final = "models.json"
VERSION: Final = 1
ASK_AGAIN: Final = timedelta(days=1)
"""A server may have been started with other options since."""
FORGET: Final = timedelta(days=7)
"""What was learned and is older may have been cured."""

KeptSource: TypeAlias = Literal["server", "learned"]
_Content: TypeAlias = dict[str, dict[str, dict[str, Any]]]


class KeptFacts:
    """Read anew each time, as several processes write it. A file that cannot be used is an empty one."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def entries(self, origin: str, name: str) -> Iterator[tuple[KeptSource, Mapping[str, Any]]]:
        """What holds, the server's word first."""
        found = self._content().get(_key(origin, name), {})
        if "server" in found:
            yield "server", found["server"]
        if "learned" in found and _age(found["learned"]) <= FORGET:
            yield "learned", found["learned"]

    def is_fresh(self, origin: str, name: str) -> bool:
        """Whether the server was asked lately, whatever it said."""
        return any(source == "server" and _age(entry) < ASK_AGAIN for source, entry in self.entries(origin, name))

    def all(self) -> Iterator[tuple[str, str, Mapping[str, Mapping[str, Any]]]]:
        """The origin, the model's name and what each source says."""
        for key, entries in sorted(self._content().items()):
            origin, _, name = key.partition(" ")
            yield origin, name, entries

    def keep(self, origin: str, name: str, source: KeptSource, facts: Mapping[str, Any]) -> None:
        """With today's date. What a server says of its window replaces what was learned about it."""
        content = self._content()
        entries = content.setdefault(_key(origin, name), {})
        entries[source] = {**facts, "date": datetime.now(UTC).isoformat(timespec="seconds")}
        if source == "server" and "window" in facts:
            entries.pop("learned", None)
        self._write(content)

    def forget(self, origin: str, name: str) -> None:
        content = self._content()
        if content.pop(_key(origin, name), None) is not None:
            self._write(content)

    def _content(self) -> _Content:
        try:
            value: Any = json.loads(self.file.read_bytes())
            if value["version"] != VERSION:
                return {}
            models: Any = value["models"]
            return {key: {source: dict(entry) for source, entry in entries.items()} for key, entries in models.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}

    def _write(self, content: _Content) -> None:
        """Replaced as a whole. Where it cannot be written, the server is asked again next time."""
        beside = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        data = json.dumps({"version": VERSION, "models": content}, indent=1, sort_keys=True) + "\n"
        with suppress(OSError):
            make_private(self.file.parent)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(data)
            beside.replace(self.file)


def _key(origin: str, name: str) -> str:
    return f"{origin} {name}"


def _age(entry: Mapping[str, Any]) -> timedelta:
    try:
        return datetime.now(UTC) - datetime.fromisoformat(cast(str, entry["date"]))
    except (KeyError, TypeError, ValueError):
        return timedelta.max
