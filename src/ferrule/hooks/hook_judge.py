"""PreToolUse hooks as one judge.

A hook's allow applies if nothing else decides; a rule that denies or
asks is stricter and wins. Input that a hook changed is judged as changed, by
the rules and by all other hooks, but not by the hook that wrote it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ..core.calls import ToolCall
from ..core.ports import Judge, Note, Opinion, Proposal
from ..core.verdicts import Behavior, Verdict
from .hook import Hook
from .payloads import SessionFacts, of_call
from .runner import Runner

if TYPE_CHECKING:
    from .reply_parsing import HookAnswer, Permission


MOST: Final = 1_000
"""Calls that are remembered: the end of a refused call is not reported."""


@dataclass(slots=True)
class Remembered:
    call: ToolCall
    agent: str
    rewrote: list[HookAnswer] = field(default_factory=list["HookAnswer"])
    """Answers of hooks whose input is being judged: they are not asked about what they wrote themselves."""
    context: list[str] = field(default_factory=list[str])
    """For the model, with the result of the call, or after it was refused."""


class CallMemory:
    """By call. The same id may appear again in another message and is a different call there.

    Satisfies `core.ports.NoteSource`: what hooks added to a call that was refused has no result to stand with.
    """

    def __init__(self) -> None:
        self._calls: dict[str, Remembered] = {}

    def of(self, call: ToolCall) -> Remembered | None:
        known = self._calls.get(call.id)
        return known if known is not None and known.call is call else None

    def create(self, call: ToolCall, agent: str) -> Remembered:
        known = self.of(call)
        if known is None:
            if len(self._calls) >= MOST:
                del self._calls[next(iter(self._calls))]
            known = self._calls[call.id] = Remembered(call, agent)
        return known

    async def notes(self, agent: str, /) -> tuple[Note, ...]:
        """Before an agent's next message all of its calls are over, so what is left was refused."""
        left = [known for known in self._calls.values() if known.agent == agent]
        for known in left:
            del self._calls[known.call.id]
        return tuple(Note("hook", text) for known in left for text in known.context)

    def take(self, call: ToolCall) -> Remembered | None:
        known = self.of(call)
        if known is not None:
            del self._calls[call.id]
        return known


class HookDenied:
    """A judge that repeats another one's verdict."""

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


class HookJudge:
    """Answers immediately if all hooks do."""

    def __init__(self, runner: Runner, scene: SessionFacts, memory: CallMemory) -> None:
        self._runner = runner
        self._scene = scene
        self._memory = memory

    def without_agents(self) -> HookJudge:
        """For the calls of an agent that is itself a hook."""
        return HookJudge(self._runner.without_agents(), self._scene, self._memory)

    def judge(self, proposal: Proposal, /) -> Opinion | Awaitable[Opinion]:
        hooks = self._runner.choose("PreToolUse", proposal.tool.name, proposal)
        if not hooks:
            return None
        known = self._memory.of(proposal.call)
        kept = known.rewrote if known is not None else ()
        fresh = [hook for hook in hooks if all(hook.work != answer.hook.work for answer in kept)]
        payload = of_call(self._scene, "PreToolUse", proposal)
        answers = self._runner.at_once(fresh, payload)
        if answers is not None:
            return self._verdict(proposal, kept, answers)
        return self._later(proposal, kept, fresh, payload)

    async def _later(
        self, proposal: Proposal, kept: Sequence[HookAnswer], fresh: Sequence[Hook], payload: dict[str, object]
    ) -> Opinion:
        return self._verdict(proposal, kept, await self._runner.ask(fresh, payload))

    def _verdict(self, proposal: Proposal, kept: Sequence[HookAnswer], fresh: Sequence[HookAnswer]) -> Opinion:
        answers = (*kept, *fresh)
        refused = refusal_of(answers)
        if refused is not None:
            return refused
        context = [f"{answer.hook.label}: {answer.context}" for answer in fresh if answer.context]
        if context:
            self._memory.create(proposal.call, proposal.ctx.facts.agent).context += context
        return self._rewrite(proposal, fresh) or consent_of(answers)

    def _rewrite(self, proposal: Proposal, fresh: Sequence[HookAnswer]) -> Verdict | None:
        """The last hook that changes the input wins; the others are asked again about its version."""
        wanting = [one for one in fresh if one.changed_input not in (None, proposal.arguments)]
        for answer in wanting:
            if not answer.hook.may_change_input:
                reason = f"{answer.hook.label} changed the input, and only managed hooks may do that"
                return Verdict(behavior=Behavior.ASK, source="hook", reason=reason, origin=answer.hook.origin)
        if not wanting:
            return None
        last = wanting[-1]
        self._memory.create(proposal.call, proposal.ctx.facts.agent).rewrote.append(last)
        return Verdict(
            behavior=Behavior.ASK,  # nobody is asked about an input that is being replaced
            source="hook",
            reason=f"{last.hook.label} changed the input",
            origin=last.hook.origin,
            updated_arguments=last.changed_input,
        )


def refusal_of(answers: Sequence[HookAnswer]) -> Verdict | None:
    return _stop_verdict(answers) or _opinion(answers, "deny", "defer")


def consent_of(answers: Sequence[HookAnswer]) -> Verdict | None:
    """The verdict if none refuses."""
    return _opinion(answers, "ask", "allow")


def _stop_verdict(answers: Sequence[HookAnswer]) -> Verdict | None:
    for answer in answers:
        if answer.stops is not None:
            reason = quote_hook(answer, answer.stops)
            return Verdict(
                behavior=Behavior.DENY, source="hook", reason=reason, origin=answer.hook.origin, stops=answer.stops
            )
    return None


def _opinion(answers: Sequence[HookAnswer], *strictest_first: Permission) -> Verdict | None:
    for permission in strictest_first:
        for answer in answers:
            if answer.permission == permission:
                return _of(answer)
    return None


def _of(answer: HookAnswer) -> Verdict:
    origin = answer.hook.origin
    match answer.permission:
        case "allow":
            reason = quote_hook(answer, "allowed")
            return Verdict(behavior=Behavior.ALLOW, source="hook", reason=reason, origin=origin, approved=True)
        case "ask":
            return Verdict(behavior=Behavior.ASK, source="hook", reason=quote_hook(answer, "ask first"), origin=origin)
        case "defer":
            reason = f"{answer.hook.label} deferred it, which this version does not support; the turn ends"
            return Verdict(behavior=Behavior.DENY, source="hook", reason=reason, origin=origin, stops=reason)
        case _:
            return Verdict(behavior=Behavior.DENY, source="hook", reason=quote_hook(answer, "no"), origin=origin)


def quote_hook(answer: HookAnswer, otherwise: str) -> str:
    """The hook's label and its reason, for use inside a sentence."""
    return f"{answer.hook.label} says: {(answer.reason or otherwise).rstrip().removesuffix('.')}"
