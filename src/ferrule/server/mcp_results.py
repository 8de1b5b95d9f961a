"""Tools and outcomes as the protocol writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, assert_never, cast, runtime_checkable
from urllib.parse import quote

from mcp import types
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from ..core.calls import ToolOutcome
from ..core.content import Block, Document, Image, Text, encodable
from ..core.tool import AnyTool

_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)
_CONTENT: TypeAdapter[list[types.ContentBlock]] = TypeAdapter(list[types.ContentBlock])


@runtime_checkable
class HasWireContent(Protocol):
    """An output in the protocol's own form, with kinds of content that the engine does not have."""

    @property
    def wire_content(self) -> Sequence[Mapping[str, Any]]: ...

    @property
    def structured(self) -> Any: ...


@runtime_checkable
class HasHints(Protocol):
    """A tool whose author wrote the protocol's annotations, and the schema of its structured content."""

    @property
    def hints(self) -> Mapping[str, Any]: ...

    @property
    def structured_schema(self) -> Mapping[str, Any] | None: ...


def tool_on_wire(tool: AnyTool) -> types.Tool:
    spec = tool.spec
    return types.Tool(
        name=spec.name,
        title=spec.title if spec.title != spec.name else None,
        description=spec.description,
        input_schema=dict(spec.input_schema),
        output_schema=_output_schema(tool),
        annotations=_annotations(tool),
    )


def _output_schema(tool: AnyTool) -> dict[str, Any] | None:
    schema = tool.structured_schema if isinstance(tool, HasHints) else None
    return dict(schema) if schema is not None else None


def _annotations(tool: AnyTool) -> types.ToolAnnotations | None:
    """What is true for every input. Nothing is said about tools whose calls differ."""
    if isinstance(tool, HasHints):
        return types.ToolAnnotations.model_validate(tool.hints) if tool.hints else None
    return types.ToolAnnotations(read_only_hint=True, destructive_hint=False) if tool.only_reads else None


def result_on_wire(tool: AnyTool | None, outcome: ToolOutcome) -> types.CallToolResult:
    """`tool` is the one that was called, `None` for an unknown name."""
    return types.CallToolResult(
        content=[*_content(tool, outcome), *(types.TextContent(text=encodable(said)) for said in outcome.messages)],
        structured_content=_structured_output(tool, outcome),
        is_error=outcome.is_error,
        _meta=dict(outcome.meta) if outcome.meta else None,
    )


def _content(tool: AnyTool | None, outcome: ToolOutcome) -> list[types.ContentBlock]:
    output = outcome.output
    if isinstance(output, HasWireContent) and output.wire_content and _stands_as_it_was(tool, outcome):
        return _CONTENT.validate_python(output.wire_content)
    return [block_on_wire(block) for block in outcome.content]


def block_on_wire(block: Block) -> types.ContentBlock:
    match block:
        case Text(text):
            return types.TextContent(text=encodable(text))
        case Image(media_type, data):
            return types.ImageContent(data=data, mime_type=media_type)
        case Document(media_type, data) if media_type.startswith("audio/"):
            return types.AudioContent(data=data, mime_type=media_type)
        case Document(media_type, data, title):
            uri = f"ferrule://documents/{quote(encodable(title)) or 'untitled'}"
            return types.EmbeddedResource(
                resource=types.BlobResourceContents(uri=uri, mime_type=media_type, blob=data),
            )
        case _:
            assert_never(block)


def _structured_output(tool: AnyTool | None, outcome: ToolOutcome) -> dict[str, Any] | None:
    """The output as JSON, where the tool declares its type or gives it in that form, and it is an object."""
    if tool is None or not _stands_as_it_was(tool, outcome):
        return None
    output = outcome.output.structured if isinstance(outcome.output, HasWireContent) else outcome.output
    if output is outcome.output and tool.output_model is None:
        return None
    try:
        data = _ANYTHING.dump_python(output, mode="json")
    except (PydanticSerializationError, ValueError, RecursionError):
        return None
    return cast(dict[str, Any], data) if isinstance(data, dict) else None


def _stands_as_it_was(tool: AnyTool | None, outcome: ToolOutcome) -> bool:
    """Output that was truncated, or changed by a step after the call, is not sent in full here."""
    return tool is not None and not outcome.is_error and outcome.content == tool.to_model(outcome.output)
