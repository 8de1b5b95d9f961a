"""PermissionDenied hooks: told of the calls that a classifier refuses, and able to say that one may be tried again."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

from ..core.ports import Judge, Opinion, Proposal
from ..core.verdicts import Behavior, Verdict
from .payloads import SessionFacts, of_call
from .runner import Runner


class HookDenied:
    """A judge that says what another one does."""

    def __init__(self, runner: Runner, scene: SessionFacts, judge: Judge) -> None:
        self._runner = runner
        self._scene = scene
        self._judge = judge

    def judge(self, proposal: Proposal, /) -> Opinion | Awaitable[Opinion]:
        opinion = self._judge.judge(proposal)
        return None if opinion is None else self._tell(proposal, opinion)

    async def _tell(self, proposal: Proposal, opinion: Verdict | Awaitable[Opinion]) -> Opinion:
        verdict = opinion if isinstance(opinion, Verdict) else await opinion
        if verdict is None or verdict.behavior is not Behavior.DENY:
            return verdict
        hooks = self._runner.choose("PermissionDenied", proposal.tool.name, proposal)
        if not hooks:
            return verdict
        payload = of_call(self._scene, "PermissionDenied", proposal) | {"reason": verdict.reason}
        for answer in await self._runner.ask(hooks, payload):
            if answer.special.get("retry") is True:
                return replace(verdict, reason=f"{verdict.reason}. {answer.hook.label} says: you may try it again")
        return verdict
