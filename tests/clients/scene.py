"""A scripted model's service, a project and a home of its own, and options of the SDK that lead there."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claude_agent_sdk import (  # pyright: ignore[reportMissingImports]
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKError,
    Message,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    UserMessage,
    query,
)

from ferrule.testing import ModelServer

from .conftest import CLI
from .environment import MODEL, QUIET


@dataclass
class Scene:
    """One project, and what its model's service was asked."""

    folder: Path
    server: ModelServer
    stderr: list[str] = field(default_factory=list[str])

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "ANTHROPIC_BASE_URL": self.server.url,
            "ANTHROPIC_API_KEY": "sk-ant-of-a-test",
            "HOME": str(self.folder / "home"),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        return {**QUIET, **own}

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def options(self, **more: Any) -> ClaudeAgentOptions:
        chosen = {
            "cli_path": CLI,
            "cwd": self.project,
            "model": MODEL,
            "env": self.environment,
            "stderr": self.stderr.append,
            "setting_sources": [],
        }
        return ClaudeAgentOptions(**{**chosen, **more})

    async def ask(self, prompt: str | AsyncIterator[dict[str, Any]] = "Hello", **more: Any) -> list[Message]:
        return [message async for message in query(prompt=prompt, options=self.options(**more))]

    async def ask_until_error(self, prompt: str = "Hello", **more: Any) -> tuple[list[Message], ClaudeSDKError | None]:
        """The messages, and the error that ended them."""
        seen: list[Message] = []
        try:
            async for message in query(prompt=prompt, options=self.options(**more)):
                seen.append(message)  # noqa: PERF401 - those before an error count
        except ClaudeSDKError as error:
            return seen, error
        return seen, None

    def put(self, name: str, content: str | Mapping[str, Any]) -> Path:
        """A file of the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The requests of the conversation, without those that only check a key or count."""
        return [one.body for one in self.server.requests if one.path.partition("?")[0].endswith("/messages")]

    def sent(self, number: int = -1) -> str:
        """Everything in one of the requests, as text."""
        return json.dumps(self.asked[number], ensure_ascii=False)


@asynccontextmanager
async def playing(folder: Path, *turns: Mapping[str, Any]) -> AsyncGenerator[Scene]:
    for name in ("project", "home"):
        (folder / name).mkdir(exist_ok=True)
    for name in ("CLAUDECODE", "CLAUDE_CONFIG_DIR"):
        os.environ.pop(name, None)
    async with ModelServer.playing({"turns": list(turns)}) as server:
        yield Scene(folder, server)


def kinds(messages: list[Message]) -> list[str]:
    """What a program sees go by: tasks, states and hook events left out, which come when they come."""
    names: list[str] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            if message.subtype == "init":
                names.append("init")
        elif isinstance(message, AssistantMessage | UserMessage | ResultMessage):
            names.append(type(message).__name__.removesuffix("Message").lower())
    return names


def said(messages: list[Message]) -> str:
    blocks = [block for one in messages if isinstance(one, AssistantMessage) for block in one.content]
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


def results(messages: list[Message]) -> list[tuple[str, bool]]:
    """The text of each tool's result, and whether it is an error."""
    found: list[tuple[str, bool]] = []
    for one in messages:
        if isinstance(one, UserMessage) and isinstance(one.content, list):
            blocks = [block for block in one.content if isinstance(block, ToolResultBlock)]
            found += [(_text(block.content), bool(block.is_error)) for block in blocks]
    return found


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return str(content or "")


def last(messages: list[Message]) -> ResultMessage:
    assert isinstance(messages[-1], ResultMessage), messages[-1]
    return messages[-1]
