"""`ferrule -p` with MCP servers of all kinds: real processes that answer, die and dawdle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.prompting import ask, call, lines_of
from tests.cli.running import HANG, environment
from tests.mcp.running import RAW
from tests.requirement import requirement

STREAM = ("--output-format", "stream-json")


def servers(**faults: tuple[str, ...]) -> str:
    own = {name: {"command": sys.executable, "args": ["-S", str(RAW), *more]} for name, more in faults.items()}
    return json.dumps({"mcpServers": own})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path


def echoed(folder: Path, config: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first line, and the result of the call of the server's tool."""
    turns = [{"calls": [call("mcp__raw__echo", "e", text="hello")]}, {"text": "Done."}]
    done = ask(folder, turns, "Hi", *STREAM, "--mcp-config", config, "--allowedTools", "mcp__raw__echo")
    lines = lines_of(done)
    (result,) = [line for line in lines if line["type"] == "user"]
    return lines[0], result["message"]["content"][0]


@requirement("MCP-1", "CLI-1")
def test_the_tools_of_a_server_that_was_never_up_stand_in_the_first_request(folder: Path) -> None:
    init, result = echoed(folder, servers(raw=()))

    assert init["mcp_servers"] == [{"name": "raw", "status": "connected"}]
    assert "mcp__raw__echo" in init["tools"]
    assert (result["content"], result.get("is_error")) == ("hello", None)


@requirement("MCP-1", "MCP-2")
def test_a_dead_server_is_said_to_have_failed_and_the_other_is_used(folder: Path) -> None:
    config = folder / "servers.json"
    config.write_text(servers(raw=(), dead=("die-at-start",)))

    init, result = echoed(folder, str(config))

    assert {one["name"]: one["status"] for one in init["mcp_servers"]} == {"raw": "connected", "dead": "failed"}
    assert result["content"] == "hello"


@requirement("MCP-1")
def test_a_server_that_is_known_is_not_waited_for(folder: Path) -> None:
    config = servers(raw=())
    echoed(folder, config)

    init, result = echoed(folder, config)

    assert init["mcp_servers"] == [{"name": "raw", "status": "pending"}]
    assert "mcp__raw__echo" in init["tools"]
    assert result["content"] == "hello"


@requirement("MCP-2")
def test_a_server_that_was_waited_for_in_vain_is_not_waited_for_again(folder: Path) -> None:
    config = servers(raw=(), dead=("die-at-start",))
    echoed(folder, config)

    init, result = echoed(folder, config)

    assert {one["name"]: one["status"] for one in init["mcp_servers"]} == {"raw": "pending", "dead": "pending"}
    assert result["content"] == "hello"


@requirement("MCP-1")
def test_what_is_no_configuration_ends_the_run_before_it_begins(folder: Path) -> None:
    done = ask(folder, [{"text": "Done."}], "Hi", "--mcp-config", "missing.json")

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--mcp-config: missing.json cannot be read: the file does not exist." in done.stderr


OPENING = """
import sys
from pathlib import Path
from ferrule.app.settings_interpretation import load_session_settings
from ferrule.app.session_opening import open_conversation
from ferrule.app.session_settings import Settings
config, state = sys.argv[1:]
settings, _ = load_session_settings(Settings(state_folder=Path(state)), server_sources=[config])
opened = open_conversation(settings)
print(len(opened.servers.tools()), *{name.partition(".")[0] for name in sys.modules})
"""


@requirement("MCP-2")
def test_servers_that_are_known_load_nothing_that_takes_long_before_the_first_request(folder: Path) -> None:
    config = servers(raw=(), dead=("die-at-start",))
    echoed(folder, config)
    state = environment(folder)["XDG_STATE_HOME"]

    done = subprocess.run(
        [sys.executable, "-c", OPENING, config, f"{state}/ferrule"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        timeout=HANG,
        check=True,
    )

    tools, *loaded = done.stdout.decode().split()
    assert int(tools) > 10
    assert not {"pydantic", "mcp", "jsonschema"} & set(loaded)
