"""The flags of `ferrule mcp`."""

from __future__ import annotations

import argparse
import math
from typing import Any

from .options import add_session_options

SCOPES = ("local", "project", "user")
LONGEST_TIMEOUT = 10**12


class _ActionParser(argparse.ArgumentParser):
    """Says how to give a command that has flags of its own, which would else be taken for ours."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - it has two overloads
        chosen, unknown = super().parse_known_args(args, namespace)
        if unknown:
            more = ". A command with flags of its own comes after --" if self.prog.endswith(" add") else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{more}")
        return chosen, unknown


def seconds(text: str) -> float:
    """Of a flag: any number of them but none, and not for ever."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return number


def milliseconds(text: str) -> int:
    from ..settings.plain_servers import SHORTEST_TIMEOUT

    if not (text.isascii() and text.isdecimal()) or not SHORTEST_TIMEOUT <= int(text) <= LONGEST_TIMEOUT:
        raise argparse.ArgumentTypeError(f"{text} is no number of milliseconds from {SHORTEST_TIMEOUT:,} on")
    return int(text)


def add_mcp_options(commands: Any) -> None:
    mcp: argparse.ArgumentParser = commands.add_parser(
        "mcp",
        allow_abbrev=False,
        help="list, add, remove and try MCP servers",
        description="Servers of the Model Context Protocol, whose tools a session has beside its own.",
    )
    actions = mcp.add_subparsers(
        dest="action", metavar="ACTION", title="actions", required=True, parser_class=_ActionParser
    )

    listed = actions.add_parser("list", allow_abbrev=False, help="what is configured, and from where")
    _reading(listed)

    got = actions.add_parser("get", allow_abbrev=False, help="all about one server")
    got.add_argument("name", metavar="NAME")
    _reading(got)

    tried = actions.add_parser("test", allow_abbrev=False, help="start a server, and say what it offers")
    tried.add_argument("name", metavar="NAME")
    tried.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=30.0, help="how long to wait (default: 30)"
    )
    _reading(tried)

    added = actions.add_parser(
        "add",
        allow_abbrev=False,
        help="add a server",
        description="Add a server: a command with its arguments, after --, or an address.",
    )
    added.add_argument("--scope", choices=SCOPES, default="local", help="where to save it (default: local)")
    added.add_argument("--transport", choices=("stdio", "http", "sse"), help="how to reach it; told by the address")
    added.add_argument("-e", "--env", metavar="NAME=VALUE", action="append", default=[], help="a variable for it")
    added.add_argument("-H", "--header", metavar="NAME: VALUE", action="append", default=[], help="a header to send")
    added.add_argument("--timeout", metavar="MS", type=milliseconds, help="milliseconds for one call")
    added.add_argument("--cwd", metavar="DIR", help="the folder that it is for (default: this one)")
    added.add_argument("name", metavar="NAME")
    added.add_argument("target", metavar="COMMAND_OR_URL", nargs="+")

    removed = actions.add_parser("remove", allow_abbrev=False, help="remove a server")
    removed.add_argument("--scope", choices=SCOPES, help="where it is saved (default: wherever it is)")
    removed.add_argument("--cwd", metavar="DIR", help="the folder that it is for (default: this one)")
    removed.add_argument("name", metavar="NAME")


def _reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_session_options(parser)
