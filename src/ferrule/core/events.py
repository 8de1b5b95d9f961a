"""The one event stream. Observers read it; nothing waits on it.

Events go one way. Whatever needs an answer (a permission, a question) is an
awaited port, and also leaves events for those who watch.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

from .calls import ToolCall, ToolOutcome
from .content import View
from .model import AssistantTurn, ResultTurn, Retrying, StopReason, Thought, Usage
from .values import plain_value
from .verdicts import Verdict

TurnEnding: TypeAlias = Literal[
    "end", "max_tokens", "refusal", "interrupted", "error", "max_turns", "max_budget", "blocked", "stopped"
]


@plain_value
class TurnStarted:
    prompt: str


@plain_value
class TurnEnded:
    """The turn is over: the model finished, or a limit, an interrupt or a failure ended it.

    By then the transcript is on disk. Queued prompts follow as separate turns. `blocked` when the
    prompt was not let through, `stopped` when a hook ended it; `error` has the words.
    """

    reason: TurnEnding
    error: str = ""
    status: int | None = None
    """The HTTP status of the model's service, if that is the error."""


@plain_value
class AgentStarted:
    """An agent begins its work for a call. Its events carry its name, and so does this one."""

    call_id: str
    kind: str
    title: str
    model: str = ""


@plain_value
class MessageStarted:
    """The model is asked for its next message."""


@plain_value
class MessageEnded:
    """The model has written its message; calls of it may still run."""

    reason: StopReason = "end"
    turn: AssistantTurn | None = None
    """The part that stays in the conversation; `None` if nothing does and it is requested again."""
    usage: Usage = Usage()


@plain_value
class ResultsAdded:
    """The results of a message are in the conversation, in the order of its calls."""

    turn: ResultTurn


@plain_value
class TextStreamed:
    text: str


@plain_value
class ThoughtStreamed:
    text: str


@plain_value
class ThoughtFinished:
    """A piece of reasoning is complete; if it was not streamed, it was not seen before."""

    thought: Thought


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
class HookStarted:
    event: str
    name: str
    id: str
    """Of this run; `HookRan` has the same."""


@plain_value
class HookRan:
    """A hook has answered, or failed to. `outcome` is its decision in a word: ok, failed, deny, block and so on."""

    event: str
    name: str
    outcome: str
    seconds: float
    message: str = ""
    """For the person: what the hook wants said, or what went wrong with it."""
    id: str = ""


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
    """The model is notified before its next message: files that changed, tasks that ended."""

    kind: str
    text: str


@plain_value
class PrefixMoved:
    """The next request does not begin with the previous one, so less of the cache can be used."""

    reason: Literal["tool_found", "tools_changed", "system_changed", "compaction"]


@plain_value
class Compacted:
    """Older turns were replaced by a summary; if none could be made, long parts of them, or in the end the turns
    themselves, were left out.

    The sizes are estimates in tokens.
    """

    before: int
    after: int
    how: Literal["summary", "results_dropped", "turns_dropped"] = "summary"
    trigger: Literal["auto", "manual"] = "auto"
    summary: str = ""
    """What the model reads instead of the older turns; empty where only parts of them were left out."""


@plain_value
class ValueChanged:
    """A call has set a value of the session: the list of tasks has the key `todos`, an approved plan `plan`."""

    key: str
    value: Any


@plain_value
class Missed:
    """This subscriber was too slow; `count` events were lost at this place."""

    count: int


Event: TypeAlias = (
    TurnStarted
    | AgentStarted
    | TurnEnded
    | MessageStarted
    | MessageEnded
    | ResultsAdded
    | TextStreamed
    | ThoughtStreamed
    | ThoughtFinished
    | CallDrafted
    | Retried
    | UsageReported
    | ToolRequested
    | ToolStarted
    | ToolProgressed
    | PermissionDecided
    | HookStarted
    | HookRan
    | ToolFinished
    | ListChanged
    | NoteAdded
    | PrefixMoved
    | Compacted
    | ValueChanged
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
