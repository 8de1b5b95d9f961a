"""`ferrule mcp`: lists, adds, removes and tests servers."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, assert_never, cast
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from ...app.build import Settings
from ...app.settings_interpretation import load_configured_servers
from ...core.content import encodable
from ...host.storage.state_folder import state_folder
from ...mcp.config import InProcess, Relayed, Remote, ServerConfig, Stdio
from ...mcp.server_connection import ServerConnection
from ...mcp.server_context import Around, ServerTrouble, Timing
from ...settings.levels import Level, SettingsPath, surroundings
from ...settings.plain_servers import RESERVED_NAMES
from ...settings.server_entries import AnyServer
from ...settings.settings_entries import entries_of
from ...settings.settings_files import SettingsKind
from ...settings.settings_loading import load
from ...settings.settings_sources import LEVELS, open_layers
from ...settings.settings_writing import NotSaved, remove_server, save_server, server_file
from ...settings.trust_items import printable
from ...settings.trust_store import NotStored, TrustStore
from ..exits import CLOSED_PIPE, FAILED, OK, Failed, UsageError
from ..logs import log_to_file
from ..session_flags import parse_levels, settings_from
from ..sign_in import TerminalSignIn

_SERVER: TypeAdapter[Any] = TypeAdapter(AnyServer)


def run(chosen: argparse.Namespace) -> int:
    try:
        match chosen.action:
            case "add":
                return _add(chosen, _entry(chosen))
            case "add-json":
                return _add(chosen, _json_entry(chosen.json))
            case "remove":
                return _remove(chosen)
            case "list":
                return _list(settings_from(chosen), chosen)
            case "get":
                return _get(_find_server(settings_from(chosen), chosen.name), chosen)
            case _:
                return _test(settings_from(chosen), chosen)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return CLOSED_PIPE


def _list(settings: Settings, chosen: argparse.Namespace) -> int:
    waiting = _waiting_servers(settings, chosen)
    listed = (*settings.servers, *waiting)
    if chosen.json:
        described = [{**_describe(server), "waiting": server in waiting} for server in listed]
        _print(json.dumps(described, indent=2, ensure_ascii=False))
    elif not listed:
        _print("No MCP servers are configured. Add one with `ferrule mcp add`.")
    else:
        widest = max(len(server.name) for server in listed)
        for server in listed:
            note = "  waits for trust: see `ferrule trust --show`" if server in waiting else ""
            _tell(f"{server.name.ljust(widest)}  {server.kind:10}  {server.transport}  ({server.origin}){note}")
    return OK


def _waiting_servers(settings: Settings, chosen: argparse.Namespace) -> tuple[ServerConfig, ...]:
    """Those that the folder would have if a person trusted it."""
    if chosen.strict_mcp_config:
        return ()
    levels = parse_levels(chosen.setting_sources)
    trusted = open_layers(settings.cwd, settings.state_folder, levels=levels, trusting=True)
    known = {server.name for server in settings.servers}
    servers, _ = load_configured_servers(trusted.current(), settings.cwd)
    return tuple(server for server in servers if server.name not in known)


def _get(server: ServerConfig, chosen: argparse.Namespace) -> int:
    described = _describe(server)
    if chosen.json:
        _print(json.dumps(described, indent=2, ensure_ascii=False))
    else:
        for key, value in described.items():
            _tell(f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    return OK


def _describe(server: ServerConfig) -> dict[str, Any]:
    """Without the values of variables and headers, which are often secret."""
    described: dict[str, Any] = {"name": server.name, "type": server.kind}
    match server.transport:
        case Stdio(command, args, env):
            described |= {"command": command, "args": list(args), "env": sorted(env or {})}
        case Remote(_, url, headers):
            described |= {"url": url, "headers": sorted(headers or {})}
        case InProcess() | Relayed():
            pass
        case _:
            assert_never(server.transport)
    terms = {"timeout": server.timeout, "trusted": server.trusted, "concurrent": server.concurrent}
    return {**described, "origin": server.origin, **terms}


def _find_server(settings: Settings, name: str) -> ServerConfig:
    for server in settings.servers:
        if server.name == name:
            return server
    there = ", ".join(server.name for server in settings.servers) or "none"
    raise Failed(f"no server `{name}` may be started. Available: {there}.")


def _test(settings: Settings, chosen: argparse.Namespace) -> int:
    server = _find_server(settings, chosen.name)
    log_to_file(settings.state_folder)
    found = asyncio.run(_try_server(server, settings, chosen.timeout))
    if chosen.json:
        _print(json.dumps(found, indent=2, ensure_ascii=False))
    elif "trouble" in found:
        print(f"ferrule mcp: {_lines(found['trouble'])}", file=sys.stderr)
    else:
        _tell(f"{server.name} is up, and speaks {found['protocol']}.")
        for kind in ("tools", "prompts", "resources"):
            _tell(f"{kind}: {', '.join(found[kind]) or 'none'}")
    return FAILED if "trouble" in found else OK


async def _try_server(server: ServerConfig, settings: Settings, seconds: float) -> dict[str, Any]:
    timing = Timing(begin_after=0, start=seconds, call=seconds)
    person = TerminalSignIn.of(server.transport) if sys.stdin.isatty() and sys.stderr.isatty() else None
    around = Around(state_folder=settings.state_folder, timing=timing, sign_in=person)
    connection = ServerConnection(server, around, lambda connection, kind: None)
    try:
        protocol = await connection.ready()
        listing = connection.listing
        assert listing is not None, "a connected server has reported its capabilities"
        return {
            "name": server.name,
            "protocol": protocol,
            "instructions": connection.instructions,
            "tools": [tool.name for tool in listing.tools],
            "prompts": [prompt.name for prompt in listing.prompts],
            "resources": [resource.uri for resource in await connection.resources()],
        }
    except ServerTrouble as trouble:
        return {"name": server.name, "trouble": connection.trouble or str(trouble)}
    finally:
        await connection.close()


def _add(chosen: argparse.Namespace, entry: Mapping[str, Any]) -> int:
    _check_entry(chosen.name, entry)
    level = LEVELS[chosen.scope]
    around = surroundings(_folder(chosen), os.environ)
    was_there = _is_saved(server_file(around, level), level, chosen.name)
    try:
        path = save_server(around, TrustStore(state_folder()), level, chosen.name, entry)
    except (NotSaved, NotStored) as error:
        raise Failed(str(error)) from None
    _tell(f"Replaced {chosen.name} in {path}." if was_there else f"Added {chosen.name} to {path}.")
    return OK


def _is_saved(path: str, level: Level, name: str) -> bool:
    kind = SettingsKind.MCP if level is Level.PROJECT else SettingsKind.SETTINGS
    entries = entries_of(load(SettingsPath(level, path, kind)))
    return any(entry.key == ("mcpServers", name) for entry in entries)


def _remove(chosen: argparse.Namespace) -> int:
    around = surroundings(_folder(chosen), os.environ)
    levels = [LEVELS[chosen.scope]] if chosen.scope else [Level.LOCAL, Level.PROJECT, Level.USER]
    try:
        found = next((path for level in levels if (path := remove_server(around, level, chosen.name))), None)
    except NotSaved as error:
        raise Failed(str(error)) from None
    if found is None:
        raise Failed(f"the server `{chosen.name}` was not found.")
    _tell(f"Removed {chosen.name} from {found}.")
    return OK


def _entry(chosen: argparse.Namespace) -> Mapping[str, Any]:
    first: str = chosen.target[0]
    rest: list[str] = chosen.target[1:]
    is_url = first.startswith(("http://", "https://"))
    kind = chosen.transport or ("http" if is_url else "stdio")
    entry: dict[str, Any] = {"type": kind}
    if is_url and not urlsplit(first).hostname:
        raise UsageError(f"{first} has no host. Give the whole URL.")
    if kind == "stdio":
        _check_command(first)
        entry |= {"command": first, "args": rest, "env": _pairs(chosen.env, "=", "--env")}
    elif rest or not is_url:
        raise UsageError(
            f"a server over {kind} takes one URL that begins with http:// or https://, and no further arguments."
        )
    else:
        entry |= {"url": first, "headers": _pairs(chosen.header, ":", "--header")}
    if (chosen.header and kind == "stdio") or (chosen.env and kind != "stdio"):
        raise UsageError("--env is for commands, and --header for URLs.")
    if chosen.timeout is not None:
        entry["timeout"] = chosen.timeout
    return {key: value for key, value in entry.items() if value not in ([], {})}


def _json_entry(text: str) -> Mapping[str, Any]:
    try:
        entry: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the server is not valid JSON: {error or type(error).__name__}.") from None
    if not isinstance(entry, dict):
        raise UsageError('the server must be a JSON object, such as {"command": "npx", "args": ["server"]}.')
    return cast(Mapping[str, Any], entry)


def _check_entry(name: str, entry: Mapping[str, Any]) -> None:
    """The way it will be when it is read."""
    if not name.strip():
        raise UsageError("a server needs a name.")
    if name in RESERVED_NAMES:
        raise UsageError(f"the name `{name}` is reserved. Give the server another one.")
    try:
        _SERVER.validate_python(entry)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"][-1:])
        raise UsageError(f"the server cannot be saved: {f'`{place}`: ' if place else ''}{fault['msg']}.") from None


def _check_command(command: str) -> None:
    """Rejects what is not meant as a command before it is saved as one."""
    if not command.strip():
        raise UsageError("a server needs a command or a URL.")
    if command.startswith(("ws://", "wss://")):
        raise UsageError("WebSocket servers are not supported. Use a URL that begins with http:// or https://.")
    if "://" in command:
        raise UsageError(f"{command} is a URL, not a command. Leave --transport out, or give http or sse.")
    if "=" in command:
        raise UsageError(f"{command} is not a command. Give each variable its own flag: -e {command}.")


def _pairs(texts: list[str], sign: str, flag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, there, value = text.partition(sign)
        if not there or not name.strip():
            raise UsageError(f"{flag}: {text} is not NAME{sign}VALUE.")
        found[name.strip()] = value.strip() if sign == ":" else value
    return found


def _folder(chosen: argparse.Namespace) -> str:
    folder = os.path.abspath(chosen.cwd or os.getcwd())
    if not os.path.isdir(folder):
        raise UsageError(f"--cwd: {chosen.cwd} is not a directory.")
    return folder


def _print(line: str) -> None:
    print(encodable(line), flush=True)


def _tell(line: str) -> None:
    """On one line and without control characters: names and texts come from servers and projects."""
    _print(printable(line))


def _lines(words: str) -> str:
    return encodable("\n".join(map(printable, words.splitlines())))
