"""The one event stream. Observers read it; nothing waits on it.

Events go one way. Whatever needs an answer (a permission, a question) is an
awaited port, and also leaves events for those who watch.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from .calls import ToolCall, ToolOutcome
from .content import View
from .model import Retrying, Usage
from .values import plain_value
from .verdicts import Verdict


@plain_value
class TurnStarted:
    prompt: str


@plain_value
class TurnEnded:
    """`interrupted` when it was cut short, `error` when the model's service failed.

    `blocked` when the prompt was not let through, `stopped` when a hook ended it; `error` has the words.
    """

    reason: Literal["end", "max_tokens", "refusal", "interrupted", "error", "blocked", "stopped"]
    error: str = ""


@plain_value
class MessageStarted:
    """The model is asked for its next message."""


@plain_value
class MessageEnded:
    """The model has written its message; calls of it may still run."""


@plain_value
class TextStreamed:
    text: str


@plain_value
class ThoughtStreamed:
    text: str


@plain_value
class CallDrafted:
    """A piece of a call that the model is writing; the first of a call has no JSON yet."""

    call_id: str
    name: str
    json: str


@plain_value
class Retried:
    """The model's service could not answer and is asked again after a pause."""

    retrying: Retrying


@plain_value
class UsageReported:
    usage: Usage


@plain_value
class ToolRequested:
    """A call is complete; it may still wait for its turn."""

    call: ToolCall


@plain_value
class ToolStarted:
    """The input is valid and the call's turn has come; `view` says what is about to be attempted."""

    call: ToolCall
    view: View


@plain_value
class ToolProgressed:
    call_id: str
    view: View


@plain_value
class PermissionDecided:
    call_id: str
    verdict: Verdict


@plain_value
class HookRan:
    """A hook has answered, or failed to. `outcome` is its decision in a word: ok, failed, deny, block and so on."""

    event: str
    name: str
    outcome: str
    seconds: float
    message: str = ""
    """For the person: what the hook wants said, or what went wrong with it."""


@plain_value
class ToolFinished:
    """Follows every `ToolRequested`, exactly once, interrupts included."""

    outcome: ToolOutcome


@plain_value
class ListChanged:
    """Tools, MCP resources or MCP prompts came, went or changed."""

    kind: Literal["tools", "resources", "prompts"]
    names: tuple[str, ...]


@plain_value
class NoteAdded:
    """The model is told something before its next message: files that changed, tasks that ended."""

    kind: str
    text: str


@plain_value
class Missed:
    """This subscriber was too slow; `count` events are gone at this place."""

    count: int


Event: TypeAlias = (
    TurnStarted
    | TurnEnded
    | MessageStarted
    | MessageEnded
    | TextStreamed
    | ThoughtStreamed
    | CallDrafted
    | Retried
    | UsageReported
    | ToolRequested
    | ToolStarted
    | ToolProgressed
    | PermissionDecided
    | HookRan
    | ToolFinished
    | ListChanged
    | NoteAdded
    | Missed
)


@plain_value
class Envelope:
    """An event with its place: `seq` counts up by one within a session, `time` is the monotonic clock."""

    seq: int
    time: float
    agent: str
    event: Event


class Emit(Protocol):
    """Never waits, never raises."""

    def __call__(self, event: Event, /) -> None: ...
