"""MCP servers as defined in .mcp.json and in settings files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from .fields import SAID, Given, Items, Named, OpenObject, Port, custom_error
from .plain_servers import REMOTE, RESERVED_NAMES, SHORTEST_TIMEOUT


class OAuth(OpenObject):
    client_id: Given[str] = None
    callback_port: Given[Port] = None
    scopes: Given[str] = None
    auth_server_metadata_url: Given[str] = None


class Server(OpenObject):
    """What every server may have. Other clients keep keys of their own here, so unknown ones are accepted."""

    timeout: Given[Annotated[int, Field(ge=SHORTEST_TIMEOUT)]] = Field(
        default=None, description="Milliseconds for one call."
    )
    always_load: Given[bool] = None


class StdioServer(Server):
    """A program that is started and talks over its standard input and output."""

    type: Literal["stdio"] = "stdio"
    command: Named
    args: Given[Items[str]] = None
    env: Given[Mapping[str, str]] = None

    @model_validator(mode="before")
    @classmethod
    def _url_needs_a_type(cls, value: Any) -> Any:
        if isinstance(value, dict) and "url" in value and not {"type", "command"} & value.keys():
            raise custom_error('`url` needs a `type`. Write "type": "http", "sse" or "ws".')
        return cast(Any, value)


class RemoteServer(Server):
    type: Literal["http", "streamable-http", "sse", "ws"]
    url: Named
    headers: Given[Mapping[str, str]] = None
    headers_helper: Given[str] = Field(default=None, description="A command that prints headers as JSON.")
    oauth: Given[OAuth] = Field(default=None, alias="oauth")


def _server_tag(value: Any) -> str | None:
    if not isinstance(value, dict):
        return "<stdio>"  # either says that an object was expected
    kind = cast(dict[str, Any], value).get("type", "stdio")
    if kind in REMOTE:
        return "<remote>"
    return "<stdio>" if kind == "stdio" else None


AnyServer: TypeAlias = Annotated[
    Annotated[StdioServer, Tag("<stdio>")] | Annotated[RemoteServer, Tag("<remote>")],
    Discriminator(
        _server_tag,
        custom_error_type=SAID,
        custom_error_message="{words}",
        custom_error_context={"words": f"`type` must be one of stdio, {', '.join(REMOTE)}."},
    ),
]


def _not_reserved(name: str) -> str:
    if name in RESERVED_NAMES:
        raise custom_error(f"the name `{name}` is reserved. Give the server another one.")
    return name


NamedServers: TypeAlias = Mapping[Annotated[str, AfterValidator(_not_reserved)], AnyServer]


class McpFile(OpenObject):
    """A .mcp.json."""

    mcp_servers: NamedServers


class ServerMatch(OpenObject):
    """Servers that are allowed or denied, by exactly one of name, command and URL."""

    model_config = {"extra": "forbid", "json_schema_extra": {"minProperties": 1, "maxProperties": 1}}

    server_name: Given[Named] = None
    server_command: Given[Items[str]] = None
    server_url: Given[Named] = None

    @model_validator(mode="after")
    def _exactly_one(self) -> ServerMatch:
        if len(self.model_fields_set) != 1:
            raise custom_error("it must have exactly one of `serverName`, `serverCommand` and `serverUrl`.")
        return self


SERVER_TAGS: Final = frozenset({"<stdio>", "<remote>"})
