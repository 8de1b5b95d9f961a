"""Asking a person: one question at a time, each judged again before it is shown.

While one question waits for its answer, others queue behind it. An "always" for
the first may also answer the next, so each is judged again when its turn comes,
and is shown only if still necessary.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Protocol

from ..core.content import View
from ..core.effects import ChangesState, ReadsPath, ReadsState, RunsCommand, WritesPath, describe_touch
from ..core.ports import Opinion, Proposal
from ..core.values import plain_value
from ..core.verdicts import Behavior, Verdict, strictest


class NobodyToAsk:
    """Headless: an ASK becomes a refusal that says what the call would have done and what would allow it."""

    def __init__(
        self,
        suggest: Callable[[Proposal], tuple[str, ...]] = lambda proposal: (),
        doubts: Callable[[Proposal], tuple[str, ...]] = lambda proposal: (),
    ) -> None:
        """`suggest` gives the narrowest rules that would allow a call, `doubts` why its effects are unknown."""
        self._suggest = suggest
        self._doubts = doubts

    async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
        explains = verdict.source != "default" or verdict.needs_confinement is not None
        why = f"{verdict.reason}; " if explains else ""
        doubts = self._doubts(proposal) if proposal.effects.unknown else ()
        does = "; ".join(doubts or _decisive_touches(proposal)) or "touches nothing"
        rules = self._suggest(proposal)
        reason = f"{why}it needs a person's approval ({does}) and nobody is there to give it"
        if rules:
            named = " and ".join(f"`{rule}`" for rule in rules)
            reason = f"{reason}. {'This rule' if len(rules) == 1 else 'These rules'} would allow it: {named}"
        return Verdict(
            behavior=Behavior.DENY,
            source=verdict.source,
            reason=reason,
            rule=verdict.rule,
            origin=verdict.origin,
            allowed_by=rules,
        )


def _decisive_touches(proposal: Proposal) -> Iterator[str]:
    """What a call does that needs an approval: without what every call may, unless that is all of it."""
    facts = proposal.ctx.facts
    roots = tuple(f"{root.rstrip('/')}/" for root in (facts.workspace, *facts.added_directories) if root)
    touches = proposal.effects.touches
    decisive = [one for one in touches if not isinstance(one, ReadsState | ChangesState | RunsCommand)]
    decisive = [one for one in decisive if not (isinstance(one, ReadsPath) and _is_inside(one, roots))]
    for touch in decisive or [one for one in touches if isinstance(one, RunsCommand)] or touches:
        outside = isinstance(touch, ReadsPath | WritesPath) and roots and not _is_inside(touch, roots)
        yield f"{describe_touch(touch)}, outside of the workspace" if outside else describe_touch(touch)


def _is_inside(touch: ReadsPath | WritesPath, roots: tuple[str, ...]) -> bool:
    return f"{touch.real or touch.path}/".startswith(roots) or f"{touch.path}/".startswith(roots)


REFUSED = "the person said no"


class AnswerScope(StrEnum):
    """How long an answer applies."""

    ONCE = "once"
    SESSION = "session"
    SAVED = "saved"


@plain_value
class ApprovalQuestion:
    """What a person needs to know to answer."""

    proposal: Proposal
    verdict: Verdict
    """Why it is asked."""
    view: View
    """What will happen: the diff of an edit, the text of a command."""
    rules: tuple[str, ...]
    """The rules that "always" would add; empty if no rule as narrow as the call would allow it."""


@plain_value
class ApprovalAnswer:
    allowed: bool
    reach: AnswerScope = AnswerScope.ONCE
    words: str = ""
    """The message for the model with a no."""
    arguments: Mapping[str, Any] | None = None
    """The input that the person wants instead."""


class Person(Protocol):
    async def answer(self, question: ApprovalQuestion, /) -> ApprovalAnswer: ...


class OneAtATime:
    """An approver in front of a person."""

    def __init__(
        self,
        person: Person,
        *,
        judge: Callable[[Proposal], Opinion | Awaitable[Opinion]],
        suggest: Callable[[Proposal], tuple[str, ...]],
        keep: Callable[[tuple[str, ...], AnswerScope], Awaitable[None]],
    ) -> None:
        """`judge` are the rules; `keep` takes the rules of an "always"."""
        self._person = person
        self._judge = judge
        self._suggest = suggest
        self._keep = keep
        self._turn = asyncio.Lock()

    async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
        async with self._turn:
            again = await self._judge_again(proposal, verdict)
            if again.behavior is not Behavior.ASK:
                return again
            question = ApprovalQuestion(
                proposal, again, proposal.tool.show_plan(proposal.input, proposal.ctx), self._suggest(proposal)
            )
            answer = await self._person.answer(question)
            if answer.allowed and answer.reach is not AnswerScope.ONCE and question.rules:
                await self._keep(question.rules, answer.reach)
        if not answer.allowed:
            return Verdict(behavior=Behavior.DENY, source="user", reason=answer.words or REFUSED)
        return Verdict(
            behavior=Behavior.ALLOW, source="user", reason="the person said yes", updated_arguments=answer.arguments
        )

    async def _judge_again(self, proposal: Proposal, verdict: Verdict) -> Verdict:
        """What the rules decide now. What a hook or the tool itself asked about stays a question."""
        if verdict.source in ("hook", "tool", "classifier"):
            return verdict
        said = self._judge(proposal)
        opinion = await said if inspect.isawaitable(said) else said
        return strictest((opinion, _without_behavior(verdict)))


def _without_behavior(verdict: Verdict) -> Verdict | None:
    """The risks of the first verdict, which no rule can see."""
    if not verdict.risks:
        return None
    return Verdict(behavior=Behavior.ALLOW, source="tool", reason=verdict.reason, risks=verdict.risks)
