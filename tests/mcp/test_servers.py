"""Servers in a session: their tools in its pool, their calls through its pipeline."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ferrule import Tool, ToolCall
from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status
from ferrule.core.content import Image, Line
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.events import ListChanged, ToolFinished, ToolProgressed, ToolStarted
from ferrule.core.tool import Exposure
from ferrule.mcp.config import ServerConfig, Stdio
from ferrule.mcp.naming import split
from ferrule.mcp.server_context import Phase, Timing
from ferrule.mcp.servers import ServerLimits, limits_from
from ferrule.permissions.modes import Mode
from ferrule.testing import Recorder, bare_context
from tests.mcp.running import QUICK, config, raw, run, session, until, words
from tests.requirement import requirement


class Builtin(Tool[Mapping[str, Any], str]):
    """A tool of our own, by a name that a server uses too."""

    name = "mcp__raw__echo"

    def input_schema(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {}}

    def parse(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return arguments

    async def call(self, input: Mapping[str, Any], ctx: ToolContext) -> str:
        return "ours"


@requirement("MCP-1", "BUD-5")
async def test_every_kind_of_part_comes_as_what_it_is(tmp_path: Path) -> None:
    async with session(tmp_path, config(raw())) as (running, servers):
        await servers.wait_until_known(60)
        outcome = await run(running, "mcp__raw__parts")

    shown = words(outcome)
    assert [type(block).__name__ for block in outcome.content] == [
        "Text",
        "Image",
        "Text",
        "Text",
        "Text",
        "Image",
        "Text",
        "Text",
    ]
    assert all(isinstance(block, Image) is (at in (1, 5)) for at, block in enumerate(outcome.content))
    assert "[note://1]\na note" in shown
    assert "[note://3]\na note" in shown
    assert "[b.txt; text/plain: file:///a/b.txt]" in shown
    assert "audio/wav, 4 bytes, saved to" in shown
    saved = Path(shown.partition("audio/wav, 4 bytes, saved to ")[2].partition("]")[0])
    assert (saved.read_bytes(), saved.suffix, saved.stat().st_mode & 0o777) == (b"RIFF", ".wav", 0o600)
    assert "iVBOR" not in shown


@requirement("MCP-1", "BUD-5")
async def test_structured_content_is_shown_once_and_without_data_that_nobody_can_read(tmp_path: Path) -> None:
    async with session(tmp_path, config(raw())) as (running, servers):
        await servers.wait_until_known(60)
        alone, both = await run(running, "mcp__raw__structured"), await run(running, "mcp__raw__both")
        twice = await run(running, "mcp__raw__twice")

    assert words(alone) == '{"answer": 42, "picture": "[5,000 characters of data]"}'
    assert words(both) == '{"answer": 42}'
    assert [type(block) for block in twice.content] == [Image]


@requirement("BUD-2", "MCP-1")
async def test_a_long_result_is_cut_at_the_limit_and_saved_whole(tmp_path: Path) -> None:
    limits = ServerLimits(result_tokens=500)
    async with session(tmp_path, config(raw()), limits=limits) as (running, servers):
        await servers.wait_until_known(60)
        huge, sized = await run(running, "mcp__raw__huge"), await run(running, "mcp__raw__sized")

    assert (len(words(huge)) <= 2000, len(words(sized)) <= 1000) == (True, True)
    assert huge.record is not None
    assert Path(huge.record.saved_to or "").read_text() == "line of text\n" * 20_000


@requirement("BUD-2")
def test_the_limits_come_from_the_environment() -> None:
    assert limits_from({}) == ServerLimits(window=200_000, defer_beyond=0.1, result_tokens=25_000)
    assert limits_from({"MAX_MCP_OUTPUT_TOKENS": "7", "ENABLE_TOOL_SEARCH": "false"}).result_tokens == 7
    assert limits_from({"ENABLE_TOOL_SEARCH": "false"}).defer_beyond is None
    assert limits_from({"ENABLE_TOOL_SEARCH": "true", "MAX_MCP_OUTPUT_TOKENS": "many"}) == ServerLimits(
        defer_beyond=0.0
    )


@requirement("MCP-1")
async def test_a_call_begins_and_ends_with_events_and_reports_between(tmp_path: Path) -> None:
    async with session(tmp_path, config(raw())) as (running, servers):
        recorder = Recorder()
        with running.bus.listen(lambda envelope: recorder(envelope.event)):
            await servers.wait_until_known(60)
            await run(running, "mcp__raw__steps")

    kinds = recorder.kinds()
    assert kinds.index("ToolStarted") < kinds.index("ToolProgressed") < kinds.index("ToolFinished")
    assert recorder.of(ToolProgressed)[0].view == Line("1 of 3: step 1")
    assert (len(recorder.of(ToolStarted)), len(recorder.of(ToolFinished))) == (1, 1)
    assert {event.kind for event in recorder.of(ListChanged)} == {"tools", "prompts"}


async def test_a_tools_own_failure_and_wrong_arguments_are_told_in_words(tmp_path: Path) -> None:
    async with session(tmp_path, config(raw())) as (running, servers):
        await servers.wait_until_known(60)
        failed = await run(running, "mcp__raw__fail")
        wrong = await run(running, "mcp__raw__echo", {"txt": 1})

    assert (failed.status, words(failed)) == (Status.FAILED, "it is not Tuesday")
    assert wrong.status is Status.INVALID
    assert "'text' is a required property" in words(wrong)
    assert "'txt' was unexpected" in words(wrong)


@requirement("MCP-2")
async def test_a_dead_server_stops_nobody_and_a_slow_one_is_waited_for_only_by_its_own_calls(tmp_path: Path) -> None:
    dead = config(Stdio("/nonexistent/server"), "dead")
    slow, quick = config(raw("slow-start=1"), "slow"), config(raw(), "quick")
    async with session(tmp_path, slow, quick):
        pass  # nobody knows their tools yet
    async with session(tmp_path, dead, slow, quick) as (_, servers):
        await servers.wait_until_known(60)
    async with session(tmp_path, dead, slow, quick) as (running, servers):
        assert (await run(running, "mcp__quick__echo", {"text": "a"})).status is Status.OK
        assert servers.get("slow").phase is not Phase.UP
        assert words(await run(running, "mcp__slow__echo", {"text": "b"})) == "b"


@requirement("MCP-2", "POOL-2")
async def test_ten_servers_of_which_some_are_dead_do_not_hold_up_the_start(tmp_path: Path) -> None:
    servers = [config(raw(), f"s{at}") for at in range(7)] + [
        config(Stdio("/nonexistent"), f"d{at}") for at in range(3)
    ]
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    (tmp_path / "a.txt").write_text("x")
    began = time.perf_counter()
    async with session(tmp_path, *servers, timing=Timing()) as (running, _):
        outcome = await run(running, "Glob", {"pattern": "*.txt"})
        took = time.perf_counter() - began

    assert outcome.status is Status.OK
    assert took < 20  # a hang would be the thirty seconds that a start may take
    assert open_session(settings).registry.pool.builtin


@requirement("POOL-2", "POOL-6")
async def test_tools_come_and_go_and_the_bytes_of_the_built_in_part_stay(tmp_path: Path) -> None:
    async with session(tmp_path, config(raw())) as (running, servers):
        recorder = Recorder()
        with running.bus.listen(lambda envelope: recorder(envelope.event)):
            before = running.registry.pool
            await servers.wait_until_known(60)
            known = running.registry.pool
            await run(running, "mcp__raw__grow")
            await until(lambda: running.registry.pool.get("mcp__raw__more_0") is not None)
            grown = running.registry.pool
            await run(running, "mcp__raw__shrink_badly")
            await run(running, "mcp__raw__echo", {"text": "the list could not be fetched"})

        assert running.registry.pool.specs == grown.specs
    built_in = [spec for spec in before.specs_for_request() if split(spec.name) is None]
    for pool in (known, grown):
        assert list(pool.specs_for_request())[: len(built_in)] == built_in
        assert [tool.name for tool in pool.remote] == sorted(tool.name for tool in pool.remote)
    assert ListChanged("tools", ("mcp__raw__more_0",)) in recorder.events


@requirement("POOL-2")
async def test_on_a_clash_of_names_the_built_in_tool_wins(tmp_path: Path) -> None:
    held = config(raw())
    async with session(tmp_path, held) as (running, servers):
        running.registry.add(Builtin())
        await servers.wait_until_known(60)

        assert words(await run(running, "mcp__raw__echo", {"text": "theirs"})) == "ours"


@requirement("POOL-5")
async def test_once_their_schemas_pass_a_tenth_of_the_window_tools_cost_only_their_names(tmp_path: Path) -> None:
    small, large = config(raw(), "small"), config(raw("huge-list=200"), "large")
    kept = config(raw(), "kept", always_load=True)
    async with session(tmp_path, small, limits=ServerLimits(window=40_000)) as (running, servers):
        await servers.wait_until_known(60)
        assert {tool.exposure for tool in servers.tools()} == {Exposure.DIRECT}
    async with session(tmp_path, small, large, kept, limits=ServerLimits(window=40_000)) as (running, servers):
        await servers.wait_until_known(60)
        offered = {spec.name for spec in running.registry.pool.specs_for_request()}
        deferred = {spec.name for spec in running.registry.pool.deferred}

        assert {"mcp__small__echo", "mcp__large__tool_7"} <= deferred
        assert {split(name)[0] for name in offered if split(name)} == {"kept"}  # pyright: ignore[reportOptionalSubscript]
        found = await run(running, "ToolSearch", {"query": "select:mcp__small__echo"})
        assert words(found) == "You can now call mcp__small__echo."
        assert words(await run(running, "mcp__small__echo", {"text": "found"})) == "found"


@requirement("MCP-3", "SCHED-7")
@pytest.mark.parametrize("trusted", [True, False])
async def test_a_servers_word_counts_only_if_a_person_trusts_it(tmp_path: Path, *, trusted: bool) -> None:
    async with session(tmp_path, config(raw(), trusted=trusted), mode=Mode.DEFAULT) as (running, servers):
        await servers.wait_until_known(60)
        tools = {tool.info.name: tool for tool in servers.tools()}
        ctx = bare_context(tmp_path)
        reading, writing = tools["echo"].effects({}, ctx), tools["write"].effects({}, ctx)

        assert (reading.read_only, reading.unknown) == (trusted, not trusted)
        assert writing == Effects()
        assert (await run(running, "mcp__raw__echo", {"text": "a"})).status is (Status.OK if trusted else Status.DENIED)
        assert (await run(running, "mcp__raw__write")).status is Status.DENIED


@requirement("SCHED-7")
async def test_a_person_can_say_that_a_servers_calls_may_run_together_and_they_are_asked_about_still(
    tmp_path: Path,
) -> None:
    async with session(tmp_path, config(raw(), concurrent=True)) as (running, servers):
        await servers.wait_until_known(60)
        recorder = Recorder()
        with running.bus.listen(lambda envelope: recorder(envelope.event)):
            calls = [ToolCall("1", "mcp__raw__hang", {}), ToolCall("2", "mcp__raw__write", {})]
            hanging = asyncio.ensure_future(running.run(calls))
            await until(lambda: any(event.outcome.call.id == "2" for event in recorder.of(ToolFinished)))
            hanging.cancel()
            await asyncio.wait((hanging,))
    async with session(tmp_path, config(raw(), concurrent=True), mode=Mode.DEFAULT) as (running, servers):
        assert (await run(running, "mcp__raw__write")).status is Status.DENIED


async def test_a_server_is_told_of_the_folder_and_of_those_that_were_added(tmp_path: Path) -> None:
    settings = Settings(
        cwd=str(tmp_path),
        added_directories=("more",),
        state_folder=tmp_path / "state",
        mode=Mode.BYPASS,
        servers=(config(raw()),),
    )
    async with open_session(settings) as running:
        await running.settled(60)
        roots = words(await run(running, "mcp__raw__roots"))

    assert json.loads(roots) == {"roots": [{"uri": tmp_path.as_uri()}, {"uri": (tmp_path / "more").as_uri()}]}


@requirement("MCP-1")
async def test_a_prompt_is_listed_under_a_name_that_a_person_can_call(tmp_path: Path) -> None:
    async with session(tmp_path, config(raw(), "my server", part="my_server")) as (_, servers):
        await servers.wait_until_known(60)
        (prompt,) = servers.prompts()
        result = await servers.get("my server").prompt("greet", {"who": "Ada"})

    assert (prompt.name, prompt.info.arguments) == ("mcp__my_server__greet", (("who", True),))
    assert result["messages"][0]["content"]["text"] == "Say hello to Ada."


async def test_a_session_that_is_not_entered_starts_a_server_with_the_first_call(tmp_path: Path) -> None:
    server: ServerConfig = config(raw())
    async with session(tmp_path, server) as (_, servers):
        await servers.wait_until_known(60)
    running = open_session(
        Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state", servers=(server,))
    )
    try:
        assert words(await run(running, "mcp__raw__echo", {"text": "up"})) == "up"
    finally:
        await running.close()
    assert QUICK.begin_after == 0
