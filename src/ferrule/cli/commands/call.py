"""`ferrule call`: one call, or one for each line of stdin."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import suppress
from typing import BinaryIO

from ...app.build import open_session
from ...app.logs import log_to_file
from ...core.calls import ToolCall, ToolOutcome
from ...core.content import encodable, plain_text
from ...engine.session import Session
from ..exits import CLOSED_PIPE, FAILED, OK, Usage
from ..jsonl import Asked, Rejected, answer, encoded, rejection, requests
from ..options import settings_from
from ..signals import Interruptible
from ..stdio import InputLines, claim_stdout


def run(chosen: argparse.Namespace) -> int:
    if chosen.jsonl and (chosen.tool or chosen.json):
        raise Usage("--jsonl reads the calls from stdin; leave TOOL, JSON and --json out.")
    if not chosen.jsonl and not chosen.tool:
        raise Usage("name a TOOL and give its input as JSON, or use --jsonl. `ferrule tools` lists the tools.")
    settings = settings_from(chosen)
    log_to_file(settings.state_folder)
    out = claim_stdout()
    try:
        session = open_session(settings)
        work = _many(session, out) if chosen.jsonl else _one(session, chosen, out)
        return asyncio.run(work)
    except BrokenPipeError:
        return CLOSED_PIPE
    finally:
        _close(out)


async def _many(session: Session, out: BinaryIO) -> int:
    """Lines one after another, the calls of a batch through the scheduler; every answer out before the next line."""
    incoming = InputLines()
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


async def _answer_line(session: Session, asked: list[Asked | Rejected], out: BinaryIO) -> None:
    """Also when a signal cuts it short, every call that was asked for gets its line."""
    calls = [part.call for part in asked if isinstance(part, Asked)]
    executor = session.executor()
    try:
        async with executor:
            for call in calls:
                executor.submit(call)
            outcomes = await executor.drain()
    except asyncio.CancelledError:
        _write_answers(asked, executor.outcomes(), out)
        raise
    _write_answers(asked, outcomes, out)


def _write_answers(asked: list[Asked | Rejected], outcomes: list[ToolOutcome], out: BinaryIO) -> None:
    following = iter(outcomes)
    for part in asked:
        line = rejection(part) if isinstance(part, Rejected) else answer(part, next(following))
        out.write(encoded(line))
    out.flush()


async def _one(session: Session, chosen: argparse.Namespace, out: BinaryIO) -> int:
    text = sys.stdin.read() if chosen.input == "-" else chosen.input or "{}"
    asked = Asked("call", ToolCall.from_text("call", chosen.tool, text))
    executor = session.executor()
    with Interruptible() as signals:
        try:
            async with executor:
                executor.submit(asked.call)
                (outcome,) = await executor.drain()
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
            (outcome,) = executor.outcomes()
    if chosen.json:
        out.write(encoded(answer(asked, outcome)))
    else:
        out.write(encodable(plain_text(outcome.content)).encode() + b"\n")
    out.flush()
    return signals.exit_code or (FAILED if outcome.is_error else OK)


def _close(out: BinaryIO) -> None:
    with suppress(BrokenPipeError):  # the reader has gone; what it did not read is lost to nobody
        out.close()
