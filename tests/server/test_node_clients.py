"""`ferrule serve` under clients that people have, where `scripts/conformance` has installed them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..cli.running import FERRULE, environment
from ..requirement import requirement
from .processes import served
from .test_conformance import CACHE

CLIENTS = CACHE / "clients" / "node_modules"
NODE, INSPECTOR = CLIENTS / ".bin" / "node", CLIENTS / ".bin" / "mcp-inspector"
SCRIPT = Path(__file__).parent / "typescript_client.mjs"
TOKEN = "a-token-for-tests"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CLIENTS.is_dir(), reason="scripts/conformance was never run here"),
]


def _told(folder: Path, *command: str | Path) -> Any:
    variables = {**environment(folder), "PATH": f"{NODE.parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@contextmanager
def _address(folder: Path) -> Generator[str]:
    with served(folder, "--http", "127.0.0.1:0", FERRULE_SERVE_TOKEN=TOKEN) as server:
        assert server.process.stderr is not None
        while b"listening at " not in (said := server.process.stderr.readline()):
            assert said, "the server ended"
        yield said.decode().split()[-1]


def _check(told: Mapping[str, Any], folder: Path) -> None:
    (asked,) = told["asked"]
    assert {"Bash", "Edit", "Read", "Write"} < set(told["tools"])
    assert f"creates {folder}/new.txt" in asked
    assert (told["resource"], told["changes"]) == ("new\n", 1)
    assert set(told["progress"]) == {"first"}
    assert told["answers"] == [str(number) for number in range(100)]
    assert told["cancelled"]


@requirement("MCP-5")
def test_the_typescript_client_works_over_stdio(tmp_path: Path) -> None:
    told = _told(tmp_path, NODE, SCRIPT, CLIENTS, *FERRULE, "serve")

    _check(told, tmp_path)


@requirement("MCP-5")
def test_the_typescript_client_works_over_http(tmp_path: Path) -> None:
    with _address(tmp_path) as url:
        told = _told(tmp_path, NODE, SCRIPT, CLIENTS, "--http", url, TOKEN)

    _check(told, tmp_path)


@requirement("MCP-5")
def test_the_inspector_starts_the_server_that_a_client_s_file_names(tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": [*FERRULE[1:], "serve", "--cwd", str(tmp_path)]}
    (tmp_path / "clients.json").write_text(json.dumps({"mcpServers": {"ferrule": entry}}))
    call = ("--method", "tools/call", "--tool-name", "Bash", "--tool-arg", "command=echo hello")

    told = _told(tmp_path, INSPECTOR, "--cli", "--config", "clients.json", "--server", "ferrule", *call)

    assert told == {"content": [{"type": "text", "text": "hello"}], "isError": False}


@requirement("MCP-5")
def test_the_inspector_finds_no_fault_with_the_schemas_over_http(tmp_path: Path) -> None:
    with _address(tmp_path) as url:
        header = ("--transport", "http", "--header", f"Authorization: Bearer {TOKEN}")
        told = _told(tmp_path, INSPECTOR, "--cli", url, *header, "--method", "tools/list", "--strict")

    assert "Read" in [tool["name"] for tool in told["tools"]]
