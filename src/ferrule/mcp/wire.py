"""The protocol itself, through the official package: connections out, plain data back.

The package takes seconds to load, so nobody imports this module but `lazy_imports.py`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final, TypeVar, assert_never, cast

import httpx2
from mcp import types
from mcp.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from pydantic import ValidationError

from .._version import __version__
from ..host.processes.child_environment import child_environment
from .callbacks import Hooks, OnProgress
from .config import InProcess, Relayed, Remote, ServerConfig, Stdio
from .listing import PromptInfo, ResourceInfo, ServerListing, ToolInfo
from .oauth import authorisation
from .server_process import ErrorLog
from .streams import RelayTransport, StdioTransport, WatchedStream

SECONDS: Final = 10.0


class BadHeaders(Exception):
    """The command returned no headers. The message says why."""


async def further_headers(remote: Remote) -> dict[str, str]:
    """Raises `BadHeaders`."""
    if remote.headers_helper is None:
        return {}
    process = await asyncio.create_subprocess_shell(
        remote.headers_helper,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(os.environ),
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(SECONDS):
            printed, _ = await process.communicate()
    except TimeoutError:
        raise BadHeaders(f"`headersHelper` took longer than {SECONDS:g} seconds") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
    if process.returncode:
        raise BadHeaders(f"`headersHelper` ended with exit code {process.returncode}")
    return _parse(printed)


def _parse(printed: bytes) -> dict[str, str]:
    try:
        found: Any = json.loads(printed)
    except ValueError:
        found = None
    headers = cast(dict[str, Any], found) if isinstance(found, dict) else None
    if headers is None or not all(isinstance(value, str) for value in headers.values()):
        raise BadHeaders("`headersHelper` did not print a JSON object of texts")
    return headers


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


log = logging.getLogger(__name__)
N = TypeVar("N", types.Tool, types.Prompt)

MOST_PAGES: Final = 100
"""The most pages of a list: a server whose list never ends is not followed further."""
CONNECT_SECONDS: Final = 30.0
LONGEST_SILENCE: Final = 3 * 3600.0
"""Seconds without a byte of an answer over HTTP. Calls have time limits of their own, which are shorter."""


class Link:
    """An open connection."""

    def __init__(self, client: Client, server: str) -> None:
        self._client = client
        self._server = server

    @property
    def protocol(self) -> str:
        return self._client.protocol_version

    @property
    def instructions(self) -> str:
        return self._client.instructions or ""

    @property
    def has_resources(self) -> bool:
        return self._client.server_capabilities.resources is not None

    async def listing(self) -> ServerListing:
        offers = self._client.server_capabilities
        tools: list[types.Tool] = []
        prompts: list[types.Prompt] = []
        if offers.tools is not None:
            async for page in _pages(self._client.list_tools):
                tools += page.tools
        if offers.prompts is not None:
            try:
                async for page in _pages(self._client.list_prompts):
                    prompts += page.prompts
            except (MCPError, ValidationError) as error:
                if is_closed(error):
                    raise
                log.warning("%s: its prompts are not known: %s", self._server, in_words(error))
        return ServerListing(
            tuple(tool_info(tool) for tool in _each_once(tools) if _is_called_plainly(tool)),
            tuple(prompt_info(prompt) for prompt in _each_once(prompts)),
        )

    async def call(self, name: str, arguments: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        return _plain(await self._client.call_tool(name, dict(arguments), progress_callback=on_progress))

    async def resources(self) -> tuple[ResourceInfo, ...]:
        found: list[ResourceInfo] = []
        async for page in _pages(self._client.list_resources):
            found += map(resource_info, page.resources)
        try:
            async for page in _pages(self._client.list_resource_templates):
                found += map(template_info, page.resource_templates)
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND:  # few servers have templates
                raise
        return tuple(found)

    async def read(self, uri: str) -> dict[str, Any]:
        return _plain(await self._client.read_resource(uri))

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        return _plain(await self._client.get_prompt(name, dict(arguments)))

    async def follow_changes(self, hooks: Hooks) -> None:
        """Until the server ends it. Older servers report changes by themselves."""
        if self.protocol < "2026-07-28":
            return
        changes = self._client.listen(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)
        async with changes as events:
            async for event in events:
                kind = type(event).__name__.removesuffix("ListChanged").lower()
                if kind in ("tools", "prompts", "resources"):
                    hooks.changed(kind)


@asynccontextmanager
async def connect(config: ServerConfig, hooks: Hooks, errors: ErrorLog) -> AsyncGenerator[Link]:
    """An initialized connection. Entered and left in the same task."""

    async def on_message(message: IncomingMessage) -> None:
        match message:
            case types.ToolListChangedNotification():
                hooks.changed("tools")
            case types.PromptListChangedNotification():
                hooks.changed("prompts")
            case types.ResourceListChangedNotification():
                hooks.changed("resources")
            case _:
                pass

    async def on_elicitation(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        assert hooks.elicit is not None, "only asked if it exists"
        answer = await hooks.elicit(params.model_dump(by_alias=True, mode="json", exclude_none=True))
        return types.ElicitResult.model_validate(answer)

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        where = f"{params.logger}: " if params.logger else ""
        data = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
        errors.write(f"[{params.level}] {where}{data}\n".encode("utf-8", "replace"))

    async def on_roots(context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in hooks.roots]})

    client = Client(
        _transport(config, hooks, errors),
        message_handler=on_message,
        logging_callback=on_log,
        elicitation_callback=on_elicitation if hooks.elicit else None,
        list_roots_callback=on_roots if hooks.roots else None,
        client_info=types.Implementation(name="ferrule", version=__version__),
        mode="legacy" if isinstance(config.transport, Relayed) else hooks.negotiation,
        cache=None,
    )
    async with client:
        yield Link(client, config.name)


def in_words(error: BaseException) -> str:
    """What went wrong, without a traceback: the first cause of a group, or its type if it has no message."""
    while isinstance(error, BaseExceptionGroup):
        error = cast(BaseExceptionGroup[BaseException], error).exceptions[0]
    if isinstance(error, httpx2.HTTPStatusError):
        return f"it answered with HTTP status {error.response.status_code}"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"it does not follow the protocol: `{place}`: {first['msg']}"
    words = " ".join(str(error).split())[:500].rstrip(".")
    return words or type(error).__name__


def code_of(error: BaseException) -> int | None:
    """The protocol's code of a server's error."""
    return error.code if isinstance(error, MCPError) else None


def pages_of(error: BaseException) -> tuple[Mapping[str, Any], ...]:
    """Those that a person has to open first, if the server says so."""
    if not isinstance(error, MCPError) or error.code != types.URL_ELICITATION_REQUIRED:
        return ()
    try:
        return tuple(_plain(page) for page in UrlElicitationRequiredError.from_error(error.error).elicitations)
    except (ValueError, TypeError, AttributeError):
        return ()  # it asks for something, and does not say for what


def is_closed(error: BaseException) -> bool:
    """Whether the package says so. Its number for it is one that servers use for anything."""
    return code_of(error) == types.CONNECTION_CLOSED and str(error) == "Connection closed"


def is_stale(error: BaseException) -> bool:
    """Whether a server over HTTP has forgotten the session, as it does after a restart."""
    return code_of(error) == types.INVALID_REQUEST and "Session terminated" in str(error)


def _transport(config: ServerConfig, hooks: Hooks, errors: ErrorLog) -> Any:
    match config.transport:
        case Stdio() as stdio:
            return StdioTransport(stdio, hooks, errors)
        case Remote() as remote:
            return _watch(_remote(config.name, remote, hooks), hooks)
        case InProcess(server):
            return server
        case Relayed() as relayed:
            return RelayTransport(relayed, hooks)
        case _:
            assert_never(config.transport)


@asynccontextmanager
async def _remote(name: str, remote: Remote, hooks: Hooks) -> AsyncGenerator[Any]:
    headers = {**(remote.headers or {}), **await further_headers(remote)}
    signed = any(key.lower() == "authorization" for key in headers)
    auth = None if signed else authorisation(name, remote, hooks.tokens, hooks.sign_in)
    if remote.kind == "sse":
        async with sse_client(
            remote.url, headers=headers, timeout=CONNECT_SECONDS, sse_read_timeout=LONGEST_SILENCE, auth=auth
        ) as streams:
            yield streams
        return
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=LONGEST_SILENCE)
    async with (
        create_mcp_http_client(headers=headers, timeout=timeout, auth=auth) as client,
        streamable_http_client(remote.url, http_client=client) as streams,
    ):
        yield streams


@asynccontextmanager
async def _watch(inner: AbstractAsyncContextManager[Any], hooks: Hooks) -> AsyncGenerator[Any]:
    """The same streams, with a notification when the input ends."""
    async with inner as (incoming, outgoing):
        yield WatchedStream(incoming, hooks), outgoing


def _each_once(named: Iterable[N]) -> Iterator[N]:
    """By name; the first of several is used, because a call could not distinguish them."""
    seen = set[str]()
    for one in named:
        if one.name and one.name not in seen:
            seen.add(one.name)
            yield one


def _is_called_plainly(tool: types.Tool) -> bool:
    """A few tools answer only if the call is made a task, which is not supported here."""
    return tool.execution is None or tool.execution.task_support != "required"


async def _pages(fetch: Any) -> AsyncIterator[Any]:
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await fetch(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if not cursor:
            return


def _plain(result: Any) -> dict[str, Any]:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)
