"""A session with all of the model's instructions: prompt, environment, and what folders add later."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import date
from typing import TYPE_CHECKING, Unpack

from ..agents.agent_catalog import Agents
from ..agents.agent_kinds import AgentKind
from ..core.values import named_value
from ..core.verdicts import Behavior
from ..engine.session import Session
from ..engine.spending import TurnLimits
from ..host.git.checkouts import checkout_of
from ..instructions.instruction_loading import Reader
from ..instructions.instruction_places import starting_places
from ..instructions.nested import NestedInstructions
from ..instructions.output_styles import DEFAULT, OutputStyles
from ..instructions.prompt import Situation, describe_situation, environment, system_prompt
from ..instructions.prompt import surroundings as told_around
from ..settings.levels import Level, surroundings
from ..settings.reload import EVERY_LEVEL
from ..skills.skill_catalog import Skills
from .build import open_session
from .kept_sessions import begin_session, list_sessions, resume_session
from .session_services import servers_if_any
from .session_settings import SessionParts, Settings, reading_door
from .slash_commands import SlashCommands

if TYPE_CHECKING:
    from ..mcp.server_connection import ServerConnection
    from ..mcp.servers import McpServers


@named_value
class ModelBriefing:
    """Instructions for the model besides the prompt."""

    base: str | None = None
    """Instead of the built-in instructions."""
    append: str | None = None
    levels: frozenset[Level] = EVERY_LEVEL
    """The levels whose instructions apply."""
    trusting: bool = False
    """Whether a project's instructions may import files from outside the project."""


@named_value
class Which:
    """The conversation to open: a new one unless a kept one is named."""

    resume: str | None = None
    latest: bool = False
    """The one that was used last in the working directory, or a new one if there is none."""
    fork: bool = False
    """Resume it under a new id, and leave the original unchanged."""
    session_id: str | None = None
    """The id of a new one, or of a fork."""
    fork_at: str | None = None
    """The id of the last entry that a fork takes over; `None` for all of them."""
    is_kept: bool = True
    """Whether a new one is written to disk, so that it can be resumed."""


@named_value
class OpenedSession:
    session: Session
    servers: McpServers | None
    commands: SlashCommands
    """What a person may ask for with a slash."""
    tell: Callable[[], None]
    """Tell the model what is available now: tools of servers may have come since the session was opened."""
    style: str
    """The name of the output style."""
    styles: tuple[str, ...]
    """The output styles that could be chosen."""
    warnings: tuple[str, ...]
    """For a person: instructions, skills and agents that were left out, and why."""

    @property
    def connections(self) -> tuple[ServerConnection, ...]:
        """To the servers."""
        return self.servers.connections if self.servers else ()

    async def wait_for_servers(self, seconds: float) -> None:
        """Wait for servers whose tools are not known yet, at most this long. Only before the first request."""
        if any(server.is_awaited for server in self.connections):
            await self.session.settled(seconds)
            self.tell()


def open_conversation(
    settings: Settings,
    telling: ModelBriefing | None = None,
    which: Which | None = None,
    *,
    limits: TurnLimits | None = None,
    **parts: Unpack[SessionParts],
) -> OpenedSession:
    """Raises `TranscriptError` if the conversation does not exist, or its id is taken."""
    telling = telling or ModelBriefing()
    checkout = checkout_of(settings.cwd)
    inside = (settings.cwd, *settings.added_directories, *((checkout.root,) if checkout else ()))
    door = reading_door(settings)
    reader = Reader(roots=tuple(map(os.path.realpath, inside)), trusting=telling.trusting, door=door)
    found = reader.read(starting_places(surroundings(settings.cwd, os.environ), telling.levels))
    nested = NestedInstructions(settings.cwd, reader, telling.levels, [one for one in found if one.paths])
    servers = parts.get("mcp") or servers_if_any(settings, parts.get("questioner"))
    skills = parts.get("skills") or (Skills(settings.pages) if settings.pages else None)
    agents = Agents(settings.pages, settings.agents)
    styles = OutputStyles(settings.pages)
    style = styles.find(settings.output_style)
    always = [one for one in found if not one.paths]
    today = date.today()
    surrounding = environment(settings.cwd, settings.added_directories, today)
    alone = environment(settings.cwd, settings.added_directories, today, with_git=False)

    situation = describe_situation(_situation(settings, parts))

    def brief(kind: AgentKind) -> str:
        return told_around(always, surrounding) if kind.knows_project else told_around((), alone)

    own: SessionParts = {
        **parts,
        "after": (nested, *parts.get("after", ())),
        "mcp": servers,
        "brief": brief,
        "skills": skills,
        "agents": agents,
    }
    session = _session(settings, which or Which(), own)
    door.follow(session.state)
    session.limits = limits or TurnLimits()
    session.compaction.only_these_stand += (nested.keep_only,)

    def tell() -> None:
        session.system = system_prompt(
            base=telling.base,
            append=telling.append,
            style=style,
            instructions=always,
            deferred=session.registry.pool.deferred,
            environment=f"{surrounding}\n{situation}",
        )

    tell()
    commands = SlashCommands(session, skills, servers, objection=door.objection, open_model=parts.get("models"))
    return OpenedSession(
        session=session,
        servers=servers,
        commands=commands,
        tell=tell,
        style=style.name if style else DEFAULT,
        styles=styles.names,
        warnings=(
            *reader.warnings,
            *(skills.warnings if skills else ()),
            *agents.warnings,
            *_style_warnings(styles, settings.output_style),
        ),
    )


def _situation(settings: Settings, parts: SessionParts) -> Situation:
    answers = bool(parts.get("questioner") or parts.get("approver_answers"))
    texts = {behavior: list[str]() for behavior in Behavior}
    for rule in settings.rules:
        texts[rule.behavior].append(rule.text)
    return Situation(
        mode=settings.mode.value,
        approves=answers or bool(parts.get("approver") or parts.get("person")),
        answers=answers,
        allowed=tuple(dict.fromkeys(texts[Behavior.ALLOW])),
        denied=tuple(dict.fromkeys(texts[Behavior.DENY])),
    )


def _style_warnings(styles: OutputStyles, chosen: str) -> Iterator[str]:
    yield from styles.warnings
    if chosen and chosen.lower() != DEFAULT and styles.find(chosen) is None:
        available = ", ".join(styles.names)
        yield f"`outputStyle`: no style is named {chosen!r}, so the default is used. Available: {available}."


def _session(settings: Settings, which: Which, parts: SessionParts) -> Session:
    if not which.is_kept:
        return open_session(settings, session_id=which.session_id, **parts)
    latest = list_sessions(settings)[:1] if which.latest else ()
    kept = which.resume or next((one.id for one in latest), None)
    if kept is None:
        return begin_session(settings, session_id=which.session_id, **parts)
    return resume_session(kept, settings, fork=which.fork, fork_id=which.session_id, fork_at=which.fork_at, **parts)
