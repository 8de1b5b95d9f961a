"""What an agent has seen of each file, and whether it is still there.

Content decides and time does not: a file that was only touched is as it was
seen, and one that changed within the same tick of the clock is not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from ...core.values import plain_value
from ...text.diffs import CONTEXT, LINE_CHARS, unified_diff
from ...text.lines import LF, LineView, content, count_lines, line_end, split_lines
from ...text.matching import TextEdit
from .open_files import FileIdentity, FileSnapshot, digest_of
from .text_store import Shelved, TextStore

KEPT_IN_MEMORY = 1 << 20
"""Characters of one file that are kept in memory; what is beyond is kept on disk."""
MOST_PARTS = 1_000
"""Places of one file; of a file seen in more places the first ones are forgotten."""
MOST_CALLS = 500
"""Calls whose files are remembered, in case their results are cut."""
MOST_COMMANDS = 100
"""Commands whose times are remembered."""
TICK = 0.02
"""Seconds by which the clock that stamps files may be behind, with a margin."""
MOST_COMPARED = 8 << 20
"""Characters of a file that is compared with what was seen of it, to say what else changed."""
WHAT_CHANGED = 60
"""Lines of a diff that say what else changed."""


class NotSeen(Exception):
    """The agent does not know what it is about to replace. The message says why and what to do."""


@plain_value
class Stamp:
    """What a look at the file's entry can tell."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)


@plain_value
class SeenLines:
    """Some lines as they were seen, without their endings."""

    first: int
    count: int
    digest: str
    content: Shelved

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    def stands_in(self, lines: LineView) -> bool:
        """Whether the lines of a file hold it where it was."""
        return self.last <= lines.total and _digest(lines.some(self.first, self.last)) == self.digest


@plain_value
class WholeFile:
    """All of the file, as it was seen or written."""

    digest: str
    content: Shelved | None
    """`None` for what is not text."""


@plain_value
class Seen:
    """What is known of one file."""

    stamp: Stamp
    at: float
    """When it was last seen or written, in seconds since 1970."""
    count: int
    """How often it was looked at."""
    whole: WholeFile | None = None
    parts: tuple[SeenLines, ...] = ()
    kept: int = 0
    """Characters of it in memory."""


@plain_value
class Knowledge:
    """What is known of a file, beside the file as it is now."""

    everything: bool
    """Each line of the file was seen, and every line seen is still there."""
    changed: bool
    """Something that was seen is not there any more."""


@plain_value
class CommandRun:
    """When a command of the agent's own ran that may have changed files, in seconds since 1970."""

    started: float
    ended: float


