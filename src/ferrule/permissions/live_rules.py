"""Rules and mode that may change while a session lasts, as one judge."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from ..core.ports import Note, Opinion, Proposal
from ..core.state import SessionState
from ..core.values import plain_value
from ..core.verdicts import Behavior, Confinement, Grants, Verdict
from .domains import PreApproval
from .hiding import hidden_paths, plain_hidden_paths
from .holding import grants_of, is_command, join_confinements
from .judge import UNHELD, Confines, RuleJudge
from .modes import Mode
from .path_patterns import Places
from .protected import DEFAULT_LISTS, PathLists
from .rules import Origin, Rule, parse_valid_rules
from .sandbox_policy import SandboxPolicy, apply_sandbox_policy, confinement_wanted_by
from .secrets import SecretFiles

log = logging.getLogger(__name__)

GRANTED = Origin("this session")
PLANNING = (
    "Plan mode is on: look around and ask, but change nothing. When you know how the work is to be done, "
    "call ExitPlanMode with the plan (find it with ToolSearch if you cannot see it)."
)
PLANNING_ALONE = (
    "Plan mode is on: look around, but change nothing. Nobody is there to answer questions or to approve a plan, so "
    "the plan is your answer: when you know how the work is to be done, write it down and end."
)
WORKING = "Plan mode is off: from now on you may change things, as far as the permissions go."


class SessionModes:
    """Satisfies `core.ports.Modes`, and `core.ports.NoteSource`: the model learns when planning begins and ends."""

    def __init__(self, rules: LiveRules, state: SessionState, *, approvable: bool = True) -> None:
        """`approvable` says whether somebody can approve a plan."""
        self._rules = rules
        self._state = state
        self._planning = PLANNING if approvable else PLANNING_ALONE
        self._told = False

    def current(self) -> str:
        return str(self._rules.mode)

    def before(self) -> str:
        """The mode before planning; the safest one for a session that started with it."""
        before = self._state.mode_before
        return before if before and before != Mode.PLAN else self._at_start()

    def _at_start(self) -> str:
        mode = self._rules.configured_mode
        return str(Mode.DEFAULT if mode is Mode.PLAN else mode)

    async def notes(self, agent: str) -> tuple[Note, ...]:
        if agent != "main":
            return ()
        planning = self._rules.mode is Mode.PLAN
        told, self._told = self._told, planning
        if planning == told:
            return ()
        return (Note("plan_mode", self._planning if planning else WORKING),)

    def lasting(self, agent: str, /) -> tuple[Note, ...]:
        """Satisfies `core.ports.Lasting`: it applies to agents as well."""
        mode = self._rules.mode
        return (Note("plan_mode", self._planning),) if mode is Mode.PLAN else (Note("permission_mode", str(mode)),)


@plain_value
class MorePaths:
    protected: tuple[str, ...] = ()
    unprotected: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    not_secrets: tuple[str, ...] = ()

    def add_to(self, lists: PathLists) -> PathLists:
        if self == NO_MORE_PATHS:
            return lists
        return lists.change(
            protected=self.protected,
            unprotected=self.unprotected,
            secrets=self.secrets,
            not_secrets=self.not_secrets,
        )


NO_MORE_PATHS = MorePaths()


@plain_value
class Policy:
    """What decides. The same object means that nothing has changed."""

    rules: tuple[Rule, ...]
    mode: Mode
    lost: str | None = None
    """Why nothing may be allowed without a question, if so: a rule that could forbid it was lost."""
    sandbox: SandboxPolicy | None = None
    """The settings' confinement of commands, if any."""
    readable: tuple[str, ...] = ()
    """What a command without approval may read beyond the defaults."""
    more_paths: MorePaths = NO_MORE_PATHS
    """Names that settings add to the lists of protected and secret paths, or remove from them."""
    disabled_modes: frozenset[str] = frozenset()
    """Those that nobody may choose."""

    def mode_for(self, chosen: str) -> Mode:
        """The mode that a session has chosen, if it has and may."""
        return Mode(chosen) if chosen and chosen not in self.disabled_modes else self.mode


class PolicyLost(Exception):
    """The policy cannot be known at present. The message says why and what to do."""


