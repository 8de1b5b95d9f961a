"""Answers the protocol's requests for each client."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from mcp import types
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from .._version import __version__
from ..permissions.approvals import AnswerScope
from .caller import Caller, Callers, Connected, Context, NotAnswered, Returning
from .connected_client import Client, OpenSession, Report, Tell
from .sources import (
    Completing,
    NoPrompts,
    NoResources,
    NoSuchPrompt,
    NoSuchResource,
    PromptSource,
    ResourceSource,
)

RESOURCE_NOT_FOUND = -32002
"""As the revisions before 2026-07-28 write it."""
ANSWER_SECONDS: Final = 600.0
"""How long a person behind a client may take to answer."""
MOST_COMPLETIONS: Final = 100
"""What the protocol allows in one answer."""

_Page: TypeAlias = types.PaginatedRequestParams | None
_KEY, _FOLLOWED, _LEVEL = "ferrule", "ferrule-followed", "ferrule-level"


class Desk:
    """Answers requests. A client with a connection has a session of its own for as long as that lasts;

    stateless requests, as in revision 2026-07-28, share one:
    they do not identify their sender.
    """

    def __init__(
        self,
        open_session: OpenSession,
        *,
        prompts: PromptSource | None = None,
        resources: ResourceSource | None = None,
        callers: Callers | None = None,
        one_client: bool = False,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Custom tools ask and notify their clients through `callers`.

        `one_client` says that all requests come from one client, which
        started us: an "always" of theirs is kept beyond the session. Of
        several clients, one may not answer for another.
        """
        self._open = open_session
        self._prompts = prompts or NoPrompts()
        self._resources = resources or NoResources()
        self._callers = callers or Callers()
        self._one_client = one_client
        self._answer_seconds = answer_seconds
        self._clients: set[Client] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._shared: Client | None = None
        self._listeners = InMemorySubscriptionBus()

    def server(self, *, name: str = "ferrule", version: str = __version__, instructions: str | None = None) -> Server:
        server = _Announcing(
            name,
            version=version,
            instructions=instructions,
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=ListenHandler(self._listeners),
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete if isinstance(self._prompts, Completing) else None,
        )
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_level)
        server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=name))
        return server

    @property
    def open_clients(self) -> int:
        return len(self._clients)

    async def close(self) -> None:
        for client in tuple(self._clients):
            await self._leave(client)
        if self._leaving:
            await asyncio.wait(self._leaving)

    # Who asks

    def _client(self, ctx: Context) -> Client:
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return self._of_requests_that_stand_alone()
        connection = _connection(ctx)
        client: Client | None = connection.state.get(_KEY)
        if client is None:
            client = self._new_client(_Listener(connection).tell, AnswerScope.ONCE, AnswerScope.SESSION)
            connection.state[_KEY] = client
            connection.exit_stack.push_async_callback(self._leave, client)
        return client

    def _caller(self, ctx: Context, params: types.InputResponseRequestParams) -> Caller:
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return Returning(ctx, params.input_responses, params.request_state)
        level = _connection(ctx).state.get(_LEVEL, "debug")
        return Connected(ctx, level=level, answer_seconds=self._answer_seconds)

    def _of_requests_that_stand_alone(self) -> Client:
        if self._shared is None:
            self._shared = self._new_client(self._listeners.publish, AnswerScope.ONCE)
        return self._shared

    def _new_client(self, tell: Tell, *reaches: AnswerScope) -> Client:
        reaches = tuple(AnswerScope) if self._one_client else reaches
        client = Client(self._open, tell, self._prompts, self._callers, reaches)
        self._clients.add(client)
        return client

    async def _leave(self, client: Client) -> None:
        """In a separate task: the package limits its time, and what a client started must end."""
        if client in self._clients:
            self._clients.remove(client)
            leaving = asyncio.create_task(client.close())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            await asyncio.wait((leaving,))

    # Tools

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        return self._of_requests_that_stand_alone().input_schema(name)

    async def _list_tools(self, ctx: Context, page: _Page) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await self._client(ctx).tools())

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        caller = self._caller(ctx, params)
        arguments = params.arguments or {}
        result = await self._client(ctx).call(params.name, arguments, caller=caller, report=_report(ctx))
        return _outstanding(caller, failed=result.is_error) or result

    # Resources

    async def _list_resources(self, ctx: Context, page: _Page) -> types.ListResourcesResult:
        left = self._client(ctx).resources.list_current()
        return types.ListResourcesResult(resources=[*self._resources.resources(), *left])

    async def _list_templates(self, ctx: Context, page: _Page) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(self._resources.templates()))

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        uri, caller = str(params.uri), self._caller(ctx, params)
        try:
            left = self._client(ctx).resources.read(uri)
            contents = [left] if left is not None else await self._resources.read(uri, caller)
        except NoSuchResource as reason:
            modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
            raise MCPError(code, str(reason), {"uri": uri}) from None
        except NotAnswered as reason:
            return _input_required(caller, reason)
        return types.ReadResourceResult(contents=list(contents))

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._client(ctx)
        _followed_resources(_connection(ctx)).add(str(params.uri))
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        _followed_resources(_connection(ctx)).discard(str(params.uri))
        return types.EmptyResult()

    # Prompts

    async def _list_prompts(self, ctx: Context, page: _Page) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=list(self._client(ctx).prompts()))

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        caller = self._caller(ctx, params)
        try:
            messages = await self._prompts.prompt(params.name, params.arguments or {}, caller)
        except NoSuchPrompt as reason:
            raise MCPError(types.INVALID_PARAMS, str(reason)) from None
        except NotAnswered as reason:
            return _input_required(caller, reason)
        return types.GetPromptResult(messages=list(messages))

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        assert isinstance(self._prompts, Completing), "only asked if it exists"
        values: Sequence[str] = ()
        if isinstance(params.ref, types.PromptReference):
            values = await self._prompts.completions(params.ref.name, params.argument.name, params.argument.value)
        shown, total = list(values[:MOST_COMPLETIONS]), len(values)
        return types.CompleteResult(completion=types.Completion(values=shown, total=total, has_more=total > len(shown)))


