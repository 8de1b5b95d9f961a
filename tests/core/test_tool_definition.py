"""What an author must give, and what the rest defaults to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import Field

from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects, Opaque
from ferrule.core.inputs import ToolInput
from ferrule.core.schemas import lean
from ferrule.core.tool import Exposure, Tool, ToolDefinitionError
from ferrule.engine.pool import Registry
from ferrule.permissions.modes import Mode
from ferrule.testing import bare_context, run_call, run_calls
from ferrule.tools import builtin_tools
from tests.requirement import requirement


class Words(ToolInput):
    words: str = Field(default="", description="Anything.")


class Bare(Tool[Words, str]):
    """Repeat the words, and do nothing else."""

    name = "Bare"
    input_model = Words

    async def call(self, input: Words, ctx: ToolContext) -> str:
        return input.words


# What the defaults promise


@requirement("CON-1")
def test_a_tool_that_states_no_effects_may_do_anything(tmp_path: Path) -> None:
    effects = Bare().effects(Words(), bare_context(tmp_path))

    assert effects == Effects((Opaque(),))
    assert (effects.unknown, effects.read_only, effects.destructive) == (True, False, True)


@requirement("CON-1")
async def test_a_tool_that_states_no_effects_is_refused_without_approval(tmp_path: Path) -> None:
    outcome = await run_call(tmp_path, Bare(), {"words": "hi"}, mode=Mode.DEFAULT)

    assert outcome.status is Status.DENIED
    assert outcome.content == (
        Text(
            snapshot(
                "Bare was not allowed: it needs a person's approval (may do anything: the tool cannot say) "
                "and nobody is there to give it."
            )
        ),
    )


@requirement("CON-1")
def test_the_rest_of_a_tool_has_careful_defaults() -> None:
    tool = Bare()

    assert (
        tool.result_limit,
        tool.keep,
        tool.time_limit,
        tool.exposure,
        tool.feature,
        tool.aliases,
        tool.output_model,
        tool.unavailable(),
        tool.has_opinion,
    ) == (30_000, "both", None, Exposure.DIRECT, None, (), None, None, False)


@requirement("CON-1")
def test_a_docstring_counts_as_the_description() -> None:
    assert Bare().spec.description == "Repeat the words, and do nothing else."


@requirement("CON-1")
def test_a_description_goes_before_the_docstring() -> None:
    class Told(Bare):
        """For readers of the code."""

        description = "For the model."

    assert Told().spec.description == "For the model."


@requirement("CON-1")
def test_the_docstring_of_a_parent_class_does_not_describe_its_child() -> None:
    class Silent(Bare):
        pass

    with pytest.raises(ToolDefinitionError, match="has no description for the model"):
        _ = Silent().spec


# What is refused


def _definition_error(**attributes: Any) -> str:
    broken = type("Broken", (Bare,), {"description": "Says something.", **attributes})
    with pytest.raises(ToolDefinitionError) as caught:
        _ = broken().spec
    return str(caught.value)


@requirement("CON-1")
def test_a_tool_without_a_name_is_refused() -> None:
    class Nameless(Tool[Words, str]):
        """Has words and input, and no name."""

        input_model = Words

        async def call(self, input: Words, ctx: ToolContext) -> str:
            return ""

    with pytest.raises(ToolDefinitionError) as caught:
        _ = Nameless().spec

    assert str(caught.value) == snapshot(
        "Nameless needs a `name` of 1 to 128 letters, digits, `_`, `-` or `.`; it has ''."
    )


@requirement("CON-1")
@pytest.mark.parametrize("name", ["", "two words", "a/b", "naïve", "x" * 129, "line\n"])
def test_a_name_the_model_cannot_write_is_refused(name: str) -> None:
    message = _definition_error(name=name)

    assert message == f"Broken needs a `name` of 1 to 128 letters, digits, `_`, `-` or `.`; it has {name!r}."


@requirement("CON-1")
def test_a_tool_that_tells_the_model_nothing_is_refused() -> None:
    assert _definition_error(description="  \n") == snapshot(
        "Bare has no description for the model. Give it a `description` or a docstring."
    )


@requirement("CON-1")
@pytest.mark.parametrize("model", [None, dict, Words(), str])
def test_a_tool_without_an_input_model_is_refused(model: object) -> None:
    assert _definition_error(input_model=model) == snapshot(
        "Broken needs an `input_model` that derives from ToolInput."
    )


@requirement("CON-1")
def test_a_tool_without_a_call_cannot_be_made() -> None:
    class Idle(Tool[Words, str]):
        """Never does anything."""

        name = "Idle"
        input_model = Words

    with pytest.raises(TypeError, match="call"):
        Idle()  # pyright: ignore[reportAbstractUsage]


@requirement("CON-1")
def test_a_tool_that_breaks_the_contract_is_refused_when_it_is_added() -> None:
    class Silent(Bare):
        pass

    registry = Registry(())

    with pytest.raises(ToolDefinitionError):
        registry.add(Silent())
    assert len(registry.pool) == 0


# Schemas


@requirement("CON-3")
def test_schemas_have_the_same_bytes_in_every_process() -> None:
    program = (
        "from ferrule.tools import builtin_tools\n"
        "for tool in builtin_tools(): print(tool.spec.name, tool.spec.schema_json())"
    )

    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "271828")
    )

    assert first == second
    assert first.count(b'{"additionalProperties"') >= len(builtin_tools())


@requirement("CON-3")
def test_a_schema_is_built_on_first_use_and_once() -> None:
    built: list[str] = []

    class Counting(Bare):
        """Count how often the schema is asked for."""

        def input_schema(self) -> Any:
            built.append("schema")
            return super().input_schema()

    tool = Counting()
    before = list(built)
    specs = [tool.spec, tool.spec]

    assert (before, built) == ([], ["schema"])
    assert specs[0] is specs[1]


@requirement("CON-3")
def test_a_schema_carries_no_generated_titles_and_no_spelled_out_nulls() -> None:
    class Inner(ToolInput):
        title: str = Field(description="A heading.")
        default: int | None = Field(default=None, description="Named like a keyword.")

    class Outer(ToolInput):
        title: str | None = Field(default=None, description="A heading.")
        inner: list[Inner] = Field(default_factory=list, description="More.")

    assert lean(Outer.model_json_schema()) == snapshot(
        {
            "$defs": {
                "Inner": {
                    "additionalProperties": False,
                    "properties": {
                        "title": {"description": "A heading.", "type": "string"},
                        "default": {"type": "integer", "description": "Named like a keyword."},
                    },
                    "required": ["title"],
                    "type": "object",
                }
            },
            "additionalProperties": False,
            "properties": {
                "title": {"type": "string", "description": "A heading."},
                "inner": {"description": "More.", "items": {"$ref": "#/$defs/Inner"}, "type": "array"},
            },
            "type": "object",
        }
    )


@requirement("CON-3")
def test_a_default_or_example_that_looks_like_a_schema_is_left_alone() -> None:
    schema = {"properties": {"x": {"default": {"title": "kept"}, "enum": [None, {"title": "kept"}]}}}

    assert lean(schema) == schema


# Words for the model, words for people


@requirement("CON-4")
def test_a_call_is_described_to_people_apart_from_the_guide_for_the_model() -> None:
    class Titled(Bare):
        """Repeat what was said.

        A long guide follows.
        """

        title = "Repeat aloud"

    tool = Titled()

    assert tool.describe(Words(words="good\n  morning")) == "Repeat aloud good morning"
    assert tool.describe(Words(words="x" * 200)) == f"Repeat aloud {'x' * 79}…"
    assert (tool.spec.title, tool.spec.summary) == ("Repeat aloud", "Repeat what was said.")
    assert tool.spec.description == "Repeat what was said.\n\nA long guide follows."


@requirement("CON-4")
def test_a_tool_without_a_title_is_shown_by_its_name() -> None:
    assert (Bare().spec.title, Bare().describe(Words(words="x"))) == ("Bare", "Bare x")


@requirement("CON-4")
def test_a_guide_that_depends_on_the_session_is_computed_once() -> None:
    class Agents(Bare):
        def __init__(self, agents: list[str]) -> None:
            self.agents = agents

        def guide(self) -> str:
            return f"Start one of {', '.join(self.agents)}."

    agents = ["Explore"]
    tool = Agents(agents)
    first = tool.spec.description
    agents.append("Plan")

    assert (first, tool.spec.description) == ("Start one of Explore.", "Start one of Explore.")


# Switched off


class Missing(Bare):
    """Needs a program that is not there."""

    name = "Missing"

    def unavailable(self) -> str | None:
        return "the program `frobnicate` is not installed"


@requirement("CON-6")
async def test_a_call_of_a_tool_that_switched_itself_off_says_why(tmp_path: Path) -> None:
    outcome = await run_call(tmp_path, Missing(), {})

    assert (outcome.status, outcome.content) == (
        Status.INVALID,
        (Text(snapshot("Missing cannot be used here: the program `frobnicate` is not installed.")),),
    )


@requirement("CON-6")
async def test_a_tool_that_switched_itself_off_is_not_in_the_list(tmp_path: Path) -> None:
    names: list[str] = []

    class Lists(Bare):
        """List the tools there are."""

        name = "Lists"

        async def call(self, input: Words, ctx: ToolContext) -> str:
            names.extend(spec.name for spec in ctx.facts.tools)
            return ""

    await run_calls(tmp_path, [ToolCall("1", "Lists", {})], Missing(), Lists())

    assert {"Lists", "Read", "Bash"} <= {*names}
    assert "Missing" not in names


# Invalid is not denied


@requirement("CON-7")
async def test_a_validation_failure_and_a_refused_permission_are_told_apart(tmp_path: Path) -> None:
    invalid = await run_call(tmp_path, Bare(), {"word": "hi"}, mode=Mode.DEFAULT)
    denied = await run_call(tmp_path, Bare(), {"words": "hi"}, mode=Mode.DEFAULT)

    assert (invalid.status, denied.status) == (Status.INVALID, Status.DENIED)
    assert invalid.content == (
        Text(
            snapshot("""\
Bare cannot take these arguments:
- `word` is not a parameter; did you mean `words`?
It takes: words.\
""")
        ),
    )
    assert isinstance(denied.content[0], Text)
    assert denied.content[0].text.startswith("Bare was not allowed: ")
