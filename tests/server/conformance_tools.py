"""The tools that the official conformance suite expects of a server and that ask nothing of the client."""

from __future__ import annotations

from typing import Any

from ferrule.core.content import Line
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.functions import tool as function_tool
from ferrule.sdk.tools import tool

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def said(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def resource(uri: str, media_type: str, words: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": words}}


@tool("test_simple_text", "Say something.", {})
async def simple_text(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [said("This is a simple text response for testing.")]}


@tool("test_image_content", "Show a picture.", {})
async def image_content(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [IMAGE]}


@tool("test_audio_content", "Play a sound.", {})
async def audio_content(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}]}


@tool("test_embedded_resource", "Hand a resource over.", {})
async def embedded_resource(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]}


@tool("test_multiple_content_types", "Hand several things over.", {})
async def multiple_content_types(args: dict[str, Any]) -> dict[str, Any]:
    embedded = resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return {"content": [said("Multiple content types test:"), IMAGE, embedded]}


@tool("test_error_handling", "Fail.", {})
async def error_handling(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [said("This tool intentionally returns an error for testing")], "is_error": True}


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
    return {"content": [said("ok")]}


@tool(
    "test_x_mcp_header",
    "Take a parameter that a header repeats.",
    {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, "required": ["region"]},
)
async def header(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [said(args["region"])]}


@function_tool(name="test_tool_with_progress", effects=Effects.of())
async def with_progress(ctx: ToolContext) -> str:
    """Say how far it is."""
    for words in ("begun", "half way", "done"):
        ctx.report(Line(words))
    return "done"


PLAIN_TOOLS = (
    simple_text,
    image_content,
    audio_content,
    embedded_resource,
    multiple_content_types,
    error_handling,
    json_schema,
    header,
)
