"""The text of a message while it streams: what of it is reasoning, and what may be a call and has to wait.

Text passes at once. From a place on where a call may begin it is held back, until it is clear that none does or
the message ends; then `text_calls` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..core.model import ModelEvent, TextDelta, Thought, ThoughtDelta, ThoughtReady
from ..core.values import plain_value

if TYPE_CHECKING:
    from ..core.tool import ToolSpec

_Verdict: TypeAlias = Literal["text", "wait", "call"]

_OPENS: Final = {"<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "[THINK]": "[/THINK]"}
_LONE: Final = "</think>"
_LONGEST_TAG: Final = 80
_TAG: Final = re.compile(r"<[^<>\s]*")
_ATTRIBUTES: Final = re.compile(r"<[\w:\uff5c-]+\s[^<>\n]*\Z")
_SORTED: Final = ("<|start|>", "<|channel|>", "<|from|>", "<|assistant|>")
_IN_TAGS: Final = ("tool", "func", "invoke", "python_tag", "action", "plugin", "recipient", "assistant")
_LINE_STARTS: Final = (
    "action:",
    "tool:",
    "tool name:",
    "tool call:",
    "function:",
    "function call:",
    "**",
    "functools[",
)
_NAMES: Final = (
    "name", "tool_name", "tool", "function", "action", "recipient_name", "arguments", "parameters", "args", "params",
    "input", "id", "type", "index", "call_id", "thought", "reason", "explanation", "kwargs",
)  # fmt: skip
"""Names with which the JSON of a call may begin; `tool_calls`, `function_name` and so on begin like one of them."""
_FENCE: Final = re.compile(r"(?:`{3,}|~{3,})([^\n`]*)\n")
_FENCES: Final = frozenset({"", "json", "jsonc", "json5"})


@plain_value
class TextCall:
    """A call that was written as text."""

    name: str
    arguments: Mapping[str, Any]


class WrittenText:
    """The events for the text of one message."""

    def __init__(
        self,
        tools: Sequence[ToolSpec],
        *,
        opens_in_thought: bool = False,
        found_lone_end: Callable[[], None] = lambda: None,
    ) -> None:
        """`opens_in_thought`: the service's template begins the reasoning, so only its end can be seen.

        `found_lone_end` is called where such an end is found: the next message will begin with reasoning as well.
        """
        self._watch = _Watch(tools) if tools else None
        self._state: Literal["start", "thought", "text"] = "start"
        self._is_guess = opens_in_thought
        self._closer = _LONE
        self._buffer = ""
        self._thought: list[str] = []
        self._has_text = False
        self._found_lone_end = found_lone_end

    def feed(self, text: str) -> Iterator[ModelEvent]:
        if self._state == "text":
            yield from self._text(text)
            return
        self._buffer += text
        before = ""
        while self._buffer != before:
            before = self._buffer
            yield from self._think() if self._state == "thought" else self._start()

    def end_guess(self) -> Iterator[ModelEvent]:
        """The service sends reasoning apart, or a call: the text is text."""
        if self._is_guess and self._state != "text":
            self._is_guess = False
            self._state = "text"
            text, self._buffer = "".join(self._thought) + self._buffer, ""
            self._thought.clear()
            if text:
                yield from self._text(text)

    def release(self) -> Iterator[ModelEvent]:
        """A call came as a call, so none is in the text."""
        yield from self.end_guess()
        if self._watch and (text := self._watch.release()):
            yield TextDelta(text)
        self._watch = None

    def end(self, *, is_cut: bool) -> Iterator[ModelEvent | TextCall]:
        """What was held back: reasoning, text, and the calls in it."""
        yield from self.end_guess()
        if self._state == "thought":
            self._thought.append(self._buffer)
            yield from self._end_thought()
        elif self._buffer:
            yield from self._text(self._buffer)
        self._buffer = ""
        watch, self._watch = self._watch, None
        for piece in watch.end(is_cut=is_cut) if watch else ():
            yield TextDelta(piece) if isinstance(piece, str) else piece

    def _start(self) -> Iterator[ModelEvent]:
        """Nothing but blanks so far, or reasoning that has ended."""
        text = self._buffer.lstrip()
        opener = next((tag for tag in _OPENS if text.startswith(tag)), None)
        if opener:
            self._closer, self._state, self._buffer = _OPENS[opener], "thought", text[len(opener) :]
            self._is_guess = False
        elif text and self._is_guess and not any(tag.startswith(text) for tag in _OPENS):
            self._closer, self._state = _LONE, "thought"
            yield from self._think()
        elif text and not any(tag.startswith(text) for tag in _OPENS):
            self._state = "text"
            text, self._buffer = self._buffer, ""
            if not self._has_text and (end := _lone_end(text)) is not None:
                self._found_lone_end()
                self._thought.append(text[: end - len(_LONE)])
                yield ThoughtDelta(self._thought[0])
                yield from self._end_thought()
                self._state, self._buffer = "start", text[end:].lstrip("\n")
            else:
                yield from self._text(text)

    def _think(self) -> Iterator[ModelEvent]:
        thought, closer, rest = self._buffer.partition(self._closer)
        if closer:
            self._buffer = rest.lstrip("\n")
            self._state = "start"
        else:
            kept = next(
                (size for size in range(len(self._closer) - 1, 0, -1) if thought.endswith(self._closer[:size])), 0
            )
            thought, self._buffer = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            self._thought.append(thought)
            yield ThoughtDelta(thought)
        if closer:
            self._is_guess = False
            yield from self._end_thought()

    def _end_thought(self) -> Iterator[ModelEvent]:
        if (text := "".join(self._thought).strip("\n")).strip():
            yield ThoughtReady(Thought(text))
        self._thought.clear()

    def _text(self, text: str) -> Iterator[ModelEvent]:
        if not self._has_text:
            self._has_text = bool(text.strip())
        elif _LONE in text and (end := _lone_end(text)) is not None:
            self._found_lone_end()
            text = text[: end - len(_LONE)] + text[end:]
        shown = self._watch.feed(text) if self._watch else text
        if shown:
            yield TextDelta(shown)


def _lone_end(text: str) -> int | None:
    """Where reasoning ends that did not begin here: a tag at the beginning or the end of a line, not in code."""
    at = text.find(_LONE)
    if at < 0 or "`" in text[:at]:
        return None
    before, after = text[:at], text[at + len(_LONE) :]
    is_at_an_edge = not before.strip() or before.endswith("\n") or not after or after.startswith("\n")
    return at + len(_LONE) if is_at_an_edge else None


class _Watch:
    """Holds text back from where a call may begin."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._tools = tools
        self._names = tuple(tool.name for tool in tools)
        self._released: list[str] = []
        self._pending = ""
        self._holds = False
        self._is_line_start = True
        self._openers: re.Pattern[str] | None = None

    def feed(self, text: str) -> str:
        """What can be shown now."""
        if not self._pending and not self._is_line_start and _OPENING.search(text) is None:
            self._released.append(text)
            return text
        self._pending += text
        if self._holds:
            return ""
        at = 0
        while found := _CANDIDATE.search(self._pending, at):
            start = found.end() - len(found[1]) if found[1] else found.end()
            verdict = self._verdict(start)
            if verdict != "text":
                self._holds = verdict == "call"
                return self._release(start)
            at = max(found.end(), start + 1)
        return self._release(len(self._pending))

    def release(self) -> str:
        return self._release(len(self._pending))

    def end(self, *, is_cut: bool) -> list[str | TextCall]:
        if not self._pending:
            return []
        from .text_calls import find_text_calls

        before = len("".join(self._released))
        pieces = find_text_calls("".join((*self._released, self._pending)), self._schemas(), is_cut=is_cut)
        if all(isinstance(piece, str) for piece in pieces):
            return [self._pending]
        left: list[str | TextCall] = []
        for piece in pieces:
            if isinstance(piece, str):
                piece, before = piece[before:], max(0, before - len(piece))
            else:
                before = 0
            left += [piece] if piece else []
        return left

    def _schemas(self) -> Mapping[str, Mapping[str, Any]]:
        return {tool.name: tool.input_schema for tool in self._tools}

    def _release(self, end: int) -> str:
        shown, self._pending = self._pending[:end], self._pending[end:]
        if shown:
            self._released.append(shown)
            line = shown[shown.rfind("\n") + 1 :]
            self._is_line_start = ("\n" in shown or self._is_line_start) and not line.strip()
        return shown

    def _verdict(self, at: int) -> _Verdict:
        tail = self._pending[at : at + 400]
        if tail[0] == "<":
            return self._tag(at, tail)
        if tail[0] == "t":
            return _literal(tail, "to=functions.")
        if tail[0] == "[" and (verdict := _literal(tail.lower(), "[tool_call")) != "text":
            return verdict
        line = self._pending[self._pending.rfind("\n", 0, at) + 1 : at]
        if line.strip() or not ("\n" in self._pending[:at] or self._is_line_start):
            return "text"
        return self._line(tail)

    def _tag(self, at: int, tail: str) -> _Verdict:
        tag = _TAG.match(tail)
        assert tag is not None
        is_open = tag.end() == len(tail) or _ATTRIBUTES.match(tail) is not None
        if is_open and len(tail) < _LONGEST_TAG:
            return "wait"
        if tail.startswith(_SORTED):
            return "call"
        inner = tag[0].lower()
        if not (any(word in inner for word in _IN_TAGS) or any(name.lower() in inner for name in self._names)):
            return "text"
        if self._openers is None:
            from .text_call_forms import FormReader

            self._openers = FormReader("", self._schemas()).openers
        return "call" if self._openers.match(self._pending, at) else "text"

    def _line(self, tail: str) -> _Verdict:
        if tail[0] in "`~":
            return self._fence(tail)
        if tail[0] in "{[":
            return self._json(tail)
        if tail[0] == ">":
            return _literal(tail, ">>>")
        lower = tail.lower()
        verdicts = {_literal(lower, start) for start in _LINE_STARTS}
        verdicts |= {self._named(tail, name) for name in self._names}
        return "call" if "call" in verdicts else "wait" if "wait" in verdicts else "text"

    def _named(self, tail: str, name: str) -> _Verdict:
        """A tool's name at the beginning of a line, with arguments in brackets behind it."""
        rest = tail[len(name) :].lstrip() if tail.startswith(name) else "-"
        if name.startswith(tail) or not rest:
            return "wait" if len(tail) < _LONGEST_TAG else "text"
        return "call" if rest[0] in "({" else "text"

    def _json(self, tail: str) -> _Verdict:
        """Whether it begins with one of the names that calls have, or with a call of a tool."""
        plain = re.sub(r"[\s\"'\u201c\u201d]+", "", tail)
        key = plain.lstrip("[{")
        if not key:
            return "wait" if len(tail) < _LONGEST_TAG else "text"
        known = _NAMES if "{" in plain[: len(plain) - len(key)] else self._names
        if any(key.startswith(name) for name in (*known, *self._names)):
            return "call"
        return "wait" if any(name.startswith(key) for name in (*known, *self._names)) else "text"

    def _fence(self, tail: str) -> _Verdict:
        fence = _FENCE.match(tail)
        if fence is None:
            is_open = "\n" not in tail and (not tail.strip("`~") or tail.startswith(("```", "~~~")))
            return "wait" if is_open and len(tail) < _LONGEST_TAG else "text"
        language = fence[1].strip()
        if language in self._names or language.lower().startswith(("tool", "function", "action")):
            return "call"
        inside = tail[fence.end() :].lstrip()
        if language.lower() not in _FENCES:
            return "text"
        return "wait" if not inside else self._json(inside) if inside[0] in "{[" else "text"


def _literal(tail: str, wanted: str) -> _Verdict:
    if tail.startswith(wanted):
        return "call"
    return "wait" if wanted.startswith(tail) else "text"


_OPENING: Final = re.compile(r"[<\[\n]|\bt(?:o=|o?\Z)")
_CANDIDATE: Final = re.compile(r"([<\[])|\b(?=t(?:o=|o?\Z))|^[ \t]*(?=[A-Za-z{`~>*_])", re.MULTILINE)