class Ledger:
    """One agent's. Files go by their real paths."""

    def __init__(self, shelf: TextStore) -> None:
        self._shelf = shelf
        self._seen: dict[str, Seen] = {}
        self._calls: dict[str, set[str]] = {}
        self._shown: dict[tuple[str, str], tuple[str, str]] = {}
        self._messages: dict[str, object] = {}
        self._reminder_in = ""
        self._reported: dict[str, str] = {}
        self._commands: list[CommandRun] = []

    def __iter__(self) -> Iterator[str]:
        """The real paths of all files that were seen."""
        return iter(tuple(self._seen))

    def seen(self, real_path: str) -> Seen | None:
        return self._seen.get(real_path)

    def forget(self, real_path: str) -> None:
        self._seen.pop(real_path, None)
        self._reported.pop(real_path, None)
        self._forget_forms(real_path)

    # Seeing

    def note_shown(self, call_id: str, real_path: str) -> None:
        """The result of this call shows some of the file; see `not_shown`."""
        self._calls.setdefault(call_id, set()).add(real_path)
        while len(self._calls) > MOST_CALLS:
            del self._calls[next(iter(self._calls))]

    def not_shown(self, call_id: str) -> None:
        """What the call gave was cut before the model got it, so nobody knows what was seen: forget it."""
        for real_path in self._calls.pop(call_id, ()):
            self.forget(real_path)
        self._keep_reminder(call_id != self._reminder_in)

    def keep_only(self, call_ids: Collection[str]) -> None:
        """Only the results of these calls can still be read: forget each file of which any other showed something."""
        shown = {path for id, paths in self._calls.items() if id in call_ids for path in paths}
        gone = {path for id, paths in self._calls.items() if id not in call_ids for path in paths}
        for real_path in (*self,):
            if real_path in gone or real_path not in shown:
                self.forget(real_path)
        self._calls = {id: paths for id, paths in self._calls.items() if id in call_ids}
        self._keep_reminder(self._reminder_in in call_ids)

    def saw_whole(self, identity: FileIdentity, text: str | None) -> None:
        """All of the file was shown; `text` is `None` for what is not text."""
        known = self._seen.get(identity.real_path)
        stamp = Stamp(identity.size, identity.mtime_ns, identity.inode)
        if known and known.whole and known.whole.digest == identity.digest:
            self._seen[identity.real_path] = replace(known, stamp=stamp, at=time.time(), count=known.count + 1)
            return
        content, kept = (None, 0) if text is None else self._keep(text, 0)
        count = known.count + 1 if known else 1
        self._seen[identity.real_path] = Seen(stamp, time.time(), count, WholeFile(identity.digest, content), (), kept)

    def saw_lines(self, real_path: str, stamp: Stamp, *, first: int, lines: Sequence[str]) -> None:
        """Some lines were shown, given here without their endings.

        A file that was seen before keeps its older stamp: what else was seen of it may have changed since.
        """
        known = self._seen.get(real_path) or Seen(stamp, 0.0, 0)
        if known.whole and known.stamp != stamp and lines:
            known = self._without_whole(known, known.whole, first, lines)
        added, kept = list[SeenLines](), known.kept
        if lines and not known.whole and not any(_same(part, first, lines) for part in known.parts):
            content, kept = self._keep(LF.join(lines), known.kept)
            added = [SeenLines(first, len(lines), _digest(lines), content)]
        earlier = [part for part in known.parts if not (added and _covers(added[0], part))]
        parts = (*earlier, *added)[-MOST_PARTS:]
        known = replace(known, count=known.count + 1, parts=parts, kept=kept)
        if known.count == 1 or known.stamp == stamp:
            known = replace(known, stamp=stamp, at=time.time())
        self._seen[real_path] = known

    def wrote(self, identity: FileIdentity, text: str | None) -> None:
        """The agent wrote all of the file itself, or changed some of a file it knew."""
        self._forget_forms(identity.real_path)
        known = self._seen.pop(identity.real_path, None)
        self.saw_whole(identity, text)
        if known:
            self._seen[identity.real_path] = replace(self._seen[identity.real_path], count=known.count)

    def note_edit(self, before: FileSnapshot, edits: Sequence[TextEdit], after: FileSnapshot) -> None:
        """The agent changed a file that it knew in part: it knows the same parts where they are now, and its change."""
        real_path = after.identity.real_path
        known = self._seen.pop(real_path, None)
        self._forget_forms(real_path)
        parts = known.parts if known else ()
        old = LineView(before.document.text)
        stood = [(part.first, part.last) for part in parts if part.stands_in(old)]
        stamp = Stamp(after.identity.size, after.identity.mtime_ns, after.identity.inode)
        moved, changed = _move_lines(stood, before.document.text, edits, count_lines(after.document.text))
        new = LineView(after.document.text)
        self.saw_lines(real_path, stamp, first=1, lines=())
        shown = [lines for lines in changed if all(len(line) <= LINE_CHARS for line in new.some(*lines))]
        for first, last in (*moved, *shown):
            self.saw_lines(real_path, stamp, first=first, lines=new.some(first, last))
        if known:
            self._seen[real_path] = replace(self._seen[real_path], count=known.count)

    # Knowing

    def knows(self, now: FileSnapshot) -> Knowledge | None:
        """`None` for a file that was never seen."""
        seen = self._seen.get(now.identity.real_path)
        if seen is None:
            return None
        if seen.whole:
            same = seen.whole.digest == now.identity.digest
            return Knowledge(everything=same, changed=not same)
        lines = LineView(now.document.text)
        standing = [part for part in seen.parts if part.stands_in(lines)]
        return Knowledge(
            everything=_cover(standing, lines.total),
            changed=len(standing) < len(seen.parts),
        )

    def check_whole(self, path: str, now: FileSnapshot) -> None:
        """Raises `NotSeen` unless all of the file was seen as it is now."""
        knowledge = self.knows(now)
        if knowledge is None:
            raise NotSeen(f"{path} has not been read yet. Read it first.")
        if knowledge.changed:
            raise NotSeen(f"{path} {self.since(now.identity)}. Read it again, then decide what to write.")
        if not knowledge.everything:
            raise NotSeen(f"{path} has been read only in part. Read the rest of it first.")

    def since(self, now: FileIdentity) -> str:
        """When it was seen and when it changed, for a file that did."""
        seen, modified = _clock(self._seen[now.real_path].at), _clock(now.mtime_ns / 1e9)
        return f"was last seen at {seen} and has changed since (modified at {modified})"

    def diff_since_seen(self, path: str, now: FileSnapshot, *, limit: int = WHAT_CHANGED) -> str:
        """A diff from what was seen to the current text; empty where what was seen could not be kept.

        Also for a very large file, which would have to be taken apart for it.
        """
        seen = self._seen.get(now.identity.real_path)
        if seen is None or len(now.document.text) > MOST_COMPARED:
            return ""
        if seen.whole:
            before = self._shelf.get(seen.whole.content) if seen.whole.content is not None else None
            return "" if before is None else unified_diff(before, now.document.text, path, limit=limit, show_cr=True)
        view = LineView(now.document.text)
        lines = view.some(1, _last(seen.parts) + CONTEXT)
        before_lines = list(lines)
        for part in seen.parts:
            text = self._shelf.get(part.content)
            if text is not None and not part.stands_in(view):
                before_lines[part.first - 1 : part.last] = text.split(LF)
        return unified_diff(_join(before_lines), _join(lines), path, limit=limit)

    # Showing the same again

    def note_form(self, real_path: str, form: str, version: str, call_id: str, message: object = None) -> None:
        """A result showed this form (which lines, which pages) of this version of the file.

        `message` is the same object for all calls of one message.
        """
        self._shown[real_path, form] = (version, call_id)
        if message is not None:
            self._messages = {id: one for id, one in self._messages.items() if one is message}
            self._messages[call_id] = message
        self.note_shown(call_id, real_path)

    def is_of_message(self, call_id: str, message: object) -> bool:
        """Whether that call is one of this message, so that its result will be beside this one's."""
        return self._messages.get(call_id) is message

    def take_reminder(self, call_id: str) -> bool:
        """Whether the result of this call is the one that has the reminder, of all that can still be read."""
        self._reminder_in = self._reminder_in or call_id
        return self._reminder_in == call_id

    # Whose change it was, and who was told

    def note_command(self, started: float, ended: float) -> None:
        """A command of this agent ran that may have changed files."""
        self._commands = [*self._commands[1 - MOST_COMMANDS :], CommandRun(started - TICK, ended)]

    def changed_by_command(self, changed: float) -> bool:
        """Whether a command of this agent ran when a file was changed."""
        return any(run.started <= changed <= run.ended for run in self._commands)

    def note_reported(self, real_path: str, version: str) -> None:
        """The agent was shown how this version of the file differs from what it had seen."""
        self._reported[real_path] = version

    def was_reported(self, real_path: str, version: str) -> bool:
        return self._reported.get(real_path) == version

    def _keep_reminder(self, is_there: bool) -> None:
        self._reminder_in = self._reminder_in if is_there else ""

    def stand(self, real_path: str, first: int, lines: Sequence[str]) -> bool:
        """Whether these lines of a file, given from `first` on, hold every part of it that was seen among them."""
        seen = self._seen.get(real_path)
        return all(
            _digest(lines[part.first - first : part.last - first + 1]) == part.digest
            for part in (seen.parts if seen else ())
            if first <= part.first and part.last < first + len(lines)
        )

    def call_that_showed(self, real_path: str, form: str, version: str) -> str | None:
        """The call that showed the very same, if the agent has not changed the file since."""
        shown, call_id = self._shown.get((real_path, form), ("", ""))
        return call_id if shown == version and call_id else None

    def _forget_forms(self, real_path: str) -> None:
        for key in [key for key in self._shown if key[0] == real_path]:
            del self._shown[key]

    def _without_whole(self, known: Seen, whole: WholeFile, first: int, lines: Sequence[str]) -> Seen:
        """The file may be another by now: what was known of all of it is kept as parts, but for these lines.

        So a change in one of the other lines is still seen as one.
        """
        before = self._shelf.get(whole.content) if whole.content is not None else None
        old = lines_of(before) if before is not None else []
        if old[first - 1 : first - 1 + len(lines)] == list(lines):
            return known
        around = ((1, old[: first - 1]), (first + len(lines), old[first - 1 + len(lines) :]))
        parts, kept = list[SeenLines](), 0
        for start, some in around:
            if some:
                content, kept = self._keep(LF.join(some), kept)
                parts.append(SeenLines(start, len(some), _digest(some), content))
        return replace(known, whole=None, parts=tuple(parts), kept=kept)

    def _keep(self, text: str, kept: int) -> tuple[Shelved, int]:
        if kept + len(text) <= KEPT_IN_MEMORY:
            return text, kept + len(text)
        return self._shelf.put(text), kept


