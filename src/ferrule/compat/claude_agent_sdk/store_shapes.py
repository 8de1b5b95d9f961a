"""What a program brings that keeps conversations elsewhere too."""

from __future__ import annotations

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
    """A line of a transcript; whatever else stands in it is to be kept as it is."""

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
    """`append` and `load` must be there; the others say that they are not by raising `NotImplementedError`."""

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
