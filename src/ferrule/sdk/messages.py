"""The messages of a conversation and their blocks, in the shapes that consumers of streams know.

The names and fields are those of the Claude Agent SDK, so that one set serves
programs written for it and programs written for us. Each message belongs
to its reader, who may change it and inspect it with `vars`, as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Wire: TypeAlias = dict[str, Any]


@dataclass
class TextBlock:
    text: str


@dataclass
class ThinkingBlock:
    thinking: str
    signature: str


@dataclass
class ToolUseBlock:
    id: str
    name: str
    input: Wire


@dataclass
class ToolResultBlock:
    tool_use_id: str
    content: str | list[Wire] | None = None
    is_error: bool | None = None


@dataclass
class ServerToolUseBlock:
    """A call that the model's service carries out itself."""

    id: str
    name: str
    input: Wire


@dataclass
class ServerToolResultBlock:
    tool_use_id: str
    content: Wire


ContentBlock: TypeAlias = (
    TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | ServerToolUseBlock | ServerToolResultBlock
)


@dataclass
class UserMessage:
    """Results of calls, and notes for the model. Prompts only if requested."""

    content: str | list[ContentBlock]
    uuid: str | None = None
    parent_tool_use_id: str | None = None
    tool_use_result: Wire | None = None
    origin: Wire | None = None


@dataclass
class AssistantMessage:
    """One block of what the model wrote, as soon as it is whole."""

    content: list[ContentBlock]
    model: str
    parent_tool_use_id: str | None = None
    error: str | None = None
    usage: Wire | None = None
    message_id: str | None = None
    stop_reason: str | None = None
    session_id: str | None = None
    uuid: str | None = None


@dataclass
class SystemMessage:
    """Anything besides the conversation; `data` is all of it. `init` comes before each prompt's messages."""

    subtype: str
    data: Wire


@dataclass
class HookEventMessage(SystemMessage):
    """A hook has answered; only sent if requested."""

    hook_event_name: str = ""
    session_id: str | None = None
    uuid: str | None = None


@dataclass
class MirrorErrorMessage(SystemMessage):
    """A store did not accept entries; they are sent again later. The transcript on disk has them."""

    key: dict[str, str] | None = None
    error: str = ""


@dataclass
class DeferredToolUse:
    """A call that a hook deferred."""

    id: str
    name: str
    input: Wire


@dataclass
class ResultMessage:
    """How a prompt ended; the last message of each. `subtype` is `success`, or begins with `error_`."""

    subtype: str
    duration_ms: int
    duration_api_ms: int
    is_error: bool
    num_turns: int
    session_id: str
    stop_reason: str | None = None
    total_cost_usd: float | None = None
    """Of the whole conversation; `None` if the price of a model is unknown."""
    usage: Wire | None = None
    result: str | None = None
    structured_output: Any = None
    model_usage: Wire | None = None
    permission_denials: list[Any] | None = None
    deferred_tool_use: DeferredToolUse | None = None
    errors: list[str] | None = None
    api_error_status: int | None = None
    uuid: str | None = None
    terminal_reason: str | None = None
    origin: Wire | None = None


@dataclass
class StreamEvent:
    """A piece of a message that is being written, as an event of a streaming API."""

    uuid: str
    session_id: str
    event: Wire
    parent_tool_use_id: str | None = None


Message: TypeAlias = UserMessage | AssistantMessage | SystemMessage | ResultMessage | StreamEvent


def message_of(line: Mapping[str, Any]) -> Message:
    """A line of `output.stream_json` or `output.run_answer` as the message that it is."""
    match line["type"]:
        case "assistant":
            return _assistant(line)
        case "user":
            return UserMessage(
                content=_content_of(line["message"]["content"]),
                uuid=line.get("uuid"),
                parent_tool_use_id=line.get("parent_tool_use_id"),
                tool_use_result=line.get("tool_use_result"),
            )
        case "stream_event":
            return StreamEvent(line["uuid"], line["session_id"], line["event"], line.get("parent_tool_use_id"))
        case "result":
            return _result(line)
        case _ if (subtype := line.get("subtype")) in ("hook_started", "hook_response"):
            return HookEventMessage(subtype, dict(line), line["hook_event"], line.get("session_id"), line.get("uuid"))
        case _ if line.get("subtype") == "mirror_error":
            return MirrorErrorMessage("mirror_error", dict(line), dict(line["key"]), line["error"])
        case _:
            return SystemMessage(str(line.get("subtype", "")), dict(line))


def _assistant(line: Mapping[str, Any]) -> AssistantMessage:
    message = line["message"]
    return AssistantMessage(
        content=_blocks(message["content"]),
        model=message["model"],
        parent_tool_use_id=line.get("parent_tool_use_id"),
        usage=message.get("usage"),
        message_id=message.get("id"),
        stop_reason=message.get("stop_reason"),
        session_id=line.get("session_id"),
        uuid=line.get("uuid"),
    )


def _result(line: Mapping[str, Any]) -> ResultMessage:
    return ResultMessage(
        subtype=line["subtype"],
        duration_ms=line["duration_ms"],
        duration_api_ms=line["duration_api_ms"],
        is_error=line["is_error"],
        num_turns=line["num_turns"],
        session_id=line["session_id"],
        stop_reason=line.get("stop_reason"),
        total_cost_usd=line.get("total_cost_usd"),
        usage=line.get("usage"),
        result=line.get("result"),
        structured_output=line.get("structured_output"),
        model_usage=line.get("modelUsage"),
        permission_denials=line.get("permission_denials"),
        errors=line.get("errors"),
        api_error_status=line.get("api_error_status"),
        uuid=line.get("uuid"),
        terminal_reason=line.get("terminal_reason"),
    )


def _content_of(content: str | list[Wire]) -> str | list[ContentBlock]:
    return content if isinstance(content, str) else _blocks(content)


def _blocks(content: list[Wire]) -> list[ContentBlock]:
    return [block for part in content if (block := _block(part)) is not None]


def _block(part: Wire) -> ContentBlock | None:
    """`None` for reasoning that the service does not show."""
    match part:
        case {"type": "text", "text": text}:
            return TextBlock(text)
        case {"type": "thinking", "thinking": thinking, "signature": signature}:
            return ThinkingBlock(thinking, signature)
        case {"type": "tool_use", "id": id, "name": name, "input": input}:
            return ToolUseBlock(id, name, input)
        case {"type": "tool_result", "tool_use_id": id, "content": content}:
            return ToolResultBlock(id, content, part.get("is_error"))
        case _:
            return None
