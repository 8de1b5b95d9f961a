"""The prompt of a headless run: what was given, what is piped in, or both."""

from __future__ import annotations

import sys

from .exits import UsageError
from .stdio import InputLines

MOST = 10_000_000
"""Bytes of stdin. More does not fit any model's window, and belongs into a file."""
PATIENCE = 3.0
"""Seconds for a pipe to begin where there is a prompt without it."""


async def prompt_from(given: str | None, incoming: InputLines | None) -> str:
    """Raises `Usage` where there is nothing to ask."""
    piped = await _read_piped(incoming, wait=not given)
    prompt = "\n\n".join(part for part in (given or "", piped) if part.strip())
    if not prompt:
        raise UsageError("there is no prompt. Give it as an argument, or pipe it in: `ferrule -p 'What is this?'`.")
    return prompt


async def _read_piped(incoming: InputLines | None, *, wait: bool) -> str:
    """A stdin that somebody holds open and never writes to must not hold up a prompt that was given."""
    if incoming is None:
        return ""
    if not wait and not await incoming.begins_within(PATIENCE):
        print("ferrule: nothing came on stdin, so it is left out. Redirect it from /dev/null.", file=sys.stderr)
        return ""
    return (await incoming.all(MOST)).decode("utf-8", "replace").strip("\n")
