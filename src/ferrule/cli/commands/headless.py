"""`ferrule -p`: one prompt, or a conversation over stdin, without a person at the terminal."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING

from ...core.ids import new_uuid
from ...host.storage.state_folder import state_folder
from ...output.run_answer import Ending, RunAnswer
from ..conversation_flags import options_from
from ..exits import CLOSED_PIPE, Failed, UsageError
from ..logs import log_more, log_to_file
from ..prompt_checks import check_prompt, missing_prompt
from ..signals import Interruptible
from ..stdio import InputLines, StdoutWriter

if TYPE_CHECKING:
    from ...sdk.options import Options
    from ..printers import Printer


MOST = 10_000_000
"""Bytes of stdin. More does not fit any model's context window and belongs in a file."""
PATIENCE = 3.0
"""Seconds to wait for piped input to begin when a prompt was given."""


async def prompt_from(chosen: argparse.Namespace, incoming: InputLines | None) -> str:
    """Raises `UsageError` without a prompt."""
    given: str = chosen.prompt or ""
    piped = await _read_piped(incoming, wait=not given)
    prompt = "\n\n".join(part for part in (given, piped) if part.strip())
    if not prompt:
        raise UsageError(missing_prompt(chosen))
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
    check_prompt(chosen)
    options = options_from(chosen)
    log_to_file(state_folder())
    log_more(chosen)
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
            prompt = await prompt_from(chosen, incoming)
            _refuse_host_servers(options)
            tool = None if chosen.permission_prompt_tool == "stdio" else chosen.permission_prompt_tool
            listener = RunListener(printer, signals, host_answers=tool is not None)
            return await answer_once(options, prompt, listener, signals, tool)
        except NoModel as error:
            await _write_failure(chosen, printer, str(error))
            raise Failed(str(error)) from None
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
            return signals.exit_code


def _refuse_host_servers(options: Options) -> None:
    if not options.mcp_configs:
        return
    from ..initializing import split_host_servers

    for name in split_host_servers(options)[1]:
        raise UsageError(f"--mcp-config: `{name}` is a server of your program; give --input-format stream-json.")


async def _write_failure(chosen: argparse.Namespace, printer: Printer, words: str) -> None:
    """For programs, which read the result; people read stderr."""
    if chosen.output_format != "text":
        failed = RunAnswer(ending=Ending.FAILED, errors=(words,), terminal_reason="api_error")
        await printer.finish(failed, chosen.session_id or new_uuid())


def _stdin(chosen: argparse.Namespace) -> InputLines | None:
    """`None` if stdin is a terminal: what is typed there is only read if no prompt is given."""
    if chosen.input_format == "stream-json":
        return InputLines()
    return None if sys.__stdin__ is None or os.isatty(0) else InputLines()
