"""The hooks of a session, plugged into the engine."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..agents.agent_kinds import AgentKind
from ..agents.launcher import AgentParts, ModelSource
from ..core.calls import ToolOutcome
from ..core.content import plain_text
from ..core.events import Emit
from ..core.ports import Amendment, Approver, Judge, Note, Proposal, SpillStore
from ..core.state import SessionState
from ..core.values import plain_value
from ..engine.compaction import Trigger
from ..engine.session import Session
from ..hooks.after import HookAfter
from ..hooks.hook import NO_HOOKS, Answering, Asked, Books, Hook, HookBook, Payload
from ..hooks.hook_approver import HookApprover, Keep, Suggest, keep_nothing
from ..hooks.hook_judge import CallMemory, HookDenied, HookJudge
from ..hooks.lifecycle import AgentLifecycle, HookMoved, Lifecycle
from ..hooks.payloads import SessionFacts
from ..hooks.runner import Runner
from ..hooks.skill_hooks import HooksOfSkills
from ..permissions.approvals import NobodyToAsk
from ..permissions.live_rules import LiveRules, PolicyLost
from ..providers.small_model import SmallModel
from ..skills.definition import SkillDefinition
from ..skills.skill_catalog import Skills
from .headless_run import shape_if_known
from .session_settings import SessionRules

if TYPE_CHECKING:
    from ..hooks.reply_parsing import Save
    from ..hooks.worker import Worker
    from ..mcp.servers import McpServers


def agent_hooks(
    session: HookParts | None, make: MakeParts, scene: SessionFacts, skills: Skills | None
) -> Callable[[AgentKind, str], AgentParts]:
    """For each agent its own; raises `ValueError` for one whose hooks cannot be run."""

    def parts(kind: AgentKind, agent: str) -> AgentParts:
        book = _book(kind, skills.all if skills and kind.skills else {}, scene.project)
        own = make(book, NobodyToAsk()) if book else None
        told: list[Lifecycle] = [one.lifecycle for one in (session, own) if one]
        if not told:
            return AgentParts()
        turns = AgentLifecycle(told, agent=agent.rpartition("/")[2], kind=kind.name, transcript=scene.transcript)
        attach = partial(tell_of_agents_compactions, lifecycle=turns)
        if own is None:
            return AgentParts(turns=turns, attach=attach)
        return AgentParts(
            turns=turns,
            attach=attach,
            judges=(own.judge,),
            after=own.after,
            approver=own.approver.before,
            closing=(own.runner.close,),
        )

    return parts


def _book(kind: AgentKind, skills: Mapping[str, SkillDefinition], workspace: str) -> HookBook:
    """Its own, and those of the skills whose text it begins with."""
    without = f"{kind.name} is not started"
    files = [(kind.path, kind.hooks, kind.counts)] if kind.hooks else []
    files += (
        (skill.path, json.loads(skill.hooks), skill.may_run)
        for skill in map(skills.get, kind.skills)
        if skill and skill.hooks
    )
    if not files:
        return NO_HOOKS
    from ..hooks.head_hooks import Brought, hooks_from_head

    book = NO_HOOKS
    for path, given, is_trusted in files:
        brought = Brought(path=path, given=given, is_trusted=is_trusted, without=without, by_agent=True)
        book = book.join(hooks_from_head(brought, workspace).all)
    return book


@plain_value
class HookParts:
    """One for each place where hooks run."""

    runner: Runner
    judge: HookJudge
    approver: HookApprover
    after: tuple[HookAfter, HookMoved]
    lifecycle: Lifecycle
    over: Callable[[Judge], HookDenied]
    """Reports what a judge refuses."""


def _response(proposal: Proposal, outcome: ToolOutcome) -> Any:
    """`tool_response` of PostToolUse: in the common shape, or what the model reads."""
    return plain_text(outcome.content) if (known := shape_if_known(outcome)) is None else known


def _reshape(proposal: Proposal, outcome: ToolOutcome, given: object) -> Amendment | None:
    from .tool_responses import amend_output

    return amend_output(outcome, given)


class MakeParts:
    """Makes the parts of any hooks of one session."""

    def __init__(
        self,
        scene: SessionFacts,
        emit: Emit,
        spill: SpillStore,
        environment: Mapping[str, str],
        *,
        variables: Path,
        take: Callable[[Mapping[str, str]], None],
        answering: Answering | None = None,
        keep: Keep = keep_nothing,
        suggest: Suggest = lambda proposal: (),
    ) -> None:
        """`answering` asks the session's models and servers for hooks that are questions.

        `keep` applies their permissions beyond one call, and `suggest` offers rules for that.
        `take` gets what hooks write to the file `variables`.
        """
        self.scene = scene
        self._emit = emit
        self._save = _saving(spill)
        self._environment = environment
        self._answering = answering
        self._keep = keep
        self._suggest = suggest
        self._variables = variables
        self._take = take

    def __call__(self, book: HookBook, approver: Approver) -> HookParts:
        """For hooks that do not change."""
        return self.live(lambda agent, chain: book, approver, lambda: None)

    def live(self, book: Books, approver: Approver, look: Callable[[], None]) -> HookParts:
        """`look` is called at the turning points, to see whether hooks have changed."""
        scene = self.scene
        runner = Runner(book, cache(self._worker))
        memory = CallMemory()
        return HookParts(
            runner,
            HookJudge(runner, scene, memory),
            HookApprover(
                runner,
                scene,
                approver,
                is_somebody=not isinstance(approver, NobodyToAsk),
                keep=self._keep,
                suggest=self._suggest,
            ),
            (HookAfter(runner, scene, memory, response=_response, reshape=_reshape), HookMoved(runner, scene)),
            Lifecycle(runner, scene, look),
            partial(HookDenied, runner, scene),
        )

    async def close(self) -> None:
        """The variables of hooks are removed with the session."""
        with suppress(OSError):
            self._variables.unlink(missing_ok=True)

    def _worker(self) -> Worker:
        """Loaded with the first hook that runs: few sessions have one."""
        from ..hooks.env_file import EnvFile
        from ..hooks.worker import Worker, nobody

        return Worker(
            self._emit,
            project=self.scene.project,
            environment=self._environment,
            save=self._save,
            answering=self._answering or nobody,
            env_file=EnvFile(path=self._variables, take=self._take),
        )


def answering_for(
    session: Callable[[], Session], small: SmallModel, servers: McpServers | None, models: ModelSource | None
) -> Answering:
    """Loaded with the first hook that is a question: few sessions have one."""

    @cache
    def answers() -> Answering:
        from ..hooks.hook_answers import HookAnswers

        return HookAnswers(session, small, servers, models)

    async def answer(asked: Asked, payload: Payload) -> str:
        return await answers()(asked, payload)

    return answer


def keeping_for(state: SessionState, cwd: str, state_folder: Path) -> Keep:
    """Loaded with the first hook that updates permissions: few do."""

    async def keep(wanted: object) -> None:
        from ..hooks.hook_grants import make_hold
        from ..settings.trust_store import TrustStore

        await make_hold(wanted, state, cwd, TrustStore(state_folder))

    return keep


def suggesting_for(rules: LiveRules, cwd: str) -> Suggest:
    """Loaded with the first hook that is asked for a permission."""

    def suggest(proposal: Proposal) -> tuple[str, ...]:
        from ..permissions.suggesting import suggest_rules

        try:
            return suggest_rules(proposal, cwd, lambda texts: rules.would_allow(proposal, texts))
        except PolicyLost:
            return ()

    return suggest


def session_hooks(
    make: MakeParts, rules: SessionRules, own: tuple[Hook, ...], skills: HooksOfSkills | None, approver: Approver
) -> HookParts:
    """The hooks of the settings as `rules` last saw them; before them those of the session itself, and of skills."""
    rules.look()
    return make.live(_SessionHooks(rules, own, skills), approver, rules.look)


def tell_of_compactions(session: Session, lifecycle: Lifecycle) -> None:
    """Hooks run before each one and after it, which is reported as a new start."""

    async def after(trigger: Trigger, summary: str) -> None:
        await lifecycle.compacted(session.state.cwd, trigger=trigger, summary=summary)
        said = await lifecycle.session_started(session.state.cwd, source="compact", model=session.model)
        for text in said.context:
            session.note(Note("hook", text))

    session.compaction.before, session.compaction.after = _before(session, lifecycle), after


def tell_of_agents_compactions(session: Session, lifecycle: AgentLifecycle) -> None:
    """Hooks run before and after each compaction of an agent's conversation."""

    async def after(trigger: Trigger, summary: str) -> None:
        await lifecycle.compacted(session.state.cwd, trigger=trigger, summary=summary)

    session.compaction.before, session.compaction.after = _before(session, lifecycle), after


def _before(session: Session, lifecycle: Lifecycle | AgentLifecycle) -> Callable[[Trigger, str], Awaitable[str | None]]:
    async def before(trigger: Trigger, words: str) -> str | None:
        said = await lifecycle.compacting(session.state.cwd, trigger=trigger, instructions=words)
        return said.stops or said.blocks or None

    return before


class _SessionHooks:
    def __init__(self, rules: SessionRules, own: tuple[Hook, ...], skills: HooksOfSkills | None) -> None:
        self._rules = rules
        self._own = own
        self._skills = skills
        self._seen = NO_HOOKS
        self._joined = HookBook(own)

    def __call__(self, agent: str, chain: Sequence[str] | None) -> HookBook:
        found = self._rules.hooks
        if found is not self._seen:
            self._seen, self._joined = found, found.join(self._own)
        more = self._skills(agent, chain) if self._skills else ()
        return self._joined.join(more) if more else self._joined


def _saving(spill: SpillStore) -> Save:
    def save(text: str) -> str | None:
        try:
            return spill.save("hook", text)
        except OSError:
            return None

    return save
