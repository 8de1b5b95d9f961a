"""The commands and their flags."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from ..host.processes.child_environment import blank_own_keys
from .early_signals import EndsAtOnce
from .exits import CLOSED_PIPE, FAILED, INTERRUPTED, OK, USAGE, Failed, UsageError
from .flag_parser import FlagParser, Several, guess
from .mcp_options import make_mcp_parser, seconds
from .prompt_flags import COMMANDS, make_prompt_parser
from .session_flags import add_session_options
from .standard_streams import check_stdout

PRINTING = frozenset({"agents", "demo", "doctor", "explain", "models", "sessions", "tools"})
"""Commands whose only result is what they print."""
UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of a stdout that cannot be written to."""
HEADLESS: Final = ("-p", "--print", "--input-format", "--output-format")
"""Flags by which a line is a prompt, wherever they are."""
REFUSED_COMMANDS: Final[Mapping[str, str]] = {
    name: words
    for names, words in (
        (("auth", "login", "logout", "setup-token"), "there is no sign-in. Set ANTHROPIC_API_KEY or OPENAI_API_KEY."),
        (("plugin", "plugins"), "plugins are not installed. Give the folder of one with --plugin-dir."),
        (("config",), "settings are files. Edit ~/.claude/settings.json or .claude/settings.json."),
        (("install", "update", "upgrade"), "use the program that installed Ferrule, such as pip or uv."),
        (("project", "gateway", "ultrareview", "auto-mode"), "there is no such command in Ferrule."),
    )
    for name in names
}
"""Commands of Claude Code that are not taken. As prompts they would cost money and do nothing."""


def run(arguments: list[str]) -> int:
    """Parse, then hand over to the command. A wrong flag or a bad setting is exit code 2, with a message on stderr."""
    name = "ferrule"
    blank_own_keys()
    try:
        if arguments[:1] == ["help"] or (not arguments and os.isatty(0)):
            return _help(arguments)
        if is_prompt(arguments):
            with EndsAtOnce():
                return _prompt(parse_prompt(arguments))
        name = f"ferrule {arguments[0]}"
        return _run(parse_command(arguments))
    except (UsageError, Failed) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError) else FAILED
    except BrokenPipeError:  # whoever read the output wants no more of it
        _forget_output()
        return CLOSED_PIPE
    except KeyboardInterrupt:  # before anything ran that could be ended in an orderly way
        return INTERRUPTED


def is_prompt(arguments: list[str]) -> bool:
    """Whether this is a prompt: it does not begin with a command."""
    return not arguments or arguments[0] not in COMMANDS


def parse_prompt(arguments: list[str]) -> argparse.Namespace:
    """Raises `UsageError`, also for one word that is more likely meant as a command."""
    as_prompt = any(word.partition("=")[0] in HEADLESS for word in arguments)
    if not as_prompt and arguments:
        _refuse_commands(arguments[0])
    chosen = make_prompt_parser().parse_args(arguments)
    if not as_prompt and chosen.prompt in COMMANDS:
        raise UsageError(f"a command comes first: `ferrule {chosen.prompt} ...`. To send it as a prompt, give -p.")
    return chosen


def parse_command(arguments: list[str]) -> argparse.Namespace:
    """Raises `UsageError`."""
    name, *flags = arguments
    chosen = _MAKERS[name]().parse_args(flags)
    chosen.command = name
    return chosen


def _refuse_commands(word: str) -> None:
    """Of Claude Code, and misspelt ones: nobody should pay a model for an answer to them."""
    words = REFUSED_COMMANDS.get(word)
    if words is None and word.isalpha() and (near := guess(word, COMMANDS)):
        words = f"there is no such command.{near}"
    if words is not None:
        raise UsageError(f"{word}: {words} To send it as a prompt, write `ferrule -p {word}`.")


def _help(arguments: list[str]) -> int:
    """Without a command it is for everything; without any word it is what was missing."""
    if arguments[:1] == ["help"] and arguments[1:]:
        if arguments[1] not in COMMANDS:
            raise UsageError(f"there is no command {arguments[1]}.{guess(arguments[1], COMMANDS)}")
        _MAKERS[arguments[1]]().print_help()
        return OK
    make_prompt_parser().print_help(sys.stdout if arguments else sys.stderr)
    return OK if arguments else USAGE


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


def _call() -> FlagParser:
    call = FlagParser(
        "ferrule call",
        usage="ferrule call [TOOL JSON] [options]",
        description="Run one tool call and print its result, or, with --jsonl, one call for each line of stdin.",
    )
    call.add_argument("tool", metavar="TOOL", nargs="?", help="the tool's name")
    call.add_argument("input", metavar="JSON", nargs="?", help="its input as a JSON object; - reads it from stdin")
    call.add_argument("--jsonl", action="store_true", help='read {"id", "tool", "input"} or {"batch": [...]} per line')
    call.add_argument("--json", action="store_true", help="print the whole result as one JSON object")
    add_session_options(call, lists=False)
    return call


