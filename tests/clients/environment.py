"""What the tests of both SDKs share."""

from __future__ import annotations

from typing import Any

MODEL = "claude-sonnet-4-5"
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK": "1",
    "IS_SANDBOX": "1",
    "MCP_CONNECT_TIMEOUT_MS": "60000",
    "MCP_TIMEOUT": "60000",
}


def call(name: str, id: str | None = None, **input: Any) -> dict[str, Any]:
    return {"name": name, "input": input, **({"id": id} if id else {})}
