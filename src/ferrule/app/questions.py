"""What a person reads before they allow a call."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.effects import describe_touch
from ..output.plain import clean, lines
from ..permissions.approvals import ApprovalQuestion

MOST_LINES = 60
"""Lines of a diff or a command that are shown."""


def question_lines(question: ApprovalQuestion) -> Iterator[str]:
    proposal, verdict = question.proposal, question.verdict
    agent = proposal.ctx.facts.agent
    yield clean(proposal.tool.describe(proposal.input)) + (f"  (agent {clean(agent)})" if agent != "main" else "")
    shown = lines(question.view)
    yield from (f"  {line}" for line in shown[:MOST_LINES])
    if len(shown) > MOST_LINES:
        yield f"  ... and {len(shown) - MOST_LINES:,} more lines"
    yield from (f"  {clean(describe_touch(touch))}" for touch in proposal.effects.touches)
    yield from (f"Risk ({risk.severity}): {clean(risk.message)}" for risk in verdict.risks)
    yield f"It is asked because {clean(verdict.reason)}."
    if question.rules:
        yield "Always would add: " + ", ".join(f"`{clean(rule)}`" for rule in question.rules)
