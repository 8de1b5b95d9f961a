"""`ferrule call`: one call, or one for each line of stdin."""

from __future__ import annotations

import argparse
import asyncio

from ...app.build import open_session
from ...core.calls import ToolCall, ToolOutcome
from ...core.content import encodable, plain_text
from ...engine.session import Session
from ..approving import is_at_terminal, terminal_person
from ..exits import CLOSED_PIPE, FAILED, OK, Failed, UsageError
from ..jsonl import CallLine, Rejected, answer, encode_line, rejection, requests
from ..logs import log_to_file
from ..session_flags import settings_from
from ..signals import Interruptible
from ..stdio import InputLines, StdoutWriter

OF_BACKGROUND = ("TaskOutput", "KillShell")
SERVERS_WITHIN = 30.0
"""Seconds that a call waits for servers whose tools are not known yet."""


def run(chosen: argparse.Namespace) -> int:
    if chosen.jsonl and (chosen.tool or chosen.json):
        raise UsageError("--jsonl reads the calls from stdin; leave TOOL, JSON and --json out.")
    if not chosen.jsonl and not chosen.tool:
        raise UsageError("name a TOOL and give its input as JSON, or use --jsonl. `ferrule tools` lists the tools.")
    incoming = InputLines() if chosen.jsonl or chosen.input == "-" else None
    interactive = incoming is None and is_at_terminal()
    settings = settings_from(chosen, interactive=interactive, runs=True)
    log_to_file(settings.state_folder)
    out = StdoutWriter()
    person = terminal_person() if interactive else None
    try:
        return asyncio.run(_run(open_session(settings, person=person), chosen, incoming, out))
    except BrokenPipeError:
        return CLOSED_PIPE
    except OSError as error:
        raise Failed(f"the result cannot be written: {error.strerror or error}.") from None


async def _run(session: Session, chosen: argparse.Namespace, incoming: InputLines | None, out: StdoutWriter) -> int:
    """Whatever still runs after the last answer is ended, not awaited."""
    async with session:
        return await (_many(session, incoming, out) if chosen.jsonl else _one(session, chosen, incoming, out))


async def _many(session: Session, incoming: InputLines | None, out: StdoutWriter) -> int:
    """Lines one after another, the calls of a batch through the scheduler; every answer out before the next line."""
    assert incoming is not None
    number = 0
    with Interruptible() as signals:
        try:
            while (line := await incoming.next()) is not None:
                number += 1
                if line.strip():
                    await _answer_line(session, requests(line, number), out)
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
    return OK if signals.exit_code is None else signals.exit_code


async def _answer_line(session: Session, asked: list[CallLine | Rejected], out: StdoutWriter) -> None:
    """Also when a signal cuts it short, every call that was asked for gets its line."""
    await _wait_for_tools(session, *(part.call for part in asked if isinstance(part, CallLine)))
    executor = session.executor()
    try:
        async with executor:
            for part in asked:
                if isinstance(part, CallLine):
                    executor.submit(part.call)
            outcomes = await executor.drain()
    except asyncio.CancelledError:
        out.write_last(_answers(asked, executor.outcomes()))
        raise
    await out.write(_answers(asked, outcomes))


async def _wait_for_tools(session: Session, *calls: ToolCall) -> None:
    """An unknown tool may belong to a server that was never connected before."""
    if any(session.registry.pool.get(call.name) is None for call in calls):
        await session.settled(SERVERS_WITHIN)


def _answers(asked: list[CallLine | Rejected], outcomes: list[ToolOutcome]) -> bytes:
    following = iter(outcomes)
    return b"".join(
        encode_line(rejection(part) if isinstance(part, Rejected) else answer(part, next(following))) for part in asked
    )


async def _one(session: Session, chosen: argparse.Namespace, incoming: InputLines | None, out: StdoutWriter) -> int:
    for name in OF_BACKGROUND:
        session.registry.disable(name, "nothing runs on after a single call. Use --jsonl for several")
    executor = session.executor()
    asked = CallLine("call", ToolCall("call", chosen.tool, {}))
    with Interruptible() as signals:
        try:
            await _wait_for_tools(session, asked.call)
            executor = session.executor()  # with the tools that there are by now
            text = await _all_of(incoming) if incoming else chosen.input or "{}"
            asked = CallLine("call", ToolCall.from_text("call", chosen.tool, text))
            async with executor:
                executor.submit(asked.call)
                (outcome,) = await executor.drain()
            await out.write(_encode_outcome(asked, outcome, as_json=chosen.json))
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
            for outcome in executor.outcomes():
                out.write_last(_encode_outcome(asked, outcome, as_json=chosen.json))
            return signals.exit_code
    return FAILED if outcome.is_error else OK


async def _all_of(incoming: InputLines) -> str:
    lines: list[bytes] = []
    while (line := await incoming.next()) is not None:
        lines.append(line)
    return b"\n".join(lines).decode("utf-8", "surrogateescape")


def _encode_outcome(asked: CallLine, outcome: ToolOutcome, *, as_json: bool) -> bytes:
    if as_json:
        return encode_line(answer(asked, outcome))
    return encodable(plain_text(outcome.content)).encode() + b"\n"
