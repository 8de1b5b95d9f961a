"""The forms that a conversation may take when it must be shorter, from the one that keeps most to the one that keeps
least. docs/sessions.md has the order as a table.

Each form is a few numbers, so that a transcript can say which one was taken, and the conversation can be restored
from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from ..core.calls import ToolCall
from ..core.content import Block, Text
from ..core.model import AssistantPart, AssistantTurn, ResultTurn, Thought, Turn, UserTurn
from ..core.values import named_value, plain_value
from .window import TurnSizes, estimate

SHORT = 400
"""Characters of a text that is left alone."""
HEAD = 200
"""Characters that stay of a long argument of an older call."""
CHARACTERS = 3
"""To a token, where a number of tokens becomes a number of characters."""
LEFT_OUT = "[This was left out to make room in the conversation. If it is needed, get it again.]"
CUT = "\n[… {:,} characters were left out here to make room …]\n"
CUT_ARGUMENT = "… [{:,} more characters, left out here to make room]"
CLEARED = "[The user cleared the conversation before this place.]"


@named_value
class Form:
    """How a conversation is shortened. `kept` turns follow the summary, if there is one; other forms keep them all."""

    kept: int
    whole: int
    """How many of the last turns have results and arguments of any length; before them, a mark replaces long ones."""
    longest: int = 0
    """Characters of results and arguments in those last turns; 0 for any number."""
    words: int = 0
    """Characters of prompts and answers in all turns; 0 for any number."""
    pictures: bool = True
    """Whether pictures and documents stay in the last turns."""


@plain_value
class Shortened:
    """A conversation in its new form."""

    turns: tuple[Turn, ...]
    summary: str
    """What replaces the older turns; empty if parts of them were left out instead."""
    form: Form
    is_written: bool = True
    """Whether the model wrote the summary."""
    prompts: tuple[str, ...] = ()
    """The user's prompts that it still has."""

    @property
    def how(self) -> Literal["summary", "results_dropped", "turns_dropped"]:
        if self.summary:
            return "summary" if self.is_written else "turns_dropped"
        return "results_dropped"


def shorter(turns: Sequence[Turn], form: Form, *, summary: str = "") -> tuple[Turn, ...]:
    """The conversation in this form. A turn that stays as it is is the same object.

    Signed reasoning is dropped: services accept it only after the same turns that it followed originally. What a
    service sent as fields of its own stays, since some refuse their messages without them.
    """
    head, base = _base(turns, form, summary)
    return (*head, *_trimmed(base, form))


def _base(turns: Sequence[Turn], form: Form, summary: str) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """The summary, and the turns behind it with marks in the older ones: what forms to try have in common."""
    head: tuple[Turn, ...] = ()
    if summary:
        head, turns = (UserTurn.saying(summary),), turns[max(0, len(turns) - form.kept) :]
    first = max(0, len(turns) - form.whole)
    return head, tuple(_without_thoughts((*map(_slim, turns[:first]), *turns[first:])))


def _trimmed(base: Sequence[Turn], form: Form) -> Iterator[Turn]:
    """Marks are shorter than any limit, so the older turns can be treated like the last ones."""
    for turn in base:
        yield _limit_words(_trim(turn, form), form.words)


def without_turns() -> Shortened:
    """A conversation that was cleared."""
    return Shortened((UserTurn.saying(CLEARED),), CLEARED, Form(kept=0, whole=0))


def without_pictures(turns: Sequence[Turn]) -> Shortened | None:
    """For a service that does not take them. `None` if there are none."""
    form = Form(kept=len(turns), whole=len(turns), pictures=False)
    made = tuple(_trim(turn, form) for turn in turns)
    return Shortened(shorter(turns, form), "", form) if made != tuple(turns) else None


def fit_forms(*, kept: int, last: int, room: int) -> Iterator[Form]:
    """The forms to try, each shorter than the one before: the last `last` turns stay whole in the first of them."""
    yield Form(kept=kept, whole=last)
    yield Form(kept=kept, whole=last, pictures=False)
    lengths = tuple(_halves(room * CHARACTERS))
    for longest in lengths:
        yield Form(kept=kept, whole=last, longest=longest, pictures=False)
    for words in lengths:
        yield Form(kept=kept, whole=last, longest=SHORT, words=words, pictures=False)


def _halves(characters: int) -> Iterator[int]:
    while characters > SHORT:
        yield characters
        characters //= 2
    yield SHORT


def fit(
    turns: Sequence[Turn], sizes: TurnSizes, *, kept: int, last: int, room: int, summary: str = ""
) -> tuple[tuple[Turn, ...], Form] | None:
    """The first form of at most that many tokens; `None` if there is none."""
    forms = list(fit_forms(kept=kept, last=last, room=room))
    head, base = _base(turns, forms[0], summary)
    if sizes.estimate((*head, *_trimmed(base, forms[-1]))) > room:
        return None
    for form in forms:
        made = (*head, *_trimmed(base, form))
        if sizes.estimate(made) <= room:
            return made, form
    return None


def first_kept_turn(turns: Sequence[Turn], tokens: int) -> int:
    """Where the last turns of at most that many tokens begin. A result stays with its call, the last turn always.

    >>> first_kept_turn([UserTurn.saying("x y " * 30), UserTurn.saying("y z " * 30)], 70)
    1
    """
    if not turns:
        return 0
    first = len(turns) - 1
    room = tokens - estimate(turns[first:])
    while first and (room := room - estimate(turns[first - 1 : first])) >= 0:
        first -= 1
    if isinstance(turns[first], ResultTurn):
        first += -1 if first == len(turns) - 1 else 1
    return first


