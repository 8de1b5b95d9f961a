"""`ferrule demo`: a scripted model drives the real engine over a sample project."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import shutil
import sys
from pathlib import Path

from ...app.build import Settings, open_session
from ...core.calls import Status
from ...core.events import Envelope, ToolFinished, TurnEnded
from ...core.model import ModelProvider
from ...engine.session import Session
from ...output.plain import Style, width_of
from ...output.timeline import Timeline
from ...providers.scripted import ScriptedModel
from ..demo_project import PROMPT, TEST_AFTER, TEST_BEFORE, make_sample_project, rules, script
from ..exits import FAILED, OK, UsageError
from ..scratch import scratch_folder
from ..session_flags import working_directory
from ..signals import Interruptible

WORD_PAUSE = 0.02
MOST_WIDTH = 120


def run(chosen: argparse.Namespace) -> int:
    working_directory(None)
    return _play_file(chosen.script) if chosen.script else _play_sample(0.0 if chosen.fast else WORD_PAUSE)


def _play_sample(pause: float) -> int:
    style = Style.of(sys.stdout, os.environ)
    with scratch_folder("ferrule-demo-") as folder:
        workspace = Path(folder).resolve()
        make_sample_project(workspace)
        _print(style.paint("A scripted model and the real engine, in", "dim"))
        _print(style.paint(str(workspace), "dim"))
        _print("")
        session = open_session(Settings(cwd=str(workspace), state_folder=workspace / ".state", rules=rules()))
        python = "python3" if shutil.which("python3") else shlex.quote(sys.executable)
        tools = {tool.name for tool in session.registry.pool}
        model = ScriptedModel(script(tools, python), seconds_between_words=pause)
        seen = asyncio.run(_play(session, PROMPT, model))
        if seen.exit_code is not None:
            return seen.exit_code
        if seen.reason == "end" and not seen.has_proof:
            _print("The test did not fail before the change and pass after it.")
        return OK if seen.reason == "end" and seen.has_proof else FAILED


def _play_file(name: str) -> int:
    from ...core.model import ModelError
    from ...providers.model_choice import choose_model

    try:
        model = choose_model(f"scripted:{name}", os.environ)
    except ModelError as error:
        raise UsageError(str(error)) from None
    seen = asyncio.run(_play(open_session(Settings()), f"Play {name}.", model))
    if seen.exit_code is not None:
        return seen.exit_code
    return OK if seen.reason == "end" else FAILED


class _Seen:
    """The parts of a run that determine its exit code."""

    def __init__(self) -> None:
        self.reason = "interrupted"
        self.exit_code: int | None = None
        self._tests: dict[str, Status] = {}

    def __call__(self, envelope: Envelope) -> None:
        match envelope.event:
            case TurnEnded(reason):
                self.reason = reason
            case ToolFinished(outcome) if outcome.call.id in (TEST_BEFORE, TEST_AFTER):
                self._tests[outcome.call.id] = outcome.status
            case _:
                pass

    @property
    def has_proof(self) -> bool:
        """Whether the project's test failed before the change and passes after it."""
        return self._tests == {TEST_BEFORE: Status.FAILED, TEST_AFTER: Status.OK}


async def _play(session: Session, prompt: str, model: ModelProvider) -> _Seen:
    style = Style.of(sys.stdout, os.environ)
    width = min(width_of(sys.stdout, os.environ), MOST_WIDTH)
    timeline = Timeline(_print, style=style, width=width, base=session.workspace)
    seen = _Seen()
    with Interruptible() as signals:
        try:
            async with session, session.ask(prompt, model) as events:
                async for envelope in events:
                    timeline(envelope)
                    seen(envelope)
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
            _print("Interrupted.")
            seen.exit_code = signals.exit_code
            return seen
    timeline.close()
    return seen


def _print(line: str) -> None:
    print(line, flush=True)
