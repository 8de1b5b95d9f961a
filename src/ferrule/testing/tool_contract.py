"""The contract of every tool. Subclass it in a test and give it samples.

    class TestGlobContract(ToolContract):
        samples = ({"pattern": "*.py"},)

        def make(self):
            return Glob()

The tests are plain functions, so they need no asyncio plugin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest

from ..app.build import Settings, open_session
from ..core.calls import Refusal, Status, ToolCall, ToolOutcome
from ..core.content import Block, View
from ..core.effects import Effects
from ..core.inputs import ToolInput
from ..core.tool import AnyTool, Exposure
from ..engine.session import Session
from ..permissions.modes import Mode
from .doubles import bare_context


class ToolContract:
    """`make` builds the tool; each of `samples` is input it must carry out in a folder that `arrange` filled."""

    samples: ClassVar[tuple[Mapping[str, Any], ...]]
    steps: ClassVar[Sequence[int]] = range(40)
    """After how many turns of the event loop a call is cancelled, one after the other."""

    def make(self) -> AnyTool:
        raise NotImplementedError("Return the tool under test from `make`.")

    def arrange(self, folder: Path) -> None:
        """Put into `folder`, which is the working directory, what the samples need."""

    async def prepare(self) -> None:
        """Start what a call needs, on the event loop it will run on. Called after `make`, before each call."""

    async def release(self) -> None:
        """Give back what `make` and `prepare` took: a connection, a process. Called after each call."""

    # What the tool is

    def test_its_schema_has_the_same_bytes_every_time(self) -> None:
        assert self.make().spec.schema_json() == self.make().spec.schema_json()

    def test_it_describes_every_parameter(self) -> None:
        bare = [
            name
            for name, schema in self.make().spec.input_schema.get("properties", {}).items()
            if not schema.get("description")
        ]
        assert not bare, f"no description: {', '.join(bare)}"

    def test_it_tells_the_model_how_to_use_it(self) -> None:
        guide = self.make().spec.description
        assert len(guide.split()) >= 5, f"too short to be of use: {guide!r}"

    def test_a_deferred_tool_has_a_hint_of_three_to_ten_words(self) -> None:
        spec = self.make().spec
        assert spec.exposure is Exposure.DIRECT or 3 <= len(spec.hint.split()) <= 10

    # What it takes

    def test_it_takes_every_sample(self) -> None:
        tool = self.make()
        for sample in self.samples:
            assert isinstance(tool.parse(sample), ToolInput | Mapping)

    def test_it_refuses_an_unknown_parameter_by_name(self) -> None:
        with pytest.raises(Refusal, match="surprise") as caught:
            self.make().parse({**self.samples[0], "surprise": 1})
        assert caught.value.status is Status.INVALID

    # What it would do

    def test_it_states_the_same_effects_for_the_same_input(self, tmp_path: Path) -> None:
        for sample in self.samples:
            first, second = self._effects(sample, tmp_path), self._effects(sample, tmp_path)
            assert isinstance(first, Effects)
            assert first == second
            assert not (first.read_only and first.destructive)

    def test_its_paths_are_absolute(self, tmp_path: Path) -> None:
        for sample in self.samples:
            effects = self._effects(sample, tmp_path)
            assert all(Path(touch.path).is_absolute() for touch in (*effects.reads, *effects.writes))

    # What it does

    def test_it_carries_out_every_sample(self, tmp_path: Path) -> None:
        for index, sample in enumerate(self.samples):
            outcome = self._carry_out(sample, tmp_path / str(index))
            assert outcome.status is Status.OK, outcome.content
            assert outcome.content
            assert all(isinstance(block, get_args(Block)) for block in outcome.content)

    def test_it_shows_calls_results_and_errors_as_views(self, tmp_path: Path) -> None:
        tool = self.make()
        for index, sample in enumerate(self.samples):
            outcome = self._carry_out(sample, tmp_path / str(index))
            shown = (outcome.view, tool.show_call(tool.parse(sample)), tool.show_error("it failed"))
            assert all(isinstance(view, get_args(View)) for view in shown)
            assert "\n" not in tool.describe(tool.parse(sample))

    def test_a_result_stays_within_its_limit(self, tmp_path: Path) -> None:
        tool = self.make()
        outcome = self._carry_out(self.samples[0], tmp_path / "0")
        assert outcome.record is not None
        assert tool.result_limit is None or outcome.record.sent_chars <= tool.result_limit

    def test_what_it_changes_was_stated(self, tmp_path: Path) -> None:
        for index, sample in enumerate(self.samples):
            folder = self._arrange(tmp_path / str(index))
            before = _content(folder)
            outcome = asyncio.run(self._run(folder, sample))
            changed = {path for path, _ in before.items() ^ _content(folder).items()}
            assert outcome.record is not None
            effects = outcome.record.effects or Effects()
            assert effects.unknown or all(_is_covered(folder / path, effects) for path in changed)

    def test_cancelled_at_any_step_it_leaves_each_file_old_or_new(self, tmp_path: Path) -> None:
        for index, sample in enumerate(self.samples):
            folder = self._arrange(tmp_path / f"{index}-whole")
            old = _content(folder)
            asyncio.run(self._run(folder, sample))
            new = _content(folder)
            for step in self.steps:
                folder = self._arrange(tmp_path / f"{index}-{step}")
                outcome = asyncio.run(self._interrupt(folder, sample, step))
                assert outcome.status in (Status.OK, Status.CANCELLED)
                for path, content in _content(folder).items():
                    assert content in (old.get(path), new.get(path)), f"{path} is half-written"
                if outcome.status is Status.OK:
                    break

    # How this suite runs a call

    def _call(self, sample: Mapping[str, Any]) -> ToolCall:
        return ToolCall("call-1", self.make().name, sample)

    def _arrange(self, folder: Path) -> Path:
        folder.mkdir()
        self.arrange(folder)
        return folder

    def _session(self, folder: Path) -> Session:
        state = folder.parent / f"{folder.name}-state"
        settings = Settings(cwd=str(folder), mode=Mode.BYPASS, state_folder=state)
        return open_session(settings, tools=(self.make(),))

    def _carry_out(self, sample: Mapping[str, Any], folder: Path) -> ToolOutcome:
        if not folder.exists():
            self._arrange(folder)
        return asyncio.run(self._run(folder, sample))

    async def _run(self, folder: Path, sample: Mapping[str, Any]) -> ToolOutcome:
        call = self._call(sample)
        try:
            async with self._session(folder) as session:
                await self.prepare()
                (outcome,) = await session.run([call])
        finally:
            await self.release()
        return outcome

    async def _interrupt(self, folder: Path, sample: Mapping[str, Any], steps: int) -> ToolOutcome:
        call = self._call(sample)
        try:
            async with self._session(folder) as session, session.executor() as executor:
                await self.prepare()
                executor.submit(call)
                executor.message_complete()
                for _ in range(steps):
                    await asyncio.sleep(0)
                executor.cancel(call.id)
                (outcome,) = await executor.drain()
        finally:
            await self.release()
        return outcome

    def _effects(self, sample: Mapping[str, Any], folder: Path) -> Effects:
        """As the tool itself states them, before the engine replaces an invalid statement by the worst case."""
        session = self._session(folder)
        ready = session.pipeline.prepare(self._call(sample), session.registry.pool, bare_context(folder))
        assert not isinstance(ready, ToolOutcome), ready.content
        return ready.proposal.tool.effects(ready.proposal.input, ready.proposal.ctx)


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _is_covered(path: Path, effects: Effects) -> bool:
    return any(path == Path(touch.real) or Path(touch.real) in path.parents for touch in effects.writes)
