"""Other people's servers: what ten of them cost a start, and what a thousand of their tools cost in memory.

A start is timed where its first request arrives, in pairs: with the servers,
then without any. The processor's time is that of all threads of the process up
to that moment, and says the same on a machine that has other things to do.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from .agent import SCARCE_RUNS, Bench, resident
from .figures import Figure
from .startup import NotInstalled
from .timing import calibrated

SERVERS, DEAD = 10, 3
TARGET_MORE_MS = 50.0
MANY, TOOLS_EACH = 50, 20
TARGET_MB = 2.0
"""For a hundred tools."""
NONE = "without any"


async def measure(*, runs: int) -> list[Figure]:
    command = Path(sys.executable).with_name("ferrule")
    if not command.exists():
        raise NotInstalled("the `ferrule` command is not installed beside this interpreter")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("project", "home", "state"):
            (folder / part).mkdir()
        return [*await _starts(Bench(folder, command, min(runs, SCARCE_RUNS))), await _memory()]


async def _starts(bench: Bench) -> list[Figure]:
    """After a run that does not count, in which the servers say what they offer."""
    alive = {"command": sys.executable, "args": [str(Path(__file__).with_name("mcp_servers.py")), "--bare"]}
    dead = {"command": str(bench.folder / "no-such-program")}
    servers = {f"s{number}": dead if number >= SERVERS - DEAD else alive for number in range(SERVERS)}
    flags = ("--mcp-config", json.dumps({"mcpServers": servers}), "--trust")
    turns = [{"text": "Hello."}]
    await bench.ours(turns, *flags)
    await bench.ours(turns)
    pairs = [(await bench.ours(turns, *flags), await bench.ours(turns)) for _ in range(bench.runs)]
    what = f"start with {SERVERS} MCP servers, {DEAD} dead"
    return [
        _figure(
            f"{what}, beyond a start {NONE}",
            median(one.first - other.first for one, other in pairs) * 1e3,
            target=TARGET_MORE_MS,
        ),
        _figure(
            f"{what}, to the first request",
            median(one.first for one, _ in pairs) * 1e3,
            beside=NONE,
            other=median(other.first for _, other in pairs) * 1e3,
        ),
        _figure(
            f"{what}, processor time to the first request",
            median(one.processor for one, _ in pairs) * 1e3,
            beside=NONE,
            other=median(other.processor for _, other in pairs) * 1e3,
        ),
    ]


async def _memory() -> Figure:
    """Resident memory that a session with all those tools has beyond one with none, in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.mcp_client", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    held = json.loads(out)
    hundreds = MANY * TOOLS_EACH / 100
    return _figure(
        f"memory of {MANY} servers with {MANY * TOOLS_EACH:,} tools, for each 100 tools",
        held["megabytes"] / hundreds,
        unit="MB",
        beside="their lists as JSON",
        other=held["written"] / 1e6 / hundreds,
        target=TARGET_MB,
    )


def _held() -> dict[str, float]:
    from ferrule.app.build import Settings, open_session
    from ferrule.mcp.config import ServerConfig, Stdio
    from ferrule.mcp.listing import ListingCache, ServerListing, ToolInfo

    described = {"type": "string", "description": "What this parameter is for, in a sentence of ordinary length."}
    parameters = {f"parameter_{number}": {**described, "enum": ["open", "closed", "all"]} for number in range(8)}
    schema = {"type": "object", "properties": parameters, "required": ["parameter_0"], "additionalProperties": False}
    words = "What this tool does, when to use it and when another one is better. " * 5
    tools = [ToolInfo(name=f"tool_number_{at}", description=words, schema=schema) for at in range(TOOLS_EACH)]
    servers = [
        ServerConfig(name=f"server{at}", part=f"server{at}", transport=Stdio("none", (str(at),))) for at in range(MANY)
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lists = folder / "mcp" / "lists"
        for server in servers:
            ListingCache(lists).save(server, ServerListing(tuple(tools)))
        written = sum(path.stat().st_size for path in lists.iterdir())
        settings = Settings(cwd=name, state_folder=folder)
        without = open_session(settings)
        assert not without.registry.pool.remote
        gc.collect()
        before = resident(os.getpid())
        session = open_session(Settings(cwd=name, state_folder=folder, servers=tuple(servers)))
        assert len(session.registry.pool.deferred) >= MANY * TOOLS_EACH
        gc.collect()
        return {"megabytes": resident(os.getpid()) - before, "written": written}


def _figure(what: str, value: float, *, unit: Any = "ms", **more: Any) -> Figure:
    return Figure(benchmark="mcp_client", what=what, value=value, unit=unit, calibration_ms=calibrated() * 1e3, **more)


if __name__ == "__main__":
    print(json.dumps(_held()))
