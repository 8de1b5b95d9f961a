"""Commands of Ferrule itself: some are answered without a model, some become a prompt, some need a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ...core.model import ModelProvider
from ...core.values import named_value
from ...engine.session import Session
from ...engine.window import estimate, estimate_text, estimate_tools
from ...providers.asked_model import AskedModel
from ...settings.levels import settings_paths, surroundings

ANSWERED: Final[Mapping[str, str]] = {
    "clear": "Forget the conversation so far",
    "compact": "Shorten the conversation so far to a summary; words behind it say what matters",
    "config": "Show the settings that apply",
    "context": "Show what fills the model's window",
    "cost": "Show what the session has cost",
    "help": "List the commands",
    "model": "Show the model, or change it for the prompts that follow",
    "status": "Show the session, its model and its mode",
    "usage": "Show what the session has used",
}
"""Their names with descriptions. None of them asks the model, but `compact`, which asks for the summary."""
ALIASES: Final[Mapping[str, str]] = {"new": "clear", "reset": "clear", "settings": "config", "stats": "usage"}

PROMPTS: Final[Mapping[str, tuple[str, str]]] = {
    "init": (
        "Write or improve CLAUDE.md for this project",
        """\
Write a CLAUDE.md at the root of this project: the instructions that a coding agent reads before it works here.

First look around: the README, what builds and tests the project, its configuration, CI, the main folders, and \
instructions for other agents (AGENTS.md, .cursorrules, .cursor/rules, .github/copilot-instructions.md). Then write \
what somebody who is new to the project would not find out quickly by reading a few files:

- the commands to build, to check and to test, and how to run one test
- how the parts fit together, as far as that takes several files to see
- conventions that the code follows and that no tool enforces

Leave out what is obvious, what any engineer knows, lists of files, and anything that you did not find in the project. \
Keep it short. If there is a CLAUDE.md, improve it and keep what is right.""",
    ),
    "review": (
        "Review a pull request, or the changes of the working tree",
        """\
Review code. What to review is named at the end; if nothing is, it is the current branch and its uncommitted changes, \
compared with the branch that it would be merged into. For a pull request use `gh pr view` and `gh pr diff`.

Read the whole change first, then the code around it that it depends on or that depends on it. Report, the gravest \
first: faults (what goes wrong, with which input), risks to security and data, missing or useless tests, and what \
makes the code harder to work with. Give file and line for each, say why it matters and what would be better, and \
check each against the code before you name it. Say so if you found nothing. Change nothing.""",
    ),
    "security-review": (
        "Look for weaknesses in the changes of this branch",
        """\
Look for weaknesses of security in the changes of the current branch, compared with the branch that it would be merged \
into, uncommitted ones included. Follow what comes from outside (requests, files, arguments, the environment) to where \
it is used: commands, queries, paths, deserialisation, templates, redirects, requests to other hosts, access control, \
secrets, cryptography.

