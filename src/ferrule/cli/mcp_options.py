"""The flags of `ferrule mcp`."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from .exits import UsageError
from .flag_parser import FlagParser, Several, guess, one_of
from .session_flags import add_session_options

SCOPES = ("local", "project", "user")
LONGEST_TIMEOUT = 10**12
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+:(?!//)")
"""And not a URL."""


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


def make_mcp_parser() -> FlagParser:
    return _McpParser(
        "ferrule mcp",
        usage="ferrule mcp ACTION ...",
        description="Servers of the Model Context Protocol, whose tools are added to a session's own.",
    )


class _McpParser(FlagParser):
    """Leaves everything after the action to the parser of that action."""

    def __init__(self, prog: str, **more: Any) -> None:
        super().__init__(prog, **more)
        listed = "\n".join(f"{name:10}{words}" for name, (words, _) in _ACTIONS.items())
        self.add_argument_group("actions (`ferrule mcp ACTION --help` says more)", listed)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - it has two overloads
        action, *flags = args or ("",)
        if action.startswith("-"):
            return super().parse_known_args(args, namespace)
        if action not in _ACTIONS:
            known = ", ".join(_ACTIONS)
            words = f"there is no action {action}.{guess(action, _ACTIONS)}" if action else "name an action."
            raise UsageError(f"{words} The actions are {known}.")
        words, add = _ACTIONS[action]
        hint = " Put a command with its own flags after --." if action == "add" else ""
        parser = FlagParser(f"ferrule mcp {action}", description=f"{words[0].upper()}{words[1:]}.", unknown_hint=hint)
        add(parser)
        operands = " ".join(str(one.metavar) for one in parser.operands)
        parser.usage = f"ferrule mcp {action} {operands}{' ' if operands else ''}[options]"
        chosen, excess = parser.parse_known_args(flags, namespace)
        chosen.action = action
        return chosen, excess


def _add_reading(parser: FlagParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_session_options(parser)


def _add_reading_one(parser: FlagParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_session_options(parser, lists=False)


def _add_trying(parser: FlagParser) -> None:
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=30.0, help="how long to wait (default: 30)"
    )
    _add_reading_one(parser)


def _add_adding(parser: FlagParser) -> None:
    add = parser.add_argument
    _add_place(parser, "where to save it: local (default), project or user", default="local")
    transport = one_of("stdio", "http", "sse")
    add("-t", "--transport", metavar="KIND", type=transport, help="stdio, http or sse (default: derived from the URL)")
    add(
        "-e",
        "--env",
        metavar="NAME=VALUE",
        action=Several,
        form=_VARIABLE,
        default=[],
        help="environment variables for the server",
    )
    add(
        "-H",
        "--header",
        metavar="NAME:VALUE",
        action=Several,
        form=_HEADER,
        default=[],
        help="headers to send",
    )
    add("--timeout", metavar="MS", type=milliseconds, help="timeout for one call, in milliseconds")
    add("name", metavar="NAME")
    add("target", metavar="COMMAND_OR_URL", nargs="+", help="a URL, or after -- a command with its arguments")


def _add_adding_json(parser: FlagParser) -> None:
    _add_place(parser, "where to save it: local (default), project or user", default="local")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("json", metavar="JSON", help="its entry, as in .mcp.json")


def _add_removing(parser: FlagParser) -> None:
    _add_place(parser, "where to remove it: local, project or user (default: wherever it is saved)", default=None)
    parser.add_argument("name", metavar="NAME")


def _add_place(parser: FlagParser, words: str, *, default: str | None) -> None:
    parser.add_argument("-s", "--scope", metavar="SCOPE", type=one_of(*SCOPES), default=default, help=words)
    parser.add_argument("--cwd", metavar="DIR", help="the folder that it is for (default: this one)")


_ACTIONS: Final[Mapping[str, tuple[str, Callable[[FlagParser], None]]]] = {
    "list": ("list the configured servers and where they are defined", _add_reading),
    "get": ("show the details of one server", _add_reading_one),
    "test": ("start a server and list what it offers", _add_trying),
    "add": ("add a server: a URL, or after -- a command with its arguments", _add_adding),
    "add-json": ("add a server by its JSON", _add_adding_json),
    "remove": ("remove a server", _add_removing),
}
