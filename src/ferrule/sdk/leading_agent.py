"""A conversation that an agent leads: what the head of its file says, as options of the conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..agents.agent_catalog import Agents
from ..agents.agent_kinds import AgentKind
from ..app.session_settings import Settings
from ..core.verdicts import Behavior
from ..hooks.head_hooks import Brought, hooks_from_head
from ..hooks.hook import Hook
from ..permissions.rules import Rule, parse_rules
from .errors import CannotOpen
from .options import Options


def find_kind(name: str, settings: Settings) -> AgentKind:
    """Raises `CannotOpen`."""
    kinds = Agents(settings.pages, settings.agents)
    kind = kinds.get(name)
    if kind is None:
        raise CannotOpen(f"No agent is named {name}. Available: {', '.join(kinds.all)}.")
    return kind


def denied_to(kind: AgentKind) -> tuple[Rule, ...]:
    return tuple(parse_rules(kind.without, Behavior.DENY, f"the agent {kind.name}"))


def led_by(
    kind: AgentKind, options: Options, settings: Settings, warn: Callable[[str], None]
) -> tuple[Options, Settings]:
    """With the prompt, model, effort, tools and hooks of an agent of this kind. Raises `CannotOpen`."""
    if unused := ", ".join(f"`{key}`" for key in _unused_keys(kind)):
        warn(f"the agent {kind.name}: {unused}: without an effect on the agent of a conversation.")
    options = replace(
        options,
        system_prompt=kind.prompt if options.system_prompt is None else options.system_prompt,
        model=options.model or (kind.model if kind.model not in ("", "inherit") else None),
        effort=options.effort or kind.effort,
        max_turns=options.max_turns or kind.max_turns,
        hooks=(*options.hooks, *_hooks_of(kind, settings.cwd)),
    )
    if kind.tools is not None and settings.only_tools is None:
        settings = replace(settings, only_tools=frozenset(kind.tools))
    return options, settings


def _unused_keys(kind: AgentKind) -> Iterator[str]:
    if kind.own_servers:
        yield "mcpServers"
    if kind.memory:
        yield "memory"
    if kind.skills:
        yield "skills"
    if kind.isolated:
        yield "isolation"


def _hooks_of(kind: AgentKind, cwd: str) -> tuple[Hook, ...]:
    """All of them, since one may be what its author relies on. Raises `CannotOpen`."""
    if not kind.hooks:
        return ()
    without = f"the conversation with {kind.name} is not opened"
    brought = Brought(path=kind.path, given=kind.hooks, is_trusted=kind.counts, without=without)
    try:
        return hooks_from_head(brought, cwd).all
    except ValueError as error:
        raise CannotOpen(str(error)) from None
