"""What a search is asked for, and what it found."""

from __future__ import annotations

from typing import Protocol

from ...core.values import named_value, plain_value
from ...text.lines import on_one_line
from .matched_lines import MatchedLine
from .ripgrep import RipgrepEnding


class Secrets(Protocol):
    """Which files nobody reads in passing."""

    def hides(self, path: str, /) -> bool: ...

    def is_named_by(self, path: str, glob: str, /) -> bool:
        """Whether a search of this place, with this glob, names one, so that somebody was asked about it."""
        ...


@named_value
class SearchPlace:
    """Where to look: a folder, or one file."""

    path: str
    glob: str | None = None
    file_type: str | None = None
    include_ignored: bool = False
    judged: str | None = None
    """Where the path led when somebody decided about it; if it leads elsewhere by now, nothing is searched."""


@named_value
class Query:
    """What to look for."""

    pattern: str
    ignore_case: bool = False
    multiline: bool = False
    only_matching: bool = False
    before: int = 0
    after: int = 0


@plain_value
class LeftOut:
    """Files that may be secrets, and were passed over."""

    names: tuple[str, ...] = ()
    """A few of them, relative to the searched folder."""
    total: int = 0
    changed: bool = False
    """Whether lines were left out that are not in their files any more."""

    def notes(self) -> tuple[str, ...]:
        more = f" and {self.total - len(self.names):,} more" if self.total > len(self.names) else ""
        secret = f"left out: {', '.join(map(on_one_line, self.names))}{more}"
        changed = "Files that changed while they were searched were left out. Search again to see them."
        return (secret,) * bool(self.names) + (changed,) * self.changed


@plain_value
class FileHit:
    path: str
    count: int = 1


@plain_value
class FileHits:
    """The newest files first; `total` and `matches` are true for all that was searched."""

    hits: tuple[FileHit, ...]
    total: int
    matches: int
    ending: RipgrepEnding
    left_out: LeftOut


@plain_value
class LineHits:
    lines: tuple[MatchedLine, ...]
    """With absolute paths, in the order of these."""
    seen: int
    """All matching lines, if the search ran to its end; otherwise there are at least that many."""
    ending: RipgrepEnding
    left_out: LeftOut
    total: int | None = None
    """How many there are, where that could be counted though not all were looked at."""
