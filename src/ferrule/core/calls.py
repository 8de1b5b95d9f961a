"""One tool call, its one outcome, and the record of what happened in between."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, cast

from .content import Block, Line, Text, View
from .effects import Effects
from .state import StateChange
from .values import named_value, plain_value
from .verdicts import Verdict


@plain_value
class ToolCall:
    """What the model wrote, kept as it wrote it.

    `malformed` holds the text of arguments that are no JSON object; such a
    call is answered as invalid, with that text quoted.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    malformed: str | None = None

    @classmethod
    def from_text(cls, id: str, name: str, text: str) -> ToolCall:
        """A call whose arguments arrive as text. Empty text means no arguments."""
        try:
            arguments: Any = json.loads(text) if text.strip() else {}
        except (ValueError, RecursionError):
            return cls(id, name, {}, malformed=text)
        if not isinstance(arguments, dict):
            return cls(id, name, {}, malformed=text)
        return cls(id, name, cast(dict[str, Any], arguments))


class Status(StrEnum):
    OK = "ok"
    INVALID = "invalid"
    """The call itself is wrong: no such tool, or input it cannot accept."""
    DENIED = "denied"
    FAILED = "failed"
    """The tool says that the world did not allow it."""
    CANCELLED = "cancelled"
    BROKEN = "broken"
    """The tool raised something it did not promise. A bug: logged with its traceback."""


@named_value
class CallRecord:
    """What happened to one call: kept for people, logs and telemetry, never shown to the model."""

    call_id: str
    tool: str
    agent: str
    chain: tuple[str, ...]
    stages: tuple[tuple[str, float], ...]
    """Each stage the call passed through with the seconds it took, in order."""
    effects: Effects | None
    verdict: Verdict | None
    rewrites: tuple[Mapping[str, Any], ...]
    """Every input that replaced the model's, in order."""
    produced_chars: int
    sent_chars: int
    saved_to: str | None

    @property
    def depth(self) -> int:
        return len(self.chain)

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.stages)


@plain_value
class ToolOutcome:
    """Every call that was seen ends as exactly one of these."""

    call: ToolCall
    status: Status
    content: tuple[Block, ...]
    """For the model."""
    view: View
    """For people."""
    output: Any = None
    """The tool's own typed value, where it gave one."""
    messages: tuple[str, ...] = ()
    """Texts to stand in the conversation after the results of this message."""
    changes: tuple[StateChange, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    record: CallRecord | None = None

    @property
    def is_error(self) -> bool:
        return self.status is not Status.OK

    def recorded(self, record: CallRecord) -> ToolOutcome:
        return ToolOutcome(
            self.call,
            self.status,
            self.content,
            self.view,
            self.output,
            self.messages,
            self.changes,
            self.meta,
            record,
        )

    @classmethod
    def refused(cls, call: ToolCall, status: Status, message: str) -> ToolOutcome:
        return cls(call, status, (Text(message),), Line(message))


class Refusal(Exception):
    """Ends a call early, with the status and the words the model will see."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
