"""The command line as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.cli.forked import run_forked

FERRULE = (sys.executable, "-m", "ferrule")
HANG = 60
"""Seconds: a generous bound on a hang, never a measure."""


def environment(folder: Path, **more: str) -> dict[str, str]:
    """This one with a home and a state folder of its own, no wishes about looks, no search, and time for servers."""
    searching = ("FERRULE_SEARCH_URL", "BRAVE_API_KEY", "TAVILY_API_KEY")
    unwanted = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CLAUDE_CONFIG_DIR", *searching)
    kept = {key: value for key, value in os.environ.items() if key not in unwanted}
    own = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "xdg-state"), "PYTHONUTF8": "1"}
    own["MCP_CONNECT_TIMEOUT_MS"] = f"{HANG}000"
    return {**kept, **own, **more}


def ferrule(
    folder: Path, *arguments: str, stdin: bytes | str = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """A fork where that shows the same; what an environment says to Python itself it hears when it starts."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    around = environment(folder, **(env or {}))
    if any(name.startswith("PYTHON") for name in env or ()):
        return subprocess.run(
            [*FERRULE, *arguments], input=given, capture_output=True, cwd=folder, env=around, timeout=HANG, check=False
        )
    return run_forked(arguments, stdin=given, cwd=str(folder), env=around, timeout=HANG)


def jsonl(folder: Path, requests: Iterable[Any], *flags: str) -> list[dict[str, Any]]:
    """The answers to these requests; a request that is bytes goes in as it is."""
    lines = [request if isinstance(request, bytes) else json.dumps(request).encode() for request in requests]
    done = ferrule(folder, "call", "--jsonl", *flags, stdin=b"".join(line + b"\n" for line in lines))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def text(answer: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])
