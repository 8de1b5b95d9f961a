"""A model's service on loopback that plays a script, faults included, and remembers what it was asked.

    async with ModelServer.playing({"turns": [{"text": "Hello."}]}) as server:
        model = open_model("anthropic:any", {"ANTHROPIC_BASE_URL": server.url})

As a process, for programs and measurements: `python -m ferrule.testing.model_server --script FILE`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from ..core.model import ModelError
from ..providers.script import FOUND, BadScript, Script, ScriptedFault, check_script, load_script
from .model_wires import anthropic_frames, openai_frames, responses_frames, texts_after_answer
from .services.strict_service import LoggedRequest, PlayedTurn, Refusal, StrictService

READ_AHEAD = 1 << 24
"""A long conversation is read in few rounds, so that a benchmark measures the client."""
FRAMES = {"/messages": anthropic_frames, "/chat/completions": openai_frames, "/responses": responses_frames}
"""How a turn is streamed, by the end of the request's path."""
KINDS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
LATER_KINDS = {429: "rate_limit_error", 529: "overloaded_error"}


class _AnyService(StrictService):
    """Speaks the three oldest languages, by the path of the request, and takes whatever comes."""

    name = "any"
    model = "anthropic:any"

    def environ(self, url: str) -> dict[str, str]:
        return {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": url}

    def converses(self, request: LoggedRequest) -> bool:
        return request.plain_path.endswith(tuple(FRAMES))

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        return None

    def overflow(self, tokens: int, window: int) -> Refusal:
        return Refusal(400, _error("invalid_request_error", f"prompt is too long: {tokens} tokens > {window} maximum"))

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        frames = next(one for end, one in FRAMES.items() if played.request.plain_path.endswith(end))
        return (frame.encode() for frame in frames(played.turn, played.place, played.results, "scripted"))

    def results(self, request: LoggedRequest) -> str:
        items: list[dict[str, Any]] = request.body.get("messages") or request.body.get("input") or []
        return texts_after_answer(items)


class ModelServer:
    """Each request gets the next turn. Takes any request in three languages, unless `service` is stricter."""

    def __init__(
        self,
        script: Script,
        *,
        service: StrictService | None = None,
        log: IO[bytes] | None = None,
        keep: bool = True,
        arrived: Callable[[int, LoggedRequest], None] | None = None,
    ) -> None:
        """`log` gets each body as a line; `keep` says whether `requests` does.

        `arrived` is called for each request, numbered from 1, as soon as it is complete.
        """
        self.script = script
        self._service = service or _AnyService()
        self._log = log
        self._keep = keep
        self._arrived = arrived
        self._count = 0
        self._next = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.requests: list[LoggedRequest] = []
        self.refusals: list[Refusal] = []
        """What the service itself refused, in this order; none where a client is as it should be."""
        self.accepted: list[LoggedRequest] = []
        """The requests that got a turn, or the fault in its place."""
        self.connections = 0

    @classmethod
    def playing(cls, script: Mapping[str, Any], *, service: StrictService | None = None) -> Self:
        return cls(check_script(dict(script), "the script"), service=service)

    @property
    def url(self) -> str:
        assert self._server is not None, "enter the server first"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def environ(self) -> dict[str, str]:
        """The variables with which Ferrule asks this server."""
        return self._service.environ(self.url)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Of the requests that have one: a server is also asked what it knows of its models."""
        return [request.body for request in self.requests if request.raw]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._on_connection, "127.0.0.1", port, limit=READ_AHEAD)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the loop closes sockets in its next round

    def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.is_closing():
                request = await _read(reader)
                self._remember(request)
                await self._answer(request, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()

    def _remember(self, request: LoggedRequest) -> None:
        self._count += 1
        if self._arrived:
            self._arrived(self._count, request)
        if self._keep:
            self.requests.append(request)
        if self._log:
            self._log.write(request.raw + b"\n")
            self._log.flush()

    async def _answer(self, request: LoggedRequest, writer: asyncio.StreamWriter) -> None:
        if not self._service.converses(request):
            await self._describe(request, writer)
        elif refusal := self._refusal(request):
            self.refusals.append(refusal)
            await _refuse(writer, refusal)
        elif self._next >= len(self.script.turns):
            words = f"The script has {len(self.script.turns)} turns and was asked for one more."
            await _refuse(writer, Refusal(400, _error("invalid_request_error", words)))
        else:
            place = self._next
            self._next += 1
            self.accepted += [request] if self._keep else []
            await self._play(place, request, writer)

    async def _describe(self, request: LoggedRequest, writer: asyncio.StreamWriter) -> None:
        described = self._service.describe(request)
        await _refuse(
            writer, _scripted_refusal(ScriptedFault(status=404)) if described is None else Refusal(200, described)
        )

    def _refusal(self, request: LoggedRequest) -> Refusal | None:
        try:
            return self._service.refuse(request)
        except json.JSONDecodeError:
            return Refusal(400, _error("invalid_request_error", "We could not parse the JSON body of your request."))

    async def _play(self, place: int, request: LoggedRequest, writer: asyncio.StreamWriter) -> None:
        turn = self.script.turns[place]
        fault = turn.fault or ScriptedFault()
        if fault.close:
            writer.close()
        elif fault.status is not None:
            await _refuse(writer, _scripted_refusal(fault))
        else:
            await asyncio.sleep(turn.delay)
            looks_back = any(FOUND in str(call.input) for call in turn.calls)
            played = PlayedTurn(turn, place, self._service.results(request) if looks_back else "", request)
            try:
                events = list(self._service.events(played))
            except ModelError as error:
                await _refuse(writer, Refusal(400, _error("invalid_request_error", str(error))))
            else:
                await _stream(writer, self._service, events, fault)


async def _read(reader: asyncio.StreamReader) -> LoggedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, *_ = first.split(" ")
    return LoggedRequest(path, headers, body, method)


async def _refuse(writer: asyncio.StreamWriter, refusal: Refusal) -> None:
    said = refusal.body if isinstance(refusal.body, str) else json.dumps(refusal.body)
    body = said.encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **refusal.headers}
    head = [f"HTTP/1.1 {refusal.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
    await writer.drain()


def _scripted_refusal(fault: ScriptedFault) -> Refusal:
    status = fault.status or 500
    kind = KINDS.get(status) or LATER_KINDS.get(status, "api_error")
    body: Any = _error(kind, f"Scripted {status}") if fault.body is None else fault.body
    return Refusal(status, body, {} if fault.retry_after is None else {"retry-after": fault.retry_after})


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message, "code": None}}


async def _stream(
    writer: asyncio.StreamWriter, service: StrictService, events: Iterable[bytes], fault: ScriptedFault
) -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {service.content_type}\r\ncache-control: no-cache\r\n"
    writer.write(head.encode() + b"transfer-encoding: chunked\r\n\r\n")
    left = fault.cut_after
    waiting: list[bytes] = []
    for number, event in enumerate(events):
        data = (service.garbage if number == fault.garbage_at else b"") + event
        if left is not None:
            data, left = data[:left], left - len(data)
        if data:
            waiting.append(b"%x\r\n%s\r\n" % (len(data), data))
        if fault.slow:
            writer.write(b"".join(waiting))
            waiting.clear()
            await asyncio.sleep(fault.slow)
        if left is not None and left <= 0:
            writer.write(b"".join(waiting))
            await writer.drain()
            writer.close()
            return
    writer.write(b"".join(waiting) + b"0\r\n\r\n")
    await writer.drain()


async def _run(script: Script, port: int, log: IO[bytes] | None) -> None:
    server = ModelServer(script, log=log, keep=False)
    await server.start(port)
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    try:
        await asyncio.Event().wait()
    finally:
        await server.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ferrule.testing.model_server", description=__doc__)
    parser.add_argument("--script", required=True, help="the turns to play, as docs/models.md describes")
    parser.add_argument("--port", type=int, default=0, help="0 for any free port; the URL is printed")
    parser.add_argument("--log", type=Path, help="write the body of each request to this file, a line each")
    options = parser.parse_args()
    try:
        script = load_script(options.script)
    except BadScript as error:
        sys.stderr.write(f"{error}\n")
        return 2
    log: IO[bytes] | None = options.log.open("wb") if options.log else None
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(script, options.port, log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
