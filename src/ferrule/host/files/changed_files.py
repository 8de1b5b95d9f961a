"""Files that were seen and have changed since, reported once before the model's next message.

What changed while a command of the model's own ran is named and not shown; what such a command deleted is not
even named.

Asked for and not watched: whoever asks right before each message misses
nothing that matters to it, on every file system, and costs nothing in between.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Final, TypeAlias

from ...core.ports import Note
from ...core.threads import in_a_thread
from ...core.values import plain_value
from ..documents.text_pages import PastEnd, TextPage, Wanted, read_page
from .held_folders import ChangedMeanwhile
from .ledger import TICK, Ledger, Ledgers, Seen, Stamp
from .open_files import DIGEST, open_file, open_for_reading, read_document
from .text_files import NotText

DEBOUNCE: Final = 0.1
"""Seconds for which a file must have been left alone: whoever is writing it may not be done."""
DIFF_LINES: Final = 100
MOST_LOADED: Final = 4 << 20
"""Bytes of a file that is loaded to be compared; of a larger one only the lines seen are compared."""
MOST_LINES: Final = 20_000
MOST_LOOKED_THROUGH: Final = 256 << 20
"""Bytes of a file that is searched for the lines seen of it; a change in a larger one is not reported."""
MOST_FILES: Final = 20
"""Files reported at once; the others are named in the next note."""

_Entry: TypeAlias = tuple[int, int, int, int]
"""Size, both times and number: what cannot stay the same while content changes, but for one tick of the clock."""


@plain_value
class _Suspect:
    real_path: str
    entry: _Entry | None
    """`None` for a file that is gone."""


class ChangedFiles:
    """Satisfies `core.ports.NoteSource` for one agent of a session."""

    def __init__(self, ledgers: Ledgers, workspace: str) -> None:
        self._ledgers = ledgers
        self._workspace = workspace.rstrip("/") + "/"
        self._checked: dict[tuple[str, str], _Entry] = {}
        self._told: dict[tuple[str, str], str] = {}

    async def notes(self, agent: str) -> tuple[Note, ...]:
        ledger = self._ledgers.of(agent)
        suspects = self._suspects(agent, ledger)
        if not suspects:
            return ()
        young = max((suspect.entry[2] for suspect in suspects if suspect.entry), default=0)
        if 0 < (rest := DEBOUNCE - (time.time() - young / 1e9)) <= DEBOUNCE:
            await asyncio.sleep(rest)
            suspects = self._suspects(agent, ledger)
        return await in_a_thread(self._compare, agent, ledger, suspects)

    def _suspects(self, agent: str, ledger: Ledger) -> list[_Suspect]:
        """Files whose entries say that they may have changed; nothing is read for this."""
        suspects: list[_Suspect] = []
        for real_path in ledger:
            seen = ledger.seen(real_path)
            entry = _entry(real_path)
            if entry is None:
                if self._told.get((agent, real_path)) != GONE:
                    suspects.append(_Suspect(real_path, None))
            elif seen and entry != self._checked.get((agent, real_path)) and not _surely_the_same(entry, seen):
                suspects.append(_Suspect(real_path, entry))
        return suspects

    def _compare(self, agent: str, ledger: Ledger, suspects: list[_Suspect]) -> tuple[Note, ...]:
        found, own = list[str](), list[str]()
        for suspect, words in self._changes(agent, ledger, suspects):
            if not self._is_own(ledger, suspect):
                found.append(words)
            elif suspect.entry:
                own.append(self._shorten(suspect))
        if own:
            found.append(f"Changed while your command ran: {', '.join(own)}.")
        return (Note("changed_files", "\n\n".join(found)),) if found else ()

    def _is_own(self, ledger: Ledger, suspect: _Suspect) -> bool:
        """Whether the agent's own command ran at that moment; of a file that is gone, its folder knows the moment."""
        entry = suspect.entry or _entry(os.path.dirname(suspect.real_path))
        return entry is not None and ledger.changed_by_command(entry[2] / 1e9)

    def _shorten(self, suspect: _Suspect) -> str:
        return suspect.real_path.removeprefix(self._workspace)

    def _changes(self, agent: str, ledger: Ledger, suspects: list[_Suspect]) -> Iterator[tuple[_Suspect, str]]:
        told = 0
        for suspect in suspects:
            if told == MOST_FILES:
                return
            words, version = self._change(ledger, suspect)
            key = (agent, suspect.real_path)
            if suspect.entry and time.time() - suspect.entry[2] / 1e9 > TICK:
                self._checked[key] = suspect.entry
            if words and self._told.get(key) != version:
                told += 1
                ledger.note_reported(suspect.real_path, version)
                yield suspect, words
            self._told[key] = version

    def _change(self, ledger: Ledger, suspect: _Suspect) -> tuple[str, str]:
        """What to report, if anything, and the version of the file that it is about."""
        shown = self._shorten(suspect)
        seen = ledger.seen(suspect.real_path)
        if suspect.entry is None:
            return f"{shown} was deleted.", GONE
        if seen is None:
            return "", ""
        try:
            if suspect.entry[0] > MOST_LOADED or (seen.whole and seen.whole.content is None):
                return self._large_change(shown, ledger, suspect.real_path, seen)
            now = read_document(suspect.real_path, judged=suspect.real_path)
        except NotText as reason:
            return f"{shown} has changed since you saw it: {reason}.", f"not text {suspect.entry}"
        except (ChangedMeanwhile, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else "it leads elsewhere"
            return f"{shown} cannot be read any more: {why}.", f"unreadable {suspect.entry}"
        knowledge = ledger.knows(now)
        if knowledge is None or not knowledge.changed:
            return "", now.identity.digest
        patch = ledger.diff_since_seen(shown, now, limit=DIFF_LINES)
        return f"{shown} has changed since you saw it." + (f"\n{patch}" if patch else ""), now.identity.digest

    def _large_change(self, shown: str, ledger: Ledger, real_path: str, seen: Seen) -> tuple[str, str]:
        """Of a file that is not loaded: whether the lines seen of it are still there, without a diff."""
        if seen.whole:
            with open_for_reading(real_path) as descriptor, open(descriptor, "rb", closefd=False) as file:
                digest = hashlib.file_digest(file, DIGEST).hexdigest()
            return (f"{shown} has changed since you saw it." if digest != seen.whole.digest else "", digest)
        first = min((part.first for part in seen.parts), default=1)
        last = max((part.last for part in seen.parts), default=0)
        if not seen.parts or last - first >= MOST_LINES or os.stat(real_path).st_size > MOST_LOOKED_THROUGH:
            return "", ""
        with open_file(real_path, judged=real_path) as file:
            try:
                page = read_page(file, Wanted(sys.maxsize, first, last - first + 1))
            except PastEnd:
                page = None
        if isinstance(page, TextPage) and ledger.stand(real_path, first, page.lines) and page.last >= last:
            return "", page.version
        return f"{shown} has changed since you saw it.", page.version if page else "shorter"


GONE: Final = "gone"


def _entry(path: str) -> _Entry | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _surely_the_same(entry: _Entry, seen: Seen) -> bool:
    """The entry is that of the file as it was seen, and older than the look at it.

    A change between then and now would have moved the time of change, which
    nobody can set; only within one tick of the clock it might be the same.
    """
    size, modified, changed, inode = entry
    return Stamp(size, modified, inode) == seen.stamp and changed / 1e9 < seen.at - TICK
