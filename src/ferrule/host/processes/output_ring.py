"""The output of a command, however much it is: its beginning, its end, and a capped file for the rest."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from ...core.tool import Keep
from ...core.values import plain_value
from .terminal_text import clean_output

HEAD = 1 << 16
TAIL = 1 << 16
SMALL = 1 << 12
"""Chunks below this are put together, so that a byte at a time does not cost an object each."""
SPILL_CAP = 64 << 20
MODEL_CHARACTERS = 30_000

MakeSpill: TypeAlias = Callable[[], tuple[Path, int]]
"""Makes the file for the rest: its path, and a descriptor to write it. May raise `OSError`."""


@plain_value
class CommandOutput:
    """What a command printed: all of it, or its two ends."""

    head: bytes
    tail: bytes
    total: int
    saved: Path | None = None
    """The file that holds all of it, or its first part where that is `capped`."""
    capped: bool = False
    breaks: int = 0
    """Line breaks in all of it."""

    @property
    def whole(self) -> bool:
        return len(self.head) + len(self.tail) == self.total

    def text(self, limit: int = MODEL_CHARACTERS, keep: Keep = "both") -> str:
        """At most about `limit` characters: both ends or one, whole lines where there are any, what is left out."""
        return within(self.head, self.tail, self.total, limit, keep, self.breaks)


class OutputRing:
    """Takes bytes as they come. Holds `HEAD` and about `TAIL` of them, whatever comes.

    One may feed it in a thread while another reads.
    """

    def __init__(self, make_spill: MakeSpill | None = None, *, spill_cap: int = SPILL_CAP) -> None:
        self.total = 0
        self._breaks = 0
        self._lock = Lock()
        self._make_spill = make_spill
        self._cap = spill_cap
        self._head = bytearray()
        self._tail: deque[bytearray | bytes] = deque()
        self._tail_size = 0
        self.saved: Path | None = None
        self._descriptor = -1
        self._spilled = 0

    def feed(self, chunk: bytes | memoryview) -> None:
        """What is kept of the chunk is copied, so a buffer may be used again."""
        with self._lock:
            self._take(chunk)

    def _take(self, chunk: bytes | memoryview) -> None:
        self.total += len(chunk)
        self._breaks += bytes(chunk).count(b"\n")
        if self.saved is None and self.total > HEAD + TAIL:
            self._open_spill()
        if self._descriptor >= 0:
            self._spill(chunk)
        if room := HEAD - len(self._head):
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._append(chunk)

    def _append(self, chunk: bytes | memoryview) -> None:
        if len(chunk) >= TAIL:
            self._tail.clear()
            self._tail.append(bytes(chunk[-TAIL:]))
            self._tail_size = TAIL
            return
        last = self._tail[-1] if self._tail else None
        if isinstance(last, bytearray) and len(last) + len(chunk) <= SMALL:
            last += chunk
        else:
            self._tail.append(bytearray(chunk) if len(chunk) < SMALL else bytes(chunk))
        self._tail_size += len(chunk)
        while self._tail_size - len(self._tail[0]) >= TAIL:
            self._tail_size -= len(self._tail.popleft())

    def snapshot(self, *, keep_if_over: int | None = None) -> CommandOutput:
        """The output so far. What is longer than `keep_if_over` is saved, though memory would still hold it."""
        with self._lock:
            if self.saved is None and keep_if_over is not None and self.total > keep_if_over:
                self._open_spill()
            return CommandOutput(
                bytes(self._head),
                b"".join(self._tail),
                self.total,
                self.saved,
                capped=self.is_capped,
                breaks=self._breaks,
            )

    @property
    def is_capped(self) -> bool:
        """Whether the file holds only the first part."""
        return 0 < self._spilled < self.total

    def read(self, start: int, stop: int) -> bytes:
        """What is still known of the bytes from `start` to `stop`; shorter at its end where some are lost."""
        with self._lock:
            return self._read_known(start, stop)

    def _read_known(self, start: int, stop: int) -> bytes:
        stop = min(stop, self.total)
        if start >= stop:
            return b""
        held = len(self._head)
        tail_start = self.total - self._tail_size
        if start >= tail_start:
            return b"".join(self._tail)[start - tail_start : stop - tail_start]
        if tail_start == held:
            return (bytes(self._head) + b"".join(self._tail))[start:stop]
        if stop <= held:
            return bytes(self._head[start:stop])
        if self._descriptor < 0:
            return bytes(self._head[start:])
        return os.pread(self._descriptor, stop - start, start)

    @property
    def first_lost(self) -> int | None:
        """Where the bytes begin that are neither saved nor at the end; `None` where all are known."""
        tail_start = self.total - self._tail_size
        known = max(len(self._head), self._spilled)
        return known if known < tail_start else None

    @property
    def tail_start(self) -> int:
        return self.total - self._tail_size

    def close(self) -> None:
        """Frees what it holds. The file stays."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
            self._descriptor = -1
            self._head.clear()
            self._tail.clear()
            self._tail_size = 0

    def _open_spill(self) -> None:
        """Once. Where no file can be made, the middle is lost, but not the end."""
        make, self._make_spill = self._make_spill, None
        if make is None:
            return
        try:
            self.saved, self._descriptor = make()
        except OSError:
            return
        for part in (self._head, *self._tail):
            self._spill(part)

    def _spill(self, part: bytes | bytearray | memoryview) -> None:
        room = self._cap - self._spilled
        if room <= 0:
            return
        try:
            self._spilled += os.write(self._descriptor, part[:room] if len(part) > room else part)
        except OSError:  # a full disk: what is there stays, and the cap is where it ended
            self._cap = self._spilled


