"""What a headless run writes: the answer alone, the result as JSON, or every event as a line of JSON."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Protocol

from ..core.content import encodable
from ..core.events import Envelope, Retried, ToolFinished, ToolRequested, ToolStarted, Warned
from ..output.plain import summary
from ..output.run_answer import Ending, RunAnswer, result_line
from ..output.stream_json import encode_json_line

if TYPE_CHECKING:
    from ..output.agent_streams import AgentStreams
    from .stdio import StdoutWriter


class Printer(Protocol):
    async def begin(self, init: dict[str, Any], /) -> None: ...

    async def watch(self, envelope: Envelope, /) -> None: ...

    def watch_last(self, envelope: Envelope, /) -> None:
        """After an interrupt: write without waiting."""
        ...

    async def end(self, answer: RunAnswer, /) -> None: ...

    def end_last(self, answer: RunAnswer, /) -> None: ...


class TextPrinter:
    """The answer on stdout; everything else on stderr."""

    def __init__(self, out: StdoutWriter, *, verbose: bool) -> None:
        self._out = out
        self._verbose = verbose

    async def begin(self, init: dict[str, Any], /) -> None:
        if self._verbose:
            _say(f"session {init['session_id']}, model {init['model']}, mode {init['permissionMode']}")

    async def watch(self, envelope: Envelope, /) -> None:
        self.watch_last(envelope)

    def watch_last(self, envelope: Envelope, /) -> None:
        match envelope.event:
            case Retried(retrying):
                _say(f"{retrying.reason} Retrying in {retrying.seconds:.0f} s.")
            case Warned(text):
                _say(text)
            case ToolStarted(_, view) if self._verbose:
                _say(summary(view))
            case ToolFinished(outcome) if self._verbose and outcome.is_error:
                _say(f"{outcome.call.name} {outcome.status}: {summary(outcome.view)}")
            case _:
                pass

    async def end(self, answer: RunAnswer, /) -> None:
        await self._out.write(self._encode(answer))

    def end_last(self, answer: RunAnswer, /) -> None:
        self._out.write_last(self._encode(answer))

    def _encode(self, answer: RunAnswer) -> bytes:
        for error in answer.errors:
            _say(error)
        for denial in answer.denials:
            _say(f"{denial.call.name} was not allowed: {denial.reason}")
        text = answer.text.rstrip("\n")
        return encodable(text).encode() + b"\n" if text and answer.ending is Ending.SUCCESS else b""


class StreamPrinter:
    """One JSON object for each line, as it happens."""

    def __init__(self, out: StdoutWriter, streams: AgentStreams, session_id: str) -> None:
        self._out = out
        self._streams = streams
        self._session_id = session_id
        self._told: dict[str, asyncio.Event] = {}

    async def begin(self, init: dict[str, Any], /) -> None:
        await self.say(init)

    async def say(self, line: dict[str, Any]) -> None:
        await self._out.write(encode_json_line(line))

    async def has_told_of(self, call_id: str) -> None:
        """Return when the line with this call is written, so that a question about it comes after it."""
        await self._told.setdefault(call_id, asyncio.Event()).wait()

    async def watch(self, envelope: Envelope, /) -> None:
        if lines := self._lines(envelope):
            await self._out.write(lines)
        match envelope.event:
            case ToolRequested(call):
                self._told.setdefault(call.id, asyncio.Event()).set()
            case ToolFinished(outcome):
                self._told.pop(outcome.call.id, None)
            case _:
                pass

    def watch_last(self, envelope: Envelope, /) -> None:
        if lines := self._lines(envelope):
            self._out.write_last(lines)

    async def end(self, answer: RunAnswer, /) -> None:
        await self._out.write(encode_json_line(self._result(answer)))

    def end_last(self, answer: RunAnswer, /) -> None:
        self._out.write_last(encode_json_line(self._result(answer)))

    def _lines(self, envelope: Envelope) -> bytes:
        return b"".join(encode_json_line(line) for line in self._streams.lines(envelope))

    def _result(self, answer: RunAnswer) -> dict[str, Any]:
        return result_line(answer, session_id=self._session_id, uuid=self._streams.main.new_id())


class JsonPrinter:
    """The result as one JSON object; with `verbose`, all the lines of the stream as one list."""

    def __init__(self, out: StdoutWriter, streams: AgentStreams, session_id: str, *, verbose: bool) -> None:
        self._out = out
        self._streams = streams
        self._session_id = session_id
        self._lines: list[dict[str, Any]] | None = [] if verbose else None

    async def begin(self, init: dict[str, Any], /) -> None:
        if self._lines is not None:
            self._lines.append(init)

    async def watch(self, envelope: Envelope, /) -> None:
        self.watch_last(envelope)

    def watch_last(self, envelope: Envelope, /) -> None:
        if isinstance(envelope.event, Warned):
            _say(envelope.event.text)
        if self._lines is not None:
            self._lines += self._streams.lines(envelope)

    async def end(self, answer: RunAnswer, /) -> None:
        await self._out.write(self._encode(answer))

    def end_last(self, answer: RunAnswer, /) -> None:
        self._out.write_last(self._encode(answer))

    def _encode(self, answer: RunAnswer) -> bytes:
        result = result_line(answer, session_id=self._session_id, uuid=self._streams.main.new_id())
        if self._lines is None:
            return encode_json_line(result)
        return encode_json_line([*self._lines, result])


def _say(text: str) -> None:
    print(f"ferrule: {encodable(text)}", file=sys.stderr)
