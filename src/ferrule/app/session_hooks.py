"""The hooks of a session and of its agents, plugged into the engine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ..agents.agent_kinds import AgentKind
from ..agents.launcher import AgentParts, ModelSource
from ..core.calls import ToolOutcome
from ..core.content import plain_text
from ..core.ports import Amendment, Approver, Judge, Note, Proposal, TurnWords
from ..engine.compaction import Trigger
from ..engine.session import Session
from ..hooks.after import HookAfter
from ..hooks.hook import NO_HOOKS, Asked, Books, Hook, HookBook, Payload
from ..hooks.hook_approver import HookApprover
from ..hooks.hook_judge import CallMemory, HookDenied, HookJudge
from ..hooks.lifecycle import AgentLifecycle, HookMoved, Lifecycle
from ..hooks.payloads import SessionFacts
from ..hooks.runner import Runner
from ..hooks.skill_hooks import HooksOfSkills
from ..permissions.approvals import NobodyToAsk
from ..providers.small_model import SmallModel
from ..skills.definition import SkillDefinition
from ..skills.skill_catalog import Skills
from .headless_run import shape_if_known
from .session_services import SessionServices, process_variables
from .session_settings import SessionRules, Settings

if TYPE_CHECKING:
    from ..hooks.hook_answers import HookAnswers
    from ..hooks.worker import Worker


class HookSet:
    """The hooks of the session, or those that one agent adds: a part for each place where hooks run."""

    def __init__(self, of: SessionHooks, book: Books, approver: Approver, *, follows_settings: bool = False) -> None:
        """`follows_settings` has it look for changed hooks at the turning points."""
        self.runner = Runner(book, lambda: of.worker)
        self._facts = of.facts
        memory = CallMemory()
        self.notes = (self.runner, memory)
        self.judge = HookJudge(self.runner, self._facts, memory)
        self.approver = HookApprover(
            self.runner,
            self._facts,
            approver,
            is_somebody=not isinstance(approver, NobodyToAsk),
            keep=of.keep,
            suggest=of.suggest,
        )
        self.after = (
            HookAfter(self.runner, self._facts, memory, response=_response, reshape=_reshape),
            HookMoved(self.runner, self._facts),
        )
        self.lifecycle = Lifecycle(self.runner, self._facts, *((of.rules.look,) if follows_settings else ()))

    def reporting(self, judge: Judge) -> HookDenied:
        """The same judge, whose refusals are reported to hooks."""
        return HookDenied(self.runner, self._facts, judge)


class SessionHooks:
    """Makes the hooks of one session and of its agents, and answers what they ask of it.

    What only a hook that runs needs is loaded with the first one: few sessions have any.
    """

    def __init__(
        self,
        settings: Settings,
        services: SessionServices,
        facts: SessionFacts,
        *,
        small: SmallModel,
        models: ModelSource | None,
        skills: Skills | None,
    ) -> None:
        self.facts = facts
        self.rules = services.rules
        self._settings = settings
        self._services = services
        self._small = small
        self._models = models
        self._skills = skills
        self._variables = settings.state_folder / "variables" / f"{os.urandom(8).hex()}.sh"
        """Hooks write variables for later commands to this file."""
        self._session: Session | None = None
        self._set: HookSet | None = None

    def make_set(self, own: Sequence[Hook], of_skills: HooksOfSkills | None, approver: Approver) -> HookSet:
        """The hooks of the settings as they were last seen; before them `own`, and those of skills."""
        self.rules.look()
        book = _CurrentBook(self.rules, own, of_skills)
        self._set = HookSet(self, book, approver, follows_settings=True)
        return self._set

    def attach(self, session: Session) -> None:
        self._session = session
        if self._set:
            _watch_compactions(session, self._set.lifecycle)

    def parts_for_agent(self, kind: AgentKind, agent: str) -> AgentParts:
        """For an agent of a kind, by its name. Raises `ValueError` for one whose hooks cannot be run."""
        book = self._book_of_agent(kind)
        own = HookSet(self, lambda agent, chain: book, NobodyToAsk()) if book else None
        lifecycles = [hooks.lifecycle for hooks in (self._set, own) if hooks]
        if not lifecycles:
            return AgentParts()
        transcript = self.facts.transcript
        turns = AgentLifecycle(lifecycles, agent=agent.rpartition("/")[2], kind=kind.name, transcript=transcript)
        attach = partial(_watch_compactions, lifecycle=turns)
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

    def _book_of_agent(self, kind: AgentKind) -> HookBook:
        """Its own, and those of the skills whose text it begins with."""
        files = [(kind.path, kind.hooks, kind.counts)] if kind.hooks else []
        skills: Mapping[str, SkillDefinition] = self._skills.all if self._skills and kind.skills else {}
        files += (
            (skill.path, json.loads(skill.hooks), skill.may_run)
            for skill in map(skills.get, kind.skills)
            if skill and skill.hooks
        )
        if not files:
            return NO_HOOKS
        from ..hooks.head_hooks import Brought, hooks_from_head

        book, without = NO_HOOKS, f"{kind.name} is not started"
        for path, given, is_trusted in files:
            brought = Brought(path=path, given=given, is_trusted=is_trusted, without=without, by_agent=True)
            book = book.join(hooks_from_head(brought, self.facts.project).all)
        return book

    async def close(self) -> None:
        """The variables of hooks are removed with the session."""
        with suppress(OSError):
            self._variables.unlink(missing_ok=True)

    # What running hooks need

    @cached_property
    def worker(self) -> Worker:
        from ..hooks.env_file import EnvFile
        from ..hooks.worker import Worker

        return Worker(
            self._services.emit,
            project=self.facts.project,
            environment={
                **os.environ,
                **process_variables(self._settings, self.facts.session_id, self.facts.project),
            },
            save=self._save,
            answering=self.answer,
            env_file=EnvFile(path=self._variables, take=self._services.shell.take),
        )

    def _save(self, text: str) -> str | None:
        try:
            return self._services.folder.save("hook", text)
        except OSError:
            return None

    async def answer(self, asked: Asked, payload: Payload) -> str:
        """Asks the session's models and servers for hooks that are questions."""
        return await self._answers(asked, payload)

    @cached_property
    def _answers(self) -> HookAnswers:
        from ..hooks.hook_answers import HookAnswers

        assert self._session is not None, "hooks run in a session"
        return HookAnswers(self._session, self._small, self._services.servers, self._models)

    async def keep(self, wanted: object) -> None:
        """Applies permissions that hooks grant beyond one call."""
        from ..hooks.hook_grants import make_hold
        from ..settings.trust_store import TrustStore

        await make_hold(wanted, self._services.state, self._services.cwd, TrustStore(self._settings.state_folder))

    def suggest(self, proposal: Proposal) -> tuple[str, ...]:
        from ..permissions.suggesting import suggest_for_call

        return suggest_for_call(proposal, self.rules, self._services.cwd)


class _CurrentBook:
    """The hooks of a moment: those of the settings may change while the session lasts."""

    def __init__(self, rules: SessionRules, own: Sequence[Hook], skills: HooksOfSkills | None) -> None:
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


def _watch_compactions(session: Session, lifecycle: Lifecycle | AgentLifecycle) -> None:
    """Hooks run before each one and after it."""

    async def before(trigger: Trigger, words: str) -> TurnWords:
        return await lifecycle.compacting(session.state.cwd, trigger=trigger, instructions=words)

    async def after(trigger: Trigger, summary: str) -> None:
        said = await lifecycle.compacted(session.state.cwd, trigger=trigger, summary=summary, model=session.model)
        for text in said.context:
            session.note(Note("hook", text))

    session.compaction.before, session.compaction.after = before, after


def _response(proposal: Proposal, outcome: ToolOutcome) -> Any:
    """`tool_response` of PostToolUse: in the common shape, or what the model reads."""
    return plain_text(outcome.content) if (known := shape_if_known(outcome)) is None else known


def _reshape(proposal: Proposal, outcome: ToolOutcome, given: object) -> Amendment | None:
    from .tool_responses import amend_output

    return amend_output(outcome, given)
