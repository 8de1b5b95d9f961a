"""Short ways to ask the analysis."""

from __future__ import annotations

from ferrule.bash_analysis.analysis import Analysis, analyse
from ferrule.core.effects import Touch

CWD = "/srv/repo"
HOME = "/home/u"


def look(command: str, **variables: str) -> Analysis:
    return analyse(command, cwd=CWD, home=HOME, variables=variables)


def reads(command: str) -> list[str]:
    return [touch.path for touch in look(command).effects.reads]


def writes(command: str) -> list[tuple[str, str]]:
    return [(str(touch.change), touch.path) for touch in look(command).effects.writes]


def runs(command: str) -> list[str]:
    return [" ".join(touch.argv) for touch in look(command).effects.commands]


def is_read_only(command: str) -> bool:
    return look(command).effects.read_only


def touches(command: str) -> tuple[Touch, ...]:
    return look(command).effects.touches
