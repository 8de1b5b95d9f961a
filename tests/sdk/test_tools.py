"""Tools of one's own in the form of the Claude Agent SDK, called in-process and served."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.validators import Draft202012Validator

from ferrule.core.calls import Status
from ferrule.core.content import Image, Text
from ferrule.core.tool import ToolDefinitionError
from ferrule.sdk.tool_schemas import quick_check, schema_of
from ferrule.sdk.tools import SdkMcpTool, create_sdk_mcp_server, tool
from ferrule.testing import run_call
from tests.requirement import requirement


def _says(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


@tool("add", "Add two numbers.", {"a": float, "b": float}, annotations={"read_only_hint": True})
async def add(args: dict[str, Any]) -> dict[str, Any]:
    return _says(str(args["a"] + args["b"]))


@tool("divide", "Divide.", {"a": float, "b": float})
async def divide(args: dict[str, Any]) -> dict[str, Any]:
    if not args["b"]:
        return {**_says("Division by zero."), "is_error": True}
    return _says(str(args["a"] / args["b"]))


@tool("show", "Show things.", {})
async def show(args: dict[str, Any]) -> dict[str, Any]:
    return {
        "content": [
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "A file."},
            {"type": "resource", "resource": {"uri": "test://a", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "test://b", "blob": "aGk="}},
        ]
    }


@tool("fail", "Fail.", {})
async def fail(args: dict[str, Any]) -> dict[str, Any]:
    raise ValueError("no luck")


async def _outcome(folder: Path, definition: SdkMcpTool, **arguments: Any) -> tuple[Status, tuple[Any, ...]]:
    (made,) = create_sdk_mcp_server("calc", tools=[definition])["instance"].tools
    outcome = await run_call(folder, made.rename(f"mcp__calc__{made.name}"), arguments)
    return outcome.status, outcome.content


@requirement("SDK-1")
async def test_a_handler_is_given_a_dict_and_its_text_is_the_result(tmp_path: Path) -> None:
    assert await _outcome(tmp_path, add, a=1, b=2) == (Status.OK, (Text("3"),))


async def test_content_that_a_model_can_be_shown_is_shown(tmp_path: Path) -> None:
    status, content = await _outcome(tmp_path, show)

    assert status is Status.OK
    assert content == (Image("image/png", "aGk="), Text("a\nfile:///a\nA file."), Text("inside"))


async def test_an_error_that_a_handler_returns_is_one(tmp_path: Path) -> None:
    assert await _outcome(tmp_path, divide, a=1, b=0) == (Status.FAILED, (Text("Division by zero."),))


async def test_an_error_that_a_handler_raises_is_a_result_that_says_so(tmp_path: Path) -> None:
    status, (said,) = await _outcome(tmp_path, fail)

    assert status is Status.BROKEN
    assert "no luck" in said.text


@pytest.mark.parametrize(
    ("arguments", "said"), [({"a": 1}, "'b' is a required property"), ({"a": "x", "b": 1}, "`a`: 'x' is not of type")]
)
async def test_arguments_that_do_not_fit_never_reach_the_handler(
    tmp_path: Path, arguments: dict[str, Any], said: str
) -> None:
    status, (text,) = await _outcome(tmp_path, add, **arguments)

    assert status is Status.INVALID
    assert said in text.text


async def test_content_of_no_known_shape_is_the_handlers_fault(tmp_path: Path) -> None:
    @tool("odd", "Odd.", {})
    async def odd(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "hologram"}]}

    assert (await _outcome(tmp_path, odd))[0] is Status.BROKEN


def test_parameters_may_be_given_in_three_forms() -> None:
    class Query(TypedDict):
        words: Annotated[str, "What to look for."]
        limit: NotRequired[int]

    json_schema = {"type": "object", "properties": {"type": {"type": "string"}}}

    assert schema_of(Query) == {
        "type": "object",
        "properties": {"words": {"type": "string", "description": "What to look for."}, "limit": {"type": "integer"}},
        "required": ["words"],
    }
    assert schema_of(json_schema) == json_schema
    assert schema_of({"type": str, "odd": object()})["properties"] == {
        "type": {"type": "string"},
        "odd": {"type": "string"},
    }


def test_a_tool_that_nobody_could_call_is_refused_at_once() -> None:
    async def handler(args: dict[str, Any]) -> dict[str, Any]:
        return {}

    for definitions in (
        [SdkMcpTool("two words", "Words.", {}, handler)],
        [SdkMcpTool("a", "", {}, handler)],
        [SdkMcpTool("a", "Words.", {"type": "nonsense"}, handler)],
        [SdkMcpTool("a", "Words.", 5, handler)],
        [add, add],
    ):
        with pytest.raises(ToolDefinitionError):
            create_sdk_mcp_server("calc", tools=definitions)


def test_annotations_keep_their_words_and_set_the_limit() -> None:
    (made,) = create_sdk_mcp_server(
        "calc", tools=[SdkMcpTool("a", "A.", {}, add.handler, {"maxResultSizeChars": 900_000, "title": "An A"})]
    )["instance"].tools

    assert (made.result_limit, made.spec.title, made.hints["title"]) == (500_000, "An A", "An A")


_VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]))


@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from([str, int, float, bool]), max_size=3),
    st.dictionaries(st.sampled_from("abcd"), _VALUES, max_size=4),
)
def test_the_quick_check_accepts_nothing_that_the_schema_refuses(
    fields: dict[str, Any], arguments: dict[str, Any]
) -> None:
    schema = schema_of(fields)
    check = quick_check(schema)

    assert check is not None
    assert not check.accepts(arguments) or Draft202012Validator(schema).is_valid(arguments)


async def test_a_handler_that_returns_something_else_is_told_what_to_return(tmp_path: Path) -> None:
    @tool("odd", "Odd.", {})
    async def odd(args: dict[str, Any]) -> Any:
        return "just words"

    status, content = await _outcome(tmp_path, odd)

    assert status is Status.BROKEN
    assert 'return {"content": [...]}' in str(content)


@pytest.mark.parametrize(
    ("structured", "status"), [({"sum": 3}, Status.OK), ({"sum": "3"}, Status.FAILED), (None, Status.FAILED)]
)
async def test_structured_content_is_held_to_the_output_schema(tmp_path: Path, structured: Any, status: Status) -> None:
    @tool("sum", "Sum.", {}, title="A sum", output_schema={"sum": int})
    async def total(args: dict[str, Any]) -> dict[str, Any]:
        return {"structuredContent": structured}

    found, content = await _outcome(tmp_path, total)

    assert found is status
    assert content == (Text('{"sum": 3}'),) if status is Status.OK else "does not fit its schema" in str(content)
