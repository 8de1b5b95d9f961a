"""What the flags of a prompt mean together: contradictions, files to read, and flags that change nothing."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from .exits import UsageError
from .prompt_flags import UNUSED


def check_prompt(chosen: argparse.Namespace) -> None:
    """Reads the files that flags name into `chosen`, and warns of what is left out. Raises `UsageError`."""
    _check_formats(chosen)
    _check_conversation(chosen)
    _check_permission_prompts(chosen)
    chosen.system_prompt = _text_or_file(chosen, "system-prompt")
    chosen.append_system_prompt = _text_or_file(chosen, "append-system-prompt")
    chosen.agents = None if chosen.agents is None else _parse_agents(chosen.agents)
    if chosen.bare:
        chosen.strict_mcp_config = True
    for warning in _warnings_about(chosen):
        print(f"ferrule: {warning}", file=sys.stderr)


def _check_formats(chosen: argparse.Namespace) -> None:
    streams_in, streams_out = chosen.input_format == "stream-json", chosen.output_format == "stream-json"
    if streams_in and not streams_out:
        raise UsageError("--input-format stream-json needs --output-format stream-json.")
    if streams_in and chosen.prompt:
        raise UsageError("--input-format stream-json reads the prompts from stdin; leave PROMPT out.")
    if chosen.include_partial_messages and not streams_out:
        raise UsageError("--include-partial-messages needs --output-format stream-json.")
    if chosen.replay_user_messages and not streams_in:
        raise UsageError("--replay-user-messages needs --input-format stream-json and --output-format stream-json.")
    if not (streams_in or chosen.prompt) and os.isatty(0):
        raise UsageError(missing_prompt(chosen))


def missing_prompt(chosen: argparse.Namespace) -> str:
    """Says that there is no prompt, and which flag took the word that may have been meant as one."""
    words = "the prompt is missing. Give it as an argument, or pipe it in: `ferrule -p 'What is this?'`."
    if chosen.last_taken is None:
        return words
    flag, word = chosen.last_taken
    takes = "one word, if it is not a flag" if flag in ("-d", "--debug") else "every word up to the next flag"
    return (
        f"the prompt is missing: `{word}` was taken as a value of {flag}, which takes {takes}. "
        "Put the prompt before the flag, or after `--`."
    )


def _check_conversation(chosen: argparse.Namespace) -> None:
    for flag, id in (("--resume", chosen.resume), ("--session-id", chosen.session_id)):
        if id == "":
            raise UsageError(f"{flag}: the id is empty. `ferrule sessions` lists them.")
    resumes = chosen.resume or chosen.latest
    if chosen.resume and chosen.latest:
        raise UsageError("--resume and --continue name two sessions; give one of them.")
    if chosen.resume_session_at and not resumes:
        raise UsageError("--resume-session-at needs --resume ID or --continue.")
    if chosen.resume_session_at:
        chosen.fork_session = True  # a transcript is never shortened
    if chosen.session_id and resumes and not chosen.fork_session:
        raise UsageError("--session-id is for a new session, or with --fork-session.")


def _check_permission_prompts(chosen: argparse.Namespace) -> None:
    if chosen.permission_prompts == "none":
        chosen.permission_prompt_tool = None
    tool = chosen.permission_prompt_tool
    if tool not in (None, "stdio") and not (tool.startswith("mcp__") and tool.count("__") >= 2):
        raise UsageError(f"--permission-prompt-tool: {tool} is neither `stdio` nor a tool such as mcp__server__tool.")


def _text_or_file(chosen: argparse.Namespace, flag: str) -> str | None:
    attribute = flag.replace("-", "_")
    text, path = getattr(chosen, attribute), getattr(chosen, f"{attribute}_file")
    if path is None:
        return text
    if text is not None:
        raise UsageError(f"--{flag} and --{flag}-file say the same; give one of them.")
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--{flag}-file: {path} cannot be read: {error}.") from None


def _parse_agents(text: str) -> Mapping[str, Mapping[str, Any]]:
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--agents is not valid JSON: {error or type(error).__name__}.") from None
    form = '{"NAME": {"description": "...", "prompt": "..."}}'
    if not isinstance(parsed, dict):
        raise UsageError(f"--agents must be a JSON object of the form {form}.")
    agents = cast(dict[str, Any], parsed)
    for name, agent in agents.items():
        if not isinstance(agent, dict) or not all(isinstance(agent.get(key), str) for key in ("description", "prompt")):  # pyright: ignore[reportUnknownMemberType]
            raise UsageError(f"--agents: `{name}` needs a description and a prompt: {form}.")
    return agents


def _warnings_about(chosen: argparse.Namespace) -> Iterator[str]:
    if chosen.fork_session and not (chosen.resume or chosen.latest):
        yield "--fork-session has no effect without --resume ID or --continue."
    if chosen.permission_prompt_tool == "stdio" and chosen.input_format != "stream-json":
        yield "--permission-prompt-tool stdio needs --input-format stream-json, so nobody is asked for permission."
    unused = [flag for flag in UNUSED if getattr(chosen, flag.removeprefix("--").replace("-", "_"))]
    if unused and chosen.verbose:
        yield f"without an effect here: {', '.join(unused)}."
