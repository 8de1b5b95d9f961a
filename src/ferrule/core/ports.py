"""Where policy, people and the machine plug into the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, TypeAlias

from .calls import ToolCall, ToolOutcome
from .content import Block, View
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


@plain_value
class Choice:
    label: str
    description: str = ""
    preview: str = ""
    """What choosing it would look like, in Markdown."""


@plain_value
class Question:
    """One question to a person, who may always answer in their own words. Without choices that is the only way."""

    text: str
    header: str = ""
    """One or two words for a narrow place."""
    choices: tuple[Choice, ...] = ()
    several: bool = False
    """Whether more than one choice may be taken."""
    about: View | None = None
    """What the question is about, to be shown above it: a plan, a form."""


@plain_value
class Answer:
    """The labels that were chosen, or a text that was written instead of them or in addition."""

    chosen: tuple[str, ...] = ()
    text: str = ""


@plain_value
class Unanswered:
    """`nobody` is there to be asked, or the person `declined` to answer."""

    why: Literal["nobody", "declined"]


class Questioner(Protocol):
    """Puts questions to a person: a terminal, an editor, an SDK's callback. In a headless run nobody answers."""

    async def ask(self, questions: tuple[Question, ...], /, *, asker: str) -> tuple[Answer, ...] | Unanswered:
        """One answer for each of the one to four questions. `asker` is an agent or an MCP server, for people."""
        ...


class Modes(Protocol):
    """Which permission mode is active, by the names used in settings."""

    def current(self) -> str: ...

    def before(self) -> str:
        """The one that is restored when planning is over."""
        ...


@named_value
class Amendment:
    """What a step after the call changes. Whatever is changed is checked and budgeted again."""

    output: Any = None
    """Replaces the tool's output, where given."""
    content: tuple[Block, ...] | None = None
    """Replaces what the model reads, where given."""
    messages: tuple[str, ...] = ()
    """Texts to add to the conversation."""
    stops: str = ""
    """Why the turn is to end after this message, if it is."""


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
    """Asked before each message of the model. Its note comes after the last results, or after the prompt."""

    async def notes(self, agent: str, /) -> tuple[Note, ...]: ...


@named_value
class TurnWords:
    """What hooks said at a turning point of a session. Empty if they said nothing."""

    context: tuple[str, ...] = ()
    """For the model."""
    blocks: str = ""
    """Why what is about to happen is blocked, if it is. For the end of a turn: what is still to be done."""
    stops: str = ""
    """Why everything is to end, if it is."""

    def without_block(self) -> TurnWords:
        return replace(self, blocks="")


class TurnHooks(Protocol):
    """Called at the turning points of a session. Never raises."""

    async def session_started(self, cwd: str, *, source: str = "startup", model: str = "") -> TurnWords: ...

    async def session_ended(self, cwd: str, *, reason: str = "other") -> None: ...

    async def prompt_submitted(self, cwd: str, prompt: str) -> TurnWords: ...

    async def calls_finished(self, cwd: str, outcomes: Sequence[ToolOutcome]) -> TurnWords:
        """All calls of one message have their results, and the model is about to read them."""
        ...

    async def stopping(self, cwd: str, last: str, *, blocked: int = 0) -> TurnWords:
        """`blocked` is how often in a row the model was sent back to work."""
        ...


class SpillStore(Protocol):
    """Keeps what is too long for the model."""

    def save(self, call_id: str, text: str, /) -> str:
        """The absolute path of the saved text. Raises `OSError` where it cannot be saved."""
        ...


class TranscriptStore(Protocol):
    """Keeps the record of one session. Both raise `OSError` where the disk fails."""

    def append(self, line: bytes, /) -> None:
        """Add one line, which ends in a line feed. Quick: a turn waits for it."""
        ...

    def sync(self) -> None:
        """Return when everything that was added would survive a power cut."""
        ...


class Lasting(Protocol):
    """What must not be lost when older turns are replaced by a summary: a todo list, a plan, running commands."""

    def lasting(self, agent: str, /) -> tuple[Note, ...]: ...


class Paths(Protocol):
    """The questions about paths that need a machine to answer."""

    def anchor(self, path: str, cwd: str, /) -> str:
        """Absolute and normal: `~` expanded, `..` folded, the Unicode form that exists on disk."""
        ...

    def resolve(self, path: str, /) -> tuple[str, tuple[str, ...]]:
        """The path with links resolved, and the links that were followed."""
        ...

    def is_folder(self, path: str, /) -> bool | None:
        """Whether there is a folder, or a link to one; `None` if unknown."""
        ...

    def through_links(self, folder: str, names: str, /) -> tuple[str, ...] | None:
        """What the glob means below the folder and a link leads to; `None` where that is too much to look at.

        A `**` means everything below, of which the links themselves are given. Without `./` before the glob, a
        name that begins with a dash is too much as well: it would be an option.
        """
        ...

    def notable_entries(self, folder: str, /) -> tuple[str, ...] | None:
        """What is in the folder, and what is hidden at any depth below it, relative to it; `None` for too much."""
        ...


class Door(Protocol):
    """Checks every file that the model is given without a call of Read."""

    def objection(self, path: str, /) -> str | None:
        """Why the file is left out, to complete "it is left out: "; `None` if it is not."""
        ...


class Extractor(Protocol):
    """A small model that answers a question about a text which came from outside."""

    async def extract(self, text: str, question: str, /) -> str | None:
        """`None` where it cannot, so that the text itself is given."""
        ...
