"""The answer of `ferrule explain --jsonl` to one line, in this process."""

from __future__ import annotations

import asyncio
from typing import Any

from ferrule.cli.commands.explain import LineExplainer
from ferrule.cli.parser import parse_command


def answer_to(line: bytes) -> dict[str, Any]:
    """Under no settings file."""
    return asyncio.run(_answer(line))


async def _answer(line: bytes) -> dict[str, Any]:
    answering = LineExplainer(parse_command(["explain", "--jsonl", "--setting-sources", ""]))
    try:
        return await answering.to(line, 1)
    finally:
        await answering.close()
