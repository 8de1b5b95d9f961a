"""A thousand tools: what they cost a request, and how one of them is found."""

from __future__ import annotations

from pathlib import Path

from ferrule.app.session_opening import OpenedSession, open_conversation
from ferrule.app.session_settings import Settings
from ferrule.mcp.config import ServerConfig, Stdio
from ferrule.mcp.listing import ListingCache, ServerListing, ToolInfo
from ferrule.mcp.naming import split
from tests.mcp.running import run, words
from tests.requirement import requirement

SCHEMA = {"type": "object", "properties": {"where": {"type": "string", "description": "A secret place."}}}


def knowing(folder: Path, servers: int, tools: int) -> OpenedSession:
    """A conversation whose servers are known from an earlier one, and never started."""
    configs = [
        ServerConfig(name=f"s{at}", part=f"s{at}", transport=Stdio("/nonexistent", (str(at),))) for at in range(servers)
    ]
    cache = ListingCache(folder / "mcp" / "lists")
    for config in configs:
        offers = [ToolInfo(name=f"tool_{at}", description="Long words. " * 40, schema=SCHEMA) for at in range(tools)]
        cache.save(config, ServerListing(tuple(offers)))
    return open_conversation(Settings(cwd=str(folder), state_folder=folder, servers=tuple(configs)))


@requirement("POOL-5", "MCP-1")
async def test_a_thousand_tools_cost_a_request_their_names_and_nothing_else(tmp_path: Path) -> None:
    with_them, with_few = knowing(tmp_path, 50, 20), knowing(tmp_path, 1, 1)

    names = [f"mcp__s{server}__tool_{tool}" for server in range(50) for tool in range(20)]
    added = set(with_them.session.system.splitlines()) - set(with_few.session.system.splitlines())

    assert added == {f"- {name}" for name in names}
    assert [spec.name for spec in with_them.session.registry.pool.specs_for_request() if split(spec.name)] == []


@requirement("POOL-5")
async def test_one_of_them_is_found_and_stands_in_the_next_request(tmp_path: Path) -> None:
    session = knowing(tmp_path, 50, 20).session

    found = await run(session, "ToolSearch", {"query": "select:mcp__s7__tool_3"})

    assert words(found) == "You can now call mcp__s7__tool_3."
    offered = session.registry.pool.specs_for_request(session.state.found_tools)
    assert [(spec.name, spec.input_schema) for spec in offered if split(spec.name)] == [("mcp__s7__tool_3", SCHEMA)]


@requirement("POOL-5")
async def test_few_tools_stand_in_the_request_whole(tmp_path: Path) -> None:
    opened = knowing(tmp_path, 2, 3)

    assert "mcp__" not in opened.session.system
    assert len([spec for spec in opened.session.registry.pool.specs_for_request() if split(spec.name)]) == 6
