"""Which tools there are, in which order, and who hears of changes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Text, plain_text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.events import ListChanged
from ferrule.core.inputs import ToolInput
from ferrule.core.tool import Alias, AnyTool, Exposure, Tool, ToolDefinitionError
from ferrule.engine.pool import (
    Registry,
    Selection,
    ToolPool,
    assemble,
    available,
    features,
    only,
    select,
    without,
)
from ferrule.permissions.modes import Mode
from ferrule.testing import run_calls
from ferrule.tools import builtin_tools
from tests.requirement import requirement


class Nothing(ToolInput):
    pass


class Named(Tool[Nothing, str]):
    """Do what its name says."""

    description = "Do what its name says."
    input_model = Nothing

    def __init__(
        self,
        name: str,
        *,
        says: str = "",
        feature: str | None = None,
        off: str | None = None,
        old: tuple[str, ...] = (),
        deferred: bool = False,
    ) -> None:
        self.name = name
        self.feature = feature  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
        self.aliases = tuple(Alias(each) for each in old)
        self.exposure = Exposure.DEFERRED if deferred else Exposure.DIRECT
        self._off = off
        self._says = says or name

    def unavailable(self) -> str | None:
        return self._off

    def effects(self, input: Nothing, ctx: ToolContext) -> Effects:
        return Effects.of()

    async def call(self, input: Nothing, ctx: ToolContext) -> str:
        return self._says


def _names(tools: Any) -> list[str]:
    return [tool.name for tool in tools]


def _bytes(pool: ToolPool, found: tuple[str, ...] = ()) -> list[str]:
    return [f"{spec.name}\n{spec.description}\n{spec.schema_json()}" for spec in pool.specs_for_request(found)]


# Layers


@requirement("POOL-1")
def test_a_tool_behind_a_switch_is_there_when_the_switch_is_on() -> None:
    tools = (Named("Plain"), Named("New", feature="new"))

    assert _names(select(tools, features({"new"})).tools) == ["Plain", "New"]
    assert select(tools, features(())) == Selection(tools[:1], {"New": "it requires the feature `new`, which is off"})


@requirement("POOL-1", "CON-6")
def test_a_tool_that_is_unavailable_is_left_out_with_its_reason() -> None:
    tools = (Named("Here"), Named("Gone", off="the program is missing", old=("gone_tool",)))

    assert select(tools, available()) == Selection(
        tools[:1], {"Gone": "the program is missing", "gone_tool": "the program is missing"}
    )


@requirement("POOL-1")
def test_lists_choose_and_leave_out_tools_by_new_and_old_names() -> None:
    tools = (Named("Read", old=("read_file",)), Named("Write"), Named("Bash"))

    chosen = select(tools, only(["read_file", "Write"]))
    left = select(tools, without(["read_file", "Write", "Nope"], "no"))

    assert (_names(chosen.tools), chosen.off) == (
        ["Read", "Write"],
        {"Bash": "it is not among the tools chosen for this run"},
    )
    assert (_names(left.tools), left.off) == (["Bash"], {"Read": "no", "read_file": "no", "Write": "no"})


@requirement("POOL-1")
@given(st.permutations([features(()), available(), without(["C"], "denied"), only(["A", "C", "D"])]))
def test_layers_leave_the_same_tools_in_any_order(layers: list[Any]) -> None:
    tools = [Named("A"), Named("B"), Named("C"), Named("D", off="gone"), Named("E", feature="new")]

    assert _names(select(tools, *layers).tools) == ["A"]


@requirement("POOL-1", "CON-6")
async def test_a_call_of_a_tool_a_layer_left_out_says_why(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state")
    session = open_session(settings, tools=[Named("New", feature="new", old=("older",))])

    outcomes = await session.run([ToolCall(name, name, {}) for name in ("New", "older")])

    assert [(outcome.status, outcome.content) for outcome in outcomes] == [
        (Status.INVALID, (Text("New cannot be used here: it requires the feature `new`, which is off."),)),
        (Status.INVALID, (Text("older cannot be used here: it requires the feature `new`, which is off."),)),
    ]


@requirement("POOL-1")
async def test_a_feature_switched_on_brings_its_tool(tmp_path: Path) -> None:
    settings = Settings(
        cwd=str(tmp_path), mode=Mode.BYPASS, features=frozenset({"new"}), state_folder=tmp_path / "state"
    )

    (outcome,) = await open_session(settings, tools=[Named("New", feature="new")]).run([ToolCall("1", "New", {})])

    assert outcome.content == (Text("New"),)


# Order


@requirement("POOL-2")
@given(st.sets(st.sampled_from("abcdefgh")), st.sets(st.sampled_from("abcdefgh")), st.randoms())
def test_built_in_tools_come_first_and_each_part_is_in_order(own: set[str], foreign: set[str], random: Any) -> None:
    builtin, remote = [Named(name) for name in own], [Named(name) for name in foreign]
    random.shuffle(builtin)
    random.shuffle(remote)

    pool = assemble(Selection(tuple(builtin)), Selection(tuple(remote)))

    assert _names(pool) == sorted(own) + sorted(foreign - own)
    assert len(pool) == len(own | foreign)


@requirement("POOL-2")
def test_on_a_name_clash_the_built_in_wins() -> None:
    own, foreign = Named("Read", says="mine"), Named("Read", says="theirs")

    assert assemble(Selection((own,)), Selection((foreign,))).get("Read") == (own, None)
    assert assemble(Selection((), {"Read": "a rule denies it"}), Selection((foreign,))).get("Read") is None


@requirement("POOL-2")
def test_the_built_in_part_keeps_its_bytes_when_servers_come_and_go() -> None:
    registry = Registry(builtin_tools())
    alone = _bytes(registry.pool)

    for name in ("aaa", "mcp__srv__tool", "Read", "zzz"):
        registry.add(Named(name, says="remote"), remote=True)
        assert _bytes(registry.pool)[: len(alone)] == alone
    for name in ("aaa", "zzz", "mcp__srv__tool"):
        registry.remove(name)
        assert _bytes(registry.pool)[: len(alone)] == alone
    assert _bytes(registry.pool) == alone


# The cache breakpoint


@requirement("POOL-3")
def test_the_cache_breakpoint_stands_behind_the_last_built_in_tool() -> None:
    pool = assemble(
        Selection((Named("A"), Named("B", deferred=True), Named("C"))),
        Selection((Named("X"), Named("Y", deferred=True))),
    )

    assert pool.cache_after == 2
    assert [spec.name for spec in pool.specs_for_request()[: pool.cache_after]] == ["A", "C"]


# Deferred


@requirement("POOL-4")
def test_a_deferred_tool_is_offered_once_it_was_found() -> None:
    pool = assemble(
        Selection((Named("A"), Named("B", deferred=True))), Selection((Named("X"), Named("Y", deferred=True)))
    )

    assert [spec.name for spec in pool.deferred] == ["B", "Y"]
    assert [spec.name for spec in pool.specs_for_request()] == ["A", "X"]
    assert [spec.name for spec in pool.specs_for_request(("Y", "gone", "B", "A"))] == ["A", "X", "Y", "B"]


@requirement("POOL-4")
@given(st.lists(st.sampled_from(["D1", "D2", "D3"]), unique=True))
def test_what_was_offered_stays_a_prefix_of_what_is_offered_later(found: list[str]) -> None:
    pool = assemble(Selection((Named("A"), *(Named(name, deferred=True) for name in ("D1", "D2", "D3")))))
    offers = [_bytes(pool, tuple(found[:count])) for count in range(len(found) + 1)]

    assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(offers))


# Lookup


@requirement("CON-15")
def test_a_name_of_its_own_goes_before_an_old_name() -> None:
    old, new = Named("Agent", old=("Task",)), Named("Task")
    pool = assemble(Selection((old, new)))

    assert pool.get("Task") == (new, None)
    assert assemble(Selection((old,))).get("Task") == (old, Alias("Task"))
    assert pool.get("task") is None


@requirement("PIPE-2")
@pytest.mark.parametrize(
    ("wrong", "near"),
    [("read", ["Read"]), ("Reed", ["Read"]), ("readfile", ["Read"]), ("glub", ["Glob"]), ("xyzzy", [])],
)
def test_an_unknown_name_gets_the_nearest_ones(wrong: str, near: list[str]) -> None:
    assert Registry(builtin_tools()).pool.nearest(wrong)[:1] == near


# Changes while running


class Heard:
    def __init__(self) -> None:
        self.names: list[tuple[str, ...]] = []

    def __call__(self, names: tuple[str, ...]) -> None:
        self.names.append(names)


@requirement("POOL-6", "POOL-7")
def test_listeners_hear_of_every_change_and_of_nothing_else() -> None:
    heard = Heard()
    registry = Registry([Named("A")], changed=heard)

    registry.add(Named("B"))
    registry.disable("A")
    registry.enable("A")
    registry.enable("A")
    registry.remove("B")
    registry.remove("B")
    registry.remove("never")

    assert heard.names == [("B",), ("A",), ("A",), ("B",)]


@requirement("POOL-6")
async def test_listeners_of_a_session_hear_that_the_list_changed(tmp_path: Path) -> None:
    session = open_session(Settings(cwd=str(tmp_path), state_folder=tmp_path / "state"))

    with session.bus.subscribe() as events:
        session.registry.add(Named("mcp__srv__x"), remote=True)
        session.registry.disable("Read")
        session.registry.remove("mcp__srv__x")
    heard = [envelope.event async for envelope in events]

    assert heard == [
        ListChanged("tools", ("mcp__srv__x",)),
        ListChanged("tools", ("Read",)),
        ListChanged("tools", ("mcp__srv__x",)),
    ]


@requirement("POOL-7")
def test_a_pool_once_taken_never_changes() -> None:
    registry = Registry([Named("A"), Named("B")])
    before = registry.pool

    registry.disable("A")
    registry.remove("B")
    registry.add(Named("C"))

    assert (_names(before), _names(registry.pool)) == (["A", "B"], ["C"])
    assert registry.pool is registry.pool


@requirement("POOL-7")
async def test_a_tool_can_be_disabled_enabled_updated_and_removed_at_run_time(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state")
    session = open_session(settings, tools=[Named("Xyz", says="one")])

    async def said() -> str:
        (outcome,) = await session.run([ToolCall("1", "Xyz", {})])
        assert isinstance(outcome.content[0], Text)
        return outcome.content[0].text

    answers = [await said()]
    session.registry.disable("Xyz", "it is out of order")
    answers.append(await said())
    session.registry.enable("Xyz")
    session.registry.add(Named("Xyz", says="two"))
    answers.append(await said())
    session.registry.remove("Xyz")
    answers.append(await said())

    there = ", ".join(tool.name for tool in session.registry.pool)
    assert answers == [
        "one",
        "Xyz cannot be used here: it is out of order.",
        "two",
        f"No tool is named Xyz. Available: {there}.",
    ]


@requirement("POOL-7")
def test_a_tool_may_be_disabled_before_it_comes() -> None:
    registry = Registry([])
    registry.disable("mcp__srv__x", "not wanted")

    registry.add(Named("mcp__srv__x"), remote=True)

    assert (len(registry.pool), registry.pool.off) == (0, {"mcp__srv__x": "not wanted"})


@requirement("POOL-7")
def test_a_tool_removed_and_added_again_is_no_longer_disabled() -> None:
    registry = Registry([Named("A")])
    registry.disable("A")
    registry.remove("A")

    registry.add(Named("A"))

    assert _names(registry.pool) == ["A"]


@requirement("POOL-1", "POOL-7")
def test_layers_hold_for_tools_that_come_later() -> None:
    registry = Registry([], without(["Bad"], "a rule denies it"))
    tools: list[AnyTool] = [Named("Bad"), Named("Good")]

    for tool in tools:
        registry.add(tool, remote=True)

    assert (_names(registry.pool), registry.pool.off) == (["Good"], {"Bad": "a rule denies it"})


@requirement("CON-6", "PIPE-2")
async def test_a_tool_that_cannot_say_whether_it_is_available_is_off_and_harms_no_other(tmp_path: Path) -> None:
    class Odd(Named):
        def unavailable(self) -> str | None:
            raise OSError("no such device")

    outcomes = await run_calls(
        tmp_path, [ToolCall("1", "Odd", {}), ToolCall("2", "Glob", {"pattern": "*"})], Odd("Odd")
    )

    assert [outcome.status for outcome in outcomes] == [Status.INVALID, Status.OK]
    assert plain_text(outcomes[0].content) == (
        "Odd cannot be used here: it could not say whether it is available (OSError)."
    )


@requirement("CON-1")
def test_a_tool_that_breaks_the_contract_is_refused_when_the_session_is_opened() -> None:
    with pytest.raises(ToolDefinitionError):
        Registry([Named("not a name")])
