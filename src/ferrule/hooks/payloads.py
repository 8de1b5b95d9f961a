"""What hooks receive: the JSON of each event."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ..core.calls import Status, ToolOutcome
from ..core.content import plain_text
from ..core.ports import Proposal
from ..core.values import named_value
from .hook import Payload

Response: TypeAlias = Callable[[Proposal, ToolOutcome], Any]
"""A tool's output in the shape that hooks know."""


@named_value
class SessionFacts:
    """What every event says about the session."""

    session_id: str
    project: str
    """Where the session was opened, wherever it works by now."""
    transcript: Callable[[], str] = lambda: ""
    mode: Callable[[], str] = lambda: "default"
    kind: Callable[[str], str] = lambda agent: agent
    """The kind of an agent, by its name."""


def common(scene: SessionFacts, event: str, cwd: str, agent: str = "main") -> dict[str, Any]:
    told: dict[str, Any] = {
        "session_id": scene.session_id,
        "transcript_path": scene.transcript(),
        "cwd": cwd,
        "permission_mode": scene.mode(),
        "hook_event_name": event,
    }
    if agent != "main":
        told["agent_id"] = agent.rpartition("/")[2]
        told["agent_type"] = scene.kind(agent)
    return told


def of_call(scene: SessionFacts, event: str, proposal: Proposal) -> dict[str, Any]:
    """Of a call that is about to run, or that was asked about or has run."""
    told = common(scene, event, proposal.ctx.cwd, proposal.ctx.facts.agent)
    told["tool_name"] = proposal.tool.name
    told["tool_input"] = dict(proposal.arguments)
    if event != "PermissionRequest":
        told["tool_use_id"] = proposal.call.id
    return told


def suggestions_of(rules: Iterable[str]) -> list[dict[str, Any]]:
    """Rules that would allow a call, in the form of `updatedPermissions`, so that a hook can return them.

    >>> suggestions_of(["Bash(make test)"])[0]["rules"]
    [{'toolName': 'Bash', 'ruleContent': 'make test'}]
    """
    written = [_rule(*rule.partition("(")) for rule in rules]
    if not written:
        return []
    return [{"type": "addRules", "rules": written, "behavior": "allow", "destination": "localSettings"}]


def _rule(tool: str, opening: str, rest: str) -> dict[str, str]:
    return {"toolName": tool, "ruleContent": rest.removesuffix(")")} if opening else {"toolName": tool}


def of_outcome(scene: SessionFacts, proposal: Proposal, outcome: ToolOutcome, response: Response) -> dict[str, Any]:
    """`PostToolUse` for a call that succeeded, `PostToolUseFailure` for one that failed."""
    failed = outcome.status is not Status.OK
    told = of_call(scene, "PostToolUseFailure" if failed else "PostToolUse", proposal)
    if failed:
        told["error"] = plain_text(outcome.content)
        told["is_interrupt"] = outcome.status is Status.CANCELLED
    else:
        told["tool_response"] = response(proposal, outcome)
    if outcome.record is not None:
        told["duration_ms"] = _milliseconds(outcome, "call")
    return told


def encode_payload(payload: Payload) -> bytes:
    """As one line, for a program or a URL. Values that JSON cannot represent are written as text."""
    return json.dumps(payload, default=str, ensure_ascii=True).encode() + b"\n"


def _milliseconds(outcome: ToolOutcome, stage: str) -> int:
    stages = outcome.record.stages if outcome.record else []
    return round(1000 * sum(seconds for name, seconds in stages if name == stage))
