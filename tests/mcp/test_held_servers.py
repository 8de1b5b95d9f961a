"""What rules deny of paths is kept from a server by the kernel, so its calls need no question because of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferrule import ToolCall
from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status
from ferrule.core.verdicts import Behavior
from ferrule.mcp.config import Remote, ServerConfig, Stdio, in_process
from ferrule.mcp.server_context import Around
from ferrule.mcp.servers import McpServers
from ferrule.permissions.live_rules import Policy
from ferrule.permissions.modes import Mode
from ferrule.permissions.rules import Origin, Rule, parse_rule
from tests.mcp.running import HANG, QUICK, config, raw, run, session, until, words
from tests.requirement import requirement

ROOT = Path(__file__).parent.parent.parent


def reaching(*faults: str) -> ServerConfig:
    return config(raw("reaching", *faults), name="srv")


def rules(*, deny: tuple[str, ...] = (), allow: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    texts = [(text, Behavior.DENY) for text in deny] + [(text, Behavior.ALLOW) for text in allow]
    return tuple(parse_rule(text, behavior, Origin("here")) for text, behavior in texts)


async def said(session: Any, tool: str, **arguments: Any) -> str:
    outcome = await run(session, f"mcp__srv__{tool}", arguments)
    assert outcome.status is Status.OK, words(outcome)
    return words(outcome)


def filled(folder: Path) -> Path:
    (folder / "secrets").mkdir()
    (folder / "secrets" / "key").write_text("hush")
    (folder / "fixed").write_text("as it was")
    (folder / "open").write_text("for all")
    return folder


def commit_all(folder: Path) -> None:
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com"]
    for argv in (["init", "-q"], ["add", "secrets", "open"], ["commit", "-qm", "All of it"]):
        subprocess.run([*git, *argv], cwd=folder, check=True)


@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.BYPASS])
@requirement("HELD-6")
async def test_a_server_neither_reads_nor_writes_what_rules_deny_and_its_calls_run_unasked(
    tmp_path: Path, mode: Mode
) -> None:
    place = filled(tmp_path)
    chosen = rules(deny=("Read(./secrets/**)", "Edit(./fixed)"), allow=("mcp__srv",) if mode is Mode.DEFAULT else ())

    async with session(place, reaching(), mode=mode, rules=chosen) as (running, servers):
        await servers.wait_until_known(HANG)

        assert await said(running, "look", path=str(place / "open")) == "for all"
        assert await said(running, "look", path=str(place / "fixed")) == "as it was"
        assert await said(running, "put", path=str(place / "made")) == "written"
        for path in ("secrets/key", f"/proc/{os.getpid()}/root{place}/secrets/key", "secrets/../secrets/key"):
            assert "cannot" in await said(running, "look", path=str(place / path))
        for path in ("fixed", "secrets/key", "secrets/new"):
            assert "cannot" in await said(running, "put", path=str(place / path))
        through = await said(running, "run", argv=["cat", "secrets/key"], cwd=str(place))
        assert "hush" not in through

    assert (place / "secrets" / "key").read_text() == "hush"
    assert (place / "fixed").read_text() == "as it was"


@requirement("HELD-6", "HELD-4")
async def test_what_git_keeps_of_a_denied_path_is_kept_from_a_server(tmp_path: Path) -> None:
    place = filled(tmp_path)
    commit_all(place)
    show = {"argv": ["git", "show", "HEAD:secrets/key"], "cwd": str(place)}

    async with session(place, reaching()) as (running, servers):
        await servers.wait_until_known(HANG)
        assert "hush" in await said(running, "run", **show)
    async with session(place, reaching(), rules=rules(deny=("Read(./secrets/**)",))) as (running, _):
        assert "hush" not in await said(running, "run", **show)


@requirement("HELD-6")
async def test_a_deny_that_comes_while_a_server_runs_holds_from_its_next_call_on(tmp_path: Path) -> None:
    place = filled(tmp_path)
    policies = [Policy((), Mode.BYPASS)]

    async with session(place, reaching(), reload=lambda: policies[-1]) as (running, servers):
        await servers.wait_until_known(HANG)
        before = await said(running, "pid")
        assert await said(running, "look", path=str(place / "secrets" / "key")) == "hush"

        policies.append(Policy(rules(deny=("Read(./secrets/**)",)), Mode.BYPASS))
        assert "cannot" in await said(running, "look", path=str(place / "secrets" / "key"))
        held = await said(running, "pid")
        policies.append(Policy(rules(deny=("Read(./secrets/**)", "Read(./nowhere)")), Mode.BYPASS))

        assert held not in (before, "")
        assert await said(running, "pid") == held, "nothing more is to be kept from it"


@requirement("HELD-6")
async def test_a_denied_file_that_is_made_or_replaced_later_is_kept_from_a_server_too(tmp_path: Path) -> None:
    place = filled(tmp_path)
    chosen = rules(deny=("Read(**/*.pem)", "Read(./open)"))

    async with session(place, reaching(), rules=chosen) as (running, servers):
        await servers.wait_until_known(HANG)
        assert "for all" not in await said(running, "look", path=str(place / "open"))
        (place / "open.new").write_text("another")
        os.replace(place / "open.new", place / "open")
        (place / "own.pem").write_text("hush")

        for name, content in (("open", "another"), ("own.pem", "hush")):
            assert content not in await said(running, "look", path=str(place / name))


@requirement("HELD-6")
async def test_where_nothing_holds_a_server_a_rule_that_names_its_tool_settles_it_or_it_is_asked_about(
    tmp_path: Path,
) -> None:
    from tests.mcp.servers.packaged import make

    mine = in_process(mine=make())
    denied = ("Read(./secrets/**)",)
    async with session(tmp_path, *mine, rules=rules(deny=denied)) as (running, servers):
        await servers.wait_until_known(HANG)
        tool, given = "mcp__mine__add", {"a": 1, "b": 2}
        asked = await run(running, tool, given)
    async with session(tmp_path, *mine, rules=rules(deny=denied, allow=(tool,)), mode=Mode.DEFAULT) as (
        running,
        servers,
    ):
        await servers.wait_until_known(HANG)
        settled = await run(running, tool, given)

    assert asked.status is Status.DENIED
    assert "Read(./secrets/**)" in words(asked)
    assert f"a rule that allows {tool} by name settles it" in words(asked)
    assert settled.status is Status.OK, words(settled)


@requirement("HELD-6")
async def test_a_server_on_another_machine_has_no_file_of_this_one_in_reach(tmp_path: Path) -> None:
    urls = {"far": "https://example.com/mcp", "near": "http://127.0.0.1:1/mcp", "named": "http://localhost:1/mcp"}
    found = [config(Remote("http", url), name=name) for name, url in urls.items()]
    held = McpServers((*found, reaching()), Around(state_folder=tmp_path / "state", timing=QUICK))

    assert [name for name in held.names if held.keeps_from_paths(name)] == ["far"]
    one = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    async with open_session(one, mcp=held):
        assert held.keeps_from_paths("srv")
        async with open_session(one, mcp=held):
            assert not held.keeps_from_paths("srv"), "what one session denies is not kept from another's"


@requirement("HELD-6", "MCP-2")
async def test_nothing_is_left_of_a_held_server_after_a_close(tmp_path: Path) -> None:
    place, child = filled(tmp_path), tmp_path / "child"
    chosen = rules(deny=("Read(./secrets/**)",))

    async with session(place, reaching(f"child={child}"), rules=chosen) as (running, servers):
        await servers.wait_until_known(HANG)
        pid = int(await said(running, "pid"))
        await until(child.exists)
        started = int(child.read_text())

    assert not is_running(pid)
    assert not is_running(started)


@requirement("HELD-6", "MCP-2")
async def test_a_held_server_is_started_again_when_what_started_it_is_killed(tmp_path: Path) -> None:
    place = filled(tmp_path)
    async with session(place, reaching(), rules=rules(deny=("Read(./secrets/**)",))) as (running, servers):
        await servers.wait_until_known(HANG)
        pid = int(await said(running, "pid"))
        starter = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert starter != os.getpid()
        os.kill(starter, signal.SIGKILL)
        await until(lambda: not is_running(pid))

        async with asyncio.timeout(HANG):
            while (outcome := await run(running, "mcp__srv__pid")).status is not Status.OK:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert int(words(outcome)) != pid
        assert "hush" not in await said(running, "look", path=str(place / "secrets" / "key"))


@requirement("HELD-6", "MCP-2")
async def test_a_held_server_that_fails_does_so_as_any_other(tmp_path: Path) -> None:
    chosen = rules(deny=("Read(./secrets/**)",))
    one, mute = reaching("garbage"), replace(reaching("hang-start"), name="mute", part="mute")
    lost = config(Stdio("no-such-program"), name="lost")
    ended = replace(reaching("die-at-start"), name="ended", part="ended")

    async with session(filled(tmp_path), one, lost, ended, mute, rules=chosen) as (running, servers):
        await until(lambda: bool(servers.get("lost").trouble and servers.get("ended").trouble and servers.tools()))
        assert "no-such-program cannot be started: No such file or directory" in servers.get("lost").trouble
        assert "it ended with exit code 3. Its last output: no configuration found" in servers.get("ended").trouble
        assert await said(running, "flood") == "flooded"
        dead = await run(running, "mcp__srv__die")
        async with asyncio.timeout(HANG):
            while (again := await run(running, "mcp__srv__pid")).status is not Status.OK:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    assert "it ended with exit code 7. Its last output: out of luck" in words(dead)
    assert not is_running(int(words(again)))


@requirement("HELD-6", "MCP-2")
async def test_calls_side_by_side_start_a_server_again_once(tmp_path: Path) -> None:
    place = filled(tmp_path)
    policies = [Policy((), Mode.BYPASS)]
    one = replace(reaching(), concurrent=True)

    async with session(place, one, reload=lambda: policies[-1]) as (running, servers):
        await servers.wait_until_known(HANG)
        policies.append(Policy(rules(deny=("Read(./secrets/**)",)), Mode.BYPASS))
        calls = [ToolCall(f"call-{at}", "mcp__srv__pid", {}) for at in range(8)]
        outcomes = await running.run(calls)

    assert {outcome.status for outcome in outcomes} == {Status.OK}
    assert len({words(outcome) for outcome in outcomes}) == 1


@requirement("HELD-6", "MCP-2")
async def test_nothing_is_left_of_a_held_server_when_ferrule_is_killed(tmp_path: Path) -> None:
    place, child, told = filled(tmp_path), tmp_path / "child", tmp_path / "pid"
    script = f"""
import asyncio, os, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tests.mcp.test_held_servers import reaching, rules, said, session
async def main():
    chosen = rules(deny=("Read(./secrets/**)",))
    async with session(Path({str(place)!r}), reaching("child={child}"), rules=chosen) as (running, servers):
        await servers.wait_until_known(60)
        pid = await said(running, "pid")
        Path("{told}.new").write_text(pid)
        os.rename("{told}.new", "{told}")
        await asyncio.sleep(3600)
asyncio.run(main())
"""
    ferrule = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    try:
        await until(lambda: told.exists() and child.exists())
        pids = int(told.read_text()), int(child.read_text())
        assert all(map(is_running, pids))
    finally:
        ferrule.send_signal(signal.SIGKILL)
        await ferrule.wait()

    await until(lambda: not any(map(is_running, pids)))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
