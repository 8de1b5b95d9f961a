"""The commands and their flags."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .._version import __version__
from ..host.processes.child_environment import blank_own_keys
from .early_signals import EndsAtOnce
from .exits import CLOSED_PIPE, FAILED, INTERRUPTED, USAGE, Failed, UsageError
from .mcp_options import add_mcp_options, seconds
from .session_flags import add_command, add_session_options
from .standard_streams import check_stdout


def make_prompt_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ferrule -p",
        usage="ferrule -p [PROMPT] [options]",
        description="Ask a model, carry out its calls, print its answer. Piped input is appended to the prompt.",
        epilog="Exit codes: 0 done; 1 the model or the program failed; 2 wrong usage; 3 done, but calls were refused; "
        "4 a limit was reached; 129, 130 and 143 ended by a signal.",
        allow_abbrev=False,
    )
    parser.add_argument("-p", "--print", action="store_true", required=True, help="work without a person, and print")
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="the prompt (default: read from stdin)")
    parser.add_argument("--model", metavar="NAME", help="anthropic:NAME, openai:NAME, scripted:FILE, or a bare name")
    _add_formats(parser)
    _add_limits(parser)
    told = parser.add_argument_group("instructions for the model")
    told.add_argument("--system-prompt", metavar="TEXT", help="instead of the built-in instructions")
    told.add_argument("--append-system-prompt", metavar="TEXT", help="appended to the built-in instructions")
    _add_conversation(parser)
    add_session_options(parser)
    return parser


def _add_formats(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input and output")
    group.add_argument("--output-format", choices=("text", "json", "stream-json"), default="text", help="default: text")
    group.add_argument("--input-format", choices=("text", "stream-json"), default="text", help="default: text")
    group.add_argument("--include-partial-messages", action="store_true", help="stream_event lines as the model writes")
    group.add_argument(
        "--verbose", action="store_true", help="print more: on stderr, or as a list of all lines in json"
    )
    group.add_argument("--json-schema", metavar="SCHEMA", help="the answer must fit this JSON Schema (JSON or a file)")
    group.add_argument("--permission-prompt-tool", metavar="stdio", help="ask for permission over stream-json")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument("--max-turns", metavar="N", type=_positive(int), help="messages of the model for one prompt")
    group.add_argument("--max-budget-usd", metavar="USD", type=_positive(float), help="the most that the run may cost")


def _add_conversation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("conversation")
    group.add_argument(
        "-c",
        "--continue",
        dest="latest",
        action="store_true",
        help="continue the most recent conversation in this directory",
    )
    group.add_argument("-r", "--resume", metavar="ID", help="resume this session")
    group.add_argument("--fork-session", action="store_true", help="resume as a new session; the original is unchanged")
    group.add_argument("--session-id", metavar="ID", help="the id of the new session")


def _positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = 0
        if not 0 < number < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
        return number

    return parse


DESCRIPTION = "Carry out the calls of a language model: safely, fast and in order."
PRINTING = frozenset({"demo", "doctor", "explain", "sessions", "tools"})
"""Commands whose only result is what they print."""
UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of a stdout that cannot be written to."""
COMMANDS = ("call", "demo", "doctor", "explain", "mcp", "serve", "sessions", "tools", "trust")


