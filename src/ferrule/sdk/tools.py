"""Custom tools as an MCP server in the same process: `@tool` and `create_sdk_mcp_server`.

Names, shapes and semantics are those of the Claude Agent SDK: a handler is
given a dict and returns `{"content": [...], "is_error": ...}`; whatever goes
wrong is a result that says so.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import Parameter
from typing import Any, Literal, TypeAlias, TypedDict, cast

from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for

from ..core.calls import Refusal, Status
from ..core.content import Block, Document, Image, Text, plain_text
from ..core.context import ToolContext
from ..core.tool import DEFAULT_RESULT_LIMIT, Tool, ToolDefinitionError, ToolError, ToolSpec
from ..engine.pool import Registry
from ..mcp.config import InProcess, Relayed, ServerConfig
from ..mcp.naming import server_parts, tool_name
from .errors import CannotOpen
from .tool_schemas import QuickCheck, quick_check, schema_of

MOST_RESULT_CHARACTERS = 500_000


class HandlerResult(TypedDict, total=False):
    """What a handler returns. `is_error` makes it a failed call, whose text goes to the model."""

    content: list[dict[str, Any]]
    """Blocks as MCP has them: text, image, audio, resource, resource_link."""
    structuredContent: Any
    is_error: bool
    isError: bool


ToolHandler: TypeAlias = (
    Callable[[Any], Awaitable[HandlerResult | dict[str, Any]]]
    | Callable[[Any, ToolContext], Awaitable[HandlerResult | dict[str, Any]]]
)
"""Given the arguments; one that takes a second parameter without a default is given the context of the call too."""


@dataclass(frozen=True, slots=True)
class SdkMcpTool:
    """A handler with its description."""

    name: str
    description: str
    input_schema: Any
    handler: ToolHandler
    annotations: Any = None
    title: str = ""
    output_schema: Any = None
    """What `structuredContent` of its results must fit, in the forms of `input_schema`."""


class McpSdkServerConfig(TypedDict):
    """An entry of `mcp_servers` for a server in the same process."""

    type: Literal["sdk"]
    name: str
    instance: SdkServer


def tool(
    name: str,
    description: str,
    input_schema: Any,
    annotations: Any = None,
    *,
    title: str = "",
    output_schema: Any = None,
) -> Callable[[ToolHandler], SdkMcpTool]:
    """Make a tool of an async function that takes a dict.

    `input_schema` is `{"name": type}` with every name required, a TypedDict,
    or a JSON Schema. `Annotated[type, "words"]` describes a parameter.
    `annotations` are MCP's, as a mapping or an object, in either spelling.
    """

    def decorate(handler: ToolHandler) -> SdkMcpTool:
        return SdkMcpTool(name, description, input_schema, handler, annotations, title, output_schema)

    return decorate


def create_sdk_mcp_server(
    name: str, version: str = "1.0.0", tools: Iterable[SdkMcpTool] | None = None
) -> McpSdkServerConfig:
    """Raises `ToolDefinitionError` for a tool that cannot be called."""
    return {"type": "sdk", "name": name, "instance": SdkServer(name, version, tools or ())}


class SdkServer:
    """A named set of tools, for sessions of this process or to be served to others. It may change while they run."""

    def __init__(self, name: str, version: str, tools: Iterable[SdkMcpTool]) -> None:
        self.name = name
        self.version = version
        self._tools: dict[str, SdkTool] = {}
        self._disabled: set[str] = set()
        self._listeners: list[Callable[[], None]] = []
        for definition in tools:
            self.add(definition)

    @property
    def tools(self) -> tuple[SdkTool, ...]:
        """Those that are enabled."""
        return tuple(each for name, each in self._tools.items() if name not in self._disabled)

    def add(self, definition: SdkMcpTool) -> None:
        """Raises `ToolDefinitionError`, also for a name that is taken."""
        made = SdkTool(definition)
        if made.spec.name in self._tools:
            raise ToolDefinitionError(f"{self.name} has more than one tool named {made.name}.")
        self._change(lambda: self._tools.update({made.name: made}))

    def update(self, name: str, **changes: Any) -> None:
        """Other fields of its definition, `handler` and `description` for instance. Raises `ToolDefinitionError`."""
        made = SdkTool(replace(self._find(name).definition, name=name, **changes))
        _ = made.spec
        self._change(lambda: self._tools.update({name: made}))

    def remove(self, name: str) -> None:
        self._find(name)
        self._disabled.discard(name)
        self._change(lambda: self._tools.pop(name))

    def disable(self, name: str) -> None:
        self._find(name)
        self._change(lambda: self._disabled.add(name))

    def enable(self, name: str) -> None:
        self._find(name)
        self._change(lambda: self._disabled.discard(name))

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call a function for each change. Returns a function that ends it."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def _find(self, name: str) -> SdkTool:
        if name not in self._tools:
            raise ToolDefinitionError(f"{self.name} has no tool named {name}.")
        return self._tools[name]

    def _change(self, change: Callable[[], object]) -> None:
        change()
        for changed in tuple(self._listeners):
            changed()


@dataclass(frozen=True, slots=True)
class SdkOutput:
    """What a handler returned, with kinds of content that only the protocol knows."""

    wire_content: tuple[Mapping[str, Any], ...]
    structured: Any = None


class SdkTool(Tool[dict[str, Any], SdkOutput]):
    """Adapts a handler to the tool contract. Its effects are unknown: annotations are not effects."""

    def __init__(self, definition: SdkMcpTool, *, name: str | None = None) -> None:
        self.definition = definition
        self.name = name or definition.name
        self.description = definition.description
        self.hints: Mapping[str, Any] = _hints(definition.annotations)
        self.title = definition.title or str(self.hints.get("title") or "")
        self.result_limit = _result_limit(self.hints)
        self._handler: Callable[..., Awaitable[Any]] = definition.handler
        self._takes_context = _takes_context(definition.handler)

    def rename(self, name: str) -> SdkTool:
        """The same tool under another name, such as `mcp__server__tool`."""
        return SdkTool(self.definition, name=name)

    @cached_property
    def spec(self) -> ToolSpec:
        try:
            type(self._validator).check_schema(self._schema)
        except SchemaError as error:
            raise ToolDefinitionError(f"{self.name} has an invalid schema: {error.message}.") from None
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
        returned: object = await (self._handler(input, ctx) if self._takes_context else self._handler(input))
        if not isinstance(returned, Mapping):
            raise TypeError(f'a handler returned {type(returned).__name__}; return {{"content": [...]}}')
        returned = cast(HandlerResult, returned)
        content = tuple(cast(Sequence[Mapping[str, Any]], returned.get("content", ())))
        output = SdkOutput(content, returned.get("structuredContent"))
        if returned.get("is_error") or returned.get("isError"):
            raise ToolError(plain_text(self.to_model(output)))
        self._check_output(output.structured)
        return output

    def _check_output(self, structured: Any) -> None:
        validator = self._output_validator
        problem: ValidationError | None = None if validator is None else next(validator.iter_errors(structured), None)
        if problem is not None:
            raise ToolError(f"{self.name} returned structured content that does not fit its schema: {_words(problem)}.")

    def to_model(self, output: SdkOutput) -> tuple[Block, ...]:
        blocks = tuple(block for part in output.wire_content for block in _blocks(part))
        if not blocks and output.structured is not None:
            return (Text(json.dumps(output.structured, ensure_ascii=False, default=str)),)
        return blocks or (Text("(no output)"),)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return schema_of(self.definition.input_schema)

    @cached_property
    def _quick(self) -> QuickCheck | None:
        return quick_check(self._schema)

    def output_schema(self) -> Mapping[str, Any] | None:
        return self.structured_schema

    @cached_property
    def structured_schema(self) -> Mapping[str, Any] | None:
        given = self.definition.output_schema
        return None if given is None else schema_of(given)

    @cached_property
    def _output_validator(self) -> Validator | None:
        schema = self.structured_schema
        return None if schema is None else validator_for(schema, Draft202012Validator)(schema)

    @cached_property
    def _validator(self) -> Validator:
        return validator_for(self._schema, Draft202012Validator)(self._schema)


class OwnServer:
    """Its tools under the names that models use, updated as they change."""

    def __init__(self, server: SdkServer, part: str | None, registry: Registry) -> None:
        """`part` is its part of the names of its tools; without one they keep their names."""
        self._server = server
        self._part = part
        self._registry = registry
        self._tools: dict[str, tuple[SdkTool, SdkTool]] = {}
        self._renew()
        self._unlisten: Callable[[], None] | None = server.listen(self._renew)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def leave(self) -> None:
        """Stop following its changes."""
        unlisten, self._unlisten = self._unlisten, None
        if unlisten is not None:
            unlisten()

    def _renew(self) -> None:
        """Each with the tool that it was made from, so that an unchanged one is not replaced."""
        before, self._tools = self._tools, {}
        for tool in self._server.tools:
            name = tool.name if self._part is None else tool_name(self._part, tool.name, self._tools)
            known = before.get(name)
            self._tools[name] = known if known and known[0] is tool else (tool, tool.rename(name))
        gone = [name for name, pair in before.items() if self._tools.get(name) is not pair]
        come = [pair[1] for name, pair in self._tools.items() if before.get(name) is not pair]
        self._registry.replace_remote(gone, come)


def join_own_servers(servers: Mapping[str, Any], registry: Registry) -> dict[str, OwnServer]:
    """Those made by `create_sdk_mcp_server`, each with its tools in the registry."""
    parts = server_parts(servers)
    return {
        name: OwnServer(server, parts[name], registry)
        for name, server in servers.items()
        if isinstance(server, SdkServer)
    }


def in_process_servers(servers: Mapping[str, Any]) -> Iterator[ServerConfig]:
    """Server objects of the `mcp` package, which are used like any server."""
    parts = server_parts(servers)
    for name, server in servers.items():
        if server is None:
            raise CannotOpen(f"`mcp_servers.{name}` has no `instance`. Make it with create_sdk_mcp_server.")
        if not isinstance(server, SdkServer):
            transport = server if isinstance(server, Relayed) else InProcess(server)
            yield ServerConfig(name=name, transport=transport, part=parts[name], origin="this program")


def _takes_context(handler: Callable[..., Any]) -> bool:
    """
    >>> _takes_context(lambda args: args), _takes_context(lambda args, ctx: args), _takes_context(lambda args, n=1: n)
    (False, True, False)
    """
    try:
        parameters = inspect.signature(handler).parameters.values()
    except ValueError:  # some that are written in C do not say
        return False
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in positional and one.default is Parameter.empty for one in parameters) > 1


def _blocks(part: Mapping[str, Any]) -> tuple[Block, ...]:
    """The part of a result that a model can be shown; a binary resource is left out."""
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
            raise TypeError(f"a handler returned invalid content: {str(dict(part))[:200]}")


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
