"""A call through our MCP server over stdio beside the same tool on a bare one, both from the official client."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

from .figures import Figure
from .timing import Work, interleaved

OURS, BARE = "a tool through ferrule serve", "on a bare mcp server"
CALLS = 20
"""In one run, one after another."""
TARGET_RATIO = 1.5


async def measure(*, runs: int) -> list[Figure]:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        path.write_text("".join(f"line {number} of a small file\n" for number in range(70)))
        servers = str(Path(__file__).with_name("mcp_servers.py"))
        ours = StdioServerParameters(command=sys.executable, args=[servers], cwd=folder)
        bare = StdioServerParameters(command=sys.executable, args=[servers, "--bare"], cwd=folder)
        for era in ("legacy", "2026-07-28"):
            async with (
                Client(stdio_client(ours), mode=era) as one,
                Client(stdio_client(bare), mode=era) as other,
            ):
                works: dict[str, Work] = {
                    OURS: partial(_calls, one, str(path)),
                    BARE: partial(_calls, other, str(path)),
                }
                timed = await interleaved(works, runs=runs)
            figures.append(
                Figure(
                    benchmark="serve",
                    what=f"{OURS}, {'2025-11-25' if era == 'legacy' else era}",
                    value=timed.seconds[OURS] / CALLS * 1e6,
                    unit="µs",
                    calibration_ms=timed.calibration * 1e3,
                    beside=BARE,
                    other=timed.seconds[BARE] / CALLS * 1e6,
                    target_ratio=TARGET_RATIO,
                )
            )
    return figures


async def _calls(client: object, path: str) -> None:
    from mcp import Client

    assert isinstance(client, Client)
    for _ in range(CALLS):
        result = await client.call_tool("numbered", {"file_path": path})
        assert not result.is_error
