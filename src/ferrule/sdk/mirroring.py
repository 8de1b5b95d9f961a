"""Transcripts that are also kept elsewhere: fetched before a conversation opens, sent as it continues.

The transcript on disk is what a conversation works with. Each of its lines
goes to the store in order and none is left out: what the store does not accept
is sent again first. Duplicate entries are used once, by their id.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from ..app.session_settings import Settings
from ..engine.first_entries import modern_entry
from ..engine.transcript_entries import UnreadableEntry, entry_of, line_of
from ..host.files.local_paths import LocalPaths
from ..host.storage.transcript_files import TranscriptError, Transcripts, folder_name, lines_of
from .errors import CannotOpen
from .options import Options
from .stores import SessionKey, SessionStore, SessionStoreEntry

log = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 500
WITHIN: Final = 20.0
"""Seconds that a store may take to accept entries."""
PAUSES: Final = (0.2, 0.8)
"""Seconds between one try and the next."""
_FIRST: Final = ("type", "kind", "uuid", "parentUuid", "sessionId", "timestamp", "agent")
"""The first keys of a line. A store may return an entry with its keys in any order."""

Entry = dict[str, Any]


class Mirror:
    """One conversation's connection to a store."""

    def __init__(self, store: SessionStore, project_key: str, *, known: frozenset[str], flush: str = "batched") -> None:
        self._store = store
        self._known = known
        self._is_eager = flush == "eager"
        self._waiting: list[Entry] = []
        self._sending = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self.key: SessionKey = {"project_key": project_key, "session_id": ""}
        self.failed: Callable[[str], None] = lambda words: None
        """Called with the reason if the store did not accept entries."""

    def begin(self, session_id: str, transcript: str, *, is_fork: bool) -> None:
        """Entries of the transcript that the store does not have are sent first."""
        self.key["session_id"] = session_id
        known = frozenset[str]() if is_fork else self._known
        self._waiting = [entry for entry in _entries(Path(transcript)) if entry.get("uuid") not in known]

    def __call__(self, line: bytes) -> None:
        """A line of the transcript."""
        self._waiting.append(entry_of(line))
        if (self._is_eager or len(self._waiting) >= MOST_AT_ONCE) and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self.flush())

    async def flush(self) -> None:
        """Return when the store has everything, or has refused."""
        async with self._sending:
            while self._waiting:
                batch = self._waiting[:MOST_AT_ONCE]
                if words := await self._refusal(batch):
                    log.warning("the session store did not accept %d entries: %s", len(batch), words)
                    self.failed(words)
                    return
                del self._waiting[: len(batch)]

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait((self._task,))
        await self.flush()

    async def _refusal(self, batch: Sequence[Entry]) -> str:
        """Why the store did not accept them; empty if it did."""
        words = ""
        for pause in (0.0, *PAUSES):
            await asyncio.sleep(pause)
            try:
                async with asyncio.timeout(WITHIN):
                    await self._store.append(_copy_key(self.key), cast(list[SessionStoreEntry], list(batch)))
            except TimeoutError:
                return f"it did not answer within {WITHIN:g} seconds"  # it may still be at it
            except Exception as error:  # the program's own code: the conversation goes on without it
                words = f"{type(error).__name__}: {error}"
            else:
                return ""
        return words


async def fetch_transcript(options: Options) -> tuple[Options, Mirror | None]:
    """Options that name the conversation by its id; its transcript is local by then. Raises `CannotOpen`."""
    store = options.session_store
    if store is None:
        return options, None
    if not all(callable(getattr(store, name, None)) for name in ("append", "load")):
        raise CannotOpen("`session_store` must have the methods `append` and `load`.")
    if options.store_flush not in ("batched", "eager"):
        raise CannotOpen(f"`store_flush` must be batched or eager, not {options.store_flush!r}.")
    base = options.base or Settings()
    cwd = LocalPaths().anchor(os.fspath(options.cwd) if options.cwd is not None else base.cwd, os.getcwd())
    project_key = folder_name(os.path.realpath(cwd))
    if options.continue_last and not options.resume and (last := await _last(store, project_key, options)):
        options = replace(options, resume=last, continue_last=False)
    known = frozenset[str]()
    if options.resume:
        try:
            path = Transcripts(base.state_folder / "projects").path(cwd, options.resume)
            known = await _fetch(store, project_key, path, options)
        except TranscriptError as error:
            raise CannotOpen(str(error)) from None
    return options, Mirror(store, project_key, known=known, flush=options.store_flush)


async def _last(store: SessionStore, project_key: str, options: Options) -> str | None:
    try:
        async with asyncio.timeout(options.load_within):
            listed = sorted(await store.list_sessions(project_key), key=lambda one: one["mtime"])
    except (NotImplementedError, AttributeError):
        raise CannotOpen("The session store cannot list, so the last conversation is unknown. Name one.") from None
    except Exception as error:  # the program's own code
        raise _no_answer(error) from error
    return listed[-1]["session_id"] if listed else None


async def _fetch(store: SessionStore, project_key: str, path: Path, options: Options) -> frozenset[str]:
    """Save the transcript locally if the store has more of it; returns the ids that the store has."""
    try:
        async with asyncio.timeout(options.load_within):
            loaded = await store.load({"project_key": project_key, "session_id": path.stem})
    except Exception as error:  # the program's own code
        raise _no_answer(error) from error
    kept = once(loaded or [])
    here = [entry.get("uuid") for entry in _entries(path)]
    ids = [str(entry["uuid"]) for entry in kept]
    if kept and ids[-1] not in here:
        if here and here[-1] not in ids:
            raise CannotOpen(
                f"The session {path.stem} was continued both here and in the store. "
                f"Resume it without the store, or move {path} away."
            )
        Transcripts(path.parent.parent).replace(path, map(_line, kept))
    return frozenset(ids)


def once(loaded: object) -> list[Entry]:
    """Each entry once. Raises `CannotOpen` for invalid entries."""
    if not isinstance(loaded, Sequence):
        raise CannotOpen(f"The session store returned {type(loaded).__name__}, not a list of entries.")
    entries: dict[str, Entry] = {}
    for entry in cast(Sequence[object], loaded):
        match entry:
            case {"type": str(), "uuid": str(id)}:
                entries.setdefault(id, modern_entry(cast(Entry, entry)))
            case _:
                raise CannotOpen(
                    "The session store returned an entry that is not valid in a transcript. Name another conversation."
                )
    return list(entries.values())


def _line(entry: Mapping[str, Any]) -> bytes:
    return line_of({**{name: entry[name] for name in _FIRST if name in entry}, **entry})


def _entries(path: Path) -> list[Entry]:
    """The readable part of a transcript; empty if it does not exist."""
    found: list[Entry] = []
    if path.is_file():
        for line in lines_of(path):
            try:
                found.append(entry_of(line))
            except UnreadableEntry:  # what a kill cut short
                continue
    return found


def _copy_key(key: SessionKey) -> SessionKey:
    return {**key}


def _no_answer(error: Exception) -> CannotOpen:
    words = "it took too long" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
    return CannotOpen(f"The session store could not be read: {words}.")