Report only what an attacker could use, each with file and line, how it is used, how grave it is and how to close it. \
Check each against the code, and drop what you are not sure of. Say so if you found nothing. Change nothing.""",
    ),
}
"""Their descriptions, and what the model reads instead; arguments are put behind it."""

ELSEWHERE: Final[Mapping[str, str]] = {
    "add-dir": "Start with `--add-dir FOLDER`.",
    "agents": "They are files in `.claude/agents`; see docs/agents.md.",
    "doctor": "Run `ferrule doctor`.",
    "exit": "The conversation ends when its input does.",
    "export": "`ferrule sessions` lists conversations and where they are kept.",
    "hooks": "They are in the settings files; see docs/hooks.md.",
    "login": "Set ANTHROPIC_API_KEY, or `apiKeyHelper` in your settings.",
    "logout": "Unset ANTHROPIC_API_KEY.",
    "mcp": "Run `ferrule mcp list`.",
    "memory": "Instructions are in CLAUDE.md files; edit them.",
    "permissions": "Run `ferrule explain`, or edit `permissions` in the settings.",
    "quit": "The conversation ends when its input does.",
    "resume": "Start with `--resume ID`; `ferrule sessions` lists them.",
    "rewind": "Start with `--resume ID --fork-session`.",
    "statusline": "It is `statusLine` in the settings, and needs a terminal.",
    "theme": "It is `theme` in the settings, and needs a terminal.",
    "vim": "It needs a terminal.",
}
"""Commands that need a terminal, and what does the same without one."""


class NotAnswered(Exception):
    """The command cannot be carried out. The message says why, and what to do."""


@named_value
class CommandGround:
    """What a command may look at and change."""

    session: Session
    model: AskedModel
    """That of the conversation."""
    open_model: Callable[[str], ModelProvider] | None = None
    """Raises `ValueError`, with a message."""
    described: Callable[[], Iterable[tuple[str, str, str]]] = tuple
    """Every command with its description and its arguments."""


def describe_own() -> Iterator[tuple[str, str, str]]:
    """Each command with its description and its arguments."""
    hints = {"compact": "[words]", "model": "[name]", "review": "[pull request]"}
    described = {**ANSWERED, **{name: words for name, (words, _) in PROMPTS.items()}}
    yield from ((name, words, hints.get(name, "")) for name, words in sorted(described.items()))


def prompt_for(name: str, arguments: str) -> str | None:
    """What the model reads instead of one of `PROMPTS`."""
    if name not in PROMPTS:
        return None
    return "\n\n".join(filter(None, (PROMPTS[name][1], arguments)))


async def answer_command(name: str, arguments: str, ground: CommandGround) -> str | None:
    """The answer to one of `ANSWERED`; `None` for any other name. Raises `NotAnswered`."""
    if name in ELSEWHERE:
        raise NotAnswered(f"/{name} needs a terminal. {ELSEWHERE[name]}")
    match ALIASES.get(name, name):
        case "clear":
            ground.session.clear(ground.model)
            return "The conversation was cleared."
        case "compact":
            return await _compact(arguments, ground)
        case "context":
            return _context(ground)
        case "help":
            return _help(ground)
        case "model":
            return _model(arguments, ground)
        case "cost" | "usage":
            return _spending(ground.session)
        case "config" | "status":
            return _status(ground)
        case _:
            return None


async def _compact(words: str, ground: CommandGround) -> str:
    session, model = ground.session, ground.model
    if not session.history:
        raise NotAnswered("There is nothing to compact yet. Resume a conversation with --resume or --continue.")
    before = _tokens(session)
    if not await session.compact(model, words, entirely=True):
        raise NotAnswered("The conversation was not compacted: a hook prevents it, or the model wrote no summary.")
    if session.transcript:
        await session.transcript.end_turn("end", "")
    return f"The conversation was compacted: from about {before:,} tokens to {_tokens(session):,}."


def _tokens(session: Session) -> int:
    return estimate(session.history)


def _context(ground: CommandGround) -> str:
    session, model = ground.session, ground.model
    specs = session.registry.pool.specs_for_request(session.state.found_tools)
    remote = [spec for spec in specs if spec.name.startswith("mcp__")]
    own = [spec for spec in specs if not spec.name.startswith("mcp__")]
    rows = [
        ("System prompt", estimate_text(session.system)),
        ("Tools", estimate_tools(own)),
        ("MCP tools", estimate_tools(remote)),
        ("Messages", _tokens(session)),
    ]
    total = sum(size for _, size in rows)
    window = model.facts.window
    lines = (f"Model: {model.name}", f"Tokens, estimated: {total:,} of {window:,} ({100 * total / window:.0f} %)")
    return "\n".join((*lines, *(f"- {name}: {size:,}" for name, size in rows if size)))


def _help(ground: CommandGround) -> str:
    lines = [f"/{name} {hint}".rstrip() + (f": {words}" if words else "") for name, words, hint in ground.described()]
    return "\n".join(("Commands:", *lines))


def _model(name: str, ground: CommandGround) -> str:
    model = ground.model
    if not name:
        return f"The model is {model.name}."
    if ground.open_model is None:
        raise NotAnswered("The model cannot be changed here. Start with `--model`.")
    try:
        model.model = ground.open_model(name)
    except ValueError as error:
        raise NotAnswered(str(error)) from None
    return f"The model is now {model.name}."


def _spending(session: Session) -> str:
    rows = session.spending.by_model
    if not rows:
        return "Nothing has been spent: no model was asked since the session was opened."
    lines: list[str] = []
    for name, total in rows.items():
        usage = total.usage
        cost = "price unknown" if total.dollars is None else f"${total.dollars:.4f}"
        cost += ", estimated from sizes" if total.is_estimate else ""
        cached = f", {usage.cache_read_tokens:,} from the cache, {usage.cache_write_tokens:,} to it"
        lines.append(f"- {name}: {cost} ({usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{cached})")
    return "\n".join((f"Total cost: ${session.spending.dollars:.4f}", *lines))


def _status(ground: CommandGround) -> str:
    session = ground.session
    places = settings_paths(surroundings(session.workspace, os.environ))
    files = ", ".join(place.path for place in places if os.path.exists(place.path)) or "none"
    lines = (
        f"Session: {session.id}",
        f"Working directory: {session.state.cwd}",
        f"Model: {ground.model.name}",
        f"Permission mode: {session.state.mode}" if session.state.mode else "",
        f"Settings files: {files}",
        "To change a setting, edit one of these files; `--settings` changes it for one run.",
    )
    return "\n".join(filter(None, lines))
