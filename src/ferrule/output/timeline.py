"""A conversation as a time line: what the model says, and how its calls lay beside each other.

From a message's first call on, one bar shows how long the model was still
writing and one each how long the calls took, on a common scale.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

from ..core.calls import Status, ToolOutcome
from ..core.events import (
    Envelope,
    MessageEnded,
    MessageStarted,
    TextStreamed,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from .plain import Style, clean, fit, summary

BAR = 24
NARROW = 72
_COLOURS = {Status.OK: "green", Status.DENIED: "yellow", Status.INVALID: "yellow", Status.CANCELLED: "yellow"}


@dataclass(slots=True)
class _Call:
    began: float
    title: str
    ended: float = 0.0
    outcome: ToolOutcome | None = None


@dataclass(slots=True)
class _Message:
    began: float
    ended: float = 0.0
    text: list[str] = field(default_factory=list[str])
    calls: dict[str, _Call] = field(default_factory=dict[str, _Call])

    def is_over(self) -> bool:
        return bool(self.ended) and all(call.outcome for call in self.calls.values())


class Timeline:
    """Reads envelopes, writes lines."""

    def __init__(self, write: Callable[[str], None], *, style: Style, width: int, base: str = "") -> None:
        self._write = write
        self._base = f"{base}/" if base else ""
        self._style = style
        self._width = width
        self._message: _Message | None = None
        self._calls = 0
        self._side_by_side = 0

    def __call__(self, envelope: Envelope) -> None:
        event = envelope.event
        message = self._message
        if isinstance(event, TurnStarted):
            self._say("▸ " if self._style.unicode else "> ", event.prompt, "bold")
        elif isinstance(event, MessageStarted):
            self._message = _Message(envelope.time)
        elif isinstance(event, TurnEnded):
            if event.reason != "end":
                self._say("! ", f"The turn ended early: {event.error or event.reason}.", "yellow")
        elif message is not None:
            self._in_message(envelope, message)

    def close(self) -> None:
        """Say in one sentence what was seen."""
        beside = f"{self._side_by_side} of them side by side with another"
        calls = "1 call" if self._calls == 1 else f"{self._calls} calls"
        self._print_wrapped("", f"{calls}, {beside}, each with one result.")

    def _in_message(self, envelope: Envelope, message: _Message) -> None:
        match envelope.event:
            case TextStreamed(text):
                message.text.append(text)
            case ToolRequested(call):
                message.calls[call.id] = _Call(envelope.time, call.name)
            case ToolStarted(call, view) if call.id in message.calls:
                message.calls[call.id].title = summary(view)
            case ToolFinished(outcome) if outcome.call.id in message.calls:
                message.calls[outcome.call.id].outcome = outcome
                message.calls[outcome.call.id].ended = envelope.time
            case MessageEnded():
                message.ended = envelope.time
            case _:
                return
        if message.is_over():
            self._show(message)
            self._message = None

    def _show(self, message: _Message) -> None:
        self._say("  ", "".join(message.text))
        if not message.calls:
            return
        calls = list(message.calls.values())
        self._calls += len(calls)
        self._side_by_side += sum(
            any(other is not call and other.began < call.ended and call.began < other.ended for other in calls)
            for call in calls
        )
        since = min(call.began for call in calls)
        until = max(message.ended, *(call.ended for call in calls))
        scale = (since, max(until - since, 1e-9))
        self._row("the model still writes", "", since, message.ended, scale, "cyan")
        for call in calls:
            assert call.outcome is not None
            title, result = (self._shorten(text) for text in (call.title, _result(call.outcome)))
            self._row(title, result, call.began, call.ended, scale, _colour(call.outcome.status))
            if call.outcome.is_error:
                self._print_wrapped("      ", self._shorten(summary(call.outcome.view)), "dim")
        self._write("")

    def _row(self, title: str, result: str, began: float, ended: float, scale: tuple[float, float], hue: str) -> None:
        time = f"{(ended - began) * 1000:8.1f} ms"
        if self._width < NARROW:
            self._write(f"  {self._fit(title, self._width - 15)}{self._style.paint(time, hue)}")
            if result:
                self._write(f"    {self._style.paint(self._fit(result, self._width - 5).rstrip(), 'dim')}")
            return
        room = self._width - BAR - len(time) - 6
        left = room * 3 // 5
        words = f"  {self._fit(title, left)} {self._style.paint(self._fit(result, room - left - 1), 'dim')}"
        self._write(f"{words} {self._bar(began, ended, scale, hue)}{time}")

    def _bar(self, began: float, ended: float, scale: tuple[float, float], hue: str) -> str:
        full, empty = ("█", "·") if self._style.unicode else ("#", ".")
        first = min(BAR - 1, int((began - scale[0]) / scale[1] * BAR))
        cells = max(1, min(BAR - first, round((ended - began) / scale[1] * BAR)))
        before, after = empty * first, empty * (BAR - first - cells)
        return self._style.paint(before, "dim") + self._style.paint(full * cells, hue) + self._style.paint(after, "dim")

    def _fit(self, text: str, width: int) -> str:
        return fit(text, width, ellipsis=self._style.ellipsis)

    def _shorten(self, text: str) -> str:
        return clean(text.replace(self._base, "") if self._base else text)

    def _say(self, lead: str, text: str, *styles: str) -> None:
        for paragraph in text.split("\n"):
            self._print_wrapped(lead, clean(paragraph), *styles)
            lead = "  "
        self._write("")

    def _print_wrapped(self, lead: str, text: str, *styles: str) -> None:
        for line in textwrap.wrap(text, max(10, self._width - len(lead))) or [""]:
            self._write(self._style.paint(lead + line, *styles))
            lead = " " * len(lead)


def _colour(status: Status) -> str:
    return _COLOURS.get(status, "red")


def _result(outcome: ToolOutcome) -> str:
    return str(outcome.status) if outcome.is_error else f"{outcome.status}: {summary(outcome.view)}"
