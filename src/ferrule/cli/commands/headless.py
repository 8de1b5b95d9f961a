"""`ferrule -p`: one prompt, or a conversation over stdin, without a person at the terminal."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.model import ModelError
from ...engine.spending import NO_PRICE
from ...providers.asked_model import AskedModel
from ..exits import CLOSED_PIPE, Failed, UsageError
from ..logs import log_more, log_to_file
from ..prompt_checks import check_prompt, missing_prompt
from ..session_flags import settings_from
from ..signals import Interruptible
from ..stdio import InputLines, StdoutWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...app.build import Settings
    from ...app.headless_run import StructuredOutput
    from ...providers.model_catalog import OpenedModel
    from ...providers.model_choice import ModelChoice


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
    settings = settings_from(chosen, runs=True)
    structured = _structured_output(chosen.json_schema)
    if chosen.betas:
        settings = replace(settings, environment={**settings.environment, "ANTHROPIC_BETAS": ",".join(chosen.betas)})
    environ = {**os.environ, **settings.environment}
    model = open_model(settings.model, settings.model.choose_name(chosen.model, environ), environ)
    small = settings.model.choose_small_name(environ)
    if chosen.max_budget_usd is not None and model.facts.input_price is None:
        raise UsageError(f"--max-budget-usd: {NO_PRICE.format(model.name)}")
    log_to_file(settings.state_folder)
    log_more(chosen)
    small_model = open_model(settings.model, small, environ) if small else None
    incoming = _stdin(chosen)
    out = StdoutWriter()
    try:
        return asyncio.run(_run(chosen, settings, AskedModel(model), small_model, structured, incoming, out))
    except BrokenPipeError:
        return CLOSED_PIPE
    except OSError as error:
        raise Failed(f"the result cannot be written: {error.strerror or error}.") from None


async def _run(
    chosen: argparse.Namespace,
    settings: Settings,
    model: AskedModel,
    small: OpenedModel | None,
    structured: StructuredOutput | None,
    incoming: InputLines | None,
    out: StdoutWriter,
) -> int:
    from ...app.kept_sessions import TranscriptError
    from ..conversing import Conversing

    with Interruptible() as signals:
        talk = Conversing(chosen, settings, model, structured, out, signals, small)
        try:
            if chosen.input_format == "stream-json":
                assert incoming is not None
                return await talk.over(incoming)
            return await talk.once(await prompt_from(chosen, incoming))
        except TranscriptError as error:
            raise UsageError(str(error)) from None
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
            return signals.exit_code
        finally:
            await talk.close()
            await model.close()
            if small is not None:
                await small.close()


def open_model(choice: ModelChoice, name: str | None, environ: Mapping[str, str]) -> OpenedModel:
    """With the key and the address that the settings have for it. Raises `UsageError`, or `Failed` without a key."""
    from ...providers.model_choice import choose_model

    try:
        return choose_model(name, environ, choice)
    except ModelError as error:
        raise (Failed if error.kind == "key" else UsageError)(str(error)) from None


def _structured_output(schema: str | None) -> StructuredOutput | None:
    if schema is None:
        return None
    from ...app.headless_run import SchemaError, StructuredOutput, read_schema

    text = schema
    if not schema.lstrip().startswith(("{", "[", '"')):
        try:
            text = Path(schema).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--json-schema: {schema} is neither valid JSON nor a readable file: {error}.") from None
    try:
        return StructuredOutput(read_schema(text))
    except SchemaError as error:
        raise UsageError(f"--json-schema: {error}.") from None


def _stdin(chosen: argparse.Namespace) -> InputLines | None:
    """`None` if stdin is a terminal: what is typed there is only read if no prompt is given."""
    if chosen.input_format == "stream-json":
        return InputLines()
    return None if sys.__stdin__ is None or os.isatty(0) else InputLines()
