"""What a tool asks of the client's person or model, and what it tells the client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import types
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.functions import tool
from ferrule.permissions.modes import Mode
from ferrule.sdk.tools import create_sdk_mcp_server
from ferrule.sdk.tools import tool as sdk_tool
from ferrule.server.caller import Caller, Callers, NotAnswered

from ..requirement import requirement
from .desks import ERAS, LEGACY, MODERN, Office, Person, filled, text

COLOURS = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [{"label": "red", "description": "like a rose"}, {"label": "blue"}],
        },
        {"question": "Which sizes?", "options": [{"label": "S"}, {"label": "M"}, {"label": "L"}], "multiSelect": True},
    ]
}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def _sampling() -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text="the capital of France?"))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=10))


def asking(folder: Path, act: Callable[[Caller], Awaitable[str]]) -> Office:
    """Where there is a tool that does this with whoever calls it."""
    callers = Callers()

    @tool(name="asking", effects=Effects.of())
    async def asks(ctx: ToolContext) -> str:
        """Ask."""
        return await act(callers.of(ctx))

    return Office(folder, asks, callers=callers)


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_questions_to_the_person_are_a_form(tmp_path: Path, era: str) -> None:
    person = Person(filled(choice_1="blue", choice_2_1=True, choice_2_3=True, answer_2="or XL"))
    async with Office(tmp_path).client(era, elicitation_callback=person) as client:
        result = await client.call_tool("AskUserQuestion", COLOURS)

    (form,) = person.forms
    fields = form.requested_schema["properties"]
    assert form.message == "Which colour?\nWhich sizes?"
    assert fields["choice_1"]["enum"] == ["red", "blue"]
    assert "red: like a rose" in fields["choice_1"]["description"]
    assert [fields[f"choice_2_{place}"]["title"] for place in (1, 2, 3)] == ["S", "M", "L"]
    assert text(result) == "Question: Which colour?\nAnswer: blue\n\nQuestion: Which sizes?\nAnswer: S, L, or XL"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (types.ElicitResult(action="decline"), "the person declined to answer."),
        (types.ElicitResult(action="cancel"), "the person declined to answer."),
        (filled(choice_1=["red"], choice_2_1="yes", answer_1=7), "Answer: (no answer)"),
        (None, "nobody is there to give it"),
    ],
)
async def test_what_is_no_answer_is_taken_for_none(
    tmp_path: Path, era: str, answer: types.ElicitResult | None, said: str
) -> None:
    options = {"elicitation_callback": Person(answer)} if answer else {}
    async with Office(tmp_path).client(era, **options) as client:
        result = await client.call_tool("AskUserQuestion", COLOURS)

    assert said in text(result)


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_asks_one_thing_after_another(tmp_path: Path, era: str) -> None:
    async def act(client: Caller) -> str:
        first = await client.elicit("first", "Who are you?", NAME)
        second = await client.elicit("second", f"And who is with {first.content}?", NAME)
        return f"{first.content} {second.content}"

    person = Person(filled(name="Ada"))
    async with asking(tmp_path, act).client(era, elicitation_callback=person) as client:
        result = await client.call_tool("asking", {})

    assert text(result) == "{'name': 'Ada'} {'name': 'Ada'}"
    assert person.asked == ["Who are you?", "And who is with {'name': 'Ada'}?"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_asks_for_several_things_at_once(tmp_path: Path, era: str) -> None:
    async def act(client: Caller) -> str:
        answers = await client.ask({"model": _sampling(), "roots": types.ListRootsRequest()})
        model, roots = answers["model"], answers["roots"]
        assert isinstance(model, types.CreateMessageResult)
        assert isinstance(roots, types.ListRootsResult)
        return f"{model.model}, {len(roots.roots)} roots"

    async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text="Paris"), model="a model")

    async def roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///a")])

    office = asking(tmp_path, act)
    async with office.client(era, sampling_callback=sample, list_roots_callback=roots) as client:
        result = await client.call_tool("asking", {})

    assert text(result) == "a model, 1 roots"


async def test_what_a_client_cannot_do_is_not_asked_of_it(tmp_path: Path) -> None:
    async def act(client: Caller) -> str:
        assert not client.can("sampling")
        return str(await client.ask({"model": _sampling()}))

    office = asking(tmp_path, act)
    async with office.client(LEGACY) as client:
        assert "The client cannot be asked: it has no sampling." in text(await client.call_tool("asking", {}))
    async with office.client(MODERN) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("asking", {})

    assert (caught.value.code, caught.value.data) == (-32021, {"requiredCapabilities": {"sampling": {}}})


@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_may_do_without_an_answer(tmp_path: Path, era: str) -> None:
    async def act(client: Caller) -> str:
        try:
            return str(await client.ask({"model": _sampling()}))
        except NotAnswered:
            return "done without"

    async with asking(tmp_path, act).client(era) as client:
        assert text(await client.call_tool("asking", {})) == "done without"


async def test_nobody_is_asked_once_the_call_is_over(tmp_path: Path) -> None:
    kept: list[Caller] = []

    async def act(client: Caller) -> str:
        kept.append(client)
        return ""

    async with asking(tmp_path, act).client(elicitation_callback=Person(filled(name="Ada"))) as client:
        await client.call_tool("asking", {})

        with pytest.raises(NotAnswered, match="The call has ended"):
            await kept[0].elicit("first", "Who are you?", NAME)


async def test_a_tool_that_asks_says_so_where_no_client_called_it(tmp_path: Path) -> None:
    callers = Callers()

    @tool(effects=Effects.of())
    async def asks(ctx: ToolContext) -> str:
        """Ask."""
        return str(callers.of(ctx).can("elicitation"))

    async with open_session(Settings(cwd=str(tmp_path), state_folder=tmp_path / "state"), tools=(asks,)) as session:
        (outcome,) = await session.run([ToolCall("1", "asks", {})])

    assert outcome.is_error
    assert "the call has none" in plain_text(outcome.content)


async def test_a_handler_of_the_sdk_is_given_the_context_if_it_takes_one(tmp_path: Path) -> None:
    callers = Callers()

    @sdk_tool("greet", "Greet.", {})
    async def greet(args: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
        answer = await callers.of(ctx).elicit("name", "Who are you?", NAME)
        return {"content": [{"type": "text", "text": f"Hello {answer.content}"}]}

    (served,) = create_sdk_mcp_server("own", tools=[greet])["instance"].tools
    office = Office(tmp_path, served, callers=callers, mode=Mode.BYPASS)
    async with office.client(elicitation_callback=Person(filled(name="Ada"))) as client:
        assert text(await client.call_tool("greet", {})) == "Hello {'name': 'Ada'}"


async def test_a_state_that_somebody_changed_is_refused(tmp_path: Path) -> None:
    async def act(client: Caller) -> str:
        return str(await client.elicit("first", "Who are you?", NAME))

    office = asking(tmp_path, act)
    async with office.client(MODERN, elicitation_callback=Person(filled(name="Ada"))) as client:
        asked = await client.session.call_tool("asking", {}, allow_input_required=True)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await client.session.call_tool(
                "asking", {}, request_state=f"{asked.request_state}x", allow_input_required=True
            )


@pytest.mark.parametrize(("era", "levels"), [(LEGACY, ["warning", "emergency"]), (MODERN, [])])
async def test_a_client_is_told_as_much_as_it_wants_to_know(tmp_path: Path, era: str, levels: Sequence[str]) -> None:
    async def act(client: Caller) -> str:
        for level in ("debug", "info", "warning", "emergency"):
            await client.log(level, {"said": level}, logger="tests")
        return ""

    heard: list[str] = []

    async def hear(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(params.level)

    async with asking(tmp_path, act).client(era, logging_callback=hear) as client:
        if era == LEGACY:
            with pytest.warns(MCPDeprecationWarning):  # of the revision that follows
                await client.set_logging_level("warning")
        await client.call_tool("asking", {})

    assert heard == levels
