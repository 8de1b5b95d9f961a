"""The only way for files to reach the model without a call of Read: instructions, what they import, skills, agents.

A file behind it is judged as Read would be, by the session's own rules. What
is denied stays out. So does what a person would be asked about, since nobody
was: a secret, or what an ask rule names. Where a project's files may lead to
is up to whoever reads them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ..core.calls import ToolCall, ToolOutcome
from ..core.content import View
from ..core.context import Facts, ToolContext
from ..core.effects import Effects
from ..core.ports import Proposal
from ..core.state import SessionState
from ..core.tool import Alias, Tool, ToolError
from ..core.verdicts import Behavior, Verdict
from ..engine.footprint import ground
from ..host.files.local_paths import LocalPaths
from .live_rules import LiveRules, Policy
from .path_patterns import Places
from .protected import DEFAULT_LISTS, PathLists

_CALL: Final = "reading without a call"


class ReadingDoor:
    """Satisfies `core.ports.Door`. Changed rules apply; `follow` applies those granted in a session too."""

    def __init__(
        self, policy: Callable[[], Policy], cwd: str, added: Iterable[str] = (), lists: PathLists = DEFAULT_LISTS
    ) -> None:
        """`added` are the directories besides `cwd`."""
        self._policy = policy
        self._lists = lists
        self._paths = LocalPaths()
        self._cwd = self._paths.anchor(cwd, os.getcwd())
        self._added = tuple(self._paths.anchor(folder, self._cwd) for folder in added)
        self._rules = self._rules_with(SessionState(self._cwd, added_directories=self._added))

    def follow(self, state: SessionState) -> None:
        self._rules = self._rules_with(state)

    def objection(self, path: str, /) -> str | None:
        verdict = self._rules.judge(self._proposal(path))
        if not isinstance(verdict, Verdict) or verdict.behavior is Behavior.ALLOW or verdict.source == "mode":
            return None
        return verdict.reason if verdict.behavior is Behavior.DENY else f"{verdict.reason}, and nobody was asked"

    def _proposal(self, path: str) -> Proposal:
        effects = ground(Effects.reading(path), self._paths)
        ctx = ToolContext(_CALL, self._cwd, Facts(workspace=self._cwd, added_directories=self._added), NoCall(effects))
        arguments = {"file_path": path}
        return Proposal(ToolCall(_CALL, _Read.name, arguments), _Read(), None, arguments, effects, ctx)

    def _rules_with(self, state: SessionState) -> LiveRules:
        home = self._paths.anchor("~", self._cwd)
        places = Places.resolve(self._paths, cwd=self._cwd, home=home, roots=(self._cwd, *self._added))
        return LiveRules(self._policy, places, state, lists=self._lists)


class _Read(Tool[Any, Any]):
    """Read, as rules know it."""

    name = "Read"
    aliases = (Alias("read_file"), Alias("FileRead"))

    async def call(self, input: Any, ctx: ToolContext) -> Any:
        raise ToolError("Nothing is read by this call.")


class NoCall:
    """The engine's end of a call that is judged and never made."""

    kept: Any = None
    cancelled = False
    verdict: Verdict | None = None
    place: Any = None

    def __init__(self, effects: Effects | None = None) -> None:
        self.effects = effects

    def report(self, view: View, /) -> None:
        """Nobody watches."""

    async def invoke(self, name: str, arguments: Mapping[str, Any], /) -> ToolOutcome:
        raise ToolError("No call is made by this one.")
