"""A call that needs approval: a question to the client's person, or a refusal that says so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitRequestParams, ElicitResult, ErrorData

from ferrule.core.context import ToolContext
from ferrule.core.effects import Change, Effects, WritesPath
from ferrule.core.functions import tool

from ..requirement import requirement
from .desks import ERAS, HANG, LEGACY, MODERN, Office, Person, filled, text

WRITE = ("Write", {"file_path": "new.txt", "content": "text"})


ALLOWS = filled(decision="allow")


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_a_person_allows_runs(tmp_path: Path, era: str) -> None:
    person = Person(ALLOWS)
    async with Office(tmp_path).client(era, elicitation_callback=person) as client:
        result = await client.call_tool(*WRITE)

    assert not result.is_error
    assert (tmp_path / "new.txt").read_text() == "text"
    assert len(person.asked) == 1
    assert f"creates {tmp_path}/new.txt" in person.asked[0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (filled(decision="refuse"), "the person said no"),
        (filled(decision="always allow"), "the person said no"),
        (filled(decision=True), "the person said no"),
        (filled(decision="refuse", instead="use a.txt"), "the person said no, and: use a.txt"),
        (filled(), "the person said no"),
        (ElicitResult(action="decline"), "the person said no"),
        (ElicitResult(action="cancel"), "did not answer"),
    ],
)
@pytest.mark.parametrize("era", ERAS)
async def test_anything_but_a_clear_yes_is_a_refusal(
    tmp_path: Path, era: str, answer: ElicitResult, words: str
) -> None:
    async with Office(tmp_path).client(era, elicitation_callback=Person(answer)) as client:
        result = await client.call_tool(*WRITE)

    assert result.is_error
    assert words in text(result)
    assert not (tmp_path / "new.txt").exists()


async def test_a_client_that_fails_to_ask_has_not_allowed_it(tmp_path: Path) -> None:
    person = Person(ErrorData(code=-32000, message="no screen"))
    async with Office(tmp_path).client(LEGACY, elicitation_callback=person) as client:
        result = await client.call_tool(*WRITE)

    assert result.is_error
    assert not (tmp_path / "new.txt").exists()


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_ask_is_told_what_the_call_would_have_done(tmp_path: Path, era: str) -> None:
    async with Office(tmp_path).client(era) as client:
        result = await client.call_tool(*WRITE)

    assert result.is_error
    assert f"needs a person's approval (creates {tmp_path}/new.txt)" in text(result)


@pytest.mark.parametrize(("era", "runs"), [(LEGACY, True), (MODERN, False)])
async def test_a_call_inside_another_is_asked_about_only_where_the_outer_one_can_wait(
    tmp_path: Path, era: str, runs: bool
) -> None:
    inside = str(tmp_path / "inside.txt")

    @tool(effects=Effects.of())
    async def outer(ctx: ToolContext) -> str:
        """Write by way of another tool."""
        return (await ctx.invoke("inner", {})).status

    @tool(effects=Effects.of(WritesPath(inside, Change.CREATES)))
    def inner() -> str:
        """Write."""
        Path(inside).touch()
        return ""

    async with Office(tmp_path, outer, inner).client(era, elicitation_callback=Person(ALLOWS)) as client:
        result = await client.call_tool("outer", {})

    assert text(result) == ("ok" if runs else "denied")
    assert Path(inside).exists() is runs


async def test_an_answer_to_one_call_is_no_answer_to_another(tmp_path: Path) -> None:
    async with Office(tmp_path).client(MODERN, elicitation_callback=Person(ALLOWS)) as client:
        first = await client.session.call_tool(*WRITE, allow_input_required=True)
        responses = dict.fromkeys(first.input_requests or {}, ALLOWS)
        other = await client.session.call_tool(
            "Write", {"file_path": "other.txt", "content": ""}, input_responses=responses, allow_input_required=True
        )

    assert responses
    assert set(other.input_requests or {}).isdisjoint(responses)
    assert not (tmp_path / "other.txt").exists()


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_the_person_sees_the_diff_the_effects_and_the_reason(tmp_path: Path, era: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    person = Person(ALLOWS)
    async with Office(tmp_path).client(era, elicitation_callback=person) as client:
        await client.call_tool("Read", {"file_path": "a.txt"})
        await client.call_tool("Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "2"})

    (asked,) = person.asked
    for shown in ("Edit", "-two", "+2", f"replaces {path}", "It is asked because nothing allows it."):
        assert shown in asked
    assert path.read_text() == "one\n2\n"


@requirement("MCP-5")
@pytest.mark.parametrize(
    ("era", "one_client", "choices"),
    [
        (LEGACY, False, ["allow", "allow for this session", "refuse"]),
        (LEGACY, True, ["allow", "allow for this session", "always allow", "refuse"]),
        (MODERN, False, ["allow", "refuse"]),
        (MODERN, True, ["allow", "allow for this session", "always allow", "refuse"]),
    ],
)
async def test_an_answer_holds_no_longer_than_the_client_may_speak_for(
    tmp_path: Path, era: str, one_client: bool, choices: list[str]
) -> None:
    person = Person(filled(decision="refuse"))
    async with Office(tmp_path, one_client=one_client).client(era, elicitation_callback=person) as client:
        await client.call_tool("Bash", {"command": "touch a"})

    (form,) = person.forms
    assert form.requested_schema["properties"]["decision"]["enum"] == choices
    assert ("Always would add: `Bash(touch a)`" in form.message) is (len(choices) > 2)


async def test_what_is_allowed_for_the_session_is_not_asked_again(tmp_path: Path) -> None:
    person = Person(filled(decision="allow for this session"))
    async with Office(tmp_path).client(elicitation_callback=person) as client:
        results = [await client.call_tool("Bash", {"command": "touch a"}) for _ in range(2)]

    assert [result.is_error for result in results] == [False, False]
    assert len(person.asked) == 1


async def test_what_is_always_allowed_is_saved_for_the_folder(tmp_path: Path) -> None:
    person = Person(filled(decision="always allow"))
    async with Office(tmp_path, one_client=True).client(elicitation_callback=person) as client:
        await client.call_tool("Bash", {"command": "touch a"})

    (saved,) = tmp_path.glob(".*/settings.local.json")
    assert json.loads(saved.read_text())["permissions"]["allow"] == ["Bash(touch a)"]


class Slow:
    """Answers when it is told to, and counts the questions that are open at once."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self.may_answer = asyncio.Event()
        self.open = self.most = 0

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.open += 1
        self.most = max(self.most, self.open)
        self.asked.put_nowait(params.message)
        try:
            await self.may_answer.wait()
        finally:
            self.open -= 1
        return ALLOWS


