"""Changes to a conversation that runs, and questions about it: for programs, and for the control protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ..core.calls import ToolCall
from ..core.content import plain_text
from ..core.model import ModelError, Request
from ..core.threads import in_a_thread
from ..core.values import named_value
from ..engine.window import estimate, estimate_text, estimate_tools
from ..host.files.checkpoints import NoSuchPoint, Rewound
from ..mcp.naming import PREFIX
from ..mcp.results import answer_of
from ..mcp.server_context import ServerTrouble
from .conversation import Conversation
from .errors import CannotOpen, NotDone


@named_value
class ContextUsage:
    """How full the model's window is. Parts are estimates; the total is the provider's, if it gave one."""

    total: int
    window: int
    model: str
    parts: Mapping[str, int] = field(default_factory=dict[str, int])


def set_model(conversation: Conversation, name: str | None = None) -> str:
    """From the next message on; `None` for the one that it began with. Returns its name. Raises `CannotOpen`."""
    opened = conversation.opened
    try:
        opened.model.model = opened.models.leading(name)
    except ModelError as error:
        raise CannotOpen(str(error)) from error
    return opened.model.name


def set_thinking_tokens(conversation: Conversation, tokens: int | None) -> None:
    """From the next message on; 0 for none, `None` for what the conversation began with."""
    conversation.session.thinking_tokens = conversation.opened.thinking_tokens if tokens is None else tokens or None


async def reconnect_server(conversation: Conversation, name: str) -> None:
    """Wait until it is up. Raises `NotDone` if it cannot be connected."""
    opened = conversation.opened
    try:
        if name not in opened.own_servers:
            await opened.server(name).ready()
    except ServerTrouble as error:
        raise NotDone(str(error)) from None


async def call_server_tool(conversation: Conversation, tool: str, arguments: Mapping[str, Any]) -> str:
    """The text that a tool of a server answers, by its name as the model would call it. Nobody is asked first.

    Raises `NotDone`.
    """
    servers = conversation.opened.servers
    part = tool.removeprefix(PREFIX).partition("__")[0]
    try:
        connection = conversation.opened.server(part)
        await connection.ready()
        assert servers is not None, "it has this server"
        found = next((one for one in servers.tools() if one.name == tool), None)
        if found is None:
            raise NotDone(f"The server `{part}` has no tool of this name.")
        result = await connection.call(found.info.name, arguments, _unheard)
    except ServerTrouble as error:
        raise NotDone(str(error)) from None
    answer = await in_a_thread(answer_of, result, servers.files)
    text = plain_text(answer.blocks)
    if answer.is_error:
        raise NotDone(text)
    return text


async def _unheard(progress: float, total: float | None, message: str | None) -> None:
    """Nobody waits for news of it."""


async def toggle_server(conversation: Conversation, name: str, *, enabled: bool) -> None:
    """Whether its tools can be used. Raises `NotDone` for an unknown server, and one whose tools are not known."""
    registry = conversation.session.registry
    for tool in await _tools_of_server(conversation, name):
        if enabled:
            registry.enable(tool)
        else:
            registry.disable(tool, f"the server {name} was disabled")
    (conversation.disabled.discard if enabled else conversation.disabled.add)(name)


async def stop_task(conversation: Conversation, task_id: str) -> None:
    """End a command or an agent that runs in the background. Raises `NotDone`."""
    call = ToolCall(f"stop-{task_id}", "KillShell", {"shell_id": task_id})
    (outcome,) = await conversation.session.run([call])
    if outcome.is_error:
        raise NotDone(plain_text(outcome.content))


async def rewind_files(conversation: Conversation, user_message_id: str, *, force: bool = False) -> Rewound:
    """Restore the files that Write, Edit and NotebookEdit changed to their state at this message.

    Files that others have changed since are left and named, unless `force` is given. Raises `NotDone`.
    """
    checkpoints = conversation.opened.checkpoints
    if checkpoints is None:
        raise NotDone("The previous contents of the files were not kept. Open the conversation with `checkpoints`.")
    try:
        return await in_a_thread(checkpoints.rewind, user_message_id, force=force)
    except NoSuchPoint as error:
        raise NotDone(str(error)) from None


def context_usage(conversation: Conversation) -> ContextUsage:
    session, model = conversation.session, conversation.opened.model
    offered = session.registry.pool.specs_for_request(session.state.found_tools)
    parts = {
        "System prompt": estimate_text(session.system),
        "Tools": estimate_tools(offered),
        "Messages": estimate(session.history),
    }
    total = session.compaction.meter.measure(Request(session.history, offered, system=session.system))
    return ContextUsage(total=total, window=model.facts.window, model=model.name, parts=parts)


def context_usage_line(conversation: Conversation) -> dict[str, Any]:
    """In the shape that consumers of the control protocol know."""
    used = context_usage(conversation)
    return {
        "categories": [
            {"name": name, "tokens": tokens, "color": "", "kind": "used"} for name, tokens in used.parts.items()
        ],
        "totalTokens": used.total,
        "maxTokens": used.window,
        "rawMaxTokens": used.window,
        "percentage": round(100 * used.total / used.window, 2),
        "model": used.model,
        "isAutoCompactEnabled": conversation.session.compaction.is_automatic,
        "memoryFiles": [],
        "mcpTools": [],
        "agents": [],
        "gridRows": [],
        "apiUsage": None,
    }


def server_info(conversation: Conversation) -> Mapping[str, Any]:
    """The available models, commands and agents."""
    session = conversation.session
    return {
        "commands": [{"name": name} for name in conversation.opened.commands.names()],
        "output_style": conversation.opened.found.style,
        "available_output_styles": list(conversation.opened.found.styles),
        "models": [],
        "agents": list(session.agents),
        "tools": [tool.name for tool in session.registry.pool],
        "session_id": session.id,
    }


async def _tools_of_server(conversation: Conversation, name: str) -> tuple[str, ...]:
    opened = conversation.opened
    if name in opened.own_servers:
        return opened.own_servers[name].names
    try:
        connection = opened.server(name)
        if connection.listing is None:
            await connection.ready()
    except ServerTrouble as error:
        raise NotDone(str(error)) from None
    assert opened.servers is not None, "it has this server"
    return tuple(
        tool.name for tool in opened.servers.tools() if tool.name.startswith(f"{PREFIX}{connection.config.part}__")
    )
