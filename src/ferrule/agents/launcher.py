"""Starts agents: a session inside a session, with its own history and no more permissions than its parent.

An agent's calls pass the judges, the approver and the one gate of the whole
session, at the place of the call that started it. What it has seen of files, its
working directory and its transcript are its own.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from ..core.context import ToolContext
from ..core.events import AgentStarted, TurnEnded
from ..core.model import ModelFacts, ModelProvider, Usage
from ..core.ports import AfterCall, Approver, Judge, NoteSource, TurnHooks
from ..core.state import SessionState
from ..core.values import named_value
from ..engine.gate import Ticket
from ..engine.message_history import MessageHistory, last_answer
from ..engine.pool import Registry
from ..engine.session import Session
from ..engine.spending import Spending, TurnLimits
from .agent_catalog import Agents
from .agent_kinds import AgentKind
from .caps import COUNT_VARIABLE, DEPTH_VARIABLES, Caps
from .narrowing import AsksNobody, OnlyLooks, tools_of

if TYPE_CHECKING:
    from ..host.git.worktrees import Worktree

SERVERS_WITHIN: Final = 10.0
"""Seconds that an agent waits for servers of its own."""
_IN_WORKTREE: Final = """\
You work in a git worktree of your own: {}. It is your working directory and has the files of the last commit; changes \
that were not committed are not in it. Work only there, with relative paths."""
MODEL_VARIABLE: Final = "CLAUDE_CODE_SUBAGENT_MODEL"
"""The model of all agents, whatever their kinds and calls say."""


class NotStarted(Exception):
    """The agent was not started. The message says why and what to do."""


@named_value
class Errand:
    """One task for one agent."""

    kind: AgentKind
    title: str
    prompt: str
    model: str = ""
    """Empty for what the kind says."""
    isolated: bool = False
    """Whether it is done in a git worktree, also where the kind does not say so."""


@named_value
class AgentReport:
    """The result of an errand."""

    id: str
    kind: str
    text: str
    """The text of the agent's last message."""
    ended: TurnEnded
    usage: Usage
    calls: int
    seconds: float


class ModelSource(Protocol):
    """Gives a provider for the name of a model. Raises `ValueError`, with a message, for one that does not exist."""

    def __call__(self, name: str, /) -> ModelProvider: ...


@named_value
class AgentParts:
    """What hooks add to one agent."""

    turns: TurnHooks | None = None
    judges: tuple[Judge, ...] = ()
    after: tuple[AfterCall, ...] = ()
    approver: Callable[[Approver], Approver] = lambda approver: approver
    """Wraps the approver."""
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()
    attach: Callable[[Session], None] = lambda session: None
    """Given its session before it begins."""


PartsFor: TypeAlias = Callable[[AgentKind, str], AgentParts]
"""For an agent of a kind, by its name. Raises `ValueError`, with words, where it must not be started."""
Brief: TypeAlias = Callable[[AgentKind], str]
"""What an agent of a kind gets besides its own prompt: the environment, the project's instructions."""
MemoryText: TypeAlias = Callable[[AgentKind], str]
"""What an agent of a kind is told of its memory; empty if it has none."""
SkillText: TypeAlias = Callable[[str], str | None]
"""The text of a skill by its name; `None` if it does not exist."""


@dataclass(slots=True)
class SharedSpending(Spending):
    """Adds to the spending of an agent and of the session that it belongs to, whose budget it uses."""

    of_session: Spending = field(default_factory=Spending)

    def add(self, model: str, usage: Usage, facts: ModelFacts) -> None:
        Spending.add(self, model, usage, facts)
        self.of_session.add(model, usage, facts)

    @property
    def dollars(self) -> float:
        return self.of_session.dollars


