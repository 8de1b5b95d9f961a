"""A typed Python function as a tool."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from inline_snapshot import snapshot
from pydantic import Field

from ferrule import tool
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Block, Image, Text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects, WritesPath
from ferrule.core.functions import FunctionTool
from ferrule.core.inputs import PathText
from ferrule.core.state import StateSet
from ferrule.core.tool import Result, ToolDefinitionError
from ferrule.permissions.modes import Mode
from ferrule.testing import bare_context, run_call, run_calls
from tests.requirement import requirement


@tool
def add(first: int, second: int = 2) -> int:
    """Add two whole numbers.

    Args:
        first: The one number.
        second (int): The other number,
            which may be left out.

    Returns:
        The sum.
    """
    return first + second


@requirement("CON-13")
def test_a_function_becomes_a_tool_with_the_words_of_its_docstring() -> None:
    assert add.spec.name == "add"
    assert add.spec.summary == "Add two whole numbers."
    assert add.spec.input_schema == snapshot(
        {
            "additionalProperties": False,
            "properties": {
                "first": {"description": "The one number.", "type": "integer"},
                "second": {"default": 2, "description": "The other number, which may be left out.", "type": "integer"},
            },
            "required": ["first"],
            "type": "object",
        }
    )


@requirement("CON-13")
async def test_a_function_tool_runs_with_parsed_arguments_and_defaults(tmp_path: Path) -> None:
    whole = await run_call(tmp_path, add, {"first": "40"})
    wrong = await run_call(tmp_path, add, {"first": "x", "secnd": 1})

    assert (whole.status, whole.content, whole.output) == (Status.OK, (Text("42"),), 42)
    assert (wrong.status, wrong.content) == (
        Status.INVALID,
        (
            Text(
                snapshot("""\