@plain_value
class Ledgers:
    """A session's: one ledger for each agent in it."""

    shelf: TextStore = field(default_factory=TextStore)
    _by_agent: dict[str, Ledger] = field(default_factory=dict[str, Ledger])

    def of(self, agent: str) -> Ledger:
        return self._by_agent.setdefault(agent, Ledger(self.shelf))


def _last(parts: Iterable[SeenLines]) -> int:
    return max((part.last for part in parts), default=0)


def lines_of(text: str) -> list[str]:
    """The lines as they are shown: numbered from 1, without their endings."""
    return [content(line) for line in split_lines(text)]


def _digest(lines: Iterable[str]) -> str:
    return digest_of(LF.join(lines).encode("utf-8", "surrogatepass"))


def _same(part: SeenLines, first: int, lines: Sequence[str]) -> bool:
    return part.first == first and part.count == len(lines) and part.digest == _digest(lines)


def _covers(new: SeenLines, old: SeenLines) -> bool:
    return new.first <= old.first and old.last <= new.last


def _cover(parts: Iterable[SeenLines], total: int) -> bool:
    reached = 0
    for part in sorted(parts, key=lambda part: part.first):
        if part.first > reached + 1:
            break
        reached = max(reached, part.last)
    return reached >= total


Lines: TypeAlias = tuple[int, int]
"""The first and the last of some lines."""


