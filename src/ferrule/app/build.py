"""Settings in, a session out. The one place that knows every part."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Unpack

from ..agents.agent_catalog import Agents
from ..agents.agent_kinds import AgentKind
from ..agents.agent_memory import AgentMemory
from ..agents.launcher import MODEL_VARIABLE, AgentLauncher, AgentParts, PartsFor
from ..core.events import ListChanged
from ..core.ids import new_uuid
from ..core.ports import Approver, Lasting, Proposal
from ..core.state import SessionState
from ..core.tool import AnyTool
from ..core.values import named_value
from ..engine.budget import Budget
from ..engine.compaction import Compaction, PlaceNotes, StateNotes
from ..engine.gate import DEFAULT_LIMIT, READING_LIMIT, Gate
from ..engine.pipeline import Pipeline
from ..engine.pool import Layer, Registry, available, features, hiding, without
from ..engine.session import Session
from ..hooks.payloads import SessionFacts
from ..hooks.skill_hooks import HooksOfSkills, load_hooks
from ..host.processes.command_limits import LIMIT_VARIABLES, CommandLimits
from ..host.search.file_search import Search
from ..host.web.search_variables import SEARCH_VARIABLES
from ..permissions.approvals import NobodyToAsk
from ..permissions.classifier import ClassifierJudge
from ..permissions.hiding import hidden_tools
from ..permissions.live_rules import SessionModes
from ..permissions.modes import Mode
from ..providers.small_model import CallReader, PageReader, SmallModel
from ..settings.levels import surroundings
from ..settings.trust_store import TrustStore
from ..skills.activation import ActivatedSkills, LoadedSkills
from ..skills.skill_catalog import Skills
from ..skills.turn_rules import TurnRules, judging_for
from ..tools import BASH_LIMIT, Services, tools_on_demand
from .session_hooks import HookSet, SessionHooks
from .session_services import SessionLauncher, SessionServices, build_services, servers_of
from .session_settings import SessionParts, Settings, reading_door

if TYPE_CHECKING:
    from ..host.web.searching import WebSearches
    from ..host.web.web_pages import WebPages

__all__ = ["Settings", "open_session"]

log = logging.getLogger(__name__)

SIMPLE_TOOLS = ("Bash", "Edit", "Read")
ABOUT_OUTPUT = 1_000
"""Characters of a result for what is said about a command's output."""
LASTING_STATE = {"todos": "todo_list", "plan": "approved_plan"}
"""The state that a compaction must keep, and its description for the model."""


def open_session(
    settings: Settings | None = None, *, session_id: str | None = None, **parts: Unpack[SessionParts]
) -> Session:
    """A session with the built-in tools and yours, under one policy.

    `SessionParts` says what can be plugged in, and the defaults. For
    a session that is kept and can be resumed see `app.kept_sessions`.
    """
    settings = settings or Settings()
    ground = build_services(settings, session_id or new_uuid(), parts)
    delegated = _build_delegation(settings, ground, parts)
    small = SmallModel(
        lambda: parts.get("small_model") or session.provider,
        lambda model, usage: session.spending.add(model.name, usage, model.facts),
    )
    builtin = (
        tools_on_demand(_services(settings, ground, delegated, small, parts)) if parts.get("builtin", True) else ()
    )
    all_tools = (*builtin, *parts.get("tools", ()))
    facts = SessionFacts(
        session_id=ground.session_id,
        project=ground.cwd,
        transcript=lambda: session.transcript_path,
        mode=lambda: str(ground.rules.last_mode),
        kind=delegated.spawner.kind_of,
    )
    session_hooks = SessionHooks(
        settings, ground, facts, small=small, models=parts.get("models"), skills=delegated.skills
    )
    hooks = _hooks(settings, ground, delegated, parts, session_hooks)
    registry = _registry(settings, ground, builtin, all_tools)
    servers = ground.servers
    if servers:
        launcher = SessionLauncher(ground.shell, ground.rules)
        servers.attach(registry, ground.emit, ground.folder.path / "mcp", launcher)
        ground.rules.keeps_from_paths = servers.keeps_from_paths
    session = Session(
        id=ground.session_id,
        workspace=ground.cwd,
        registry=registry,
        pipeline=_pipeline(settings, ground, delegated, hooks, _classifier(ground, small, parts), all_tools, parts),
        state=ground.state,
        compaction=Compaction(
            lasting=_lasting(ground, delegated, lambda: session.transcript_path),
            only_these_stand=(ground.keep_only, delegated.keep_only),
        ),
        bus=ground.bus,
        gate=_gate(settings.max_concurrency),
        note_sources=(
            ground.shell,
            *(hooks.notes if hooks else ()),
            delegated.modes,
            *ground.changes,
        ),
        opening=(servers.start,) if servers else (),
        settling=(servers.wait_until_known,) if servers else (),
        closing=(
            *((hooks.runner.close,) if hooks else ()),
            *((servers.close,) if servers else ()),
            ground.shell.close,  # it ends the programs of servers, which are first asked to end
            session_hooks.close,
            ground.files.close,
        ),
        hooks=hooks.lifecycle if hooks else None,
        is_planning=lambda: ground.rules.last_mode is Mode.PLAN,
        wait_for_report=ground.shell.wait_for_report,
    )
    session_hooks.attach(session)
    delegated.spawner.attach(session, _with_own_servers(session_hooks.parts_for_agent, settings, ground, parts))
    if "agents" not in parts:  # whoever made them has their warnings
        _warn(delegated.spawner.agents, delegated.skills)
    return session


