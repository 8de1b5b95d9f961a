"""What a headless run writes: the answer alone, the result as JSON, or every event as a line of JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

from ..core.content import encodable
from ..core.events import Envelope, Retried, ToolFinished, ToolStarted, Warned
from ..core.ids import new_uuid
from ..output.plain import summary
from ..output.run_answer import Ending, RunAnswer, result_line
from ..output.stream_json import encode_json_line

if TYPE_CHECKING:
    from ..sdk.conversation import Line, Lines
    from .stdio import StdoutWriter


class Printer(Protocol):
    """Writes what a `sdk.conversation.Listener` is told."""

    async def tell(self, line: Line, /) -> None: ...

    def tell_at_once(self, line: Line, /) -> None: ...

    async def watch(self, envelope: Envelope, lines: Lines, /) -> None: ...

    def watch_last(self, envelope: Envelope, lines: Lines, /) -> None:
        """After an interrupt: write without waiting."""
        ...

    async def finish(self, answer: RunAnswer, session_id: str, /) -> None: ...

    def finish_last(self, answer: RunAnswer, session_id: str, /) -> None: ...


class TextPrinter:
    """The answer on stdout; everything else on stderr."""

    def __init__(self, out: StdoutWriter, *, verbose: bool) -> None:
        self._out = out
        self._verbose = verbose

    async def tell(self, line: Line, /) -> None:
        self.tell_at_once(line)

    def tell_at_once(self, line: Line, /) -> None:
        if self._verbose and line.get("subtype") == "init":
            say(f"session {line['session_id']}, model {line['model']}, mode {line['permissionMode']}")

    async def watch(self, envelope: Envelope, lines: Lines, /) -> None:
        self.watch_last(envelope, lines)

    def watch_last(self, envelope: Envelope, lines: Lines, /) -> None:
        match envelope.event:
            case Retried(retrying):
                say(f"{retrying.reason} Retrying in {retrying.seconds:.0f} s.")
            case Warned(text):
                say(text)
            case ToolStarted(_, view) if self._verbose:
                say(summary(view))
            case ToolFinished(outcome) if self._verbose and outcome.is_error:
                say(f"{outcome.call.name} {outcome.status}: {summary(outcome.view)}")
            case _:
                pass

    async def finish(self, answer: RunAnswer, session_id: str, /) -> None:
        await self._out.write(self._encode(answer))

    def finish_last(self, answer: RunAnswer, session_id: str, /) -> None:
        self._out.write_last(self._encode(answer))

    def _encode(self, answer: RunAnswer) -> bytes:
        for error in answer.errors:
            say(error)
        text = answer.text.rstrip("\n")
        return encodable(text).encode() + b"\n" if text and answer.ending is Ending.SUCCESS else b""


class StreamPrinter:
    """One JSON object for each line, as it happens."""

    def __init__(self, out: StdoutWriter) -> None:
        self._out = out

    async def tell(self, line: Line, /) -> None:
        await self._out.write(encode_json_line(line))

    def tell_at_once(self, line: Line, /) -> None:
        self._out.write_last(encode_json_line(line))

    async def watch(self, envelope: Envelope, lines: Lines, /) -> None:
        if content := _joined(lines):
            await self._out.write(content)

    def watch_last(self, envelope: Envelope, lines: Lines, /) -> None:
        if content := _joined(lines):
            self._out.write_last(content)

    async def finish(self, answer: RunAnswer, session_id: str, /) -> None:
        await self._out.write(_encode_result(answer, session_id))

    def finish_last(self, answer: RunAnswer, session_id: str, /) -> None:
        self._out.write_last(_encode_result(answer, session_id))


class JsonPrinter:
    """The result as one JSON object; with `verbose`, all the lines of the stream as one list."""

    def __init__(self, out: StdoutWriter, *, verbose: bool) -> None:
        self._out = out
        self._lines: list[Line] | None = [] if verbose else None

    async def tell(self, line: Line, /) -> None:
        self.tell_at_once(line)

    def tell_at_once(self, line: Line, /) -> None:
        if self._lines is not None:
            self._lines.append(line)

    async def watch(self, envelope: Envelope, lines: Lines, /) -> None:
        self.watch_last(envelope, lines)

    def watch_last(self, envelope: Envelope, lines: Lines, /) -> None:
        if isinstance(envelope.event, Warned):
            say(envelope.event.text)
        if self._lines is not None:
            self._lines += lines()

    async def finish(self, answer: RunAnswer, session_id: str, /) -> None:
        await self._out.write(self._encode(answer, session_id))

    def finish_last(self, answer: RunAnswer, session_id: str, /) -> None:
        self._out.write_last(self._encode(answer, session_id))

    def _encode(self, answer: RunAnswer, session_id: str) -> bytes:
        result = result_line(answer, session_id=session_id, uuid=new_uuid())
        return encode_json_line(result if self._lines is None else [*self._lines, result])


def printer_for(output_format: str, out: StdoutWriter, *, verbose: bool) -> Printer:
    if output_format == "text":
        return TextPrinter(out, verbose=verbose)
    return JsonPrinter(out, verbose=verbose) if output_format == "json" else StreamPrinter(out)


def _joined(lines: Lines) -> bytes:
    return b"".join(encode_json_line(line) for line in lines())


def _encode_result(answer: RunAnswer, session_id: str) -> bytes:
    return encode_json_line(result_line(answer, session_id=session_id, uuid=new_uuid()))


def say(text: str) -> None:
    """To the person, on stderr."""
    print(f"ferrule: {encodable(text)}", file=sys.stderr)
