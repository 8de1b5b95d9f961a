"""A conversation from its transcript, well-formed whatever is missing there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.call_ids import CallIds
from ..core.calls import ToolCall
from ..core.content import Text
from ..core.model import AssistantTurn, ResultTurn, ToolResult, Turn, UserTurn
from .message_history import append_notes, prompt_text
from .recent_lines import ROOM, RecentLines
from .shortening import shorter
from .transcript import CWD, FOUND, LINKED, VALUE
from .transcript_entries import (
    PeekedEntry,
    UnreadableEntry,
    assistant_turn,
    entry_of,
    form_of,
    kind_of,
    note_texts,
    peek,
    result_turn,
    texts,
    user_turn,
)

NO_RESULT = "The program ended before this call had a result. Changes it had already made may remain."
NO_BEGINNING = "[The beginning of this conversation is lost.]"


@dataclass(slots=True)
class Restored:
    """What a transcript says of one agent's conversation."""

    turns: list[Turn] = field(default_factory=list[Turn])
    workspace: str = ""
    """Where it took place the last time."""
    cwd: str = ""
    found_tools: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    prompts: int = 0
    asked: list[str] = field(default_factory=list[str])
    """The prompts, word for word, as far back as compactions have kept them."""
    last: str | None = None
    """The id of the last entry of the chain, for the next one to name."""
    is_cut: bool = False
    """Whether the last turn did not finish."""
    damaged: int = 0
    """Lines that cannot be read: the last one, if a kill cut it short; others, if a disk failed."""


def restore_conversation(lines: Iterable[bytes], agent: str = "main", *, room: int = ROOM) -> Restored:
    """Every call gets a result: a missing one is replaced by a note that the program ended before it.

    Lines are read as they come. Of a conversation that no model could read, the last `room` bytes of entries are kept,
    and of the rest what the user wrote.
    """
    found = Restored()
    recent = RecentLines(room)
    for line in lines:
        try:
            peeked = peek(line) or _look(line)
        except UnreadableEntry:
            found.damaged += 1
            continue
        if peeked.agent != agent:
            continue
        if peeked.kind in ("meta", "state"):
            _take_line(line, found)
        else:
            recent.add(line, peeked.kind)
    found.prompts, found.is_cut, found.last = recent.prompts_before, recent.is_cut, recent.last_before()
    found.asked = recent.remembered_prompts()
    if beginning := recent.beginning():
        found.turns.append(UserTurn.saying(beginning))
    for line in recent:
        _take_line(line, found)
    _answer_what_is_open(found.turns)
    found.turns = _with_own_ids(found.turns)
    return found


def _look(line: bytes) -> PeekedEntry:
    """Raises `UnreadableEntry`."""
    entry = entry_of(line)
    return PeekedEntry(kind_of(entry), str(entry.get("agent")))


def _take_line(line: bytes, found: Restored) -> None:
    try:
        _take(entry_of(line), found)
    except UnreadableEntry:
        found.damaged += 1


def _with_own_ids(turns: list[Turn]) -> list[Turn]:
    """Each call with an id of its own, as services refuse duplicates; results are in the order of their calls."""
    ids = CallIds()
    own: list[Turn] = []
    calls: tuple[ToolCall, ...] = ()
    for turn in turns:
        match turn:
            case AssistantTurn(parts):
                told_apart = tuple(
                    replace(part, id=ids.claim(part.id)) if isinstance(part, ToolCall) else part for part in parts
                )
                turn = turn if told_apart == parts else AssistantTurn(told_apart)
                calls = turn.calls
            case ResultTurn(results, messages):
                renamed = tuple(replace(one, call_id=call.id) for one, call in zip(results, calls, strict=True))
                turn = turn if renamed == results else ResultTurn(renamed, messages)
            case UserTurn():
                pass
        own.append(turn)
    return own


def _take(entry: Mapping[str, Any], found: Restored) -> None:
    match kind_of(entry):
        case "user":
            asked = user_turn(entry)
            _add(found.turns, asked)
            found.asked += filter(None, (prompt_text(asked),))
            found.prompts += 1
            found.is_cut = True
        case "notes":
            _tell(found.turns, note_texts(entry), apart=entry.get("apart") is True)
        case "assistant":
            _add(found.turns, assistant_turn(entry))
        case "results":
            _add(found.turns, result_turn(entry))
        case "compaction":
            _compact(entry, found)
        case "state":
            _set(entry, found)
        case "meta":
            if isinstance(place := entry.get("workspace"), str):
                found.workspace = place
        case "end":
            found.is_cut = False
        case _:
            pass  # usage, and what later versions may add
    if entry.get("type") in LINKED and isinstance(id := entry.get("uuid"), str):
        found.last = id


def _add(turns: list[Turn], turn: Turn) -> None:
    """At the end, so that a result follows each call and nothing else does."""
    match turn:
        case UserTurn(content):
            _answer_what_is_open(turns)
            if content:
                turns.append(turn)
        case AssistantTurn(parts):
            _answer_what_is_open(turns)
            if parts:
                turns += [turn] if turns else [UserTurn.saying(NO_BEGINNING), turn]
        case ResultTurn(_, messages):
            if _open_calls(turns):
                _answer_what_is_open(turns, turn)
            elif messages:
                turns.append(UserTurn(tuple(map(Text, messages))))


def _tell(turns: list[Turn], words: tuple[str, ...], *, apart: bool) -> None:
    _answer_what_is_open(turns)
    if apart or not turns:
        turns.append(UserTurn(tuple(map(Text, words))))
    else:
        turns[-1:] = append_notes(turns[-1], words)


def _compact(entry: Mapping[str, Any], found: Restored) -> None:
    summary, form = "".join(note_texts(entry)), form_of(entry)
    _answer_what_is_open(found.turns)
    turns, found.turns = found.turns, []
    for turn in shorter(turns, form, summary=summary):
        _add(found.turns, turn)
    if summary:
        found.asked = list(texts(entry, "prompts")) if "prompts" in entry else []


def _set(entry: Mapping[str, Any], found: Restored) -> None:
    key, value = entry.get("key"), entry.get("value")
    if key == CWD and isinstance(value, str):
        found.cwd = value
    elif key == FOUND:
        found.found_tools = texts(entry, "value")
    elif isinstance(key, str) and key.startswith(VALUE):
        found.values[key.removeprefix(VALUE)] = value


def _open_calls(turns: list[Turn]) -> tuple[str, ...]:
    last = turns[-1] if turns else None
    return tuple(call.id for call in last.calls) if isinstance(last, AssistantTurn) else ()


def _answer_what_is_open(turns: list[Turn], given: ResultTurn | None = None) -> None:
    """With the given results, in the order of the calls, and with a note for each missing one."""
    calls = _open_calls(turns)
    if not calls:
        return
    results = list(given.results) if given else []
    answers: list[ToolResult] = []
    for id in calls:
        own = next((one for one in results if one.call_id == id), None)
        if own is not None:
            results.remove(own)
        answers.append(own or ToolResult(id, (Text(NO_RESULT),), is_error=True))
    turns.append(ResultTurn(tuple(answers), given.messages if given else ()))
