"""How many agents there may be, and how deep they may be nested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..core.values import named_value

DEPTH_VARIABLES: Final = ("FERRULE_MAX_AGENT_DEPTH", "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH")
COUNT_VARIABLE: Final = "FERRULE_MAX_AGENTS"
TURNS_VARIABLE: Final = "FERRULE_MAX_AGENT_TURNS"
WAIT_VARIABLES: Final = ("FERRULE_BACKGROUND_WAIT_MS", "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS")


@named_value
class Caps:
    depth: int = 3
    at_once: int = 20
    turns: int = 200
    """Messages of one agent, where its kind does not say."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Caps:
        """A bad or zero value means the default.

        >>> Caps.from_environment({"FERRULE_MAX_AGENTS": "40"}).at_once
        40
        """
        usual = cls()
        return cls(
            depth=_first(environment, DEPTH_VARIABLES, usual.depth),
            at_once=_first(environment, (COUNT_VARIABLE,), usual.at_once),
            turns=_first(environment, (TURNS_VARIABLE,), usual.turns),
        )


def _first(environment: Mapping[str, str], names: tuple[str, ...], usual: int) -> int:
    text = next((environment[name].strip() for name in names if name in environment), "")
    return int(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 5 and int(text) else usual


def report_wait(environment: Mapping[str, str], usual: float = 600.0) -> float:
    """Seconds that a run whose model is done waits for the next agent in the background; zero for not at all.

    >>> report_wait({"FERRULE_BACKGROUND_WAIT_MS": "1500"}), report_wait({})
    (1.5, 600.0)
    """
    text = next((environment[name].strip() for name in WAIT_VARIABLES if name in environment), "")
    return int(text) / 1000 if text.isascii() and text.isdecimal() and len(text) < 12 else usual