class _Announcing(Server):
    """Says in the handshake that lists may change, which the package leaves to each transport."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **named: Any
    ) -> InitializationOptions:
        changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(notification_options or changes, *more, **named)


class _Listener:
    """Notifies a connection of changes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def tell(self, event: ServerEvent) -> None:
        match event:
            case ResourceUpdated(uri):
                if uri in _followed_resources(self._connection):
                    await self._connection.send_resource_updated(uri)
            case ResourcesListChanged():
                await self._connection.send_resource_list_changed()
            case PromptsListChanged():
                await self._connection.send_prompt_list_changed()
            case _:
                await self._connection.send_tool_list_changed()


async def _set_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    _connection(ctx).state[_LEVEL] = params.level
    return types.EmptyResult()


def _connection(ctx: Context) -> Connection:
    """What outlives a request. The package has its state for servers to use, and no public way to it yet."""
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage]


def _followed_resources(connection: Connection) -> set[str]:
    return connection.state.setdefault(_FOLLOWED, set())


def _outstanding(caller: Caller, *, failed: bool) -> types.InputRequiredResult | None:
    return caller.outstanding(failed=failed) if isinstance(caller, Returning) else None


def _input_required(caller: Caller, reason: NotAnswered) -> types.InputRequiredResult:
    """What the client must answer before a result. Raises `MCPError` if it will not answer more."""
    outstanding = _outstanding(caller, failed=True)
    if outstanding is None:
        raise MCPError(types.INVALID_REQUEST, str(reason)) from None
    return outstanding


def _report(ctx: Context) -> Report:
    """Skips a client that did not ask for it."""

    async def report(told: float, words: str) -> None:
        await ctx.session.report_progress(told, None, words)

    return report
