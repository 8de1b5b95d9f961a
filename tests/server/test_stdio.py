"""`ferrule serve` over standard input and output, as a real process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from ..cli.running import FERRULE, HANG, environment, ferrule
from ..mcp.running import RAW
from ..requirement import requirement
from .desks import ERAS
from .desks import text as text_of
from .processes import Served, Sleeper, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    with served(tmp_path_factory.mktemp("served"), "--permission-mode", "bypassPermissions") as server:
        server.greet()
        yield server


@requirement("MCP-5")
@pytest.mark.parametrize(
    ("line", "code", "waits"),
    [
        (b"not json", -32700, None),
        (b"\xff\xfe\x00", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'{"jsonrpc": "2.0"}', -32600, None),
        (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600, 7),
        (b'{"jsonrpc": "1.0", "id": true, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 7, "result": "yes"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 7.5, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
        (b'[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]', -32600, None),
    ],
)
def test_garbage_is_answered_and_the_next_line_is_read(
    server: Served, line: bytes, code: int, waits: int | None
) -> None:
    server.send(line)
    garbage = server.receive()
    server.send({"jsonrpc": "2.0", "id": "ping", "method": "ping"})

    assert (garbage["id"], garbage["error"]["code"]) == (waits, code)
    assert server.receive() == {"jsonrpc": "2.0", "id": "ping", "result": {}}


def test_half_of_a_character_does_not_leave_a_call_without_an_answer(server: Served) -> None:
    server.call(1, "Bash", {"command": "echo \ud83d and more"})

    assert "and more" in server.receive()["result"]["content"][0]["text"]


@requirement("MCP-5")
def test_a_call_that_the_client_cancels_ends_with_its_processes(server: Served, tmp_path: Path) -> None:
    sleeper = Sleeper(tmp_path)
    server.call(1, "Bash", {"command": sleeper.command})
    sleeper.started()
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})

    assert sleeper.has_ended()


@pytest.mark.parametrize("name", ["Agent", "EnterPlanMode", "ExitPlanMode", "ToolSearch"])
def test_what_steers_a_conversation_of_ours_is_not_offered(server: Served, name: str) -> None:
    server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    listed = [tool["name"] for tool in server.receive()["result"]["tools"]]
    server.call(2, name, {})

    assert "Read" in listed
    assert name not in listed
    assert server.receive()["result"]["isError"]


def test_what_a_command_prints_stays_off_the_wire(server: Served) -> None:
    server.call(1, "Bash", {"command": "echo printed; echo complained >&2"})

    assert "printed" in server.receive()["result"]["content"][0]["text"]


@requirement("MCP-5")
@pytest.mark.slow
def test_the_end_of_input_ends_the_server_and_what_it_runs(tmp_path: Path) -> None:
    sleeper = Sleeper(tmp_path)
    with served(tmp_path, "--permission-mode", "bypassPermissions") as server:
        server.greet()
        server.call(1, "Bash", {"command": sleeper.command})
        sleeper.started()

        assert server.end_of_input() == 0
        assert sleeper.has_ended()


@pytest.mark.slow
def test_a_signal_ends_the_server_and_what_it_runs(tmp_path: Path) -> None:
    sleeper = Sleeper(tmp_path)
    with served(tmp_path, "--permission-mode", "bypassPermissions") as server:
        server.greet()
        server.call(1, "Bash", {"command": sleeper.command})
        sleeper.started()
        server.process.send_signal(signal.SIGTERM)

        assert server.process.wait(HANG) == 128 + signal.SIGTERM
        assert sleeper.has_ended()


@pytest.mark.slow
def test_a_client_that_reads_nothing_more_ends_the_server(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.greet()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})

        assert server.process.wait(HANG) == 0


@pytest.mark.slow
async def test_of_other_servers_only_those_named_on_the_command_line_are_started(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    entries = {"ours": {"command": "touch", "args": [str(mark)]}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": entries}))
    named = json.dumps({"mcpServers": {"raw": {"command": sys.executable, "args": ["-S", str(RAW)]}}})
    server = StdioServerParameters(
        command=sys.executable,
        args=[*FERRULE[1:], "serve", "--trust", "--mcp-config", named],
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    async with Client(stdio_client(server)) as client:
        names = [each.name for each in (await client.list_tools()).tools]

    assert "mcp__raw__echo" in names
    assert not mark.exists()


@requirement("MCP-5")
@pytest.mark.slow
@pytest.mark.parametrize("era", ["auto", ERAS[0]])
async def test_the_official_client_works_in_either_era(tmp_path: Path, era: str) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    server = StdioServerParameters(
        command=sys.executable, args=[*FERRULE[1:], "serve"], cwd=tmp_path, env=environment(tmp_path)
    )
    async with Client(stdio_client(server), mode=era) as client:
        result = await client.call_tool("Grep", {"pattern": "on.", "output_mode": "content"})

        assert client.protocol_version == ("2026-07-28" if era == "auto" else "2025-11-25")
        assert text_of(result).endswith("a.txt:1:one")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--http", "nowhere"), "nowhere is not HOST:PORT"),
        (("--http", "0.0.0.0:0", "--no-token"), "can be reached from other machines"),
        (("--http", "127.0.0.1:0", "--token", ""), "the token must be"),
        (("--http", "127.0.0.1:0", "--token", "secret", "--no-token"), "--no-token contradicts"),
        (("--no-token",), "require --http"),
        (("--token", "secret"), "require --http"),
        (("--http", "127.0.0.1:0", "--idle-timeout", "0"), "not a number of seconds"),
        pytest.param(("--http", "192.0.2.1:1", "--token", "secret"), "cannot listen on", marks=pytest.mark.slow),
    ],
)
def test_flags_that_cannot_be_honoured_are_refused_with_words(
    tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    done: subprocess.CompletedProcess[bytes] = ferrule(tmp_path, "serve", *flags)

    assert done.returncode in (1, 2)
    assert said in done.stderr.decode()
    assert done.stdout == b""
