"""What a server offers, from the package's types to plain data. Imported through `late.py` only."""

from __future__ import annotations

import json

from mcp import types

from .listing import PromptInfo, ResourceInfo, ToolInfo


def tool_info(tool: types.Tool) -> ToolInfo:
    hints = tool.annotations
    return ToolInfo(
        name=tool.name,
        title=tool.title or (hints.title if hints else None) or "",
        description=tool.description or "",
        schema=tool.input_schema,
        read_only=bool(hints and hints.read_only_hint),
        meta=json.loads(json.dumps(tool.meta)) if tool.meta else None,
    )


def prompt_info(prompt: types.Prompt) -> PromptInfo:
    arguments = tuple((argument.name, bool(argument.required)) for argument in prompt.arguments or ())
    return PromptInfo(
        name=prompt.name, title=prompt.title or "", description=prompt.description or "", arguments=arguments
    )


def resource_info(one: types.Resource) -> ResourceInfo:
    return ResourceInfo(
        uri=one.uri,
        name=one.title or one.name,
        description=one.description or "",
        media_type=one.mime_type or "",
        size=one.size,
    )


def template_info(one: types.ResourceTemplate) -> ResourceInfo:
    return ResourceInfo(
        uri=one.uri_template,
        name=one.title or one.name,
        description=one.description or "",
        media_type=one.mime_type or "",
        is_template=True,
    )
