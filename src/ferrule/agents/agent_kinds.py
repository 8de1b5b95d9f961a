"""Kinds of agents: those that are built in, and what the head of a file says of one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final, cast

from ..core.model import Effort
from ..core.values import named_value
from ..settings.definition_files import BadPage, WrittenPage
from ..settings.heads import names_of, number_of, text_of, truth_of

GENERAL: Final = "general-purpose"
LONGEST_DESCRIPTION: Final = 1000

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,63}")
_NARROWING: Final = frozenset({"plan", "dontAsk"})
_EFFORTS: Final[tuple[Effort, ...]] = ("low", "medium", "high", "xhigh", "max")
_MEMORIES: Final = ("user", "project", "local")
_WORKTREE: Final = "worktree"
_KNOWN: Final = frozenset(
    {
        "background",
        "color",
        "description",
        "disallowedTools",
        "effort",
        "hooks",
        "initialPrompt",
        "isolation",
        "maxTurns",
        "mcpServers",
        "memory",
        "model",
        "name",
        "permissionMode",
        "skills",
        "tools",
    }
)
"""The keys of a head; `color` is for terminals."""


@named_value
class AgentKind:
    name: str
    description: str
    prompt: str
    """The system prompt of an agent of this kind."""
    tools: tuple[str, ...] | None = None
    """The tools it has; `None` for those of its parent."""
    without: tuple[str, ...] = ()
    model: str = ""
    """Empty for the model of its parent."""
    mode: str = ""
    """`plan` or `dontAsk`, which only narrow; every other mode is that of the session."""
    max_turns: int | None = None
    skills: tuple[str, ...] = ()
    """Skills whose text it reads first."""
    effort: Effort | None = None
    """`None` for that of its parent."""
    servers: tuple[str, ...] = ()
    """MCP servers whose tools it has, whatever `tools` says."""
    own_servers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Those that are started for it alone, as in `.mcp.json`."""
    memory: str = ""
    """`user`, `project` or `local`: where it keeps what it notes for its successors."""
    isolated: bool = False
    """Whether it works in a git worktree of its own."""
    initial_prompt: str = ""
    """What it is told before the first prompt of a conversation that it leads."""
    background: bool = False
    knows_project: bool = True
    """Whether it gets the project's instructions and the git status."""
    path: str = ""
    hooks: Any = None
    """The hooks in its file; if they cannot run, the agent must not start."""
    counts: bool = True
    """Whether the hooks in its file may run: the folder is trusted, or it is the user's own."""
    warnings: tuple[str, ...] = ()


def kind_of(written: WrittenPage) -> AgentKind:
    """Raises `BadPage` if the file does not describe an agent."""
    head, path = written.page.head, written.path
    name, description = text_of(head, "name"), text_of(head, "description")
    if not name:
        raise BadPage(f"{path} is skipped: it has no `name`")
    if not _NAME.fullmatch(name):
        raise BadPage(f"{path} is skipped: {name[:80]!r} is not a valid name. Use letters, digits, `-` and `_`")
    if not description:
        raise BadPage(f"{path} is skipped: it has no `description`, so the model cannot tell when to use it")
    prompt = written.page.body.strip()
    if not prompt:
        raise BadPage(f"{path} is skipped: it has no text, so the agent would not know what to do")
    mode = text_of(head, "permissionMode")
    model = written.model
    return AgentKind(
        name=name,
        description=description[:LONGEST_DESCRIPTION],
        prompt=prompt,
        tools=_tools(names_of(head, "tools")),
        without=_tools(names_of(head, "disallowedTools")) or (),
        model="" if model == "inherit" else model,
        mode=mode if mode in _NARROWING else "",
        max_turns=number_of(head, "maxTurns"),
        skills=names_of(head, "skills") or (),
        effort=next((one for one in _EFFORTS if one == text_of(head, "effort")), None),
        servers=server_names(head.get("mcpServers")),
        own_servers=own_servers(head.get("mcpServers")) if written.counts else {},
        memory=text_of(head, "memory") if text_of(head, "memory") in _MEMORIES and written.counts else "",
        isolated=text_of(head, "isolation") == _WORKTREE,
        initial_prompt=text_of(head, "initialPrompt"),
        background=truth_of(head, "background", default=False),
        path=path,
        hooks=head.get("hooks"),
        counts=written.counts,
        warnings=tuple(_warnings(written, mode)),
    )