def _lasting(ground: SessionServices, delegated: _Delegated, transcript: Callable[[], str]) -> tuple[Lasting, ...]:
    """What the model is told again after a compaction."""
    spawner = delegated.spawner
    return (
        PlaceNotes(spawner.states, transcript),
        delegated.modes,
        StateNotes(spawner.states, LASTING_STATE),
        ground.files,
        ground.shell,
        LoadedSkills(lambda agent: spawner.at_work[agent].history if agent in spawner.at_work else ()),
    )


@named_value
class _Delegated:
    """What other agents, skills and modes share with the session."""

    modes: SessionModes
    turn_rules: TurnRules
    skills: Skills | None
    activated: ActivatedSkills | None
    spawner: AgentLauncher

    def keep_only(self, agent: str, call_ids: frozenset[str]) -> None:
        """Only the results of these calls can still be read."""
        if self.activated:
            self.activated.keep_only(agent, call_ids)


def _build_delegation(settings: Settings, ground: SessionServices, parts: SessionParts) -> _Delegated:
    states: dict[str, SessionState] = {}
    skills = parts.get("skills") or (Skills(settings.pages) if settings.pages else None)
    spawner = AgentLauncher(
        parts.get("agents") or Agents(settings.pages, settings.agents),
        caps=settings.agent_caps,
        models=parts.get("models"),
        model={**os.environ, **settings.environment}.get(MODEL_VARIABLE, ""),
        brief=parts.get("brief", lambda kind: ""),
        memory=AgentMemory(surroundings(settings.cwd, os.environ), lambda path: reading_door(settings).objection(path)),
        skill_text=partial(_skill_text, skills),
        note_sources=ground.changes,
        states=states,
    )
    return _Delegated(
        modes=SessionModes(ground.rules, ground.state, approvable=_can_answer(parts)),
        turn_rules=TurnRules(
            states,
            judging_for(ground.places),
            turn_of=lambda agent: spawner.at_work[agent].turn,
            check=lambda hooks: load_hooks(hooks, ground.cwd),
        ),
        skills=skills,
        activated=ActivatedSkills(skills, ground.cwd) if skills else None,
        spawner=spawner,
    )


def _can_answer(parts: SessionParts) -> bool:
    """Whether somebody answers questions and approves plans."""
    return parts.get("questioner") is not None or parts.get("approver_answers", False)


