"""`ferrule demo`: a scripted model drives the real engine over a sample project."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from ...app.build import Settings, open_session
from ...app.demo import PROMPT, make_sample_project, script
from ...core.events import TurnEnded
from ...output.plain import Style, width_of
from ...output.timeline import Timeline
from ...providers.scripted import ScriptedModel
from ..exits import CLOSED_PIPE, FAILED, OK
from ..signals import Interruptible

WORD_PAUSE = 0.02


def run(chosen: argparse.Namespace) -> int:
    style = Style.of(sys.stdout, os.environ)
    try:
        with tempfile.TemporaryDirectory(prefix="ferrule-demo-") as folder:
            workspace = Path(folder).resolve()
            make_sample_project(workspace)
            timeline = Timeline(
                _print, style=style, width=min(width_of(sys.stdout, os.environ), 120), base=str(workspace)
            )
            _print(style.paint("A scripted model and the real engine, in", "dim"))
            _print(style.paint(str(workspace), "dim"))
            _print("")
            return asyncio.run(_play(workspace, timeline, 0.0 if chosen.fast else WORD_PAUSE))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return CLOSED_PIPE


async def _play(workspace: Path, timeline: Timeline, pause: float) -> int:
    session = open_session(Settings(cwd=str(workspace), state_folder=workspace / ".state"))
    model = ScriptedModel(script(), seconds_between_words=pause)
    reason = "interrupted"
    with Interruptible() as signals:
        try:
            async with session.ask(PROMPT, model) as events:
                async for envelope in events:
                    timeline(envelope)
                    if isinstance(envelope.event, TurnEnded):
                        reason = envelope.event.reason
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
            _print("Interrupted.")
            return signals.exit_code
    timeline.close()
    return OK if reason == "end" else FAILED


def _print(line: str) -> None:
    print(line, flush=True)