def _move_lines(
    stood: Sequence[Lines], text: str, edits: Sequence[TextEdit], total: int
) -> tuple[list[Lines], list[Lines]]:
    """What was known before the edits, where it is after them; and the lines that they replaced as a whole."""
    end = line_end(text)
    known, changed = list(stood), list[Lines]()
    shift = 0
    for edit in edits:
        top = text.count(end, 0, edit.start) + 1 + shift
        bottom = top + text.count(end, edit.start, edit.end)
        new_bottom = top + edit.new.count(end)
        known = [piece for first, last in known for piece in _around(first, last, top, bottom, new_bottom - bottom)]
        starts_line = edit.start == 0 or text.startswith(end, edit.start - len(end))
        ends_line = edit.end == len(text) or text.startswith(end, edit.end)
        changed.append((top if starts_line else top + 1, new_bottom if ends_line else new_bottom - 1))
        shift += new_bottom - bottom
    return _within(known, total), _within(changed, total)


def _within(lines: Iterable[Lines], total: int) -> list[Lines]:
    return [(first, min(last, total)) for first, last in sorted(lines) if first <= min(last, total)]


def _around(first: int, last: int, top: int, bottom: int, shift: int) -> Iterator[tuple[int, int]]:
    """What an edit of the lines `top` to `bottom` leaves of a known range."""
    if last < top:
        yield first, last
    elif first > bottom:
        yield first + shift, last + shift
    elif first <= top and bottom <= last:
        yield first, last + shift
    elif first < top:
        yield first, top - 1
    elif last > bottom:
        yield bottom + 1 + shift, last + shift


def _join(lines: Sequence[str]) -> str:
    return "".join(line + LF for line in lines)


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))