def standing(turns: Sequence[Turn]) -> frozenset[str]:
    """The ids of the calls whose results can be read in these turns, whole."""
    whole = (turn for turn in turns if isinstance(turn, ResultTurn) and not any(map(_is_cut, turn.messages)))
    results = (result for turn in whole for result in turn.results)
    return frozenset(result.call_id for result in results if not any(map(_is_marked, result.content)))


def _is_marked(block: Block) -> bool:
    return isinstance(block, Text) and (block.text == LEFT_OUT or _is_cut(block.text))


def _is_cut(text: str) -> bool:
    return "characters were left out here to make room" in text


def cut_text(text: str, longest: int) -> str:
    """Its beginning and its end, with a mark between.

    >>> len(cut_text("x" * 5_000, 1_000)) <= 1_000
    True
    """
    if len(text) <= longest:
        return text
    room = max(0, longest - len(CUT) - 12)
    head = room * 2 // 3
    tail = room - head
    return text[:head] + CUT.format(len(text) - room) + (text[-tail:] if tail else "")


def _without_thoughts(turns: Sequence[Turn]) -> Iterator[Turn]:
    for turn in turns:
        if not isinstance(turn, AssistantTurn) or not any(map(_is_signed, turn.parts)):
            yield turn
        elif parts := tuple(part for part in turn.parts if not _is_signed(part)):
            yield AssistantTurn(parts)


def _is_signed(part: AssistantPart) -> bool:
    return isinstance(part, Thought) and part.extras is None


def _slim(turn: Turn) -> Turn:
    """An older turn, with marks for what is long."""
    match turn:
        case UserTurn(content):
            return turn if all(isinstance(block, Text) for block in content) else UserTurn(_without_media(content))
        case ResultTurn(results, messages):
            if all(_is_short(one.content) for one in results):
                return turn
            short = tuple(one if _is_short(one.content) else replace(one, content=(Text(LEFT_OUT),)) for one in results)
            return ResultTurn(short, messages)
        case AssistantTurn(parts):
            return _with_parts(turn, tuple(_limit_call(part, SHORT, HEAD) for part in parts))


def _is_short(content: Collection[Block]) -> bool:
    return all(isinstance(block, Text) and len(block.text) <= SHORT for block in content)


def _trim(turn: Turn, form: Form) -> Turn:
    """One of the last turns."""
    longest = form.longest
    if not longest and form.pictures:
        return turn
    match turn:
        case UserTurn(content):
            return turn if form.pictures else _with_content(turn, _without_media(content))
        case ResultTurn(results, messages):
            made = results
            if not form.pictures:
                made = tuple(replace(one, content=_without_media(one.content)) for one in made)
            if longest:
                made = tuple(replace(one, content=_limit_texts(one.content, longest)) for one in made)
                messages = tuple(cut_text(text, longest) for text in messages)
            return turn if (made, messages) == (results, turn.messages) else ResultTurn(made, messages)
        case AssistantTurn(parts):
            return _with_parts(turn, tuple(_limit_call(part, longest, longest) for part in parts)) if longest else turn


def _limit_words(turn: Turn, words: int) -> Turn:
    """The texts of the user and the model themselves."""
    match turn:
        case UserTurn(content) if words:
            return _with_content(turn, _limit_texts(content, words))
        case AssistantTurn(parts) if words:
            return _with_parts(
                turn, tuple(Text(cut_text(part.text, words)) if isinstance(part, Text) else part for part in parts)
            )
        case ResultTurn(results, messages) if words:
            limited = tuple(cut_text(text, words) for text in messages)
            return turn if limited == messages else ResultTurn(results, limited)
        case _:
            return turn


def _with_content(turn: UserTurn, content: tuple[Block, ...]) -> UserTurn:
    return turn if content == turn.content else UserTurn(content)


def _with_parts(turn: AssistantTurn, parts: tuple[AssistantPart, ...]) -> AssistantTurn:
    return turn if parts == turn.parts else AssistantTurn(parts)


def _without_media(content: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(block if isinstance(block, Text) else Text(LEFT_OUT) for block in content)


def _limit_texts(content: tuple[Block, ...], longest: int) -> tuple[Block, ...]:
    return tuple(Text(cut_text(block.text, longest)) if isinstance(block, Text) else block for block in content)


def _limit_call(part: AssistantPart, longest: int, head: int) -> AssistantPart:
    """A call with the beginnings of its long arguments. Part of a file is not to be taken for all of it, so the mark
    comes last.
    """
    if not isinstance(part, ToolCall):
        return part
    head = max(0, min(head, longest - len(CUT_ARGUMENT) - 12))
    arguments = cast(Mapping[str, Any], _limit_value(part.arguments, longest, head))
    malformed = part.malformed if part.malformed is None else cast(str, _limit_value(part.malformed, longest, head))
    if arguments == part.arguments and malformed == part.malformed:
        return part
    return replace(part, arguments=arguments, malformed=malformed)


def _limit_value(value: Any, longest: int, head: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else value[:head] + CUT_ARGUMENT.format(len(value) - head)
    if isinstance(value, Mapping):
        items = cast(Mapping[str, Any], value)
        return {key: _limit_value(one, longest, head) for key, one in items.items()}
    if isinstance(value, list | tuple):
        return [_limit_value(one, longest, head) for one in cast(Sequence[Any], value)]
    return value
