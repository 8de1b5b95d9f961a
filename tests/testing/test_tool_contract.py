"""The shipped contract: an honest tool passes it, and each broken promise fails its own test."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import ConfigDict, Field

from ferrule import tool
from ferrule.core.calls import Refusal
from ferrule.core.content import View
from ferrule.core.context import ToolContext
from ferrule.core.effects import Change, Effects, ReadsPath, WritesPath
from ferrule.core.inputs import PathText, ToolInput
from ferrule.core.tool import AnyTool, Exposure, Tool, ToolError
from ferrule.testing.tool_contract import ToolContract
from tests.requirement import requirement


class NoteInput(ToolInput):
    path: PathText = Field(description="The file to write.")


class Note(Tool[NoteInput, str]):
    """Write a short note to a file, whole or not at all."""

    name = "Note"
    input_model = NoteInput

    def effects(self, input: NoteInput, ctx: ToolContext) -> Effects:
        return Effects.of(WritesPath(input.path, Change.REPLACES))

    async def call(self, input: NoteInput, ctx: ToolContext) -> str:
        draft = Path(f"{ctx.cwd}-draft")
        draft.write_text("whole")
        await asyncio.sleep(0)
        os.replace(draft, input.path)
        return "written"


class _NoteContract(ToolContract):
    samples = ({"path": "note.txt"},)

    def arrange(self, folder: Path) -> None:
        (folder / "note.txt").write_text("old")

    def make(self) -> AnyTool:
        return Note()


class TestHonestToolContract(_NoteContract):
    pass


@tool(effects=Effects.of())
def _shout(words: str) -> str:
    """Say the words in capital letters.

    Args:
        words: What to say.
    """
    return words.upper()


class TestFunctionToolContract(ToolContract):
    samples: ClassVar = ({"words": "hi"},)

    def make(self) -> AnyTool:
        return _shout


# Broken promises


def _broken(promise: str, make: Callable[[], AnyTool], tmp_path: Path, samples: tuple[Any, ...] | None = None) -> None:
    """Run the one test of the contract that guards the promise, and expect it to fail."""
    contract = type(
        "Contract", (_NoteContract,), {"make": lambda self: make(), "samples": samples or _NoteContract.samples}
    )
    test = getattr(contract(), promise)
    arguments = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(test).parameters else {}
    with pytest.raises((AssertionError, Refusal, pytest.fail.Exception)):
        test(**arguments)


@requirement("CON-14")
def test_every_test_of_the_contract_is_seen_to_fail_here() -> None:
    promises = {name for name in vars(ToolContract) if name.startswith("test_")}

    assert {promise for promise in promises if f'"{promise}"' not in Path(__file__).read_text()} == set()


@requirement("CON-14", "CON-3")
def test_a_schema_that_changes_is_found(tmp_path: Path) -> None:
    count = itertools.count()

    class Restless(Note):
        """Describe itself differently each time."""

        def input_schema(self) -> dict[str, Any]:
            return {"properties": {}, "description": str(next(count))}

    _broken("test_its_schema_has_the_same_bytes_every_time", Restless, tmp_path)


@requirement("CON-14")
def test_a_parameter_without_words_is_found(tmp_path: Path) -> None:
    class Wordless(ToolInput):
        path: PathText

    class Silent(Note):
        """Leave its parameter without a word."""

        input_model = Wordless  # pyright: ignore[reportAssignmentType]

    _broken("test_it_describes_every_parameter", Silent, tmp_path)


@requirement("CON-14", "CON-4")
def test_a_guide_that_is_no_help_is_found(tmp_path: Path) -> None:
    class Terse(Note):
        """Writes notes."""

    _broken("test_it_tells_the_model_how_to_use_it", Terse, tmp_path)


@requirement("CON-14", "POOL-4")
@pytest.mark.parametrize("hint", ["", "too short", "one two three four five six seven eight nine ten eleven"])
def test_a_deferred_tool_that_cannot_be_found_is_found(tmp_path: Path, hint: str) -> None:
    class Hidden(Note):
        """Write a note, from where nobody looks."""

        exposure = Exposure.DEFERRED

    Hidden.hint = hint

    _broken("test_a_deferred_tool_has_a_hint_of_three_to_ten_words", Hidden, tmp_path)


@requirement("CON-14", "CON-2")
def test_a_sample_that_is_not_taken_is_found(tmp_path: Path) -> None:
    _broken("test_it_takes_every_sample", Note, tmp_path, samples=({"file": "note.txt"},))


@requirement("CON-14", "CON-2")
def test_an_input_that_takes_anything_is_found(tmp_path: Path) -> None:
    class Lax(NoteInput):
        model_config = ConfigDict(extra="ignore")

    class Careless(Note):
        """Take whatever it is given."""

        input_model = Lax

    _broken("test_it_refuses_an_unknown_parameter_by_name", Careless, tmp_path)


@requirement("CON-14", "CON-5")
def test_effects_that_change_from_one_statement_to_the_next_are_found(tmp_path: Path) -> None:
    count = itertools.count()

    class Fickle(Note):
        """State something else every time."""

        def effects(self, input: NoteInput, ctx: ToolContext) -> Effects:
            return Effects.reading(f"/{next(count)}")

    _broken("test_it_states_the_same_effects_for_the_same_input", Fickle, tmp_path)


@requirement("CON-14", "CON-5")
@pytest.mark.parametrize("touch", [ReadsPath("note.txt"), WritesPath("note.txt")])
def test_a_path_that_depends_on_where_one_stands_is_found(tmp_path: Path, touch: ReadsPath | WritesPath) -> None:
    class Relative(Note):
        """State a path that is not absolute."""

        def effects(self, input: NoteInput, ctx: ToolContext) -> Effects:
            return Effects.of(touch)

    _broken("test_its_paths_are_absolute", Relative, tmp_path)


@requirement("CON-14")
def test_a_sample_that_is_not_carried_out_is_found(tmp_path: Path) -> None:
    class Failing(Note):
        """Fail, whatever it is asked to do."""

        async def call(self, input: NoteInput, ctx: ToolContext) -> str:
            raise ToolError("No.")

    _broken("test_it_carries_out_every_sample", Failing, tmp_path)


@requirement("CON-14", "CON-12")
@pytest.mark.parametrize("method", ["show_call", "show_result", "show_error"])
def test_a_view_that_is_no_view_is_found(tmp_path: Path, method: str) -> None:
    def draws_text(self: Any, *_: Any) -> View:
        return "just text"  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    unseen = type("Unseen", (Note,), {"__doc__": Note.__doc__, method: draws_text})

    _broken("test_it_shows_calls_results_and_errors_as_views", unseen, tmp_path)


@requirement("CON-14", "CON-4")
def test_a_description_of_several_lines_is_found(tmp_path: Path) -> None:
    class Chatty(Note):
        """Describe a call at length to people."""

        def describe(self, input: NoteInput) -> str:
            return "one\ntwo"

    _broken("test_it_shows_calls_results_and_errors_as_views", Chatty, tmp_path)


@requirement("CON-14", "BUD-2")
def test_a_limit_that_leaves_no_room_for_the_notice_is_found(tmp_path: Path) -> None:
    class Tiny(Note):
        """Write a note, and say next to nothing."""

        result_limit = 3

    _broken("test_a_result_stays_within_its_limit", Tiny, tmp_path)


@requirement("CON-14", "CON-5")
def test_a_change_that_was_not_stated_is_found(tmp_path: Path) -> None:
    class Liar(Note):
        """Claim to read, and write."""

        def effects(self, input: NoteInput, ctx: ToolContext) -> Effects:
            return Effects.reading(input.path)

    class Sprawler(Note):
        """Write one file more than it says."""

        async def call(self, input: NoteInput, ctx: ToolContext) -> str:
            Path(ctx.cwd, "other.txt").write_text("x")
            return "written"

    for number, dishonest in enumerate((Liar, Sprawler)):
        (tmp_path / str(number)).mkdir()
        _broken("test_what_it_changes_was_stated", dishonest, tmp_path / str(number))


@requirement("CON-14")
def test_a_file_left_half_written_is_found(tmp_path: Path) -> None:
    class Torn(Note):
        """Write a note, in two halves."""

        async def call(self, input: NoteInput, ctx: ToolContext) -> str:
            Path(input.path).write_text("who")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            Path(input.path).write_text("whole")
            return "written"

    _broken("test_cancelled_at_any_step_it_leaves_each_file_old_or_new", Torn, tmp_path)


@requirement("CON-14")
def test_a_contract_without_a_tool_says_what_to_do() -> None:
    with pytest.raises(NotImplementedError, match="Return the tool under test from `make`"):
        ToolContract().make()
