"""Where policy, people and the machine plug into the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol, TypeAlias

from .calls import ToolCall, ToolOutcome
from .content import Block
from .context import ToolContext
from .effects import Effects
from .tool import AnyTool
from .values import named_value, plain_value
from .verdicts import Verdict


@plain_value
class Proposal:
    """A call that is about to run, on the working directory and the links of this moment."""

    call: ToolCall
    """As the model wrote it."""
    tool: AnyTool
    input: Any
    arguments: Mapping[str, Any]
    """The input as hooks and rules see it: the tool's own parameter names, paths absolute."""
    effects: Effects
    ctx: ToolContext


Opinion: TypeAlias = Verdict | None


class Judge(Protocol):
    """Rules, hooks, a classifier. One that knows at once answers at once; one that must wait returns an awaitable.

    A judge that raises has said DENY.
    """

    def judge(self, proposal: Proposal, /) -> Opinion | Awaitable[Opinion]: ...


class Approver(Protocol):
    """Answers ASK: a person, a callback, or a headless refusal. Its ALLOW may carry changed arguments."""

    async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict: ...


@named_value
class Amendment:
    """What a step after the call changes. Whatever is changed is checked and budgeted again."""

    output: Any = None
    """Replaces the tool's output, where given."""
    content: tuple[Block, ...] | None = None
    """Replaces what the model reads, where given."""
    messages: tuple[str, ...] = ()
    """Texts to add to the conversation."""


class AfterCall(Protocol):
    """A step after a call that ran, well or badly. One that raises changes nothing, and the result says so."""

    def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> Amendment | Awaitable[Amendment | None] | None: ...


@plain_value
class Note:
    """Something the model should know before its next message."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"<{self.kind}>\n{self.text.strip()}\n</{self.kind}>"


class NoteSource(Protocol):
    """Asked before each message of the model. What it tells stands behind the last results, or behind the prompt."""

    async def notes(self, agent: str, /) -> tuple[Note, ...]: ...


class SpillStore(Protocol):
    """Keeps what is too long for the model."""

    def save(self, call_id: str, text: str, /) -> str:
        """The absolute path of the saved text. Raises `OSError` where it cannot be saved."""
        ...


class Paths(Protocol):
    """The two questions about paths that need a machine to answer."""

    def anchor(self, path: str, cwd: str, /) -> str:
        """Absolute and normal: `~` expanded, `..` folded, the Unicode form that exists on disk."""
        ...

    def resolve(self, path: str, /) -> tuple[str, tuple[str, ...]]:
        """The path with links resolved, and the links that were followed."""
        ...
