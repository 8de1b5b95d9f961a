"""Control requests to a running conversation, each with what it answers."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from .._version import __version__
from ..agents.agent_catalog import Agents
from ..agents.agent_kinds import AgentKind
from ..app.headless_run import PROTOCOL_VERSION
from ..providers.known_models import SHORT_NAMES
from ..sdk import controls
from ..sdk.conversation import Conversation, ServerStatus
from ..sdk.errors import CannotOpen, NotDone
from .control import CannotDo

Request = Mapping[str, Any]


async def _interrupt(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    await conversation.interrupt()
    return {}


async def _set_mode(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    try:
        conversation.set_mode(str(request.get("mode")))
    except ValueError as error:
        raise CannotDo(str(error)) from None
    return {"mode": conversation.mode}


async def _set_model(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    name = request.get("model")
    if not isinstance(name, str | None):
        raise CannotDo("`model` must be the name of a model, or null for the one that the run began with.")
    return {"model": controls.set_model(conversation, None if name == "default" else name)}


async def _set_thinking(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    if request.get("thinking_display") is not None:
        raise CannotDo("`thinking_display` is not supported by this version.")
    if "max_thinking_tokens" not in request:
        return {}
    tokens = request["max_thinking_tokens"]
    if tokens is not None and (not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0):
        raise CannotDo("`max_thinking_tokens` must be a number that is not negative, or null.")
    controls.set_thinking_tokens(conversation, tokens)
    return {}


async def _mcp_status(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    return {"mcpServers": [_server_line(server) for server in conversation.servers()]}


async def _mcp_reconnect(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    await controls.reconnect_server(conversation, _text(request, "serverName"))
    return {}


async def _mcp_toggle(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    enabled = request.get("enabled")
    if not isinstance(enabled, bool):
        raise CannotDo("`enabled` must be true or false.")
    await controls.toggle_server(conversation, _text(request, "serverName"), enabled=enabled)
    return {}


async def _context_usage(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    return controls.context_usage_line(conversation)


async def _settings(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    session, opened = conversation.session, conversation.opened
    applied = {"model": opened.model.name, "effort": session.effort, "permissionMode": conversation.mode}
    rules = opened.rules()
    listed = {
        "allow": [rule.text for rule in rules.rules if rule.behavior.name == "ALLOW"],
        "ask": [rule.text for rule in rules.rules if rule.behavior.name == "ASK"],
        "deny": [rule.text for rule in rules.rules if rule.behavior.name == "DENY"],
        "defaultMode": str(rules.mode),
        "additionalDirectories": list(session.state.added_directories),
    }
    return {"effective": {"permissions": listed, "model": opened.model.name}, "sources": [], "applied": applied}


async def _stop_task(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    await controls.stop_task(conversation, _text(request, "task_id"))
    return {}


async def _rewind_files(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    if request.get("dry_run"):
        raise CannotDo("`dry_run` is not supported by this version.")
    rewound = await controls.rewind_files(conversation, _text(request, "user_message_id"))
    if rewound.left:
        raise CannotDo(f"Others have changed these files since, so they were left: {', '.join(rewound.left)}.")
    return {"canRewind": True, "filesChanged": [str(path) for path in rewound.restored]}


async def _end_session(conversation: Conversation, request: Request) -> Mapping[str, Any]:
    conversation.finish()
    return {}


_KNOWN: Final[Mapping[str, Callable[[Conversation, Request], Awaitable[Mapping[str, Any]]]]] = {
    "interrupt": _interrupt,
    "set_permission_mode": _set_mode,
    "set_model": _set_model,
    "set_max_thinking_tokens": _set_thinking,
    "mcp_status": _mcp_status,
    "mcp_reconnect": _mcp_reconnect,
    "mcp_toggle": _mcp_toggle,
    "get_context_usage": _context_usage,
    "get_settings": _settings,
    "stop_task": _stop_task,
    "rewind_files": _rewind_files,
    "end_session": _end_session,
}


async def carry_out(conversation: Conversation, subtype: str, request: Request) -> Mapping[str, Any]:
    """Raises `CannotDo`."""
    if subtype not in _KNOWN:
        raise CannotDo(f"`{subtype}` is not supported by this version.")
    try:
        return await _KNOWN[subtype](conversation, request)
    except (NotDone, CannotOpen) as error:
        raise CannotDo(str(error)) from None


def describe_conversation(conversation: Conversation) -> dict[str, Any]:
    """The answer to `initialize`."""
    commands = conversation.opened.commands.describe_all()
    opened = conversation.opened
    kinds = Agents(opened.settings.pages, opened.settings.agents).all.values()
    return {
        "commands": [{"name": name, "description": words, "argumentHint": hint} for name, words, hint in commands],
        "agents": [_agent_line(kind) for kind in kinds],
        "output_style": opened.found.style,
        "available_output_styles": list(opened.found.styles),
        "models": _model_lines(conversation),
        "account": {"apiKeySource": opened.model.key_source},
        "pid": os.getpid(),
        "claude_code_version": PROTOCOL_VERSION,
        "ferrule_version": __version__,
        "hook_on_failure_supported": True,
    }


def _agent_line(kind: AgentKind) -> dict[str, str]:
    line = {"name": kind.name, "description": kind.description}
    return {**line, "model": kind.model} if kind.model else line


def _model_lines(conversation: Conversation) -> list[dict[str, str]]:
    """The one that it began with, and short names of the same service."""
    first = conversation.opened.model.name
    lines = [{"value": "default", "displayName": "Default", "description": first}]
    if conversation.opened.models.is_anthropic:
        lines += [{"value": name, "displayName": name, "description": full} for name, full in SHORT_NAMES.items()]
    return lines


def _server_line(server: ServerStatus) -> dict[str, Any]:
    line: dict[str, Any] = {"name": server.name, "status": server.status}
    if server.error:
        line["error"] = server.error
    if server.status == "connected":
        line["tools"] = [{"name": name} for name in server.tools]
    return line


def _text(request: Request, key: str) -> str:
    value = request.get(key)
    if not isinstance(value, str) or not value:
        raise CannotDo(f"`{key}` must be a text that is not empty.")
    return value
