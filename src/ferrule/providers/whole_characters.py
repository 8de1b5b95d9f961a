"""Joins characters that a service split in two, as services that count in UTF-16 do, before anybody sees a half."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from ..core.content import join_halves
from ..core.model import CallDelta, ModelEvent, TextDelta, ThoughtDelta, ThoughtReady

Delta: TypeAlias = TextDelta | ThoughtDelta | CallDelta


class WholeCharacters:
    """Holds back the first half of a character until the next piece."""

    def __init__(self) -> None:
        self._half: Delta | None = None

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        half, self._half = self._half, None
        if half is not None and not _goes_on(half, event):
            yield half
            half = None
        match event:
            case TextDelta() | ThoughtDelta() | CallDelta():
                yield from self._delta(event, _text(half) if half else "")
            case ThoughtReady(thought):
                yield ThoughtReady(replace(thought, text=join_halves(thought.text)))
            case _:
                yield event

    def _delta(self, delta: Delta, before: str) -> Iterator[ModelEvent]:
        text = _text(delta)
        whole = join_halves(before + text) if before else text
        if whole and "\ud800" <= whole[-1] <= "\udbff":
            self._half = _with(delta, whole[-1])
            whole = whole[:-1]
            if not whole:
                return
        yield delta if whole is text else _with(delta, whole)


def _goes_on(half: Delta, event: ModelEvent) -> bool:
    if isinstance(half, CallDelta):
        return isinstance(event, CallDelta) and event.call_id == half.call_id
    return type(event) is type(half)


def _text(delta: Delta) -> str:
    return delta.json if isinstance(delta, CallDelta) else delta.text


def _with(delta: Delta, text: str) -> Delta:
    return replace(delta, json=text) if isinstance(delta, CallDelta) else type(delta)(text)
