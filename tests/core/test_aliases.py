"""Old names, with the parameters and units they took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.inputs import ToolInput
from ferrule.core.tool import Alias, Tool
from ferrule.testing import run_calls
from tests.requirement import requirement


class WaitInput(ToolInput):
    timeout: int = 0
    quiet: bool = False
    label: str = ""


class Wait(Tool[WaitInput, str]):
    """Say what it would wait for, in milliseconds."""

    name = "Wait"
    input_model = WaitInput
    aliases = (Alias("wait_seconds", rename={"seconds": "timeout"}, scale={"seconds": 1000}, fixed={"quiet": True}),)

    def effects(self, input: WaitInput, ctx: ToolContext) -> Effects:
        return Effects.of()

    async def call(self, input: WaitInput, ctx: ToolContext) -> str:
        return f"{input.timeout} {input.quiet} {input.label}".rstrip()


async def _said(tmp_path: Path, name: str, arguments: dict[str, Any]) -> tuple[Status, str]:
    (outcome,) = await run_calls(tmp_path, [ToolCall("1", name, arguments)], Wait())
    assert isinstance(outcome.content[0], Text)
    return outcome.status, outcome.content[0].text


@requirement("CON-15")
async def test_an_old_name_takes_its_old_parameters_and_units(tmp_path: Path) -> None:
    assert await _said(tmp_path, "wait_seconds", {"seconds": 1.5, "label": "x"}) == (Status.OK, "1500 True x")
    assert await _said(tmp_path, "wait_seconds", {"seconds": "2"}) == (Status.OK, "2000 True")
    assert await _said(tmp_path, "Wait", {"timeout": 5}) == (Status.OK, "5 False")


@requirement("CON-15")
async def test_the_new_name_does_not_take_the_old_parameters(tmp_path: Path) -> None:
    status, _ = await _said(tmp_path, "Wait", {"seconds": 5})

    assert status is Status.INVALID


@requirement("CON-15")
@pytest.mark.parametrize("value", ["abc", "nan", "inf", "1e999", True, [1]])
async def test_a_value_that_cannot_be_scaled_is_refused_by_name(tmp_path: Path, value: Any) -> None:
    status, words = await _said(tmp_path, "wait_seconds", {"seconds": value, "timeout": value})

    assert status is Status.INVALID
    assert "`timeout` must be a whole number" in words


@requirement("CON-15")
@given(st.integers())
def test_a_whole_number_is_scaled_exactly(seconds: int) -> None:
    assert Alias("old", scale={"timeout": 1000}).adapt({"timeout": seconds}) == {"timeout": seconds * 1000}


@requirement("CON-15")
def test_a_number_too_large_to_scale_by_a_fraction_is_left_for_the_schema() -> None:
    assert Alias("old", scale={"timeout": 0.5}).adapt({"timeout": 10**400}) == {"timeout": 10**400}


@requirement("CON-15")
@given(st.integers(0, 10**6))
def test_whole_milliseconds_survive_the_way_through_seconds(milliseconds: int) -> None:
    alias = Alias("old", scale={"timeout": 1000})

    assert alias.adapt({"timeout": milliseconds / 1000}) == {"timeout": milliseconds}


@requirement("CON-15")
def test_what_an_old_name_implied_can_still_be_said() -> None:
    alias = Alias("old", rename={"include": "glob"}, fixed={"mode": "content"})

    assert alias.adapt({"include": "*.py"}) == {"mode": "content", "glob": "*.py"}
    assert alias.adapt({"mode": "count"}) == {"mode": "count"}
