"""The flags of `ferrule -p`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from .session_flags import add_session_options


def make_prompt_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ferrule -p",
        usage="ferrule -p [PROMPT] [options]",
        description="Ask a model, carry out its calls, print its answer. What is piped in stands behind the prompt.",
        epilog="Exit codes: 0 done; 1 the model or the program failed; 2 wrong usage; 3 done, but calls were refused; "
        "4 a limit was reached; 129, 130 and 143 ended by a signal.",
        allow_abbrev=False,
    )
    parser.add_argument("-p", "--print", action="store_true", required=True, help="work without a person, and print")
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="what to do; stdin where it is left out")
    parser.add_argument("--model", metavar="NAME", help="anthropic:NAME, openai:NAME, scripted:FILE, or a bare name")
    _add_formats(parser)
    _add_limits(parser)
    told = parser.add_argument_group("what the model is told")
    told.add_argument("--system-prompt", metavar="TEXT", help="instead of the built-in instructions")
    told.add_argument("--append-system-prompt", metavar="TEXT", help="behind the built-in instructions")
    _add_conversation(parser)
    add_session_options(parser)
    return parser


def _add_formats(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input and output")
    group.add_argument("--output-format", choices=("text", "json", "stream-json"), default="text", help="default: text")
    group.add_argument("--input-format", choices=("text", "stream-json"), default="text", help="default: text")
    group.add_argument("--include-partial-messages", action="store_true", help="stream_event lines as the model writes")
    group.add_argument("--verbose", action="store_true", help="say more: on stderr, or as a list of all lines in json")
    group.add_argument("--json-schema", metavar="SCHEMA", help="the answer must fit this JSON Schema (JSON or a file)")
    group.add_argument("--permission-prompt-tool", metavar="stdio", help="ask for permission over stream-json")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument("--max-turns", metavar="N", type=_positive(int), help="messages of the model for one prompt")
    group.add_argument("--max-budget-usd", metavar="USD", type=_positive(float), help="what the run may cost")


def _add_conversation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("conversation")
    group.add_argument("-c", "--continue", dest="latest", action="store_true", help="go on with the latest one here")
    group.add_argument("-r", "--resume", metavar="ID", help="go on with this session")
    group.add_argument("--fork-session", action="store_true", help="as a new session; the old one stays as it is")
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
