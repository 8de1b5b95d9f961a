"""The turns of a conversation. They only ever grow at their end, so that what a provider has cached stays of use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from ..core.call_ids import CallIds
from ..core.content import Text
from ..core.model import AssistantTurn, ResultTurn, Turn, UserTurn
from ..core.ports import Note
from .transcript import Transcript

_NOTE = re.compile(
    r"<(hook|plan_mode|resumed|unfinished_call|unfinished_answer|finished_tasks|running_tasks|changed_files"
    r"|summary_of_earlier_turns|earlier_turns_left_out)>\n.*",
    re.DOTALL,
)
"""What a turn of the user has besides the user's own words."""
GO_ON = "Your last message was cut off. Continue from where it ends, and do not repeat it."

CUT_ANSWER = Note(
    "unfinished_answer",
    "Your message reached the length limit. Continue exactly where it ends, in the middle of a sentence if need be: "
    "both parts are joined for whoever reads them. Repeat nothing and do not comment on the cut.",
)


class MessageHistory:
    """What is sent to the model, and recorded in the transcript before that."""

    def __init__(
        self, turns: Sequence[Turn] = (), transcript: Transcript | None = None, *, prompts: Sequence[str] | None = None
    ) -> None:
        """`prompts` are those that the turns come from, if not all of them are among the turns."""
        self.turns: list[Turn] = list(turns)
        """A new list after a compaction: holders of the old one still have the old conversation."""
        self.transcript = transcript
        self.calls = 0
        """How many the model has made since then."""
        self.prompts: list[str] = list(_prompts_of(self.turns) if prompts is None else prompts)
        """What the user wrote, word for word, as far back as it is kept."""
        self._sent = 0

    @cached_property
    def call_ids(self) -> CallIds:
        """Those that are taken, also by calls that a compaction has left out."""
        return CallIds(self.turns)

    def sending(self) -> list[Turn]:
        """What the next request carries. From here on none of it changes.

        It ends with what is to be answered: services refuse a conversation that ends with the model's own words.
        """
        if self.turns and isinstance(self.turns[-1], AssistantTurn):
            self.add_prompt(UserTurn.saying(GO_ON))
        self._sent = len(self.turns)
        return self.turns

    def add_prompt(self, turn: UserTurn) -> None:
        self.turns.append(turn)
        if text := prompt_text(turn):
            self.prompts.append(text)
        if self.transcript:
            self.transcript.user(turn)

    def tell(self, notes: Sequence[Note]) -> None:
        """After what the model has not read yet, so that nothing it has read moves."""
        if not notes:
            return
        texts = tuple(map(str, notes))
        apart = len(self.turns) == self._sent
        if apart:
            self.turns.append(UserTurn(tuple(map(Text, texts))))
        else:
            self.turns[-1:] = append_notes(self.turns[-1], texts)
        if self.transcript:
            self.transcript.notes(texts, apart=apart)

    def add_message(self, message: AssistantTurn | None, results: ResultTurn | None) -> None:
        """Both at once: at no time is a call in the history without its result."""
        self.calls += len(message.calls) if message else 0
        self.turns += [turn for turn in (message, results) if turn is not None]
        if results and self.transcript:
            self.transcript.results(results)

    def replace(self, turns: Sequence[Turn]) -> None:
        self.turns = list(turns)
        self._sent = 0


def prompt_text(turn: UserTurn) -> str:
    """What the user wrote of it: hooks add to prompts, and some turns are none of the user's.

    >>> prompt_text(UserTurn((Text("Fix it."), Text(str(Note("hook", "lint is red"))))))
    'Fix it.'
    """
    texts = (block.text for block in turn.content if isinstance(block, Text))
    return "\n\n".join(text for text in texts if text != GO_ON and not _NOTE.fullmatch(text))


def _prompts_of(turns: Sequence[Turn]) -> Iterator[str]:
    texts = (prompt_text(turn) for turn in turns if isinstance(turn, UserTurn))
    yield from filter(None, texts)


def append_notes(last: Turn, texts: tuple[str, ...]) -> tuple[Turn, ...]:
    """A turn that nobody has read yet, and what to append to it."""
    match last:
        case UserTurn(content):
            return (UserTurn((*content, *map(Text, texts))),)
        case ResultTurn(results, messages):
            return (ResultTurn(results, (*messages, *texts)),)
        case AssistantTurn():
            return (last, UserTurn(tuple(map(Text, texts))))


def last_answer(turns: Sequence[Turn]) -> str:
    """The text of the last message that has any, whole if the length limit cut it into several.

    >>> last_answer([AssistantTurn((Text("It is in a"),)), UserTurn.saying(str(CUT_ANSWER)),
    ...              AssistantTurn((Text(".py."),))])
    'It is in a.py.'
    """
    at = next((i for i in range(len(turns) - 1, -1, -1) if _text_of(turns[i]).strip()), None)
    if at is None:
        return ""
    parts = [_text_of(turns[at])]
    while at >= 2 and _is_continuation(turns[at - 1]) and (before := _text_of(turns[at - 2])):
        parts.insert(0, before)
        at -= 2
    return "".join(parts)


def _text_of(turn: Turn) -> str:
    return turn.text if isinstance(turn, AssistantTurn) else ""


def _is_continuation(turn: Turn) -> bool:
    return isinstance(turn, UserTurn) and Text(str(CUT_ANSWER)) in turn.content
