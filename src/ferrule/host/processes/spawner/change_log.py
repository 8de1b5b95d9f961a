"""What a supervised command changed and was refused, for the answer: the first paths of each kind, and how many."""

from __future__ import annotations

import os
from itertools import islice

from .protocol import MOST_CHANGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .protocol import Changed

MOST_REMEMBERED = 100_000
"""Distinct paths that are remembered; beyond them a repeated path is counted again."""


class ChangeLog:
    def __init__(self) -> None:
        self._done: dict[bytes, None] = {}
        self._refused: dict[bytes, None] = {}
        self._failed: list[tuple[str, str]] = []
        self._totals = {"done": 0, "dropped": 0, "failed": 0, "refused": 0}

    def note_done(self, path: bytes) -> None:
        self._count("done", self._done, path)

    def note_refused(self, path: bytes) -> None:
        self._count("refused", self._refused, path)

    def note_failed(self, path: bytes, why: str) -> None:
        self._totals["failed"] += 1
        if len(self._failed) < MOST_CHANGES:
            self._failed.append((os.fsdecode(path), why))

    def as_changed(self) -> Changed:
        return {
            "done": _first(self._done),
            "dropped": [],
            "failed": list(self._failed),
            "refused": _first(self._refused),
            "totals": dict(self._totals),
        }

    def _count(self, kind: str, paths: dict[bytes, None], path: bytes) -> None:
        if not path or path in paths:
            return
        self._totals[kind] += 1
        if len(paths) < MOST_REMEMBERED:
            paths[path] = None


def _first(paths: dict[bytes, None]) -> list[str]:
    return [os.fsdecode(path) for path in islice(paths, MOST_CHANGES)]