def _with_own_servers(
    parts_for: PartsFor, settings: Settings, ground: SessionServices, parts: SessionParts
) -> PartsFor:
    """With the servers that the file of an agent defines, from its start to its end."""

    def parts_with_servers(kind: AgentKind, agent: str) -> AgentParts:
        of_agent = parts_for(kind, agent)
        configs = settings.servers_of_agent(kind) if kind.own_servers and settings.servers_of_agent else ()
        if not configs:
            return of_agent
        servers = servers_of(replace(settings, servers=configs), parts.get("questioner"))

        def attach(child: Session) -> None:
            of_agent.attach(child)
            launcher = SessionLauncher(ground.shell, ground.rules)
            servers.attach(child.registry, child.pipeline.emit, ground.folder.path / "mcp", launcher)
            child.opening = (*child.opening, servers.start)
            child.settling = (*child.settling, servers.wait_until_known)
            child.closing = (servers.close, *child.closing)

        return replace(of_agent, attach=attach)

    return parts_with_servers


def _services(
    settings: Settings, ground: SessionServices, delegated: _Delegated, small: SmallModel, parts: SessionParts
) -> Services:
    folder = ground.folder.path
    return Services(
        files=ground.files,
        search=Search(hidden=ground.rules.hides, secrets=ground.rules.secrets),
        shell=ground.shell.get,
        analyse=parts.get("analyse"),
        command_limits=_command_limits(settings),
        bash_limit=_bash_limit(settings),
        bash_keep=settings.result_keep,
        concise=settings.concise,
        mcp=ground.servers,
        parts_folder=folder / "parts",
        read_tokens=settings.read_tokens,
        reminder=settings.reminder,
        reminder_off_for=settings.reminder_off_for,
        pages=partial(_web_pages, ground),
        extractor=parts.get("extractor") or PageReader(small),
        searches=_searches(os.environ),
        questioner=parts.get("questioner"),
        approver_answers=parts.get("approver_answers", False),
        modes=delegated.modes,
        skills=delegated.skills,
        skill_rules=delegated.turn_rules,
        spawner=delegated.spawner,
    )


def _web_pages(ground: SessionServices) -> WebPages:
    """Made when WebFetch is, as few sessions fetch anything."""
    from ..host.web.fetching import Fetcher
    from ..host.web.web_pages import WebPages

    return WebPages(fetcher=Fetcher(local_hosts=ground.rules.names_host), folder=ground.folder.path / "web")


def _gate(limit: int) -> Gate:
    """Calls that only read have lanes of their own, unless somebody has chosen a limit, which is one for all."""
    return Gate(limit, reading=READING_LIMIT if limit == DEFAULT_LIMIT else None)


def _registry(
    settings: Settings, ground: SessionServices, builtin: Iterable[AnyTool], all_tools: Iterable[AnyTool]
) -> Registry:
    emit = ground.emit
    return Registry(
        all_tools,
        features(settings.features),
        _chosen_layer(settings, builtin),
        hiding(hidden_tools(settings.rules, ground.places)),
        available(),
        changed=lambda names: emit(ListChanged("tools", names)),
    )


def _approver(settings: Settings, ground: SessionServices, parts: SessionParts) -> Approver:
    approver, person = parts.get("approver"), parts.get("person")
    if approver is None and person is not None:
        from ..permissions.suggesting import make_approver

        return make_approver(person, ground.rules, ground.state, ground.cwd, TrustStore(settings.state_folder))
    return approver or NobodyToAsk(lambda proposal: _suggest(proposal, ground), _doubts)


def _doubts(proposal: Proposal) -> tuple[str, ...]:
    """Why it is not known what a command would do."""
    command = proposal.arguments.get("command")
    if proposal.tool.name != "Bash" or not isinstance(command, str):
        return ()
    from ..bash_analysis.analysis import analyse

    return tuple(
        one.rstrip(".") for one in analyse(command, cwd=proposal.ctx.cwd, home=os.path.expanduser("~")).reasons
    )


def _suggest(proposal: Proposal, ground: SessionServices) -> tuple[str, ...]:
    """Loaded with the first call that is refused."""
    from ..permissions.suggesting import suggest_for_call

    return suggest_for_call(proposal, ground.rules, ground.cwd)