def _explain() -> FlagParser:
    explain = FlagParser(
        "ferrule explain",
        usage="ferrule explain [TOOL JSON] [options]",
        description="Show what a call would read, write, run and reach, whether it is allowed, and why; it is not run.",
    )
    explain.add_argument("tool", metavar="TOOL", nargs="?", help="the tool's name")
    explain.add_argument("input", metavar="JSON", nargs="?", help="its input as a JSON object")
    explain.add_argument("--json", action="store_true", help="as JSON")
    explain.add_argument("--jsonl", action="store_true", help='read {"id", "tool", "input", "rules", ...} per line')
    explain.add_argument(
        "--lint", action="store_true", help="report rules that never match, or match something unexpected"
    )
    add_session_options(explain, lists=False)
    return explain


def _doctor() -> FlagParser:
    doctor = FlagParser(
        "ferrule doctor",
        usage="ferrule doctor [options]",
        description="Check what Ferrule needs here: programs, sandbox, limits. Exit code 1 if something is missing.",
    )
    doctor.add_argument("--json", action="store_true", help="as JSON")
    return doctor


def _serve() -> FlagParser:
    serve = FlagParser(
        "ferrule serve",
        usage="ferrule serve [options]",
        description="Offer the tools to an MCP client over stdin and stdout, or with --http to several at once.",
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
        "--allowed-host", metavar="NAME", action=Several, default=[], help="another host name of this server"
    )
    serve.add_argument(
        "--idle-timeout",
        metavar="SECONDS",
        type=seconds,
        help="end a client's session after this many seconds without requests",
    )
    add_session_options(serve)
    return serve


def _tools() -> FlagParser:
    tools = FlagParser("ferrule tools", usage="ferrule tools [options]", description="List the tools.")
    tools.add_argument("--json", action="store_true", help="with descriptions and schemas, as JSON")
    add_session_options(tools)
    return tools


def _trust() -> FlagParser:
    trust = FlagParser(
        "ferrule trust",
        usage="ferrule trust [PATH] [options]",
        description="Show what a folder has that can run or allow something, and trust it as it is now.",
    )
    trust.add_argument("path", metavar="PATH", nargs="?", help="the folder (default: this one)")
    answer = trust.add_mutually_exclusive_group()
    answer.add_argument("--show", action="store_true", help="only show it")
    answer.add_argument("--revoke", action="store_true", help="revoke trust")
    answer.add_argument("--yes", action="store_true", help="trust without confirmation")
    return trust


def _sessions() -> FlagParser:
    sessions = FlagParser(
        "ferrule sessions",
        usage="ferrule sessions [options]",
        description="List the conversations of this directory, the latest first. Resume one with --resume ID.",
    )
    sessions.add_argument("--cwd", metavar="DIR", help="the directory whose conversations to list (default: this one)")
    sessions.add_argument("--json", action="store_true", help="as JSON")
    return sessions


def _demo() -> FlagParser:
    demo = FlagParser(
        "ferrule demo",
        usage="ferrule demo [options]",
        description="Watch a scripted model explore a sample project through the real engine. Needs no network.",
    )
    demo.add_argument("--script", metavar="FILE", help="play this script in the current directory instead")
    demo.add_argument("--fast", action="store_true", help="do not pause between the model's words")
    return demo


def _agents() -> FlagParser:
    agents = FlagParser(
        "ferrule agents",
        usage="ferrule agents [options]",
        description="List the kinds of agents that a model may start.",
    )
    agents.add_argument("--json", action="store_true", help="as JSON")
    add_session_options(agents)
    return agents


def _models() -> FlagParser:
    models = FlagParser(
        "ferrule models",
        usage="ferrule models [probe [NAME]] [options]",
        description="List what is known of models, and from where. `probe` asks a model's server and keeps its answer.",
    )
    models.add_argument("action", metavar="probe", nargs="?", choices=("probe",), help="ask the server of a model")
    models.add_argument("name", metavar="NAME", nargs="?", help="the model (default: the one that would be asked)")
    models.add_argument("--json", action="store_true", help="as JSON")
    add_session_options(models)
    return models


_MAKERS: Final[Mapping[str, Callable[[], FlagParser]]] = {
    "agents": _agents,
    "call": _call,
    "demo": _demo,
    "doctor": _doctor,
    "explain": _explain,
    "mcp": make_mcp_parser,
    "models": _models,
    "serve": _serve,
    "sessions": _sessions,
    "tools": _tools,
    "trust": _trust,
}