async def test_a_person_is_asked_one_thing_at_a_time(tmp_path: Path) -> None:
    person = Slow()
    async with Office(tmp_path).client(elicitation_callback=person) as client, asyncio.timeout(HANG):
        calls = [
            asyncio.create_task(client.call_tool("Write", {"file_path": name, "content": ""})) for name in ("a", "b")
        ]
        await person.asked.get()
        person.may_answer.set()
        results = await asyncio.gather(*calls)

    assert [result.is_error for result in results] == [False, False]
    assert person.most == 1


async def test_a_call_that_is_cancelled_while_it_is_asked_about_lets_the_next_one_ask(tmp_path: Path) -> None:
    person = Slow()
    async with Office(tmp_path).client(elicitation_callback=person) as client, asyncio.timeout(HANG):
        first = asyncio.create_task(client.call_tool("Write", {"file_path": "first", "content": ""}))
        assert "first" in await person.asked.get()
        second = asyncio.create_task(client.call_tool("Write", {"file_path": "second", "content": ""}))
        first.cancel()
        assert "second" in await person.asked.get()
        person.may_answer.set()

        assert not (await second).is_error
    assert not (tmp_path / "first").exists()


async def test_a_client_that_never_answers_has_refused(tmp_path: Path) -> None:
    async with Office(tmp_path, answer_seconds=0.1).client(elicitation_callback=Slow()) as client:
        result = await client.call_tool(*WRITE)

    assert result.is_error
    assert "did not answer" in text(result)
    assert not (tmp_path / "new.txt").exists()


async def test_an_answer_is_void_when_the_call_has_come_to_mean_something_else(tmp_path: Path) -> None:
    (tmp_path / "other.txt").touch()
    async with Office(tmp_path).client(MODERN, elicitation_callback=Person(ALLOWS)) as client:
        first = await client.session.call_tool(*WRITE, allow_input_required=True)
        (tmp_path / "new.txt").symlink_to("other.txt")
        second = await client.session.call_tool(
            *WRITE,
            input_responses=dict.fromkeys(first.input_requests or {}, ALLOWS),
            request_state=first.request_state,
            allow_input_required=True,
        )

    assert second.input_requests is not None
    assert set(second.input_requests).isdisjoint(first.input_requests or {})
    assert (tmp_path / "other.txt").read_text() == ""
