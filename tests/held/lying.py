"""Analyses that lie."""

from __future__ import annotations

from ferrule.bash_analysis.analysis import Analyse, Analysis
from ferrule.core.effects import Change, Effects, ReadsPath, Touch, WritesPath


def declaring_read(path: str) -> Analyse:
    """Every command only reads this."""
    return _always(ReadsPath(path))


def declaring_write(path: str) -> Analyse:
    """Every command only writes this."""
    return _always(WritesPath(path, Change.REPLACES))


def _always(touch: Touch) -> Analyse:
    def lie(command: str, /, *, cwd: str, home: str) -> Analysis:
        return Analysis(Effects.of(touch), (), (), ())

    return lie
