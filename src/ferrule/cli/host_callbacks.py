"""The program that started this one as a part of the conversation: it approves calls, is a hook, and has tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from ..hooks.payloads import suggestions_of
from ..mcp.config import NotRelayed, Relayed
from ..permissions.approvals import ApprovalAnswer, ApprovalQuestion
from ..sdk.controls import call_server_tool
from ..sdk.conversation import Conversation
from ..sdk.errors import NotDone
from .control import CannotDo, Channel


class HostPerson:
    """Satisfies `permissions.approvals.Person`: a `can_use_tool` request for each approval. No answer means no."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.conversation: Conversation | None = None
        """Whose calls it is asked about, once that is open."""

    async def answer(self, question: ApprovalQuestion, /) -> ApprovalAnswer:
        assert self.conversation is not None, "a call is made in a conversation"
        await self.conversation.has_told_of(question.proposal.call.id)
        try:
            answer = await self._channel.ask(_permission_request(question))
        except CannotDo as error:
            return _refuse(f"it was asked and not answered: {error}")
        return await take_answer(answer, question, self.conversation)


class ToolPerson:
    """Satisfies `permissions.approvals.Person`: asks a tool of an MCP server. Whatever fails means no."""

    def __init__(self, tool: str) -> None:
        """`tool` is its name as the model would call it. It is denied to the model, which must not approve itself."""
        self._tool = tool
        self.conversation: Conversation | None = None

    async def answer(self, question: ApprovalQuestion, /) -> ApprovalAnswer:
        assert self.conversation is not None, "a call is made in a conversation"
        proposal = question.proposal
        asked = {
            "tool_name": proposal.tool.name,
            "input": dict(proposal.arguments),
            "tool_use_id": proposal.call.id,
        }
        try:
            text = await call_server_tool(self.conversation, self._tool, asked)
            answer: Any = json.loads(text)
        except NotDone as error:
            return _refuse(f"{self._tool} was asked and did not answer: {error}")
        except (ValueError, RecursionError):
            return _refuse(f"{self._tool} was asked, and its answer is not valid JSON")
        return await take_answer(
            cast(dict[str, Any], answer if isinstance(answer, dict) else {}), question, self.conversation
        )


def _permission_request(question: ApprovalQuestion) -> dict[str, Any]:
    proposal, verdict = question.proposal, question.verdict
    agent = proposal.ctx.facts.agent
    described = proposal.tool.describe(proposal.input)
    request: dict[str, Any] = {
        "subtype": "can_use_tool",
        "tool_name": proposal.tool.name,
        "display_name": proposal.tool.title or proposal.tool.name,
        "title": f"Allow {described}?",
        "description": described,
        "input": dict(proposal.arguments),
        "permission_suggestions": suggestions_of(question.rules),
        "blocked_path": None,
        "decision_reason": verdict.reason,
        "tool_use_id": proposal.call.id,
    }
    return request if agent == "main" else {**request, "agent_id": agent.rpartition("/")[2]}


async def take_answer(
    answer: Mapping[str, Any], question: ApprovalQuestion, conversation: Conversation
) -> ApprovalAnswer:
    """What `{"behavior": "allow" | "deny", ...}` means. Anything else means no."""
    match answer.get("behavior"):
        case "allow":
            updated = answer.get("updatedInput")
            if not isinstance(updated, dict | None):
                return _refuse("it was allowed with an `updatedInput` that is not an object")
            if wanted := answer.get("updatedPermissions"):
                try:
                    await _change_permissions(wanted, conversation)
                except CannotDo as error:
                    return _refuse(f"it was allowed together with permissions that cannot be changed so: {error}")
            changed = updated is not None and updated != dict(question.proposal.arguments)
            return ApprovalAnswer(allowed=True, arguments=cast(dict[str, Any], updated) if changed else None)
        case "deny":
            if answer.get("interrupt") is True:
                conversation.session.interrupt()
            return _refuse(str(answer.get("message") or "it was asked and refused"))
        case _:
            return _refuse("it was asked, and the answer is neither allow nor deny")


async def _change_permissions(wanted: object, conversation: Conversation) -> None:
    """Raises `CannotDo`."""
    from ..compat.claude_agent_sdk.errors import ClaudeSDKError
    from ..compat.claude_agent_sdk.permissions import PermissionUpdate, apply_updates
    from ..settings.settings_writing import NotSaved
    from ..settings.trust_store import NotStored

    try:
        updates = [PermissionUpdate.from_dict(one) for one in cast(list[Mapping[str, Any]], wanted)]
    except (KeyError, TypeError, AttributeError):
        raise CannotDo("`updatedPermissions` is not a list of permission updates") from None
    try:
        await apply_updates(updates, conversation)
    except (ClaudeSDKError, NotSaved, NotStored) as error:
        raise CannotDo(str(error)) from None


def _refuse(reason: str) -> ApprovalAnswer:
    return ApprovalAnswer(allowed=False, words=reason)


class HostHooks:
    """Functions of the other side, called by `hook_callback` requests."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def callback(self, id: str) -> Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]:
        async def call(payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
            request = {"subtype": "hook_callback", "callback_id": id, "input": dict(payload)}
            if (call_id := payload.get("tool_use_id")) is not None:
                request["tool_use_id"] = call_id
            answer = await self._channel.ask(request)
            return None if answer.get("async") is True else answer  # one that goes on has decided nothing

        return call


class HostServers:
    """Tool servers of the other side, reached by `mcp_message` requests."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._inboxes: dict[str, asyncio.Queue[Mapping[str, Any]]] = {}

    def relay(self, name: str) -> Relayed:
        async def exchange(message: Mapping[str, Any]) -> Mapping[str, Any]:
            request = {"subtype": "mcp_message", "server_name": name, "message": message}
            try:
                answer = (await self._channel.ask(request)).get("mcp_response")
            except CannotDo as error:
                raise NotRelayed(str(error)) from None
            return cast(Mapping[str, Any], answer) if isinstance(answer, dict) else {}

        return Relayed(exchange, self._inboxes.setdefault(name, asyncio.Queue()))

    def deliver(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """A message of such a server. Raises `CannotDo`."""
        name, message = request.get("server_name"), request.get("message")
        if not isinstance(name, str) or name not in self._inboxes:
            raise CannotDo(f"No server of yours is named {name!r}.")
        if not isinstance(message, dict):
            raise CannotDo("`message` must be a JSON-RPC message.")
        self._inboxes[name].put_nowait(cast(dict[str, Any], message))
        return {}
