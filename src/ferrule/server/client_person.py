"""The person behind a client: asked whether a call may run, and what a tool wants to know of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ..app.questions import question_lines
from ..core.effects import describe_touch
from ..core.ports import Proposal
from ..output.plain import clean
from ..permissions.approvals import REFUSED, AnswerScope, ApprovalAnswer, ApprovalQuestion, NobodyToAsk
from ..tools.ask_user_question import AskUserQuestionInput
from .approval_forms import answers_of, form_for
from .caller import Caller, Callers, NotAnswered

DECISION, WORDS = "decision", "instead"
ALLOW: Final[Mapping[AnswerScope, str]] = {
    AnswerScope.ONCE: "allow",
    AnswerScope.SESSION: "allow for this session",
    AnswerScope.SAVED: "always allow",
}
REFUSE: Final = "refuse"
UNANSWERED: Final = "the person did not answer"
DECLINED: Final = "the person declined to answer. Continue without it, or end and say what you need to know"


class ClientPerson:
    """Satisfies `permissions.approvals.Person`. If nobody can be asked, nothing is allowed."""

    def __init__(self, callers: Callers, reaches: Sequence[AnswerScope] = (AnswerScope.ONCE,)) -> None:
        """`reaches` is how long an answer of this client may last."""
        self._callers = callers
        self._reaches = tuple(reaches)

    async def answer(self, question: ApprovalQuestion, /) -> ApprovalAnswer:
        proposal = question.proposal
        caller = self._callers.find(proposal.ctx)
        late = proposal.ctx.facts.chain and caller is not None and not caller.waits  # for what already runs
        if caller is None or late or not caller.can("elicitation"):
            verdict = await NobodyToAsk().approve(proposal, question.verdict)
            return ApprovalAnswer(allowed=False, words=verdict.reason)
        try:
            if isinstance(proposal.input, AskUserQuestionInput):
                return await _answer_questions(proposal, proposal.input, caller)
            return await self._decide(question, caller)
        except NotAnswered:
            return ApprovalAnswer(allowed=False, words=UNANSWERED)

    async def _decide(self, question: ApprovalQuestion, caller: Caller) -> ApprovalAnswer:
        reaches = self._reaches if question.rules else (AnswerScope.ONCE,)
        shown = question if len(reaches) > 1 else replace(question, rules=())
        message = "\n".join((*question_lines(shown), "May it run?"))
        result = await caller.elicit(_key(question.proposal), message, _form(reaches))
        if result.action == "cancel":
            return ApprovalAnswer(allowed=False, words=UNANSWERED)
        return _parse_decision(result.content if result.action == "accept" else None, reaches)


async def _answer_questions(proposal: Proposal, input: AskUserQuestionInput, caller: Caller) -> ApprovalAnswer:
    """The questions of AskUserQuestion are the approval: whoever approves the call fills the answers in."""
    message = "\n".join(clean(question.question) for question in input.questions)
    result = await caller.elicit(_key(proposal), message, form_for(input.questions))
    if result.action != "accept":
        return ApprovalAnswer(allowed=False, words=DECLINED)
    answers = answers_of(input.questions, result.content or {})
    return ApprovalAnswer(allowed=True, arguments={**proposal.arguments, "answers": answers})


def _form(reaches: Sequence[AnswerScope]) -> Mapping[str, Any]:
    choices = [*(ALLOW[reach] for reach in reaches), REFUSE]
    return {
        "type": "object",
        "properties": {
            DECISION: {"type": "string", "title": "Decision", "enum": choices},
            WORDS: {"type": "string", "title": "Instead", "description": "With a refusal: what to do instead."},
        },
        "required": [DECISION],
    }


def _parse_decision(content: Mapping[str, Any] | None, reaches: Sequence[AnswerScope]) -> ApprovalAnswer:
    """Anything but one of the offered ways to allow it is a no."""
    given = content or {}
    for reach in reaches:
        if given.get(DECISION) == ALLOW[reach]:
            return ApprovalAnswer(allowed=True, reach=reach)
    words = given.get(WORDS)
    said = words.strip()[:2000] if isinstance(words, str) else ""
    return ApprovalAnswer(allowed=False, words=f"{REFUSED}, and: {said}" if said else "")


def _key(proposal: Proposal) -> str:
    """Equal only for the same call with the same effects: an answer to one does not apply to another."""
    touches = [describe_touch(touch) for touch in proposal.effects.touches]
    call = json.dumps([proposal.tool.name, proposal.arguments, touches], sort_keys=True, default=str)
    return f"may-{hashlib.sha256(call.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
