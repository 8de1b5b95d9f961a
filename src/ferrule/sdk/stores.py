"""Interface of a program's own store for conversations.

The names and fields are those of the Claude Agent SDK, so that stores which
were written for it can be used. The entries are those of our transcripts.
"""

from __future__ import annotations

import time
from typing import Any, Literal, NotRequired, Protocol, Required, TypeAlias, TypedDict

SessionStoreFlushMode: TypeAlias = Literal["batched", "eager"]


class SessionKey(TypedDict):
    project_key: str
    session_id: str
    subpath: NotRequired[str]


class SessionListSubkeysKey(TypedDict):
    project_key: str
    session_id: str


class SessionStoreEntry(TypedDict, total=False):
    """A line of a transcript; further keys must be kept unchanged."""

    type: Required[str]
    uuid: str
    timestamp: str


class SessionStoreListEntry(TypedDict):
    session_id: str
    mtime: int
    """In milliseconds since 1970."""


class SessionSummaryEntry(TypedDict):
    session_id: str
    mtime: int
    data: dict[str, Any]


class SessionStore(Protocol):
    """`append` and `load` are required; the others may raise `NotImplementedError`."""

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None: ...

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None: ...

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        raise NotImplementedError

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        raise NotImplementedError

    async def delete(self, key: SessionKey) -> None:
        raise NotImplementedError

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        raise NotImplementedError


class InMemorySessionStore(SessionStore):
    """Keeps everything in memory: for tests and experiments."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], list[SessionStoreEntry]] = {}
        self._changed: dict[tuple[str, str, str], int] = {}

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        place = _place(key)
        self._kept.setdefault(place, []).extend(entries)
        self._changed[place] = time.time_ns() // 1_000_000

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        kept = self._kept.get(_place(key))
        return None if kept is None else list(kept)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return [
            {"session_id": session, "mtime": changed}
            for (project, session, subpath), changed in self._changed.items()
            if project == project_key and not subpath
        ]

    async def delete(self, key: SessionKey) -> None:
        """Without a `subpath`, all that belongs to the session."""
        place = _place(key)
        for one in [one for one in self._kept if one == place or (not place[2] and one[:2] == place[:2])]:
            del self._kept[one], self._changed[one]

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        wanted = (key["project_key"], key["session_id"])
        return [subpath for *session, subpath in self._kept if tuple(session) == wanted and subpath]

    def get_entries(self, key: SessionKey) -> list[SessionStoreEntry]:
        """What is there, without waiting."""
        return list(self._kept.get(_place(key), ()))

    @property
    def size(self) -> int:
        """How many sessions there are."""
        return sum(not subpath for *_, subpath in self._kept)

    def clear(self) -> None:
        self._kept.clear()
        self._changed.clear()


def _place(key: SessionKey) -> tuple[str, str, str]:
    return key["project_key"], key["session_id"], key.get("subpath", "")
