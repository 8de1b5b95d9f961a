"""A call of a tool made with the SDK, as a conversation runs it, beside the engine's own call of the same function."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from ferrule import Options, Session, Settings, create_sdk_mcp_server
from ferrule.core.calls import ToolCall
from ferrule.providers.scripted import ScriptedModel
from ferrule.sdk.conversation_opening import open_for_program
from ferrule.sdk.tools import tool

from . import subject
from .figures import Figure
from .timing import Work, interleaved

SDK, OWN = "a call of a tool in-process, by the SDK", "the engine's own call"
CALLS = 10
"""In one run: few, so that a run slips between the interruptions of a busy machine."""
TARGET_RATIO = 2.0


@tool("echo", "Give the text back.", {"text": str})
async def echo(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": args["text"]}]}


async def measure(*, runs: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        found = open_for_program(
            Options(
                base=Settings(cwd=folder, state_folder=Path(folder) / "state"),
                model=ScriptedModel(()),
                setting_sources=[],
                mcp_servers={"bench": create_sdk_mcp_server("bench", tools=[echo])},
                allow=["mcp__bench__echo"],
            )
        )
        works: dict[str, Work] = {
            SDK: partial(_repeated, found.session, "mcp__bench__echo"),
            OWN: partial(_repeated, subject.session(), "echo"),
        }
        timed = await interleaved(works, runs=runs)
        await found.session.close()
    return [
        Figure(
            benchmark="sdk_call",
            what=SDK,
            value=timed.seconds[SDK] / CALLS * 1e6,
            unit="µs",
            calibration_ms=timed.calibration * 1e3,
            beside=OWN,
            other=timed.seconds[OWN] / CALLS * 1e6,
            target_ratio=TARGET_RATIO,
        )
    ]


async def _repeated(session: Session, name: str) -> None:
    call = subject.call()
    for number in range(CALLS):
        (outcome,) = await session.run([ToolCall(f"call-{number}", name, call.arguments)])
        assert not outcome.is_error, outcome
