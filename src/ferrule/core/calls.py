"""One tool call, its one outcome, and the record of what happened in between."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from enum import StrEnum
from time import perf_counter
from typing import Any, cast

from .content import Block, Line, Text, View, join_halves
from .effects import Effects
from .state import StateChange
from .values import plain_value
from .verdicts import Verdict


def parse_json(text: str) -> Any:
    """Uses the fast parser; what that rejects (half a character, written out or escaped) goes to the lenient one.

    Raises `ValueError` for what is not JSON, `RecursionError` for what is nested too deeply.
    """
    from pydantic_core import from_json

    try:
        return from_json(text)
    except (ValueError, TypeError):  # TypeError: a text that cannot be encoded
        return json.loads(text)


@plain_value
class ServiceFields:
    """Fields of a message or a call that only the service that sent them can read, and that it wants back unchanged."""

    origin: str
    """The format and host they came from. No other service is sent them."""
    fields: Mapping[str, Any]


@plain_value
class ToolCall:
    """What the model wrote, kept as it wrote it.

    `malformed` holds the text of arguments that are not a JSON object; such a
    call is answered as invalid, with that text quoted.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    malformed: str | None = None
    extras: ServiceFields | None = None

    @classmethod
    def from_text(
        cls, id: str, name: str, text: str, extras: ServiceFields | None = None, *, may_be_cut: bool = False
    ) -> ToolCall:
        """A call whose arguments arrive as text. Empty text means no arguments.

        Misspelt JSON is read where it can mean one thing. `may_be_cut` says that the end may be missing; closing
        brackets are not added then.
        """
        text = join_halves(text)
        try:
            arguments: Any = parse_json(text) if text.strip() else {}
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            from .json_repair import repair_object

            arguments = repair_object(text, may_close=not may_be_cut)
        if arguments is None:
            return cls(id, name, {}, malformed=text, extras=extras)
        return cls(id, name, cast(dict[str, Any], arguments), extras=extras)


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


class CallRecord:
    """What happened to one call: kept for people, logs and telemetry, never shown to the model.

    The engine fills it in while the call lives, and leaves it alone once the call has its outcome.
    """

    __slots__ = (
        "_last",
        "agent",
        "call_id",
        "chain",
        "effects",
        "produced_chars",
        "rewrites",
        "saved_to",
        "sent_chars",
        "stages",
        "tool",
        "verdict",
    )

    def __init__(self, call_id: str, tool: str, agent: str = "main", chain: tuple[str, ...] = ()) -> None:
        self.call_id = call_id
        self.tool = tool
        self.agent = agent
        self.chain = chain
        self.stages: list[tuple[str, float]] = []
        """Each stage the call passed through with the seconds it took, in order."""
        self.effects: Effects | None = None
        self.verdict: Verdict | None = None
        self.rewrites: tuple[Mapping[str, Any], ...] = ()
        """Every input that replaced the model's, in order."""
        self.produced_chars = 0
        self.sent_chars = 0
        self.saved_to: str | None = None
        self._last = perf_counter()

    def mark(self, stage: str) -> None:
        """The stage that just ended; its time is the time since the mark before."""
        now = perf_counter()
        self.stages.append((stage, now - self._last))
        self._last = now

    def copy(self) -> CallRecord:
        """As it is now, for a call that may continue although its outcome is settled."""
        other = copy(self)
        other.stages = list(self.stages)
        return other

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
    """Texts to add to the conversation after the results of this message."""
    changes: tuple[StateChange, ...] = ()
    meta: Mapping[str, Any] | None = None
    record: CallRecord | None = None
    stops: str = ""
    """Why the turn is to end after this message, if it is."""

    @property
    def is_error(self) -> bool:
        return self.status is not Status.OK

    @classmethod
    def refused(cls, call: ToolCall, status: Status, message: str, record: CallRecord | None = None) -> ToolOutcome:
        return cls(call, status, (Text(message),), Line(message), record=record)


class Refusal(Exception):
    """Ends a call early, with the status and the words the model will see."""

    def __init__(self, status: Status, message: str, *, stops: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.stops = stops