def _tools(given: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Names alone: a specifier in parentheses selects calls, which is the job of rules."""
    if given is None or "*" in given:
        return None
    return tuple(name.partition("(")[0] for name in given)


def _warnings(written: WrittenPage, mode: str) -> Iterator[str]:
    head, path = written.page.head, written.path
    if mode and mode not in (*_NARROWING, "default", "manual"):
        yield f"{path}: `permissionMode: {mode}` is ignored: an agent may not do more than the session."
    for key, allowed in (("effort", _EFFORTS), ("memory", _MEMORIES), ("isolation", (_WORKTREE,))):
        if (said := text_of(head, key)) and said not in allowed:
            yield f"{path}: `{key}: {said[:40]}` is ignored. Available: {', '.join(allowed)}."
    if not written.counts and (own_servers(head.get("mcpServers")) or text_of(head, "memory")):
        yield f"{path}: `mcpServers` and `memory` are ignored until the folder is trusted: `ferrule trust`."
    if unknown := sorted(key for key in head if key not in _KNOWN):
        yield f"{path}: {', '.join(f'`{key[:40]}`' for key in unknown[:5])} is not used."


def server_names(given: Any) -> tuple[str, ...]:
    """Of all servers that it names or defines."""
    match given:
        case str():
            return tuple(name.strip() for name in given.split(",") if name.strip())
        case list():
            named = (server_names(one) if isinstance(one, str) else tuple(own_servers(one)) for one in cast(Any, given))
            return tuple(name for names in named for name in names)
        case _:
            return tuple(own_servers(given))


def own_servers(given: Any) -> dict[str, Any]:
    """Those that it defines, by name."""
    match given:
        case dict():
            defined = cast(dict[Any, Any], given)
            return {name: entry for name, entry in defined.items() if isinstance(name, str) and isinstance(entry, dict)}
        case list():
            return {name: entry for one in cast(list[Any], given) for name, entry in own_servers(one).items()}
        case _:
            return {}


_WORK: Final = """\
You are one agent among several that work on a task together. The one who gave you the task does not see how you work \
and reads only your last message, so that message must contain everything that was asked for: what you found or did, \
the files it concerns as absolute paths, and what you could not do. Do what was asked and nothing more. Nobody answers \
questions; if something is unclear, take the likeliest reading and say so."""

_LOOKING: Final = f"""\
You explore a code base and report what is there. You change nothing.

Find files by name with Glob and by content with Grep, and Read what matters. Begin broadly and narrow down; look \
under more than one name; make calls side by side when they do not depend on each other. Stop when the question \
is answered.

{_WORK}"""

_PLANNING: Final = f"""\
You plan how a change is to be made. You change nothing.

First understand what is there: the parts that the change concerns, how similar things are done, what tests \
exist. Then give a plan: the files to change and what in each, in which order, what can go wrong, how it is tested, \
and the few files that matter most. Where there are several ways, name them and choose one.

{_WORK}"""

_COMMANDS: Final = f"""\
You run commands in a shell and report the result: what you ran, how it ended, and the output that matters.

{_WORK}"""

BUILT_IN: Final = (
    AgentKind(
        name=GENERAL,
        description="For work in several steps that would fill your conversation with what you do not need to keep.",
        prompt=_WORK,
    ),
    AgentKind(
        name="Explore",
        description="Finds out where something is and how it works. Reads only, so it is quick and safe. Say how "
        "thoroughly it should look.",
        prompt=_LOOKING,
        tools=("Glob", "Grep", "Read"),
        knows_project=False,
    ),
    AgentKind(
        name="Plan",
        description="Looks at the code and lays out how to make a change. Reads only.",
        prompt=_PLANNING,
        tools=("Glob", "Grep", "Read"),
        knows_project=False,
    ),
    AgentKind(
        name="Bash",
        description="Runs commands whose output is long or that take several tries: builds, tests, git.",
        prompt=_COMMANDS,
        tools=("Bash", "KillShell", "TaskOutput"),
        knows_project=False,
    ),
)