def _hooks(
    settings: Settings, ground: SessionServices, delegated: _Delegated, parts: SessionParts, session_hooks: SessionHooks
) -> HookSet | None:
    """If none are configured, none can appear later, so they cost nothing."""
    own = tuple(parts.get("hooks", ()))
    if not (own or settings.hooks or settings.reload or delegated.skills):
        return None
    of_skills = HooksOfSkills(delegated.turn_rules, delegated.spawner.at_work, ground.cwd) if delegated.skills else None
    return session_hooks.make_set(own, of_skills, _approver(settings, ground, parts))


def _pipeline(
    settings: Settings,
    ground: SessionServices,
    delegated: _Delegated,
    hooks: HookSet | None,
    classifier: ClassifierJudge,
    tools: Iterable[AnyTool],
    parts: SessionParts,
) -> Pipeline:
    ledgers = ground.files.ledgers
    return Pipeline(
        paths=ground.paths,
        judges=(
            ground.rules,
            *((delegated.turn_rules,) if delegated.skills else ()),
            *((hooks.judge,) if hooks else ()),
            hooks.reporting(classifier) if hooks else classifier,
            *parts.get("judges", ()),
        ),
        approver=hooks.approver if hooks else _approver(settings, ground, parts),
        after=(
            *(hooks.after if hooks else ()),
            *((delegated.activated,) if delegated.activated else ()),
            *parts.get("after", ()),
        ),
        emit=ground.emit,
        budget=Budget(
            spill=ground.folder,
            limits=_limits(settings, tools),
            keep=settings.result_keep,
            message_limit=settings.message_limit,
        ),
        time_limits=settings.time_limits,
        cut=lambda agent, call_id: ledgers.of(agent).not_shown(call_id),
    )


def _classifier(ground: SessionServices, small: SmallModel, parts: SessionParts) -> ClassifierJudge:
    """That of the program; otherwise a small model, which only the mode `auto` asks."""
    plugged, rules = parts.get("classifier"), ground.rules
    return ClassifierJudge(
        plugged or CallReader(small),
        rules=rules.judge,
        mode=lambda: rules.last_mode,
        hold=rules.hold,
        always=plugged is not None,
    )


def _warn(agents: Agents, skills: Skills | None) -> None:
    """Warnings about skipped files, once all are found."""
    for warning in (*agents.warnings, *(skills.warnings if skills else ())):
        log.warning("%s", warning)


def _skill_text(skills: Skills | None, name: str) -> str | None:
    skill = skills.all.get(name) if skills else None
    return skill.body if skill else None


def _chosen_layer(settings: Settings, builtin: Iterable[AnyTool]) -> Layer:
    """Only built-in tools are filtered: a tool that is passed to the session is always kept."""
    if settings.simple:
        kept, why = frozenset(SIMPLE_TOOLS), "simple mode has only Bash, Edit and Read"
    else:
        kept, why = settings.only_tools, "it is not among the tools chosen for this run"
    named = {tool.name: {tool.name, *(alias.name for alias in tool.aliases)} for tool in builtin}
    left_out = [name for name, names in named.items() if kept is not None and not names & kept]
    return without(left_out, why)


def _searches(environ: Mapping[str, str]) -> WebSearches | None:
    """The services are loaded only if one is configured."""
    if not any(environ.get(name) for name in SEARCH_VARIABLES):
        return None
    from ..host.web.backends import load_searches

    return load_searches(environ)


def _bash_limit(settings: Settings) -> int:
    """Bash cuts its own output, because only the command's file has all of it."""
    own = _command_limits(settings)
    usual = own.output + ABOUT_OUTPUT if own and own.output else BASH_LIMIT
    limit = settings.result_limits.get("Bash", settings.result_limit or usual)
    return usual if limit is None else limit


def _limits(settings: Settings, tools: Iterable[AnyTool]) -> Mapping[str, int | None]:
    limited: dict[str, int | None] = {"Bash": _bash_limit(settings)}
    if settings.result_limit is not None:
        limited = {tool.name: settings.result_limit for tool in tools if tool.result_limit is not None}
    return {**limited, **settings.result_limits}


def _command_limits(settings: Settings) -> CommandLimits | None:
    """`None` for the usual ones."""
    environ = {**os.environ, **settings.environment}
    return CommandLimits.from_environment(environ) if any(environ.get(name) for name in LIMIT_VARIABLES) else None