def run(arguments: list[str]) -> int:
    """Parse, then hand over to the command. A wrong flag or a bad setting is exit code 2, with a message on stderr."""
    name = "ferrule"
    blank_own_keys()
    try:
        if is_prompt(arguments):
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
    except (UsageError, Failed) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError) else FAILED
    except BrokenPipeError:  # whoever read the output wants no more of it
        _forget_output()
        return CLOSED_PIPE
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
    """Only the command that is run is loaded."""
    if chosen.command in PRINTING:
        check_stdout()
    command: Callable[[argparse.Namespace], int] = import_module(f".commands.{chosen.command}", __package__).run
    try:
        code = command(chosen)
        print(end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        if chosen.command not in PRINTING or error.errno not in UNWRITABLE:
            raise
        _forget_output()
        raise Failed(f"the result cannot be written: {error.strerror or error}.") from None
    return code


def _forget_output() -> None:
    """Python would try to write the rest again when it ends, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


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
    for add in (_call, _explain, _doctor, add_mcp_options, _serve, _tools, _trust, _sessions, _demo):
        add(commands)
    return parser


def _call(commands: Any) -> None:
    call = add_command(
        commands,
        "call",
        "run one tool call, or many from standard input",
        "Run one tool call and print its result, or, with --jsonl, one call for each line of stdin.",
    )
    call.add_argument("tool", metavar="TOOL", nargs="?", help="the tool's name")
    call.add_argument("input", metavar="JSON", nargs="?", help="its input as a JSON object; - reads it from stdin")
    call.add_argument("--jsonl", action="store_true", help='read {"id", "tool", "input"} or {"batch": [...]} per line')
    call.add_argument("--json", action="store_true", help="print the whole result as one JSON object")
    add_session_options(call)


def _explain(commands: Any) -> None:
    explain = add_command(
        commands,
        "explain",
        "show what a call would do and whether it is allowed, without running it",
        "Show what a call would read, write, run and reach, whether it is allowed, and why. The call is not made.",
    )
    explain.add_argument("tool", metavar="TOOL", nargs="?", help="the tool's name")
    explain.add_argument("input", metavar="JSON", nargs="?", help="its input as a JSON object")
    explain.add_argument("--json", action="store_true", help="as JSON")
    explain.add_argument("--jsonl", action="store_true", help='read {"id", "tool", "input", "rules", ...} per line')
    explain.add_argument(
        "--lint", action="store_true", help="report rules that never match, or match something unexpected"
    )
    add_session_options(explain)


def _doctor(commands: Any) -> None:
    doctor = add_command(
        commands,
        "doctor",
        "check this machine for what Ferrule needs",
        "Check what Ferrule needs here: programs, sandbox, limits. Exit code 1 if something is missing.",
    )
    doctor.add_argument("--json", action="store_true", help="as JSON")


def _serve(commands: Any) -> None:
    serve = add_command(
        commands,
        "serve",
        "offer the tools to MCP clients",
        "Offer the tools to an MCP client over stdin and stdout, or with --http to several at once.",
    )
    serve.add_argument(
        "--http", metavar="HOST:PORT", help="listen on this address instead; a port alone means 127.0.0.1"
    )
    serve.add_argument(
        "--token",
        help="the bearer token clients must send (default: FERRULE_SERVE_TOKEN, or a new one)",
    )
    serve.add_argument("--no-token", action="store_true", help="allow every process on this machine (loopback only)")
    serve.add_argument(
        "--allowed-host", metavar="NAME", action="append", default=[], help="another host name of this server"
    )
    serve.add_argument(
        "--idle-timeout",
        metavar="SECONDS",
        type=seconds,
        help="end a client's session after this many seconds without requests",
    )
    add_session_options(serve)


def _tools(commands: Any) -> None:
    tools = add_command(commands, "tools", "list the tools", "List the tools.")
    tools.add_argument("--json", action="store_true", help="with descriptions and schemas, as JSON")
    add_session_options(tools)


def _trust(commands: Any) -> None:
    trust = add_command(
        commands,
        "trust",
        "trust a folder's hooks, servers and rules",
        "Show a folder's hooks, servers and rules that can run or allow something, and trust them as they are now.",
    )
    trust.add_argument("path", metavar="PATH", nargs="?", help="the folder (default: this one)")
    answer = trust.add_mutually_exclusive_group()
    answer.add_argument("--show", action="store_true", help="only show it")
    answer.add_argument("--revoke", action="store_true", help="revoke trust")
    answer.add_argument("--yes", action="store_true", help="trust without confirmation")


def _sessions(commands: Any) -> None:
    sessions = add_command(
        commands,
        "sessions",
        "list conversations that can be resumed",
        "List the conversations of this directory, the latest first. Resume one with --resume ID.",
    )
    sessions.add_argument("--cwd", metavar="DIR", help="the directory whose conversations to list (default: this one)")
    sessions.add_argument("--json", action="store_true", help="as JSON")


def _demo(commands: Any) -> None:
    demo = add_command(
        commands,
        "demo",
        "watch a scripted model work",
        "Watch a scripted model explore a sample project through the real engine. Needs no network.",
    )
    demo.add_argument("--script", metavar="FILE", help="play this script in the current directory instead")
    demo.add_argument("--fast", action="store_true", help="do not pause between the model's words")