add cannot take these arguments:
- `first` must be a whole number, not "x".
- `secnd` is not a parameter; did you mean `second`?
It takes: first (required), second.\
""")
            ),
        ),
    )


@requirement("CON-13")
def test_calling_the_tool_calls_the_function() -> None:
    assert add(1, second=5) == 6


@requirement("CON-13")
async def test_a_plain_function_runs_in_a_thread_and_a_coroutine_on_the_loop(tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    @tool
    def slow() -> str:
        """Block for as long as it likes."""
        seen["sync"] = threading.get_ident()
        return "slow"

    @tool
    async def quick() -> str:
        """Await what it needs."""
        seen["async"] = threading.get_ident()
        return "quick"

    outcomes = [await run_call(tmp_path, slow, {}), await run_call(tmp_path, quick, {})]

    assert [outcome.content for outcome in outcomes] == [(Text("slow"),), (Text("quick"),)]
    assert seen["sync"] != threading.get_ident()
    assert seen["async"] == threading.get_ident()


@requirement("CON-13", "CON-17")
async def test_a_parameter_typed_as_the_context_is_given_the_context(tmp_path: Path) -> None:
    @tool
    def where(ctx: ToolContext, name: str) -> str:
        """Say where the call runs."""
        return f"{name} in {ctx.cwd}, call {ctx.call_id}"

    outcome = await run_call(tmp_path, where, {"name": "here"})

    assert list(where.spec.input_schema["properties"]) == ["name"]
    assert outcome.content == (Text(f"here in {tmp_path}, call call-1"),)


@requirement("CON-13")
def test_the_words_of_a_parameter_may_stand_in_its_annotation() -> None:
    @tool
    def search(
        query: Annotated[str, "What to look for."],
        most: Annotated[int, Field(ge=1, description="How many.")] = 5,
        where: Annotated[PathText | None, "The folder."] = None,
    ) -> str:
        """Search for something.

        Args:
            query: Words that the annotation goes before.
        """
        return query

    assert search.spec.input_schema["properties"] == snapshot(
        {
            "query": {"description": "What to look for.", "type": "string"},
            "most": {"default": 5, "description": "How many.", "minimum": 1, "type": "integer"},
            "where": {"type": "string", "description": "The folder."},
        }
    )
    assert search.input_model.path_fields == ("where",)


@requirement("CON-13")
def test_a_decorator_with_options_names_and_titles_the_tool() -> None:
    @tool(name="Sum", title="Add up", time_limit=3.0)
    def add_up(numbers: list[int]) -> int:
        """Add up a list of numbers."""
        return sum(numbers)

    assert isinstance(add_up, FunctionTool)
    assert (add_up.spec.name, add_up.spec.title, add_up.time_limit) == ("Sum", "Add up", 3.0)


@requirement("CON-13", "CON-1")
async def test_a_function_that_states_no_effects_asks_first(tmp_path: Path) -> None:
    outcome = await run_call(tmp_path, add, {"first": 1}, mode=Mode.DEFAULT)

    assert outcome.status is Status.DENIED


@requirement("CON-13", "CON-5")
async def test_effects_may_be_a_value_or_a_function_of_the_parameters(tmp_path: Path) -> None:
    @tool(effects=Effects.of())
    def harmless() -> str:
        """Touch nothing at all."""
        return "done"

    @tool(effects=lambda path, loud: Effects.reading(path))
    def peek(path: PathText, loud: bool = False) -> str:
        """Look at a file."""
        return path

    inside = await run_call(tmp_path, peek, {"path": "a.txt"}, mode=Mode.DEFAULT)
    outside = await run_call(tmp_path, peek, {"path": "/etc/hosts"}, mode=Mode.DEFAULT)

    assert (await run_call(tmp_path, harmless, {}, mode=Mode.DEFAULT)).status is Status.OK
    assert (inside.status, inside.content) == (Status.OK, (Text(str(tmp_path / "a.txt")),))
    assert outside.status is Status.DENIED


@requirement("CON-13", "CON-5")
async def test_an_effects_function_that_raises_means_the_worst(tmp_path: Path) -> None:
    @tool(effects=lambda path: Effects.reading(path[1000]))
    def peek(path: str) -> str:
        """Look at a file."""
        return path

    outcome = await run_call(tmp_path, peek, {"path": "a"}, mode=Mode.DEFAULT)

    assert outcome.status is Status.DENIED


@requirement("CON-13")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda *words: None, "f: parameter `*words` cannot be given by name, so it cannot be used."),
        (lambda **words: None, "f: parameter `**words` cannot be given by name, so it cannot be used."),
        (lambda word, /: None, "f: parameter `word` cannot be given by name, so it cannot be used."),
        (lambda word: None, "f: parameter `word` has no type."),
    ],
)
def test_a_parameter_that_cannot_be_described_is_refused(function: Any, message: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(name="f")(function)

    assert str(caught.value) == message


@requirement("CON-13", "CON-1")
def test_a_function_without_a_docstring_is_refused() -> None:
    @tool
    def silent(word: str) -> str:
        return word

    with pytest.raises(ToolDefinitionError) as caught:
        _ = silent.spec

    assert str(caught.value) == snapshot(
        "silent has no description for the model. Give it a `description` or a docstring."
    )


@requirement("CON-13", "CON-9")
async def test_the_declared_return_type_is_the_output_model(tmp_path: Path) -> None:
    @tool
    def count(words: str) -> int:
        """Count the words."""
        return words.split()  # pyright: ignore[reportReturnType]

    assert (await run_call(tmp_path, count, {"words": "a b"})).status is Status.BROKEN


@requirement("CON-13", "CON-10")
async def test_a_function_may_return_blocks_nothing_or_a_result(tmp_path: Path) -> None:
    @tool
    def picture() -> tuple[Block, ...]:
        """Give a picture with a caption."""
        return (Text("caption"), Image("image/png", "AAAA"))

    @tool
    def quiet() -> None:
        """Say nothing."""

    @tool
    async def rich() -> Result[int]:
        """Say more than a number."""
        return Result(7, messages=("psst",), changes=(StateSet("seven", True),))

    outcomes = [await run_call(tmp_path, each, {}) for each in (picture, quiet, rich)]

    assert [outcome.content for outcome in outcomes] == [
        (Text("caption"), Image("image/png", "AAAA")),
        (Text("(no output)"),),
        (Text("7"),),
    ]
    assert (outcomes[2].messages, outcomes[2].changes) == (("psst",), (StateSet("seven", True),))


@requirement("CON-13")
def test_a_docstring_in_any_indentation_documents_its_parameters() -> None:
    @tool
    def shallow(one: str, two: str) -> str:
        """Take two words.

        Parameters:
          one: First.
          two (str): Second.
        """
        return one + two

    @tool
    def bare(one: str) -> str:
        """Take a word that nothing describes."""
        return one

    def words(function: FunctionTool) -> list[str | None]:
        return [field.get("description") for field in function.spec.input_schema["properties"].values()]

    assert (words(shallow), words(bare)) == (["First.", "Second."], [None])


@requirement("CON-13")
def test_effects_of_a_function_tool_are_unknown_without_a_word(tmp_path: Path) -> None:
    assert add.effects(add.parse({"first": 1}), bare_context(tmp_path)) == Effects()


@requirement("PIPE-8", "SCHED-1")
async def test_a_thread_that_outlives_its_limit_keeps_its_place_until_it_is_over(tmp_path: Path) -> None:
    order: list[str] = []
    never = threading.Event()

    @tool(effects=Effects.of(WritesPath("/data/f")), time_limit=0.05)
    def slow(ctx: ToolContext) -> str:
        """Write one file, but only when the time is up."""
        while not ctx.cancelled:
            never.wait(0.001)
        order.append("slow")
        return "done"

    @tool(effects=Effects.of(WritesPath("/data/f")))
    async def quick() -> str:
        """Write the same file, at once."""
        order.append("quick")
        return "done"

    first, _ = await run_calls(tmp_path, [ToolCall("1", "slow", {}), ToolCall("2", "quick", {})], slow, quick)

    assert order == ["slow", "quick"]
    assert first.status is Status.FAILED
