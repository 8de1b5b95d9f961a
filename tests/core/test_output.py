"""Typed outputs, what the model reads of them, and what people see."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel

from ferrule.core.calls import Status
from ferrule.core.content import Block, Code, Document, Image, Line, Markdown, Text, View
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.inputs import ToolInput
from ferrule.core.state import StateSet
from ferrule.core.tool import Result, Tool, ToolError, as_blocks
from ferrule.testing import run_call
from tests.requirement import requirement


class Nothing(ToolInput):
    pass


class Gives(Tool[Nothing, Any]):
    """Give back the value it was made with."""

    name = "Gives"
    input_model = Nothing

    def __init__(self, value: Any, output_model: Any = None) -> None:
        self._value = value
        self.output_model = output_model

    def effects(self, input: Nothing, ctx: ToolContext) -> Effects:
        return Effects.of()

    async def call(self, input: Nothing, ctx: ToolContext) -> Any:
        return self._value


class Point(BaseModel):
    x: int
    y: int = 0


@dataclass(frozen=True)
class Size:
    width: int


# What the model reads


@requirement("CON-9")
@pytest.mark.parametrize(
    ("output", "blocks"),
    [
        ("plain", (Text("plain"),)),
        ("", (Text(""),)),
        (None, (Text("(no output)"),)),
        (Text("a"), (Text("a"),)),
        (Image("image/png", "AAAA"), (Image("image/png", "AAAA"),)),
        ([Text("a"), Image("image/png", "AAAA")], (Text("a"), Image("image/png", "AAAA"))),
        ((Document("application/pdf", "AAAA"),), (Document("application/pdf", "AAAA"),)),
        ({"a": [1, None, True]}, (Text('{"a":[1,null,true]}'),)),
        ([], (Text("[]"),)),
        (["a", Text("b")], (Text('["a",{"text":"b"}]'),)),
        (12.5, (Text("12.5"),)),
        ("ü", (Text("ü"),)),
        ({"k": "ü"}, (Text('{"k":"ü"}'),)),
        (Point(x=1), (Text('{"x":1,"y":0}'),)),
        (Size(3), (Text('{"width":3}'),)),
    ],
)
def test_an_output_becomes_blocks_by_itself(output: Any, blocks: tuple[Block, ...]) -> None:
    assert as_blocks(output) == blocks


@requirement("CON-9")
async def test_a_tool_maps_its_output_to_text_images_and_documents(tmp_path: Path) -> None:
    blocks = (Text("a"), Image("image/png", "AAAA"), Document("application/pdf", "AAAA", "t"))

    class Maps(Gives):
        """Map a size to three blocks."""

        def to_model(self, output: Size) -> tuple[Block, ...]:
            return blocks

    outcome = await run_call(tmp_path, Maps(Size(3)), {})

    assert (outcome.status, outcome.content, outcome.output) == (Status.OK, blocks, Size(3))


# The output model


@requirement("CON-9")
async def test_an_output_that_fits_the_declared_model_is_typed(tmp_path: Path) -> None:
    outcome = await run_call(tmp_path, Gives({"x": 1}, Point), {})

    assert (outcome.status, outcome.output, outcome.content) == (Status.OK, Point(x=1), (Text('{"x":1,"y":0}'),))


@requirement("CON-9")
@pytest.mark.parametrize(("value", "model"), [({"x": "a"}, Point), (None, str), ([1, "b"], list[int])])
async def test_an_output_that_breaks_the_declared_model_is_the_tools_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, value: Any, model: Any
) -> None:
    with caplog.at_level(logging.ERROR):
        outcome = await run_call(tmp_path, Gives(value, model), {})

    assert (outcome.status, outcome.output) == (Status.BROKEN, None)
    assert isinstance(outcome.content[0], Text)
    assert outcome.content[0].text.startswith("Gives failed unexpectedly: ValidationError: ")
    assert "Gives broke its contract" in caplog.text


@requirement("CON-9")
@pytest.mark.parametrize("blocks", ["text", ["list"], ("no block",), None])
async def test_a_projection_that_gives_no_blocks_is_the_tools_fault(tmp_path: Path, blocks: Any) -> None:
    class Confused(Gives):
        """Project to something that is no block."""

        def to_model(self, output: Any) -> Any:
            return blocks

    outcome = await run_call(tmp_path, Confused(1), {})

    assert outcome.status is Status.BROKEN


@requirement("CON-9")
async def test_an_output_that_cannot_become_json_is_the_tools_fault(tmp_path: Path) -> None:
    outcome = await run_call(tmp_path, Gives(object()), {})

    assert outcome.status is Status.BROKEN


# More than data


@requirement("CON-10")
async def test_a_result_carries_messages_changes_and_metadata_beside_its_data(tmp_path: Path) -> None:
    result = Result("data", messages=("mind the gap",), changes=(StateSet("k", 1),), meta={"server": "s"})

    outcome = await run_call(tmp_path, Gives(result, str), {})

    assert (outcome.status, outcome.output, outcome.content) == (Status.OK, "data", (Text("data"),))
    assert (outcome.messages, outcome.changes, outcome.meta) == (
        ("mind the gap",),
        (StateSet("k", 1),),
        {"server": "s"},
    )


# What people see


class Drawn(Gives):
    """Draw the call, the result and the error."""

    def show_call(self, input: Nothing) -> View:
        return Markdown("**about to**")

    def show_result(self, input: Nothing, output: Any) -> View:
        return Code(str(output))

    def show_error(self, message: str) -> View:
        return Markdown(f"_{message}_")


@requirement("CON-12")
async def test_people_see_a_view_made_by_the_tool_apart_from_the_content(tmp_path: Path) -> None:
    outcome = await run_call(tmp_path, Drawn("x = 1"), {})

    assert (outcome.view, outcome.content) == (Code("x = 1"), (Text("x = 1"),))


@requirement("CON-12")
async def test_people_see_an_error_as_the_tool_draws_it(tmp_path: Path) -> None:
    class Fails(Drawn):
        """Always fail."""

        async def call(self, input: Nothing, ctx: ToolContext) -> Any:
            raise ToolError("There is no moon tonight. Try tomorrow.")

    outcome = await run_call(tmp_path, Fails(None), {})

    assert (outcome.status, outcome.view, outcome.content) == (
        Status.FAILED,
        Markdown("_There is no moon tonight. Try tomorrow._"),
        (Text("There is no moon tonight. Try tomorrow."),),
    )


@requirement("CON-12")
def test_a_tool_that_draws_nothing_is_shown_in_one_line_each() -> None:
    tool = Gives("x")

    assert (tool.show_call(Nothing()), tool.show_result(Nothing(), "x"), tool.show_error("it failed")) == snapshot(
        (Line("Gives"), Line("done"), Line("it failed"))
    )
