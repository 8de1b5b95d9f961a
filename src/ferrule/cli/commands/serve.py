"""`ferrule serve`: our tools for any MCP client, over stdio or HTTP."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import sys
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...app.build import Settings, open_session, tools_on_demand
from ...engine.session import Session
from ..exits import OK, Failed, UsageError
from ..logs import log_to_file
from ..session_flags import settings_from
from ..signals import Interruptible
from ..stdio import InputLines, StdoutWriter

if TYPE_CHECKING:
    from ...server.client_person import ClientPerson
    from ...server.sources import PromptSource

TOKEN_VARIABLE: Final = "FERRULE_SERVE_TOKEN"
STEERING: Final = frozenset({"Agent", "EnterPlanMode", "ExitPlanMode", "ToolSearch"})
"""Tools that control a conversation with Ferrule's model. Here the client owns the model and the conversation."""


def run(chosen: argparse.Namespace) -> int:
    if chosen.http is None and (chosen.token or chosen.no_token or chosen.allowed_host or chosen.idle_timeout):
        raise UsageError("--token, --no-token, --allowed-host and --idle-timeout require --http.")
    address = None if chosen.http is None else _address(chosen.http)
    token = _token(chosen.token)
    chosen.strict_mcp_config = True  # the files that name servers may well name us
    settings = _for_clients(settings_from(chosen, runs=True))
    _log_to_file(settings)
    if address is None:
        return _over_stdio(settings)
    return _over_http(settings, address, token, chosen)


def _for_clients(settings: Settings) -> Settings:
    """Without the tools that steer a conversation, and with absolute paths: a client has a folder of its own."""
    chosen = settings.only_tools
    if chosen is None:
        chosen = frozenset(tool.name for tool in tools_on_demand())
    return replace(settings, only_tools=chosen - STEERING, concise=False)


def _over_stdio(settings: Settings) -> int:
    lines, output = InputLines(), StdoutWriter()  # before anything is loaded that might print
    from ...server.desk import Desk
    from ...server.stdio_server import serve_stdio

    desk = Desk(partial(_session, settings), prompts=_prompts(settings), one_client=True)
    server = desk.server(instructions=_instructions(settings))
    return asyncio.run(_serve_until_stopped(serve_stdio(desk, server, lines, output)))


def _over_http(settings: Settings, address: tuple[str, int], token: str | None, chosen: argparse.Namespace) -> int:
    from ...server.request_guard import RequestGuard, is_loopback

    host, port = address
    if chosen.no_token and not is_loopback(host):
        raise UsageError(f"{host} can be reached from other machines, so --no-token is refused. Leave it out.")
    if chosen.no_token and token is not None:
        raise UsageError(f"--no-token contradicts the token of --token or {TOKEN_VARIABLE}. Leave one of them out.")
    from ...server.desk import Desk
    from ...server.http_server import IDLE_SECONDS, PATH, listen, serve_http

    try:
        listening = listen(host, port)
    except OSError as error:
        raise Failed(f"cannot listen on {host}:{port}: {error.strerror or error}.") from None
    with listening:
        bound = listening.getsockname()[1]
        made = secrets.token_urlsafe(32) if token is None and not chosen.no_token else None
        guard = RequestGuard(host=host, port=bound, names=tuple(chosen.allowed_host), token=token or made)
        desk = Desk(partial(_session, settings), prompts=_prompts(settings))
        server = desk.server(instructions=_instructions(settings))
        idle_seconds = chosen.idle_timeout or IDLE_SECONDS
        if made is not None:
            print(f"ferrule serve: clients must send the header Authorization: Bearer {made}", file=sys.stderr)
        print(f"ferrule serve: listening at http://{guard.authority}{PATH}", file=sys.stderr, flush=True)
        return asyncio.run(_serve_until_stopped(serve_http(desk, server, listening, guard, idle_seconds=idle_seconds)))


def _log_to_file(settings: Settings) -> None:
    """Ferrule's log, including messages of the protocol packages."""
    log_to_file(settings.state_folder)
    for name in ("mcp", "uvicorn"):
        for handler in logging.getLogger("ferrule").handlers:
            logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).propagate = False


async def _serve_until_stopped(serving: Coroutine[Any, Any, None]) -> int:
    """Serve until the client disconnects or a signal arrives. Everything that was started has ended by then."""
    with Interruptible() as signals:
        try:
            await serving
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
    return OK if signals.exit_code is None else signals.exit_code


def _session(settings: Settings, person: ClientPerson) -> Session:
    return open_session(settings, person=person, approver_answers=True)


def _prompts(settings: Settings) -> PromptSource | None:
    from ...server.skills import SkillPrompts

    return SkillPrompts(settings.pages, lambda: open_session(settings)) if settings.pages else None


def _instructions(settings: Settings) -> str:
    return (
        f"Tools to read, search and change files and to run commands in {settings.cwd}. "
        "Relative paths start there. A call that needs a person's approval asks for it where the client can; "
        "otherwise it is refused, and the refusal says what would allow it."
    )


def _address(text: str) -> tuple[str, int]:
    """
    >>> _address("8000"), _address(":0"), _address("[::1]:80"), _address("localhost:1")
    (('127.0.0.1', 8000), ('127.0.0.1', 0), ('::1', 80), ('localhost', 1))
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not (port.isascii() and port.isdecimal() and int(port) < 65_536):
        raise UsageError(f"--http: {text} is not HOST:PORT. Write 127.0.0.1:8000, or port 0 for any free port.")
    return host, int(port)


def _token(given: str | None) -> str | None:
    """Removed from the environment, so that no command of a client can read it."""
    from_environment = os.environ.pop(TOKEN_VARIABLE, None)
    token = from_environment if given is None else given
    if token is not None and not (token.isascii() and token.isprintable() and token and " " not in token):
        raise UsageError("the token must be printable ASCII characters without spaces.")
    return token
