"""The protocol's requests, answered for whichever client sent them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias

from mcp import types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from .._version import __version__
from .asking import Elicitation, InputRequired, can_be_asked
from .client import Client, OpenSession, Report
from .prompts import NoPrompts, NoSuchPrompt, PromptEntry, PromptSource
from .resources import NoSuchResource

RESOURCE_NOT_FOUND = -32002
"""As the revisions before 2026-07-28 write it."""

_Context: TypeAlias = ServerRequestContext[Any, Any]
_Page: TypeAlias = types.PaginatedRequestParams | None
_KEY = "ferrule"


class Desk:
    """Answers requests. A client with a connection has a session of its own for as long as that lasts;

    requests that stand alone, as revision 2026-07-28 writes them, share one:
    nothing in them tells one sender from another.
    """

    def __init__(self, open_session: OpenSession, *, prompts: PromptSource | None = None) -> None:
        self._open = open_session
        self._prompts = prompts or NoPrompts()
        self._clients: set[Client] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._shared: Client | None = None
        self._listeners = InMemorySubscriptionBus()

    def server(self, *, name: str = "ferrule", version: str = __version__, instructions: str | None = None) -> Server:
        return _Announcing(
            name,
            version=version,
            instructions=instructions,
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=_no_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=ListenHandler(self._listeners),
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    @property
    def open_clients(self) -> int:
        return len(self._clients)

    async def close(self) -> None:
        for client in tuple(self._clients):
            await self._leave(client)
        if self._leaving:
            await asyncio.wait(self._leaving)

    # Who asks

    def _client(self, ctx: _Context) -> Client:
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return self._of_requests_that_stand_alone()
        connection = _connection(ctx)
        client: Client | None = connection.state.get(_KEY)
        if client is None:
            client = connection.state[_KEY] = Client(self._open, _Caller(connection).tell)
            self._clients.add(client)
            connection.exit_stack.push_async_callback(self._leave, client)
        return client

    def _of_requests_that_stand_alone(self) -> Client:
        if self._shared is None:
            self._shared = Client(self._open, self._listeners.publish)
            self._clients.add(self._shared)
        return self._shared

    async def _leave(self, client: Client) -> None:
        """In a task of its own: the package gives it only so long, and what a client started must end."""
        if client in self._clients:
            self._clients.remove(client)
            leaving = asyncio.create_task(client.close())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            await asyncio.wait((leaving,))

    # Tools

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        return self._of_requests_that_stand_alone().input_schema(name)

    async def _list_tools(self, ctx: _Context, page: _Page) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._client(ctx).tools())

    async def _call_tool(
        self, ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        line = _line(ctx, params)
        arguments = params.arguments or {}
        result = await self._client(ctx).call(params.name, arguments, line=line, report=_report(ctx))
        if isinstance(line, InputRequired) and line.questions:
            return types.InputRequiredResult(input_requests=line.questions)
        return result

    # Resources

    async def _list_resources(self, ctx: _Context, page: _Page) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=self._client(ctx).resources.listed())

    async def _read_resource(self, ctx: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            return types.ReadResourceResult(contents=[self._client(ctx).resources.read(uri)])
        except NoSuchResource as reason:
            modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
            raise MCPError(code, str(reason), {"uri": uri}) from None

    async def _subscribe(self, ctx: _Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._client(ctx)
        _followed(_connection(ctx)).add(str(params.uri))
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: _Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        _followed(_connection(ctx)).discard(str(params.uri))
        return types.EmptyResult()

    # Prompts

    async def _list_prompts(self, ctx: _Context, page: _Page) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[_prompt_on_wire(entry) for entry in self._prompts.prompts()])

    async def _get_prompt(self, ctx: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        try:
            text = await self._prompts.prompt(params.name, params.arguments or {})
        except NoSuchPrompt as reason:
            raise MCPError(types.INVALID_PARAMS, str(reason)) from None
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=types.TextContent(text=text))])


class _Announcing(Server):
    """Says in the handshake that lists may change, which the package leaves to each transport."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **named: Any
    ) -> InitializationOptions:
        changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(notification_options or changes, *more, **named)


class _Caller:
    """Tells a connection what has changed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def tell(self, event: ServerEvent) -> None:
        match event:
            case ResourceUpdated(uri):
                if uri in _followed(self._connection):
                    await self._connection.send_resource_updated(uri)
            case ResourcesListChanged():
                await self._connection.send_resource_list_changed()
            case PromptsListChanged():
                await self._connection.send_prompt_list_changed()
            case _:
                await self._connection.send_tool_list_changed()


async def _no_templates(ctx: _Context, page: _Page) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])


def _connection(ctx: _Context) -> Connection:
    """What outlives a request. The package has its state for servers to use, and no public way to it yet."""
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage]


def _followed(connection: Connection) -> set[str]:
    return connection.state.setdefault(f"{_KEY}-followed", set())


def _line(ctx: _Context, params: types.CallToolRequestParams) -> Elicitation | InputRequired | None:
    if not can_be_asked(ctx.session.client_capabilities):
        return None
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return InputRequired(params.input_responses)
    return Elicitation(ctx) if ctx.session.can_send_request else None


def _report(ctx: _Context) -> Report:
    """Says nothing to a client that did not ask for it."""

    async def report(told: float, words: str) -> None:
        await ctx.session.report_progress(told, None, words)

    return report


def _prompt_on_wire(entry: PromptEntry) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=one.name, description=one.description or None, required=one.required)
        for one in entry.arguments
    ]
    return types.Prompt(
        name=entry.name,
        title=entry.title or None,
        description=entry.description or None,
        arguments=arguments or None,
    )
