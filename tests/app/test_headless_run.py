"""A conversation without a person, in this process: what is printed at its end."""

from __future__ import annotations

from pathlib import Path

from ferrule import Settings, hook
from ferrule.app.build import open_session
from ferrule.app.headless_run import Headless
from ferrule.core.events import Envelope
from ferrule.core.model import ModelEvent, Stopped, TextDelta
from ferrule.output.run_answer import Ending, RunAnswer
from ferrule.providers.asked_model import AskedModel
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel
from tests.requirement import requirement


async def asked(folder: Path, *messages: list[ModelEvent], hooks: tuple[object, ...] = ()) -> RunAnswer:
    session = open_session(Settings(cwd=str(folder), state_folder=folder / "state"), hooks=hooks)  # type: ignore[arg-type]

    async def watch(envelope: Envelope) -> None:
        pass

    async with session:
        headless = Headless(
            session, AskedModel(RecordingModel(*messages)), watch=watch, watch_last=lambda envelope: None
        )
        return await headless.ask("go")


@requirement("CLI-1", "SCHED-4")
async def test_an_answer_that_was_cut_off_is_printed_whole(tmp_path: Path) -> None:
    cut = [TextDelta("The answer is for"), Stopped("max_tokens")]

    answer = await asked(tmp_path, cut, says("ty-two."))

    assert (answer.text, answer.ending, answer.stop_reason) == (
        "The answer is forty-two.",
        Ending.SUCCESS,
        "end_turn",
    )


@requirement("CLI-1", "HOOK-1")
async def test_a_prompt_that_a_hook_blocks_ends_as_a_failure_with_the_words_of_the_hook(tmp_path: Path) -> None:
    async def guard(event: object) -> dict[str, str]:
        return {"decision": "block", "reason": "Not on a Friday."}

    async def stop(event: object) -> dict[str, object]:
        return {"continue": False, "stopReason": "The house is closed."}

    blocked = await asked(tmp_path, says("never said"), hooks=(hook("UserPromptSubmit", guard, name="guard"),))
    stopped = await asked(tmp_path, says("never said"), hooks=(hook("UserPromptSubmit", stop),))

    assert (blocked.ending, blocked.exit_code) == (stopped.ending, stopped.exit_code) == (Ending.FAILED, 1)
    assert blocked.errors == ("The prompt was blocked. UserPromptSubmit hook `guard`: Not on a Friday.",)
    assert stopped.errors[0].endswith("The house is closed.")
