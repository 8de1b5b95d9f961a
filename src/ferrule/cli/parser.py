"""The commands and their flags."""

from __future__ import annotations

import argparse
import sys

from .._version import __version__
from .early_signals import EndsAtOnce
from .exits import FAILED, INTERRUPTED, USAGE, Failed, Usage
from .mcp_options import add_mcp_options, seconds
from .options import add_session_options

DESCRIPTION = "Carry out the calls of a language model: safely, fast and in order."
COMMANDS = ("call", "demo", "doctor", "explain", "mcp", "serve", "sessions", "tools", "trust")


def run(arguments: list[str]) -> int:
    """Parse, then hand over to the command. A wrong flag or a bad setting is exit code 2, with words on stderr."""
    name = "ferrule"
    try:
        if is_prompt(arguments):
            from .prompt_parser import make_prompt_parser

            chosen = make_prompt_parser().parse_args(arguments)
            name = "ferrule -p"
            with EndsAtOnce():
                return _prompt(chosen)
        parser = make_parser()
        chosen = parser.parse_args(arguments)
        if chosen.command is None:
            parser.print_help(sys.stderr)
            return USAGE
        name = f"ferrule {chosen.command}"
        return _run(chosen)
    except (Usage, Failed) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return USAGE if isinstance(error, Usage) else FAILED
    except KeyboardInterrupt:  # before anything ran that could be ended in an orderly way
        return INTERRUPTED


def is_prompt(arguments: list[str]) -> bool:
    """Whether this is a prompt and not a command: it has -p, and does not begin with a command."""
    if not arguments or arguments[0] in COMMANDS:
        return False
    return any(argument in ("-p", "--print") for argument in arguments)


def _prompt(chosen: argparse.Namespace) -> int:
    from .commands import headless

    return headless.run(chosen)


def _run(chosen: argparse.Namespace) -> int:
    match chosen.command:
        case "call":
            from .commands import call

            return call.run(chosen)
        case "explain":
            from .commands import explain

            return explain.run(chosen)
        case "doctor":
            from .commands import doctor

            return doctor.run(chosen)
        case "mcp":
            from .commands import mcp

            return mcp.run(chosen)
        case "serve":
            from .commands import serve

            return serve.run(chosen)
        case "tools":
            from .commands import tools

            return tools.run(chosen)
        case "trust":
            from .commands import trust

            return trust.run(chosen)
        case "sessions":
            from .commands import sessions

            return sessions.run(chosen)
        case _:
            from .commands import demo

            return demo.run(chosen)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ferrule",
        usage="ferrule [-h] [-V] COMMAND ...\n       ferrule -p [PROMPT] [options]",
        description=DESCRIPTION,
        epilog="ferrule -p PROMPT asks a model, carries out its calls and prints its answer. See ferrule -p --help.",
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"ferrule {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", prog="ferrule")

    call = commands.add_parser(
        "call",
        allow_abbrev=False,
        help="run one tool call, or many from standard input",
        description="Run one tool call and print its result, or, with --jsonl, one call for each line of stdin.",
    )
    call.add_argument("tool", metavar="TOOL", nargs="?", help="the tool's name")
    call.add_argument("input", metavar="JSON", nargs="?", help="its input as a JSON object; - reads it from stdin")
    call.add_argument("--jsonl", action="store_true", help='read {"id", "tool", "input"} or {"batch": [...]} per line')
    call.add_argument("--json", action="store_true", help="print the whole result as one JSON object")
    add_session_options(call)

    explain = commands.add_parser(
        "explain",
        allow_abbrev=False,
        help="say what a call would do and whether it may, without doing it",
        description="Say what a call would read, write, run and reach, whether it may, and why. It is not made.",
    )
    explain.add_argument("tool", metavar="TOOL", nargs="?", help="the tool's name")
    explain.add_argument("input", metavar="JSON", nargs="?", help="its input as a JSON object")
    explain.add_argument("--json", action="store_true", help="as JSON")
    explain.add_argument("--jsonl", action="store_true", help='read {"id", "tool", "input", "rules", ...} per line')
    explain.add_argument("--lint", action="store_true", help="name rules that never match, or not as they look")
    add_session_options(explain)

    doctor = commands.add_parser(
        "doctor",
        allow_abbrev=False,
        help="say what this machine has for Ferrule to work with",
        description="Try what Ferrule needs here: programs, sandbox, limits. Exit code 1 if something is missing.",
    )
    doctor.add_argument("--json", action="store_true", help="as JSON")

    add_mcp_options(commands)
    serve = commands.add_parser(
        "serve",
        allow_abbrev=False,
        help="offer the tools to MCP clients",
        description="Offer the tools to an MCP client over stdin and stdout, or with --http to several at once.",
    )
    serve.add_argument("--http", metavar="HOST:PORT", help="listen there instead; a port alone means 127.0.0.1")
    serve.add_argument("--token", help="what clients must send as Bearer (better: FERRULE_SERVE_TOKEN)")
    serve.add_argument(
        "--allowed-host", metavar="NAME", action="append", default=[], help="a further name that leads to this server"
    )
    serve.add_argument(
        "--idle-timeout", metavar="SECONDS", type=seconds, help="end a client's session after so long without requests"
    )
    add_session_options(serve)

    tools = commands.add_parser("tools", allow_abbrev=False, help="list the tools", description="List the tools.")
    tools.add_argument("--json", action="store_true", help="with descriptions and schemas, as JSON")
    add_session_options(tools)

    trust = commands.add_parser(
        "trust",
        allow_abbrev=False,
        help="agree to what a folder brings that can run or widen",
        description="Show what a folder brings that can run or widen, and agree to it as it is now.",
    )
    trust.add_argument("path", metavar="PATH", nargs="?", help="the folder (default: this one)")
    answer = trust.add_mutually_exclusive_group()
    answer.add_argument("--show", action="store_true", help="only show it")
    answer.add_argument("--revoke", action="store_true", help="take an earlier agreement back")
    answer.add_argument("--yes", action="store_true", help="agree without being asked")

    sessions = commands.add_parser(
        "sessions",
        allow_abbrev=False,
        help="list the conversations that can be gone on with",
        description="List the conversations of this directory, the latest first. Go on with one by --resume ID.",
    )
    sessions.add_argument("--cwd", metavar="DIR", help="the directory whose conversations to list (default: this one)")
    sessions.add_argument("--json", action="store_true", help="as JSON")

    demo = commands.add_parser(
        "demo",
        allow_abbrev=False,
        help="watch a scripted model work",
        description="Watch a scripted model explore a sample project through the real engine. Needs no network.",
    )
    demo.add_argument("--script", metavar="FILE", help="play this script in the current directory instead")
    demo.add_argument("--fast", action="store_true", help="do not wait between the model's words")
    return parser
