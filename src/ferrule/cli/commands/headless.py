"""`ferrule -p`: one prompt, or a conversation over stdin, without a person at the terminal."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING

from ...host.storage.state_folder import state_folder
from ...output.run_answer import Ending, RunAnswer
from ..conversation_flags import options_from
from ..exits import CLOSED_PIPE, Failed, UsageError
from ..logs import log_to_file
from ..signals import Interruptible
from ..stdio import InputLines, StdoutWriter

if TYPE_CHECKING:
    from ...sdk.options import Options
    from ..printers import Printer


MOST = 10_000_000
"""Bytes of stdin. More does not fit any model's context window and belongs in a file."""
PATIENCE = 3.0
"""Seconds to wait for piped input to begin when a prompt was given."""


async def prompt_from(given: str | None, incoming: InputLines | None) -> str:
    """Raises `Usage` without a prompt."""
    piped = await _read_piped(incoming, wait=not given)
    prompt = "\n\n".join(part for part in (given or "", piped) if part.strip())
    if not prompt:
        raise UsageError("the prompt is missing. Give it as an argument, or pipe it in: `ferrule -p 'What is this?'`.")
    return prompt


async def _read_piped(incoming: InputLines | None, *, wait: bool) -> str:
    """A stdin that somebody holds open and never writes to must not hold up a prompt that was given."""
    if incoming is None:
        return ""
    if not wait and not await incoming.begins_within(PATIENCE):
        print("ferrule: stdin had no input, so it was ignored. Redirect it from /dev/null.", file=sys.stderr)
        return ""
    return (await incoming.all(MOST)).decode("utf-8", "replace").strip("\n")


def run(chosen: argparse.Namespace) -> int:
    _check(chosen)
    options = options_from(chosen)
    log_to_file(state_folder())
    incoming = _stdin(chosen)
    out = StdoutWriter()
    try:
        return asyncio.run(_run(chosen, options, incoming, out))
    except BrokenPipeError:
        return CLOSED_PIPE
    except OSError as error:
        raise Failed(f"the result cannot be written: {error.strerror or error}.") from None


async def _run(chosen: argparse.Namespace, options: Options, incoming: InputLines | None, out: StdoutWriter) -> int:
    from ..conversing import NoModel, RunListener, answer_once
    from ..printers import printer_for

    printer = printer_for(chosen.output_format, out, verbose=chosen.verbose)
    with Interruptible() as signals:
        try:
            if chosen.input_format == "stream-json":
                from ..hosted import HostedRun

                assert incoming is not None
                return await HostedRun(chosen, options, incoming, out, signals).run()
            prompt = await prompt_from(chosen.prompt, incoming)
            return await answer_once(options, prompt, RunListener(printer, signals), signals)
        except NoModel as error:
            await _write_failure(chosen, printer, str(error))
            raise Failed(str(error)) from None
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
            return signals.exit_code


async def _write_failure(chosen: argparse.Namespace, printer: Printer, words: str) -> None:
    """For programs, which read the result; people read stderr."""
    if chosen.output_format != "text":
        await printer.finish(RunAnswer(ending=Ending.FAILED, errors=(words,)), chosen.session_id or "")


def _check(chosen: argparse.Namespace) -> None:
    if chosen.input_format == "stream-json" and chosen.output_format != "stream-json":
        raise UsageError("--input-format stream-json needs --output-format stream-json.")
    if chosen.input_format == "stream-json" and chosen.prompt:
        raise UsageError("--input-format stream-json reads the prompts from stdin; leave PROMPT out.")
    if chosen.include_partial_messages and chosen.output_format != "stream-json":
        raise UsageError("--include-partial-messages needs --output-format stream-json.")
    for flag, id in (("--resume", chosen.resume), ("--session-id", chosen.session_id)):
        if id == "":
            raise UsageError(f"{flag}: the id is empty. `ferrule sessions` lists them.")
    if chosen.resume and chosen.latest:
        raise UsageError("--resume and --continue name two sessions; give one of them.")
    if chosen.fork_session and not (chosen.resume or chosen.latest):
        raise UsageError("--fork-session needs --resume ID or --continue.")
    if chosen.session_id and (chosen.resume or chosen.latest) and not chosen.fork_session:
        raise UsageError("--session-id is for a new session, or with --fork-session.")
    if chosen.permission_prompt_tool not in (None, "stdio"):
        raise UsageError(
            "--permission-prompt-tool: only `stdio` is supported, and it needs --input-format stream-json."
        )
    if chosen.permission_prompt_tool and chosen.input_format != "stream-json":
        raise UsageError("--permission-prompt-tool stdio needs --input-format stream-json.")


def _stdin(chosen: argparse.Namespace) -> InputLines | None:
    """`None` if stdin is a terminal: what is typed there is only read if no prompt is given."""
    if chosen.input_format == "stream-json":
        return InputLines()
    return None if sys.__stdin__ is None or os.isatty(0) else InputLines()