class Box(Protocol):
    """What confines processes."""

    @property
    def is_tried(self) -> bool:
        """Whether this machine's abilities are known."""
        ...

    async def try_it(self) -> None: ...

    def confines(self, needed: Confinement, /) -> bool: ...

    def why_unheld(self) -> str:
        """Why it cannot confine a command to what it declared, if so."""
        ...


class LiveRules:
    """Asks for the policy before each decision. While none is available, nothing is allowed."""

    def __init__(
        self,
        policy: Callable[[], Policy],
        places: Places,
        state: SessionState,
        *,
        lists: PathLists = DEFAULT_LISTS,
        domains: PreApproval | None = None,
    ) -> None:
        """`state` holds the mode that was chosen since the start, if one was, and the rules that a person granted."""
        self._policy = policy
        self._places = places
        self._state = state
        self._lists = lists
        self._domains = domains or PreApproval()
        self.box: Box | None = None
        self.keeps_from_paths: Callable[[str], bool] = _no_server
        """Whether an MCP server, by its name, cannot reach paths that rules deny."""
        self._known: tuple[Policy, str | None, tuple[str, ...]] | None = None
        self._judge = RuleJudge((), Mode.DEFAULT, places)
        self._hidden: Callable[[str], bool] | None = None
        self._plain: tuple[str, ...] = ()
        self._warned = False

    def judge(self, proposal: Proposal, /) -> Opinion | Awaitable[Opinion]:
        try:
            policy = self._current()
        except PolicyLost as lost:
            return Verdict(behavior=Behavior.DENY, source="rule", reason=str(lost))
        verdict = self._judge.judge(proposal)
        needs_box = policy.sandbox is not None and is_command(proposal)
        if verdict is not None and verdict.needs_confinement is not None:
            needs_box = True
        if needs_box and self.box and not self.box.is_tried:
            return self._judge_once_tried(self.box, proposal)
        return _ask_if_lost(policy, self._apply_sandbox_policy(policy, proposal, verdict))

    async def hold(self, proposal: Proposal, verdict: Verdict, /) -> Opinion:
        """A verdict that approves nothing, with a command's confinement; a question if it cannot be confined."""
        if self.box is None or not is_command(proposal):
            return verdict
        if not self.box.is_tried:
            await self.box.try_it()
        policy = self._current()
        unknown = proposal.effects.unknown
        own = Confinement(
            grants=Grants(lasts=grants_of(proposal).lasts) if unknown else grants_of(proposal),
            writable=self._roots(proposal) if unknown else None,
            then=Behavior.ALLOW,
        )
        needed = join_confinements(
            own, join_confinements(self._judge.denied_paths, confinement_wanted_by(policy.sandbox))
        )
        if self._confines(needed):
            return replace(verdict, needs_confinement=needed)
        return self._explain(Verdict(behavior=Behavior.ASK, source="default", reason=UNHELD, needs_confinement=needed))

    def readable(self) -> tuple[str, ...]:
        """What settings let every command read."""
        return self._known[0].readable if self._known else ()

    def writable(self) -> tuple[str, ...]:
        """What settings let a command write besides the workspace if a sandbox is enabled."""
        sandbox = self._known[0].sandbox if self._known else None
        return sandbox.writable if sandbox else ()

    @property
    def mode(self) -> Mode:
        """The current policy."""
        return self._policy().mode_for(self._state.mode)

    @property
    def configured_mode(self) -> Mode:
        """What the settings say, regardless of later choices."""
        return self._policy().mode

    def look(self) -> None:
        """Ask for the policy without a decision. While none is available, the last one applies."""
        with suppress(PolicyLost):
            self._current()

    @property
    def last_policy(self) -> Policy | None:
        """As it was at the last look."""
        return self._known[0] if self._known else None

    @property
    def last_mode(self) -> Mode:
        """As it was at the last look."""
        chosen = self._state.mode
        return Mode(chosen or Mode.DEFAULT) if self._known is None else self._known[0].mode_for(chosen)

    def would_allow(self, proposal: Proposal, more: tuple[str, ...]) -> bool:
        """Whether these rules, together with the current ones, would allow the call."""
        policy = self._current()
        judge = self._make_judge(policy, self._rules(policy, more), confines=None)
        verdict = _ask_if_lost(policy, judge.judge(proposal))
        return verdict is not None and verdict.behavior is Behavior.ALLOW

    def hides(self) -> Callable[[str], bool] | None:
        """Whether an absolute path is hidden from search results; `None` if no rule hides any."""
        try:
            self._current()
        except PolicyLost:
            return lambda path: True
        return self._hidden

    def secrets(self) -> SecretFiles | None:
        """Files that searches never show."""
        with suppress(PolicyLost):  # then nothing is shown anyway
            self._current()
        return self._judge.secrets

    def plain_hidden_paths(self) -> tuple[str, ...]:
        """The hidden paths that need no search to be found."""
        self.hides()
        return self._plain

    def denied_paths(self) -> Confinement | None:
        """Paths that rules deny; `None` if they deny none. While no policy is available, the last one applies."""
        self.look()
        return self._judge.denied_paths

    def names_host(self, host: str) -> bool:
        """Whether an allow rule names this very host."""
        try:
            self._current()
        except PolicyLost:
            return False
        return self._judge.names_host(host)

    async def _judge_once_tried(self, box: Box, proposal: Proposal) -> Opinion:
        """Judge again, once the abilities of this machine's sandbox are known."""
        await box.try_it()
        policy = self._current()
        return _ask_if_lost(policy, self._apply_sandbox_policy(policy, proposal, self._judge.judge(proposal)))

    def _apply_sandbox_policy(self, policy: Policy, proposal: Proposal, verdict: Opinion) -> Opinion:
        if policy.sandbox is not None:
            roots, mode = self._roots(proposal), self.last_mode
            verdict = apply_sandbox_policy(
                policy.sandbox, proposal, verdict, roots=roots, mode=mode, confines=self._confines
            )
        return self._explain(verdict)

    def _roots(self, proposal: Proposal) -> tuple[str, ...]:
        """The working directories."""
        return (proposal.ctx.facts.workspace or proposal.ctx.cwd, *self._state.added_directories)

    def _explain(self, verdict: Opinion) -> Opinion:
        """With the reason why this machine cannot confine a command, which is also logged once."""
        if verdict is None or self.box is None or verdict.reason != UNHELD:
            return verdict
        why = self.box.why_unheld().rstrip(".") or "what it declares is outside the workspace"
        if not self._warned:
            self._warned = True
            log.warning("commands without approval are asked about here: %s", why)
        return replace(verdict, reason=f"{UNHELD}: {why}")

    def _current(self) -> Policy:
        policy = self._policy()
        known = (policy, self._state.mode, self._state.grants)
        if self._known is None or any(one is not other for one, other in zip(self._known, known, strict=True)):
            rules = self._rules(policy)
            self._judge = self._make_judge(policy, rules, confines=self._confines if self.box else None)
            self._hidden = hidden_paths(rules, self._places)
            self._plain = plain_hidden_paths(rules, self._places)
            self._known = known
        return policy

    def _rules(self, policy: Policy, more: tuple[str, ...] = ()) -> tuple[Rule, ...]:
        """Those of the policy, those that were granted, and these."""
        return (*policy.rules, *parse_valid_rules((*self._state.grants, *more), Behavior.ALLOW, GRANTED))

    def _make_judge(self, policy: Policy, rules: tuple[Rule, ...], *, confines: Confines | None) -> RuleJudge:
        return RuleJudge(
            rules,
            policy.mode_for(self._state.mode),
            self._places,
            lists=policy.more_paths.add_to(self._lists),
            domains=self._domains,
            confines=confines,
            keeps_from_paths=self._keeps_from_paths,
        )

    def _keeps_from_paths(self, server: str) -> bool:
        return self.keeps_from_paths(server)

    def _confines(self, needed: Confinement) -> bool:
        return self.box is not None and self.box.is_tried and self.box.confines(needed)


def _no_server(server: str) -> bool:
    return False


def _ask_if_lost(policy: Policy, verdict: Opinion) -> Opinion:
    if policy.lost is None or (verdict and verdict.behavior is Behavior.DENY):
        return verdict
    return Verdict(behavior=Behavior.ASK, source="rule", reason=policy.lost)
