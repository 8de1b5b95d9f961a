"""A call that needs approval: a question to the client's person, or a refusal that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult, ErrorData

from ferrule.core.context import ToolContext
from ferrule.core.effects import Change, Effects, WritesPath
from ferrule.core.functions import tool

from ..requirement import requirement
from .desks import ERAS, LEGACY, MODERN, Office, text

WRITE = ("Write", {"file_path": "new.txt", "content": "text"})


class Person:
    """Answers every question the same way, and remembers them."""

    def __init__(self, answer: ElicitResult | ErrorData) -> None:
        self._answer = answer
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params.message)
        return self._answer


ALLOWS = ElicitResult(action="accept", content={"decision": "allow"})


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
        (ElicitResult(action="accept", content={"decision": "refuse"}), "refused it"),
        (ElicitResult(action="accept", content={}), "refused it"),
        (ElicitResult(action="decline"), "refused it"),
        (ElicitResult(action="cancel"), "gave no answer"),
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
