"""Tools of one's own as an MCP server in the same process: `@tool` and `create_sdk_mcp_server`.

Names, shapes and semantics are those of the Claude Agent SDK: a handler is
given a dict and returns `{"content": [...], "is_error": ...}`; whatever goes
wrong is a result that says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypedDict, cast

from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for

from ..core.calls import Refusal, Status
from ..core.content import Block, Document, Image, Text, plain_text
from ..core.context import ToolContext
from ..core.tool import DEFAULT_RESULT_LIMIT, Tool, ToolDefinitionError, ToolError, ToolSpec
from .schemas import QuickCheck, quick_check, schema_of

MOST_RESULT_CHARACTERS = 500_000


class HandlerResult(TypedDict, total=False):
    """What a handler returns. `is_error` makes it a failed call, whose text the model is told."""

    content: list[dict[str, Any]]
    """Blocks as MCP has them: text, image, audio, resource, resource_link."""
    is_error: bool
    isError: bool


ToolHandler: TypeAlias = Callable[[Any], Awaitable[HandlerResult | dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class SdkMcpTool:
    """A handler with what is told about it."""

    name: str
    description: str
    input_schema: Any
    handler: ToolHandler
    annotations: Any = None


class McpSdkServerConfig(TypedDict):
    """An entry of `mcp_servers` for a server in the same process."""

    type: Literal["sdk"]
    name: str
    instance: SdkServer


def tool(
    name: str, description: str, input_schema: Any, annotations: Any = None
) -> Callable[[ToolHandler], SdkMcpTool]:
    """Make a tool of an async function that takes a dict.

    `input_schema` is `{"name": type}` with every name required, a TypedDict,
    or a JSON Schema. `Annotated[type, "words"]` describes a parameter.
    `annotations` are MCP's, as a mapping or an object, in either spelling.
    """

    def decorate(handler: ToolHandler) -> SdkMcpTool:
        return SdkMcpTool(name, description, input_schema, handler, annotations)

    return decorate


def create_sdk_mcp_server(
    name: str, version: str = "1.0.0", tools: Iterable[SdkMcpTool] | None = None
) -> McpSdkServerConfig:
    """Raises `ToolDefinitionError` for a tool that nobody could call."""
    return {"type": "sdk", "name": name, "instance": SdkServer(name, version, tools or ())}


class SdkServer:
    """A named set of tools, for a session of this process or to be served to others."""

    def __init__(self, name: str, version: str, tools: Iterable[SdkMcpTool]) -> None:
        self.name = name
        self.version = version
        self.tools: tuple[SdkTool, ...] = tuple(SdkTool(definition) for definition in tools)
        names = [each.spec.name for each in self.tools]
        if twice := {each for each in names if names.count(each) > 1}:
            raise ToolDefinitionError(f"{name} has more than one tool named {', '.join(sorted(twice))}.")


@dataclass(frozen=True, slots=True)
class SdkOutput:
    """What a handler returned, with kinds of content that only the protocol knows."""

    wire_content: tuple[Mapping[str, Any], ...]


class SdkTool(Tool[dict[str, Any], SdkOutput]):
    """A handler behind the tool contract. Its effects are unknown: annotations are words, not effects."""

    def __init__(self, definition: SdkMcpTool, *, name: str | None = None) -> None:
        self.definition = definition
        self.name = name or definition.name
        self.description = definition.description
        self.hints: Mapping[str, Any] = _hints(definition.annotations)
        self.title = str(self.hints.get("title") or "")
        self.result_limit = _result_limit(self.hints)
        self._handler = definition.handler

    def renamed(self, name: str) -> SdkTool:
        """The same tool under another name, such as `mcp__server__tool`."""
        return SdkTool(self.definition, name=name)

    @cached_property
    def spec(self) -> ToolSpec:
        try:
            type(self._validator).check_schema(self._schema)
        except SchemaError as error:
            raise ToolDefinitionError(f"{self.name} has a schema that is none: {error.message}.") from None
        return super().spec

    def guide(self) -> str:
        return self.description

    def input_schema(self) -> Mapping[str, Any]:
        return self._schema

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        if self._quick is not None and self._quick.accepts(given):
            return given
        problem: ValidationError | None = next(iter(self._validator.iter_errors(given)), None)
        if problem is not None:
            raise Refusal(Status.INVALID, f"{self.name} cannot take these arguments: {_words(problem)}.")
        return given

    async def call(self, input: dict[str, Any], ctx: ToolContext) -> SdkOutput:
        returned = cast(object, await self._handler(input))
        if not isinstance(returned, Mapping):
            raise TypeError(f'a handler returned {type(returned).__name__}; return {{"content": [...]}}')
        returned = cast(HandlerResult, returned)
        content = tuple(cast(Sequence[Mapping[str, Any]], returned.get("content", ())))
        output = SdkOutput(content)
        if returned.get("is_error") or returned.get("isError"):
            raise ToolError(plain_text(self.to_model(output)))
        return output

    def to_model(self, output: SdkOutput) -> tuple[Block, ...]:
        blocks = tuple(block for part in output.wire_content for block in _blocks(part))
        return blocks or (Text("(no output)"),)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return schema_of(self.definition.input_schema)

    @cached_property
    def _quick(self) -> QuickCheck | None:
        return quick_check(self._schema)

    @cached_property
    def _validator(self) -> Validator:
        return validator_for(self._schema, Draft202012Validator)(self._schema)


def _blocks(part: Mapping[str, Any]) -> tuple[Block, ...]:
    """What a model can be shown of one part; a resource in bytes has no words, and is left out."""
    match part:
        case {"type": "text", "text": str(text)}:
            return (Text(text),)
        case {"type": "image", "data": str(data), "mimeType": str(media_type)}:
            return (Image(media_type, data),)
        case {"type": "audio", "data": str(data), "mimeType": str(media_type)}:
            return (Document(media_type, data),)
        case {"type": "resource", "resource": {"text": str(text)}}:
            return (Text(text),)
        case {"type": "resource", "resource": {"blob": str()}}:
            return ()
        case {"type": "resource_link", "uri": str(uri)}:
            said = (part.get("name"), uri, part.get("description"))
            return (Text("\n".join(str(words) for words in said if words)),)
        case _:
            raise TypeError(f"a handler returned content that is none: {str(dict(part))[:200]}")


def _hints(annotations: Any) -> Mapping[str, Any]:
    if annotations is None:
        return {}
    given: Any = annotations.model_dump(exclude_none=True) if hasattr(annotations, "model_dump") else annotations
    return {_camel(key): value for key, value in cast(Mapping[str, Any], given).items()}


def _camel(name: str) -> str:
    """
    >>> _camel("read_only_hint"), _camel("readOnlyHint")
    ('readOnlyHint', 'readOnlyHint')
    """
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _result_limit(hints: Mapping[str, Any]) -> int:
    wanted = hints.get("maxResultSizeChars")
    return min(wanted, MOST_RESULT_CHARACTERS) if isinstance(wanted, int) and wanted > 0 else DEFAULT_RESULT_LIMIT


def _words(problem: ValidationError) -> str:
    where = ".".join(str(step) for step in problem.absolute_path)
    said = problem.message if len(problem.message) <= 300 else f"{problem.message[:299]}…"
    return f"`{where}`: {said}" if where else said
