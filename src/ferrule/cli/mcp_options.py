"""The flags of `ferrule mcp`."""

from __future__ import annotations

import argparse
import math
from typing import Any

from .session_flags import add_command, add_session_options

SCOPES = ("local", "project", "user")
LONGEST_TIMEOUT = 10**12


class _ActionParser(argparse.ArgumentParser):
    """Says how to give a command with its own flags, which would otherwise be taken for ours."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - it has two overloads
        chosen, unknown = super().parse_known_args(args, namespace)
        if unknown:
            more = ". Put a command with its own flags after --" if self.prog.endswith(" add") else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{more}")
        return chosen, unknown


def seconds(text: str) -> float:
    """Parses seconds: above zero and finite."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return number


def milliseconds(text: str) -> int:
    from ..settings.plain_servers import SHORTEST_TIMEOUT

    if not (text.isascii() and text.isdecimal()) or not SHORTEST_TIMEOUT <= int(text) <= LONGEST_TIMEOUT:
        raise argparse.ArgumentTypeError(f"{text} must be a number of milliseconds, at least {SHORTEST_TIMEOUT:,}")
    return int(text)


def add_mcp_options(commands: Any) -> None:
    mcp = add_command(
        commands,
        "mcp",
        "list, add, remove and test MCP servers",
        "Servers of the Model Context Protocol, whose tools are added to a session's own.",
    )
    actions = mcp.add_subparsers(
        dest="action", metavar="ACTION", title="actions", required=True, parser_class=_ActionParser
    )

    listed = add_command(actions, "list", "list the configured servers and where they are defined")
    _reading(listed)

    got = add_command(actions, "get", "show the details of one server")
    got.add_argument("name", metavar="NAME")
    _reading(got)

    tried = add_command(actions, "test", "start a server and list what it offers")
    tried.add_argument("name", metavar="NAME")
    tried.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=30.0, help="how long to wait (default: 30)"
    )
    _reading(tried)

    added = add_command(
        actions, "add", "add a server", "Add a server: a command with its arguments, after --, or a URL."
    )
    added.add_argument("--scope", choices=SCOPES, default="local", help="where to save it (default: local)")
    added.add_argument(
        "--transport", choices=("stdio", "http", "sse"), help="the transport (default: derived from the URL)"
    )
    added.add_argument(
        "-e", "--env", metavar="NAME=VALUE", action="append", default=[], help="an environment variable for the server"
    )
    added.add_argument("-H", "--header", metavar="NAME: VALUE", action="append", default=[], help="a header to send")
    added.add_argument("--timeout", metavar="MS", type=milliseconds, help="timeout for one call, in milliseconds")
    added.add_argument("--cwd", metavar="DIR", help="the folder that it is for (default: this one)")
    added.add_argument("name", metavar="NAME")
    added.add_argument("target", metavar="COMMAND_OR_URL", nargs="+")

    removed = add_command(actions, "remove", "remove a server")
    removed.add_argument("--scope", choices=SCOPES, help="where to remove it (default: wherever it is saved)")
    removed.add_argument("--cwd", metavar="DIR", help="the folder that it is for (default: this one)")
    removed.add_argument("name", metavar="NAME")


def _reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_session_options(parser)
