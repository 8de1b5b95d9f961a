"""What a call may know, and the one way to call another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import Line, Text
from ferrule.core.context import Facts, Prefix, ToolContext
from ferrule.core.effects import Effects
from ferrule.core.events import ToolProgressed
from ferrule.core.inputs import ToolInput
from ferrule.core.model import UserTurn
from ferrule.core.state import Granted, MovedTo, Queued, SessionState, StateSet, ToolsFound
from ferrule.core.tool import Tool
from ferrule.permissions.modes import Mode
from ferrule.testing import bare_context, run_call
from ferrule.testing.doubles import NoPort
from ferrule.tools import builtin_tools
from tests.requirement import requirement


class Nothing(ToolInput):
    pass


class Keeps(Tool[Nothing, str]):
    """Keep the context it was given."""

    name = "Keeps"
    input_model = Nothing

    def __init__(self) -> None:
        self.seen: list[ToolContext] = []

    async def call(self, input: Nothing, ctx: ToolContext) -> str:
        self.seen.append(ctx)
        return "kept"


class Calls(Tool[Nothing, Any]):
    """Call another tool and give back what came of it."""

    name = "Calls"
    input_model = Nothing

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self._call = (name, arguments)
        self.inner: list[ToolOutcome] = []

    async def call(self, input: Nothing, ctx: ToolContext) -> str:
        self.inner.append(await ctx.invoke(*self._call))
        return "called"


@requirement("CON-17")
async def test_a_call_knows_its_place_and_its_surroundings(tmp_path: Path) -> None:
    tool = Keeps()
    settings = Settings(
        cwd=str(tmp_path), mode=Mode.BYPASS, added_directories=("/opt",), state_folder=tmp_path / "state"
    )
    session = open_session(settings, tools=[tool])
    session.history.append(UserTurn.saying("hello"))

    await session.run([ToolCall("toolu_1", "Keeps", {})])
    session.history.append(UserTurn.saying("and more"))

    (ctx,) = tool.seen
    assert (ctx.call_id, ctx.cwd, ctx.depth, ctx.cancelled) == ("toolu_1", str(tmp_path), 0, False)
    assert (ctx.facts.session_id, ctx.facts.agent, ctx.facts.chain) == (session.id, "main", ())
    assert (ctx.facts.workspace, ctx.facts.added_directories) == (str(tmp_path), ("/opt",))
    assert [spec.name for spec in ctx.facts.tools] == sorted(
        ["Keeps", *(tool.name for tool in builtin_tools() if tool.name not in session.registry.pool.off)]
    )
    assert list(ctx.facts.conversation) == [UserTurn.saying("hello")]


@requirement("CON-17")
def test_what_a_call_knows_cannot_be_changed(tmp_path: Path) -> None:
    ctx = bare_context(tmp_path)

    with pytest.raises(AttributeError):
        ctx.cwd = "/"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        ctx.facts.agent = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


@requirement("CON-17")
async def test_a_nested_call_knows_the_chain_it_stands_in(tmp_path: Path) -> None:
    inner, outer = Keeps(), Calls("Keeps", {})
    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state")

    await open_session(settings, tools=[inner, outer]).run([ToolCall("a", "Calls", {})])

    (ctx,) = inner.seen
    assert (ctx.facts.chain, ctx.depth) == (("a",), 1)
    assert [outcome.content for outcome in outer.inner] == [(Text("kept"),)]


@requirement("CON-17")
async def test_a_nested_call_meets_the_same_permissions(tmp_path: Path) -> None:
    class Trusted(Calls):
        """State that it touches nothing, then reach for a file."""

        name = "Trusted"

        def effects(self, input: Nothing, ctx: ToolContext) -> Effects:
            return Effects.of()

    outer = Trusted("Read", {"file_path": "/etc/hosts"})
    outcome = await run_call(tmp_path, outer, {}, mode=Mode.DEFAULT)

    assert outcome.status is Status.OK
    assert [inner.status for inner in outer.inner] == [Status.DENIED]


@requirement("CON-17", "PIPE-2")
async def test_a_nested_call_that_is_wrong_is_answered_and_does_not_raise(tmp_path: Path) -> None:
    outer = Calls("Raed", {})

    outcome = await run_call(tmp_path, outer, {})

    assert (outcome.status, [inner.status for inner in outer.inner]) == (Status.OK, [Status.INVALID])


@requirement("CON-11")
async def test_progress_is_seen_by_those_who_listen(tmp_path: Path) -> None:
    class Reports(Keeps):
        """Report how far it is."""

        name = "Reports"

        async def call(self, input: Nothing, ctx: ToolContext) -> str:
            ctx.report(Line("half"))
            return "whole"

    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state")
    session = open_session(settings, tools=[Reports()])

    with session.bus.subscribe() as events:
        await session.run([ToolCall("1", "Reports", {})])
    heard = [envelope.event async for envelope in events]

    assert [event for event in heard if isinstance(event, ToolProgressed)] == [ToolProgressed("1", Line("half"))]


@requirement("CON-14")
async def test_a_bare_context_keeps_reports_and_refuses_nested_calls(tmp_path: Path) -> None:
    port = NoPort()
    ctx = bare_context(tmp_path, port=port, facts=Facts(agent="Explore"))

    ctx.report(Line("half"))
    nested = await ctx.invoke("Read", {})

    assert (port.reported, nested.status, ctx.facts.agent) == ([Line("half")], Status.INVALID, "Explore")


@requirement("CON-10")
def test_changes_of_state_are_applied_one_by_one() -> None:
    state = SessionState("/a")

    for change in (
        MovedTo("/b"),
        Granted("Read"),
        Granted("Glob"),
        Queued("/compact"),
        ToolsFound(("X", "Y", "X")),
        ToolsFound(("Y", "Z")),
        StateSet("todo", [1]),
    ):
        state.apply(change)

    assert state == SessionState(
        "/b",
        grants=("Read", "Glob"),
        queue=("/compact",),
        found_tools=("X", "Y", "Z"),
        values={"todo": [1]},
    )


@requirement("CON-17")
@given(st.integers(0, 6), st.integers(0, 6), st.slices(6), st.integers(-8, 8))
def test_a_conversation_seen_by_a_call_is_as_long_as_it_was(length: int, more: int, part: slice, index: int) -> None:
    turns = [UserTurn.saying(str(number)) for number in range(length)]
    seen, was = Prefix(turns), list(turns)
    turns.extend(UserTurn.saying("later") for _ in range(more))

    assert (list(seen), len(seen), list(seen[part])) == (was, len(was), was[part])
    if -length <= index < length:
        assert seen[index] == was[index]
    else:
        with pytest.raises(IndexError):
            seen[index]
