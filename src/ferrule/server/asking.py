"""ASK as a question to the client's person, where the client can put one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, Protocol

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ..core.effects import describe_touch
from ..core.ports import Approver, Proposal
from ..core.verdicts import Behavior, Verdict

FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "Whether this one call may run.",
            "enum": ["allow", "refuse"],
        }
    },
    "required": ["decision"],
}


class Answer(Enum):
    ALLOWED = "the person who was asked allows it"
    REFUSED = "the person who was asked refused it"
    UNANSWERED = "the person who was asked gave no answer"
    NOT_YET = "it waits for a person's answer"


class Line(Protocol):
    """The way from one request to the person behind the client."""

    @property
    def waits(self) -> bool:
        """Whether a call that is under way can wait for the answer."""
        ...

    async def ask(self, question: str, key: str, /) -> Answer: ...


class ClientApprover:
    """Asks whoever made the call that the question is about; satisfies `core.ports.Approver`."""

    def __init__(self, nobody: Approver) -> None:
        self._nobody = nobody
        self._lines: dict[str, Line] = {}

    @contextmanager
    def reachable(self, call_id: str, line: Line | None) -> Generator[None]:
        """While the block runs, questions about this call and those made inside of it go to this line."""
        if line is not None:
            self._lines[call_id] = line
        try:
            yield
        finally:
            self._lines.pop(call_id, None)

    async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
        chain = proposal.ctx.facts.chain
        line = self._lines.get(chain[0] if chain else proposal.call.id)
        if line is None or (chain and not line.waits):
            return await self._nobody.approve(proposal, verdict)
        answer = await line.ask(_question(proposal, verdict), _key(proposal))
        behavior = Behavior.ALLOW if answer is Answer.ALLOWED else Behavior.DENY
        return Verdict(behavior=behavior, source="user", reason=answer.value)


class Elicitation:
    """A request of ours to the client, for the revisions that have such requests."""

    waits = True

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self._ctx = ctx

    async def ask(self, question: str, key: str, /) -> Answer:
        try:
            result = await self._ctx.session.elicit_form(question, dict(FORM), self._ctx.request_id)
        except (MCPError, ValidationError):  # it cannot after all, or what it said means nothing
            return Answer.UNANSWERED
        return _meant(result)


class InputRequired:
    """An answer that comes with the client's second request, for the revision without requests to the client.

    The first one ends with the questions; nothing has run by then, so the
    second is the same call again. A call inside another comes too late for that.
    """

    waits = False

    def __init__(self, responses: Mapping[str, Any] | None) -> None:
        self._responses = responses or {}
        self.questions: dict[str, types.InputRequest] = {}

    async def ask(self, question: str, key: str, /) -> Answer:
        response = self._responses.get(key)
        if isinstance(response, types.ElicitResult):
            return _meant(response)
        params = types.ElicitRequestFormParams(message=question, requested_schema=dict(FORM))
        self.questions[key] = types.ElicitRequest(params=params)
        return Answer.NOT_YET


def can_be_asked(capabilities: types.ClientCapabilities | None) -> bool:
    """Whether the client shows forms; one that names no kind means forms."""
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _meant(result: types.ElicitResult) -> Answer:
    if result.action == "cancel":
        return Answer.UNANSWERED
    allowed = result.action == "accept" and (result.content or {}).get("decision") == "allow"
    return Answer.ALLOWED if allowed else Answer.REFUSED


def _question(proposal: Proposal, verdict: Verdict) -> str:
    does = "; ".join(describe_touch(touch) for touch in proposal.effects.touches) or "touches nothing"
    why = f"\nAsked because {verdict.reason}." if verdict.source == "rule" else ""
    return f"{proposal.tool.describe(proposal.input)}\nThis {does}.{why}\nMay it run?"


def _key(proposal: Proposal) -> str:
    """The same for the same call only, so that an answer to one is no answer to another."""
    call = json.dumps([proposal.tool.name, proposal.arguments], sort_keys=True, default=str)
    return f"may-{hashlib.sha256(call.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
