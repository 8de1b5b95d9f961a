"""The line that a conversation begins with: where it works, with which model, tools and servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._version import __version__
from ..engine.session import Session
from ..output.stream_json import StreamJson


def init_line(
    stream: StreamJson,
    session: Session,
    *,
    model: str,
    mode: str,
    servers: Sequence[dict[str, str]] = (),
    commands: Iterable[str] = (),
    skills: Iterable[str] = (),
    plugins: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:
    """`servers` are `{"name": ..., "status": ...}`, `plugins` are `{"name": ..., "path": ...}`."""
    return stream.line(
        "system",
        subtype="init",
        cwd=session.workspace,
        tools=[tool.name for tool in session.registry.pool],
        mcp_servers=list(servers),
        model=model,
        permissionMode=mode,
        slash_commands=list(commands),
        apiKeySource="none",
        output_style="default",
        agents=list(session.agents),
        skills=list(skills),
        plugins=list(plugins),
        ferrule_version=__version__,
    )
