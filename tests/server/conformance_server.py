"""The tools and prompts that the official conformance suite expects of a server, on our server code.

Run as `python -m tests.server.conformance_server`; it prints its address on stderr.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ferrule.app.build import Settings, open_session
from ferrule.core.content import Line
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.functions import tool as function_tool
from ferrule.permissions.modes import Mode
from ferrule.sdk.tools import create_sdk_mcp_server, tool
from ferrule.server.guard import Guard
from ferrule.server.http import PATH, listen, serve_http
from ferrule.server.prompts import NoSuchPrompt, PromptArgument, PromptEntry
from ferrule.server.protocol import Desk

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _resource(uri: str, media_type: str, words: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": words}}


@tool("test_simple_text", "Say something.", {})
async def simple_text(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [_text("This is a simple text response for testing.")]}


@tool("test_image_content", "Show a picture.", {})
async def image_content(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [IMAGE]}


@tool("test_audio_content", "Play a sound.", {})
async def audio_content(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}]}


@tool("test_embedded_resource", "Hand a resource over.", {})
async def embedded_resource(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [_resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]}


@tool("test_multiple_content_types", "Hand several things over.", {})
async def multiple_content_types(args: dict[str, Any]) -> dict[str, Any]:
    resource = _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return {"content": [_text("Multiple content types test:"), IMAGE, resource]}


@tool("test_error_handling", "Fail.", {})
async def error_handling(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [_text("This tool intentionally returns an error for testing")], "is_error": True}


@tool(
    "json_schema_2020_12_tool",
    "Tool with JSON Schema 2020-12 features",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def json_schema(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [_text("ok")]}


@tool(
    "test_x_mcp_header",
    "Take a parameter that a header repeats.",
    {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, "required": ["region"]},
)
async def header(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [_text(args["region"])]}


@function_tool(name="test_tool_with_progress", effects=Effects.of())
async def with_progress(ctx: ToolContext) -> str:
    """Say how far it is."""
    for words in ("begun", "half way", "done"):
        ctx.report(Line(words))
    return "done"


class TestPrompts:
    """Prompts of plain text, as skills are."""

    def prompts(self) -> Sequence[PromptEntry]:
        arguments = tuple(PromptArgument(name=name, description="A word.", required=True) for name in ("arg1", "arg2"))
        return (
            PromptEntry(name="test_simple_prompt", description="A simple prompt."),
            PromptEntry(name="test_prompt_with_arguments", description="A prompt of two words.", arguments=arguments),
        )

    async def prompt(self, name: str, arguments: Mapping[str, str], /) -> str:
        match name:
            case "test_simple_prompt":
                return "This is a simple prompt for testing."
            case "test_prompt_with_arguments":
                return f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
            case _:
                raise NoSuchPrompt(f"There is no prompt named {name}.")


async def main() -> None:
    definitions = (
        simple_text,
        image_content,
        audio_content,
        embedded_resource,
        multiple_content_types,
        error_handling,
        json_schema,
        header,
    )
    own = create_sdk_mcp_server("conformance", tools=definitions)["instance"]
    with tempfile.TemporaryDirectory() as folder, listen("127.0.0.1", 0) as listening:
        settings = Settings(cwd=folder, state_folder=Path(folder) / "state", mode=Mode.BYPASS)
        tools = (*own.tools, with_progress)
        desk = Desk(
            lambda approver: open_session(settings, tools=tools, approver=approver, builtin=False),
            prompts=TestPrompts(),
        )
        guard = Guard(host="127.0.0.1", port=listening.getsockname()[1])
        print(f"listening at http://{guard.authority}{PATH}", file=sys.stderr, flush=True)
        await serve_http(desk, desk.server(name=own.name, version=own.version), listening, guard)


if __name__ == "__main__":
    asyncio.run(main())
