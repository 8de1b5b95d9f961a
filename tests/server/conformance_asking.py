"""The tools that the official conformance suite expects of a server and that ask or tell the client something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp import types

from ferrule.core.context import ToolContext
from ferrule.sdk.tools import SdkMcpTool, tool
from ferrule.server.caller import Callers

from .conformance_tools import said

CALLERS = Callers()
TEXT, FLAG = {"type": "string"}, {"type": "boolean"}


def form(properties: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(properties)} if required else {})}


def elicitation(message: str, **fields: Any) -> types.ElicitRequest:
    params = types.ElicitRequestFormParams(message=message, requested_schema=form(fields))
    return types.ElicitRequest(params=params)


def sampling(prompt: str) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=100))


def _asking(name: str, **questions: Callable[[], types.InputRequest]) -> SdkMcpTool:
    """A tool that asks these, and says what it was answered."""

    @tool(name, "Ask the client.", {})
    async def ask(args: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
        answers = await CALLERS.of(ctx).ask({key: question() for key, question in questions.items()})
        return {"content": [said(f"{key}: {answer.model_dump_json()}") for key, answer in answers.items()]}

    return ask


@tool("test_elicitation", "Ask the person something.", {"message": str})
async def elicit(args: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
    answer = await CALLERS.of(ctx).elicit("response", args["message"], form({"username": TEXT, "email": TEXT}))
    return {"content": [said(f"User response: action: {answer.action}, content: {answer.content}")]}


DEFAULTS = {
    "name": {**TEXT, "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {**TEXT, "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {**FLAG, "default": True},
}


@tool("test_elicitation_sep1034_defaults", "Ask with defaults.", {})
async def elicit_with_defaults(args: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
    answer = await CALLERS.of(ctx).elicit("response", "Who are you?", form(DEFAULTS, required=False))
    return {"content": [said(f"Elicitation completed: action={answer.action}, content={answer.content}")]}


def _titled(kind: str, noun: str) -> dict[str, Any]:
    words = ("First", "Second", "Third")
    return {kind: [{"const": f"value{at}", "title": f"{word} {noun}"} for at, word in enumerate(words, 1)]}


ENUMS = {
    "untitledSingle": {**TEXT, "enum": ["option1", "option2", "option3"]},
    "titledSingle": {**TEXT, **_titled("oneOf", "Option")},
    "legacyEnum": {
        **TEXT,
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {**TEXT, "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": _titled("anyOf", "Choice")},
}


@tool("test_elicitation_sep1330_enums", "Ask with choices.", {})
async def elicit_choices(args: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
    answer = await CALLERS.of(ctx).elicit("response", "Which?", form(ENUMS, required=False))
    return {"content": [said(f"Elicitation completed: action={answer.action}, content={answer.content}")]}


@tool("test_sampling", "Ask the client's model.", {"prompt": str})
async def sample(args: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
    answer = (await CALLERS.of(ctx).ask({"response": sampling(args["prompt"])}))["response"]
    assert isinstance(answer, types.CreateMessageResult)
    return {"content": [said(f"LLM response: {answer.content}")]}


def _logging(name: str) -> SdkMcpTool:
    @tool(name, "Say what it does.", {})
    async def log(args: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await CALLERS.of(ctx).log("info", words)
        return {"content": [said("done")]}

    return log


@tool("test_reconnection", "Hang up, and go on.", {})
async def reconnect(args: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
    await CALLERS.of(ctx).hang_up()
    return {"content": [said("Reconnection test completed")]}


@tool("test_input_required_result_multi_round", "Ask twice.", {})
async def ask_twice(args: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
    asking = CALLERS.of(ctx)
    name = await asking.elicit("step1", "Step 1: What is your name?", form({"name": TEXT}))
    color = await asking.elicit("step2", "Step 2: What is your favorite color?", form({"color": TEXT}))
    return {"content": [said(f"{name.content}, {color.content}")]}


@tool("test_input_required_result_capabilities", "Ask whatever the client can answer.", {})
async def ask_what_it_can(args: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
    asking = CALLERS.of(ctx)
    questions: dict[str, types.InputRequest] = {}
    if asking.can("elicitation"):
        questions["user_name"] = elicitation("What is your name?", name=TEXT)
    if asking.can("sampling"):
        questions["capital_question"] = sampling("What is the capital of France?")
    answers = await asking.ask(questions)
    return {"content": [said(f"{len(answers)} answers")]}


def _name() -> types.ElicitRequest:
    return elicitation("What is your name?", name=TEXT)


def _confirmation() -> types.ElicitRequest:
    return elicitation("Please confirm", ok=FLAG)


def _capital() -> types.CreateMessageRequest:
    return sampling("What is the capital of France?")


ASKING_TOOLS = (
    elicit,
    elicit_with_defaults,
    elicit_choices,
    sample,
    _logging("test_tool_with_logging"),
    _logging("test_logging_tool"),
    reconnect,
    ask_twice,
    ask_what_it_can,
    _asking("test_missing_capability", response=_capital),
    _asking("test_streaming_elicitation", user_name=_name),
    _asking("test_input_required_result_elicitation", user_name=_name),
    _asking("test_input_required_result_sampling", capital_question=_capital),
    _asking("test_input_required_result_list_roots", client_roots=types.ListRootsRequest),
    _asking("test_input_required_result_request_state", confirm=_confirmation),
    _asking("test_input_required_result_tampered_state", confirm=_confirmation),
    _asking(
        "test_input_required_result_multiple_inputs",
        user_name=_name,
        greeting=_capital,
        client_roots=types.ListRootsRequest,
    ),
)