def within(head: bytes, tail: bytes, total: int, limit: int, keep: Keep = "both", breaks: int = 0) -> str:
    """The text of both ends of `total` bytes, or of one, `limit` characters of it or a little more.

    `breaks` are the line breaks in all of it: lines that are left out are named by their numbers.

    >>> print(within(b"one\\ntwo\\nthree\\n", b"", 14, 6, "tail", 3))
    [… lines 1-2 left out …]
    <BLANKLINE>
    three
    <BLANKLINE>
    """
    before = {"head": limit, "both": limit // 2, "tail": 0}[keep]
    after = {"head": 0, "both": limit // 2, "tail": limit}[keep]
    is_whole = len(head) + len(tail) == total
    beginning = clean_output((head + tail).decode("utf-8", "replace") if is_whole else decode_output(head))
    if is_whole and len(beginning) <= limit:
        return beginning
    end = beginning if is_whole else clean_output(decode_output(tail))
    first, cut = beginning[:before], max(0, len(end) - after)
    first = first[: first.rfind("\n") + 1] or first
    if cut and end[cut - 1] != "\n":  # in the middle of a line, so it begins with the next one, if there is one
        cut = end.find("\n", cut, len(end) - 1) + 1 or cut
    last = end[cut:]
    begins_a_line = not last or not cut or end[cut - 1] == "\n"
    if breaks and begins_a_line and (not first or first.endswith("\n")):
        top, bottom = first.count("\n") + 1, breaks - last.count("\n")
        dropped = f"line {top}" if top == bottom else f"lines {top}-{bottom}"
    elif is_whole:
        dropped = f"{len(beginning) - len(first) - len(last):,} characters"
    else:
        dropped = f"about {total - len(first.encode()) - len(last.encode()):,} bytes"
    return "\n\n".join(part for part in (first.rstrip(), f"[… {dropped} left out …]", last) if part)


def decode_output(content: bytes) -> str:
    """UTF-8, with a mark for what is not; a character cut in two at either end is left out.

    >>> decode_output("é!".encode()[1:]), decode_output("aé".encode()[:-1])
    ('!', 'a')
    """
    start = next((index for index, byte in enumerate(content[:3]) if byte & 0xC0 != 0x80), min(3, len(content)))
    end = len(content)
    for back in range(1, min(4, end - start) + 1):
        byte = content[end - back]
        if byte & 0xC0 != 0x80:
            wanted = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            end -= back if wanted > back else 0
            break
    return content[start:end].decode("utf-8", "replace")
