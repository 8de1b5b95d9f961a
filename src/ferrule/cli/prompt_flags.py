"""The flags of `ferrule PROMPT` and `ferrule -p`, and those of Claude Code that have no place here."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Final

from .._version import __version__
from .flag_parser import FlagParser, Several, one_of, positive
from .session_flags import add_session_options

DESCRIPTION: Final = (
    "Ask a model, carry out its calls safely, and print its answer. Piped input is appended to the prompt."
)
LISTS: Final = "A value with `...` is a list: it takes every word up to the next flag or `--`."
EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 the model or the program failed; 2 wrong usage; 3 done, but calls were refused; "
    "4 a limit was reached; 129, 130 and 143 ended by a signal."
)
EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")

COMMANDS: Final[Mapping[str, str]] = {
    "agents": "list the kinds of agents",
    "call": "run one tool call, or many from standard input",
    "demo": "watch a scripted model work",
    "doctor": "check this machine for what Ferrule needs",
    "explain": "show what a call would do, and whether it is allowed",
    "mcp": "list, add, remove and test MCP servers",
    "serve": "offer the tools to MCP clients",
    "sessions": "list conversations that can be resumed",
    "tools": "list the tools",
    "trust": "trust a folder's hooks, servers and rules",
}
"""What may come first instead of a prompt; `ferrule COMMAND --help` says more."""

REFUSED: Final[Mapping[str, str]] = {
    flag: words
    for flags, words in (
        (("-w", "--worktree", "--tmux"), "make a worktree with `git worktree add`, and start there or give --cwd"),
        (("--ide",), "there is no connection to editors. Leave it out"),
        (("--chrome",), "there is no connection to a browser. Leave it out"),
        (("--brief",), "there is no tool for messages besides the answer. Leave it out"),
        (("--prompt-suggestions",), "prompts are not suggested. Leave it out"),
        (("--session-mirror",), "a transcript is mirrored by a program, through `session_store` of the SDK"),
        (("--task-budget",), "give --max-budget-usd or --max-turns instead"),
        (("--safe-mode",), "`--setting-sources '' --strict-mcp-config` leaves your files and servers out"),
        (("--mcp-debug",), "`ferrule mcp test NAME` says what is wrong with a server, and --debug logs more"),
        (("--bg", "--background"), "a session cannot be left in the background. Start it as a job of your shell"),
        (("--file",), "files are not downloaded. Put them into the folder first"),
        (("--plugin-url",), "plugins are not downloaded. Give the folder of one with --plugin-dir"),
        (("--from-pr", "--teleport"), "only sessions of this machine can be resumed, with --resume"),
        (("--remote", "--cloud", "--remote-control", "--rc"), "a session runs on this machine only"),
        (("--rewind-files",), "files are restored over the control protocol, with `rewind_files`"),
        (
            ("--resume-drops-turn",),
            "Resume rejected by --resume-drops-turn: what would be left out cannot be checked by this version. "
            "Resume without it, or give --resume-session-at alone",
        ),
        (("--project-config-root",), "a project's settings are read in the working directory. Give --cwd"),
        (("--init", "--init-only", "--maintenance"), "hooks for Setup are not run. Leave it out"),
    )
    for flag in flags
}
"""Flags of Claude Code that are not taken, since leaving out what they ask for would not be what was meant."""

UNUSED: Final[Mapping[str, Callable[[str], object] | None]] = {
    "--exclude-dynamic-system-prompt-sections": None,
    "--thinking-display": one_of("summarized", "omitted"),
    "--no-chrome": None,
    "--ax-screen-reader": None,
    "--enable-auth-status": None,
    "--enable-auto-mode": None,
    "--workload": str,
    "--name": str,
}
"""Flags that are taken and change nothing here, with the type of their value."""


def make_prompt_parser() -> FlagParser:
    parser = FlagParser(
        "ferrule",
        usage="ferrule [PROMPT] [options]\n       ferrule COMMAND ...",
        description=DESCRIPTION,
        epilog=f"{LISTS} {EXIT_CODES}",
        refused=REFUSED,
    )
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="the prompt (default: read from stdin)")
    parser.add_argument("-p", "--print", action="store_true", help="work without a person, and print the answer")
    parser.add_argument("-v", "-V", "--version", action="version", version=f"ferrule {__version__}")
    listed = "\n".join(f"{name:10}{words}" for name, words in COMMANDS.items())
    parser.add_argument_group("commands (`ferrule COMMAND --help` says more)", listed)
    _add_formats(parser)
    _add_model(parser)
    _add_instructions(parser)
    _add_limits(parser)
    _add_conversation(parser)
    add_session_options(parser)
    _add_extensions(parser)
    _add_logs(parser)
    _add_unused(parser)
    return parser


def _add_formats(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("input and output").add_argument
    formats = one_of("text", "json", "stream-json")
    add("--output-format", metavar="FORMAT", type=formats, default="text", help="text (default), json or stream-json")
    add(
        "--input-format",
        metavar="FORMAT",
        type=one_of("text", "stream-json"),
        default="text",
        help="text (default) or stream-json",
    )
    add("--include-partial-messages", action="store_true", help="stream_event lines as the model writes")
    add("--include-hook-events", action="store_true", help="lines about hooks")
    add("--replay-user-messages", action="store_true", help="repeat the messages of stdin on stdout")
    add("--verbose", action="store_true", help="print more: on stderr, or as a list of all lines in json")
    add("--json-schema", metavar="SCHEMA", help="the answer must fit this JSON Schema (JSON or a file)")
    add(
        "--permission-prompt-tool",
        metavar="TOOL",
        help="whom to ask for permission: stdio (over stream-json), or a tool of an MCP server",
    )
    add("--permission-prompts", type=one_of("host", "none"), help=argparse.SUPPRESS)


def _add_model(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("model").add_argument
    add("--model", metavar="NAME", help="anthropic:NAME, openai:NAME, scripted:FILE, or a bare name")
    add("--fallback-model", metavar="NAME", help="asked if the service of the first model cannot answer")
    add("--effort", metavar="LEVEL", type=one_of(*EFFORTS), help=", ".join(EFFORTS))
    add("--thinking", metavar="MODE", type=one_of("adaptive", "enabled", "disabled"), help="adaptive or disabled")
    add("--max-thinking-tokens", metavar="N", type=_count, help="tokens of an answer that may be thinking; 0 for none")
    add("--betas", metavar="NAME", action=Several, default=[], help="beta features to ask the service for")


def _add_instructions(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("instructions for the model").add_argument
    add("--system-prompt", metavar="TEXT", help="instead of the built-in instructions")
    add("--system-prompt-file", metavar="FILE", help="the same, from a file")
    add("--append-system-prompt", metavar="TEXT", help="appended to the built-in instructions")
    add("--append-system-prompt-file", metavar="FILE", help="the same, from a file")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("limits").add_argument
    add("--max-turns", metavar="N", type=positive(int), help="messages of the model for one prompt")
    add("--max-budget-usd", metavar="USD", type=positive(float), help="the most that the run may cost")


def _add_conversation(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("conversation").add_argument
    add("-c", "--continue", dest="latest", action="store_true", help="continue the latest conversation of this folder")
    add("-r", "--resume", metavar="ID", nargs="?", const="", help="resume this session")
    add("--resume-session-at", metavar="ID", help="leave out what came after this message; the original is unchanged")
    add("--fork-session", action="store_true", help="resume as a new session; the original is unchanged")
    add("--session-id", metavar="ID", help="the id of the new session")
    add("--no-session-persistence", action="store_true", help="do not keep the conversation on disk")


def _add_extensions(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("agents, skills and plugins").add_argument
    add("--agents", metavar="JSON", help='more agents: {"NAME": {"description": "...", "prompt": "..."}}')
    add("--agent", metavar="NAME", help="the agent that the conversation is with")
    add("--plugin-dir", metavar="DIR", action="append", default=[], help="load this plugin; may be repeated")
    add("--plugin-dir-no-mcp", metavar="DIR", action="append", default=[], help="load it without its servers")
    add("--disable-slash-commands", action="store_true", help="without skills and commands")
    add("--bare", action="store_true", help="without hooks, instruction files and configured MCP servers")


def _add_logs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("finding faults").add_argument
    add("-d", "--debug", metavar="FILTER", nargs="?", const="", help="log more; the filter is not used")
    add("--debug-file", metavar="FILE", help="log more, into this file")
    add("-d2e", "--debug-to-stderr", action="store_true", help="log more, to stderr")


def _add_unused(parser: argparse.ArgumentParser) -> None:
    for flag, kind in UNUSED.items():
        names = ("-n", flag) if flag == "--name" else (flag,)
        if kind is None:
            parser.add_argument(*names, action="store_true", help=argparse.SUPPRESS)
        else:
            parser.add_argument(*names, type=kind, help=argparse.SUPPRESS)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text} is not a number of tokens")
    return int(text)
