"""The only way for files to reach the model without a call of Read: instructions, what they import, skills, agents.

A file behind it is judged as Read would be, by the session's own rules. What
is denied stays out. So does what a person would be asked about, since nobody
was: a secret, or what an ask rule names. Where a project's files may lead to
is up to whoever reads them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
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
from ..permissions.path_patterns import Places
from .live_rules import LiveRules, Policy
from .session_settings import Settings

_CALL: Final = "reading without a call"


class ReadingDoor:
    """Satisfies `core.ports.Door`. Changed rules apply; `follow` applies those granted in a session too."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._paths = LocalPaths()
        self._cwd = self._paths.anchor(settings.cwd, os.getcwd())
        self._added = tuple(self._paths.anchor(folder, self._cwd) for folder in settings.added_directories)
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
        ctx = ToolContext(_CALL, self._cwd, Facts(workspace=self._cwd, added_directories=self._added), _NoCall(effects))
        arguments = {"file_path": path}
        return Proposal(ToolCall(_CALL, _Read.name, arguments), _Read(), None, arguments, effects, ctx)

    def _rules_with(self, state: SessionState) -> LiveRules:
        settings = self._settings
        policy = Policy(settings.rules, settings.mode, hooks=settings.hooks)
        forms = dict.fromkeys(
            form for folder in (self._cwd, *self._added) for form in (folder, self._paths.resolve(folder)[0])
        )
        home = self._paths.anchor("~", self._cwd)
        places = Places(
            cwd=tuple(dict.fromkeys((self._cwd, self._paths.resolve(self._cwd)[0]))),
            home=tuple(dict.fromkeys((home, self._paths.resolve(home)[0]))),
            roots=tuple(forms),
        )
        return LiveRules(settings.reload or (lambda: policy), places, state, lists=settings.path_lists)


class _Read(Tool[Any, Any]):
    """Read, as rules know it."""

    name = "Read"
    aliases = (Alias("read_file"), Alias("FileRead"))

    async def call(self, input: Any, ctx: ToolContext) -> Any:
        raise ToolError("Nothing is read by this call.")


class _NoCall:
    """The engine's end of a call that is judged and never made."""

    kept: Any = None
    cancelled = False
    verdict: Verdict | None = None
    place: Any = None

    def __init__(self, effects: Effects) -> None:
        self.effects: Effects | None = effects

    def report(self, view: View, /) -> None:
        """Nobody watches."""

    async def invoke(self, name: str, arguments: Mapping[str, Any], /) -> ToolOutcome:
        raise ToolError("No call is made by this one.")
