"""The end of a transcript, in bounded memory, and what must not be lost of the rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from ..core.content import plain_text
from .transcript_entries import UnreadableEntry, entry_of, note_texts, user_turn

ROOM: Final = 12 << 20
"""Bytes of entries that are kept: more than the largest window holds, whatever the language."""
TURNS: Final = frozenset({"user", "notes", "assistant", "results", "compaction"})
LONG: Final = 64 << 10
LONGEST_PROMPT: Final = 4_000
MOST_PROMPTS: Final = 40_000
"""Characters of what the user wrote in the part that is left out: of one prompt, and of all."""

LEFT_OUT = (
    "[This conversation is longer than a model can read. Its first {:,} entries are left out here; "
    "the session's transcript has them.]"
)
SAID = "What the user wrote in them, in this order:"
SUMMARY = "A summary of the beginning:"


def _weight(line: bytes) -> int:
    """Its bytes; a quarter of them with a picture or document, which are few tokens for their size."""
    return len(line) // 4 if len(line) > LONG and b'"base64"' in line else len(line)


class RecentLines:
    """Takes the lines of one agent in their order, and keeps the last ones."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lines: deque[tuple[bytes, str]] = deque()
        self._size = 0
        self._dropped = 0
        self._summary = ""
        self._first_prompt = ""
        self._prompts: deque[str] = deque()
        self._prompts_size = 0
        self.prompts_before = 0
        """How many prompts came before the lines that are kept."""
        self.is_cut = False
        """Whether the last turn before them did not finish."""
        self._last = b""

    def __iter__(self) -> Iterator[bytes]:
        """Each line is forgotten when the next one is asked for."""
        while self._lines:
            yield self._lines.popleft()[0]

    def add(self, line: bytes, kind: str) -> None:
        if kind == "compaction":
            self._drop_summarised(line)
        self._lines.append((line, kind))
        self._size += _weight(line)
        while self._size > self._room and len(self._lines) > 1:
            self._remember(*self._drop())

    def beginning(self) -> str:
        """What the model is to read in place of the entries that are left out; empty if none are."""
        if not self._dropped:
            return ""
        parts = [LEFT_OUT.format(self._dropped)]
        if self._summary:
            parts += (SUMMARY, self._summary)
        if self._first_prompt:
            parts += (SAID, self._first_prompt, *self._prompts)
        return "\n\n".join(parts)

    def remembered_prompts(self) -> list[str]:
        """What the user wrote in the entries that are left out, as far as it is kept."""
        return [text for text in (self._first_prompt, *self._prompts) if text]

    def last_before(self) -> str | None:
        """The id of the last entry of the chain before the lines that are kept."""
        try:
            id = entry_of(self._last).get("uuid") if self._last else None
        except UnreadableEntry:
            return None
        return id if isinstance(id, str) else None

    def _drop(self) -> tuple[bytes, str]:
        line, kind = self._lines.popleft()
        self._size -= _weight(line)
        if kind in TURNS or kind == "system":
            self._last = line
        if kind == "user":
            self.prompts_before += 1
            self.is_cut = True
        elif kind == "end":
            self.is_cut = False
        return line, kind

    def _drop_summarised(self, line: bytes) -> None:
        """The turns that a summary replaces, but for more than enough of those that it keeps."""
        try:
            entry = entry_of(line)
            is_summary, kept = bool("".join(note_texts(entry))), entry.get("kept")
        except UnreadableEntry:
            return
        if not is_summary or not isinstance(kept, int):
            return
        enough = 3 * kept + 10
        turns = sum(kind in TURNS for _, kind in self._lines)
        while turns > enough:
            turns -= self._drop()[1] in TURNS
        if self._dropped:
            self._dropped, self._summary, self._first_prompt = 0, "", ""
            self._prompts.clear()
            self._prompts_size = 0

    def _remember(self, line: bytes, kind: str) -> None:
        self._dropped += kind in TURNS
        try:
            if kind == "compaction" and (summary := "".join(note_texts(entry_of(line)))):
                self._summary, self._first_prompt, self._prompts_size = summary, "", 0
                self._prompts.clear()
            elif kind == "user":
                self._remember_prompt(plain_text(user_turn(entry_of(line)).content))
        except UnreadableEntry:
            return

    def _remember_prompt(self, text: str) -> None:
        said = text if len(text) <= LONGEST_PROMPT else f"{text[:LONGEST_PROMPT]}…"
        if not self._first_prompt:
            self._first_prompt = said
            return
        self._prompts.append(said)
        self._prompts_size += len(said)
        while self._prompts_size > MOST_PROMPTS:
            self._prompts_size -= len(self._prompts.popleft())