class AgentLauncher:
    """One per session. `states` is filled with the state of each agent at work, by its name."""

    def __init__(
        self,
        agents: Agents,
        *,
        caps: Caps | None = None,
        models: ModelSource | None = None,
        model: str = "",
        brief: Brief = lambda kind: "",
        memory: MemoryText = lambda kind: "",
        skill_text: SkillText = lambda name: None,
        note_sources: tuple[NoteSource, ...] = (),
        states: MutableMapping[str, SessionState] | None = None,
    ) -> None:
        """`model` names that of all agents, if it is not empty; `models` opens it."""
        self.agents = agents
        self.caps = caps or Caps()
        self.states: MutableMapping[str, SessionState] = {} if states is None else states
        self._models = models
        self._model = "" if model.strip() == "inherit" else model.strip()
        self._brief = brief
        self._memory = memory
        self._skill_text = skill_text
        self._note_sources = note_sources
        self._parts: PartsFor = lambda kind, agent: AgentParts()
        self._kinds: dict[str, str] = {}
        self._sessions: dict[str, Session] = {}
        self._numbers = count(1)

    def attach(self, session: Session, parts: PartsFor | None = None) -> None:
        """The session that the first agents belong to, and what is added to each of them."""
        self._parts = parts or self._parts
        self._sessions[session.agent] = session
        self.states[session.agent] = session.state
        session.agents = tuple(self.agents.all)

    @property
    def at_work(self) -> Mapping[str, Session]:
        """Every session by the name of its agent, the outermost included."""
        return self._sessions

    def kind_of(self, agent: str) -> str:
        """Of an agent that was started, by its name. Others are named after their kind, with a number."""
        return self._kinds.get(agent) or agent.rpartition("/")[2].rpartition("_")[0] or agent

    async def run(self, errand: Errand, ctx: ToolContext) -> AgentReport:
        """Carry it out inside of the call. Raises `NotStarted`."""
        child = self.open_session_for(errand, ctx, inside=True)
        return await self.carry_out(errand, child)

    def open_session_for(self, errand: Errand, ctx: ToolContext, *, inside: bool) -> Session:
        """The session of a new agent, and its number taken. The caller must carry it out.

        `inside` of the call its calls take that call's place in the order; otherwise each has its own.
        """
        parent = self._parent(ctx)
        kind = errand.kind
        depth = parent.agent.count("/")
        if depth >= self.caps.depth:
            raise NotStarted(
                f"Agents are nested {depth} deep, which is the limit. Do it yourself. "
                f"({DEPTH_VARIABLES[0]} sets how deep they may be.)"
            )
        if len(self._sessions) > self.caps.at_once:
            raise NotStarted(
                f"{self.caps.at_once} agents are at work, which is the limit. Wait for one to end, then start this one."
                f" ({COUNT_VARIABLE} sets how many there may be.)"
            )
        registry = _registry(parent, kind, deepest=depth + 1 >= self.caps.depth)
        id = f"{kind.name.replace(' ', '-')}_{next(self._numbers)}"
        child = self._session(parent, errand, f"{parent.agent}/{id}", registry, ctx)
        self._kinds[child.agent] = kind.name
        if inside and isinstance(ctx.place, Ticket):
            child.place = ctx.place
            child.gate.stand_aside(ctx.place)
        self._sessions[child.agent] = child
        self.states[child.agent] = child.state
        return child

    async def carry_out(self, errand: Errand, child: Session) -> AgentReport:
        """Raises `NotStarted` where it cannot be done in a worktree as it has to be."""
        assert child.provider is not None, "a prepared agent has a model"
        began = time.monotonic()
        left = ""
        try:
            async with child, self._place_for(errand, child) as place:
                child.pipeline.emit(
                    AgentStarted(child.chain[-1], errand.kind.name, errand.title, model=child.provider.name)
                )
                await child.settled(SERVERS_WITHIN)
                ended = await child.answer(self._first_words(errand, place), child.provider)
                if place is not None and not await place.finish():
                    left = f"\n\n[Its work is in the worktree {place.path}, on the branch {place.branch}.]"
        finally:
            self.dismiss(child)
        return AgentReport(
            id=child.agent.rpartition("/")[2],
            kind=errand.kind.name,
            text=last_answer(child.history).strip() + left,
            ended=ended,
            usage=child.spending.usage,
            calls=child.conversation.calls,
            seconds=time.monotonic() - began,
        )

    @asynccontextmanager
    async def _place_for(self, errand: Errand, child: Session) -> AsyncGenerator[Worktree | None]:
        """The worktree that it works in, if it has one. After an interrupt it stays unless nothing was done there."""
        if not (errand.isolated or errand.kind.isolated):
            yield None
            return
        from ..host.git.worktrees import NoWorktree, make_worktree

        try:
            name = f"{child.agent.rpartition('/')[2]}-{os.urandom(3).hex()}"
            place = await make_worktree(child.state.cwd, re.sub(r"[^A-Za-z0-9_-]", "-", name))
        except NoWorktree as reason:
            raise NotStarted(str(reason)) from None
        child.state.cwd = place.path
        try:
            yield place
        except asyncio.CancelledError:
            await asyncio.shield(place.finish())
            raise

    def dismiss(self, child: Session) -> None:
        """It has finished, and another may start."""
        self._sessions.pop(child.agent, None)
        self.states.pop(child.agent, None)

    def _parent(self, ctx: ToolContext) -> Session:
        parent = self._sessions.get(ctx.facts.agent)
        if parent is None or parent.provider is None:
            raise NotStarted("This session has no model, so no agent can be started.")
        return parent

    def _session(self, parent: Session, errand: Errand, agent: str, registry: Registry, ctx: ToolContext) -> Session:
        kind = errand.kind
        try:
            parts = self._parts(kind, agent)
        except ValueError as error:
            raise NotStarted(str(error)) from None
        narrowing = (OnlyLooks(kind.name),) if kind.mode == "plan" else ()
        pipeline = replace(
            parent.pipeline,
            emit=parent.bus.emitter(agent),
            judges=(*parent.pipeline.judges, *parts.judges, *narrowing),
            approver=parts.approver(AsksNobody() if kind.mode == "dontAsk" else parent.pipeline.approver),
            after=(*parent.pipeline.after, *parts.after),
        )
        before = parent.state
        state = SessionState(ctx.cwd, added_directories=before.added_directories, mode=before.mode)
        of_session = parent.spending.of_session if isinstance(parent.spending, SharedSpending) else parent.spending
        child = Session(
            id=parent.id,
            workspace=parent.workspace,
            registry=registry,
            pipeline=pipeline,
            state=state,
            bus=parent.bus,
            gate=parent.gate,
            conversation=MessageHistory(transcript=parent.transcript.of_agent(agent) if parent.transcript else None),
            transcript_path=parent.transcript_path,
            compaction=parent.compaction.for_agent(),
            hooks=parts.turns,
            closing=parts.closing,
            agent=agent,
            chain=(*ctx.facts.chain, ctx.call_id),
            system="\n\n".join(filter(None, (kind.prompt, self._memory(kind), self._brief(kind)))),
            max_tokens=parent.max_tokens,
            thinking_tokens=parent.thinking_tokens,
            effort=kind.effort or parent.effort,
            is_planning=parent.is_planning,
            limits=TurnLimits(max_turns=kind.max_turns or self.caps.turns, max_budget=parent.limits.max_budget),
            spending=SharedSpending(of_session=of_session),
            note_sources=self._note_sources,
            agents=parent.agents,
            provider=self._choose_model(errand, parent),
        )
        parts.attach(child)
        return child

    def _choose_model(self, errand: Errand, parent: Session) -> ModelProvider | None:
        name = self._model or errand.model or errand.kind.model
        if not name or name == "inherit":
            return parent.provider
        if self._models is None:
            raise NotStarted(f"The model {name} cannot be chosen here. Leave `model` out to use that of this session.")
        try:
            return self._models(name)
        except ValueError as error:
            raise NotStarted(str(error)) from None

    def _first_words(self, errand: Errand, place: Worktree | None) -> str:
        texts = ((name, self._skill_text(name)) for name in errand.kind.skills)
        skills = (f'<skill name="{name}">\n{text}\n</skill>' for name, text in texts if text)
        return "\n\n".join((*skills, *((_IN_WORKTREE.format(place.path),) if place else ()), errand.prompt))


def _registry(parent: Session, kind: AgentKind, *, deepest: bool) -> Registry:
    """What its parent has, as far as its kind may have it. Raises `NotStarted` where nothing is left."""
    pool = parent.registry.pool
    registry = Registry(pool.builtin, tools_of(kind, deepest=deepest))
    for tool in pool.remote:
        registry.add(tool, remote=True)
    if not len(registry.pool):
        raise NotStarted(f"None of the tools of {kind.name} can be used here: {', '.join(kind.tools or ())}.")
    return registry
