"""ToolSearch: finds tools that are known by name only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import Field

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import Listing, Text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.inputs import ToolInput
from ferrule.core.tool import AnyTool, Exposure, Tool
from ferrule.core.verdicts import Behavior
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.permissions.rules import Origin, Rule
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools import builtin_tools
from ferrule.tools.tool_search import ToolSearch
from tests.requirement import requirement


class TestToolSearchContract(ToolContract):
    samples = ({"query": "select:Read"}, {"query": "notebook"}, {"query": "select:Nope", "max_results": "3"})

    def make(self) -> ToolSearch:
        return ToolSearch()


class UrlInput(ToolInput):
    url: str = Field(description="Where.")


def _deferred(name: str, description: str, hint: str = "") -> AnyTool:
    class Deferred(Tool[UrlInput, str]):
        input_model = UrlInput
        exposure = Exposure.DEFERRED

        def effects(self, input: UrlInput, ctx: ToolContext) -> Effects:
            return Effects.of()

        async def call(self, input: UrlInput, ctx: ToolContext) -> str:
            return f"{self.name} {input.url}"

    tool = Deferred()
    tool.name, tool.description, tool.hint = name, description, hint
    return tool


FETCH = _deferred("WebGet", "Get a page.", "fetch a page from the web")
SEARCH = _deferred("WebLook", "Search the net for pages.", "search the web")
NOTEBOOK = _deferred("CellEdit", "Change a cell of a notebook. Not for the web.", "edit one notebook cell")
REMOTE = _deferred("mcp__files__read_file", "Open something far away.")
SCHEMA = FETCH.spec.schema_json()
ALL = (FETCH, SEARCH, NOTEBOOK, REMOTE)


def _session(tmp_path: Path, *tools: AnyTool) -> Session:
    """With these tools to find, and none of the built-in ones."""
    hidden = tuple(Rule(name, Behavior.DENY, name, Origin("test")) for name in _builtin(Exposure.DEFERRED))
    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state", rules=hidden)
    return open_session(settings, tools=tools)


def _builtin(exposure: Exposure) -> list[str]:
    """Without what is off where there are no skills and nobody can answer."""
    off = {"Skill", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode"}
    return [tool.name for tool in builtin_tools() if tool.exposure is exposure and tool.name not in off]


async def _search(session: Session, **arguments: Any) -> ToolOutcome:
    (outcome,) = await session.run([ToolCall("1", "ToolSearch", arguments)])
    return outcome


def _text(outcome: ToolOutcome) -> str:
    (block,) = outcome.content
    assert isinstance(block, Text)
    return block.text


async def _names(tmp_path: Path, query: str, *tools: AnyTool, **more: Any) -> list[str]:
    outcome = await _search(_session(tmp_path, *(tools or ALL)), query=query, **more)
    assert outcome.status is Status.OK
    return [spec.name for spec in outcome.output.specs]


# By name


@requirement("POOL-4")
async def test_select_takes_tools_by_name_and_says_no_more_than_that(tmp_path: Path) -> None:
    outcome = await _search(_session(tmp_path, *ALL), query="select:WebGet, celledit ,Nope")

    assert _text(outcome) == "You can now call WebGet, CellEdit. No tool is named Nope."
    assert outcome.view == Listing(("WebGet", "CellEdit"), 2)


@requirement("POOL-4")
async def test_a_tool_selected_twice_is_given_once(tmp_path: Path) -> None:
    assert await _names(tmp_path, "select:WebGet,webget,WEBGET") == ["WebGet"]


@requirement("POOL-4")
async def test_a_tool_that_needs_no_search_is_given_and_not_loaded_again(tmp_path: Path) -> None:
    session = _session(tmp_path, *ALL)

    outcome = await _search(session, query="select:Read")

    assert ([spec.name for spec in outcome.output.specs], session.state.found_tools) == (["Read"], ())


@requirement("POOL-4")
@pytest.mark.parametrize("query", ["select:Nope", "select:", "select:,"])
async def test_a_selection_that_finds_nothing_says_so(tmp_path: Path, query: str) -> None:
    outcome = await _search(_session(tmp_path, FETCH, SEARCH), query=query)

    assert outcome.status is Status.OK
    assert _text(outcome).endswith("Nothing was found. Available: WebGet, WebLook.")


# By words


@requirement("POOL-4")
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("web", ["WebLook", "WebGet", "CellEdit"]),
        ("search the web", ["WebLook", "WebGet", "CellEdit"]),
        ("NOTEBOOK", ["CellEdit"]),
        ("edit notebooks in a notebook", ["CellEdit"]),
        ("read file", ["mcp__files__read_file"]),
        ("far away", ["mcp__files__read_file"]),
    ],
)
async def test_words_rank_over_name_hint_and_description(tmp_path: Path, query: str, names: list[str]) -> None:
    found = await _names(tmp_path, query)

    assert found[: len(names)] == names


@requirement("POOL-4")
async def test_a_word_in_the_name_counts_more_than_in_the_hint_and_in_the_description(tmp_path: Path) -> None:
    tools = (
        _deferred("InGuide", "Handles a kite."),
        _deferred("InHint", "Handles things.", "fly a kite"),
        _deferred("Kite", "Handles things."),
    )

    assert await _names(tmp_path, "kite", *tools) == ["Kite", "InHint", "InGuide"]


@requirement("POOL-4")
async def test_at_most_as_many_as_asked_for_are_found(tmp_path: Path) -> None:
    tools = [_deferred(f"Kite{letter}", "Fly a kite.") for letter in "ABCDEFGH"]

    assert await _names(tmp_path, "kite", *tools, max_results=2) == ["KiteA", "KiteB"]
    assert len(await _names(tmp_path, "kite", *tools)) == 5


@requirement("POOL-4")
async def test_words_that_match_nothing_are_answered_with_what_there_is(tmp_path: Path) -> None:
    outcome = await _search(_session(tmp_path, FETCH, SEARCH), query="xylophone !!")

    assert outcome.content == (Text("Nothing was found. Available: WebGet, WebLook."),)


@requirement("POOL-4")
async def test_where_nothing_is_deferred_there_is_nothing_to_find(tmp_path: Path) -> None:
    outcome = await _search(_session(tmp_path), query="read")

    assert outcome.content == (Text("Nothing was found: every tool can already be called."),)


# What finding does


@requirement("POOL-4")
async def test_found_tools_are_in_the_next_request_behind_all_that_stood_before(tmp_path: Path) -> None:
    session = _session(tmp_path, *ALL)
    model = RecordingModel(
        says("", ToolCall("1", "ToolSearch", {"query": "select:WebLook"})),
        says("", ToolCall("2", "ToolSearch", {"query": "select:CellEdit,WebLook"})),
        says("done"),
    )

    async with session.ask("go", model) as events:
        async for _ in events:
            pass

    offered = [[spec.name for spec in request.tools] for request, _ in model.requests]
    first = _builtin(Exposure.DIRECT)
    assert offered == [first, [*first, "WebLook"], [*first, "WebLook", "CellEdit"]]
    assert [request.cache_after for request, _ in model.requests] == [len(first)] * 3


@requirement("POOL-4")
async def test_a_deferred_tool_that_was_never_loaded_still_runs(tmp_path: Path) -> None:
    (outcome,) = await _session(tmp_path, *ALL).run([ToolCall("1", "WebGet", {"url": "x"})])

    assert (outcome.status, outcome.content) == (Status.OK, (Text("WebGet x"),))


@requirement("POOL-4")
async def test_a_deferred_tool_called_wrongly_answers_with_its_schema(tmp_path: Path) -> None:
    (outcome,) = await _session(tmp_path, *ALL).run([ToolCall("1", "WebGet", {"link": "x"})])

    assert outcome.status is Status.INVALID
    assert _text(outcome).replace(SCHEMA, "{SCHEMA}") == snapshot("""\
WebGet cannot take these arguments:
- `url` is missing.
- `link` is not a parameter; did you mean `url`?
It takes: url (required).
Its schema: {SCHEMA}\
""")


@requirement("CON-15", "POOL-4")
async def test_the_old_name_of_tool_search_works(tmp_path: Path) -> None:
    session = _session(tmp_path, *ALL)

    (outcome,) = await session.run([ToolCall("1", "tool_search", {"query": "select:WebGet", "max_results": 1})])

    assert (outcome.status, session.state.found_tools) == (Status.OK, ("WebGet",))
