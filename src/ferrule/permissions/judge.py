"""Rules, path lists and mode as one judge.

In this order: a deny rule; a path that is never written; what the mode
refuses; an ask rule; a protected, sensitive or critical path; a deny rule that
the call's declared effects cannot rule out; then what rules and mode allow
together. Anything else is asked about. In dontAsk whatever would be asked is denied.

A verdict with `needs_confinement` is for whoever starts the process. Given
`confines`, which tells whether this machine's sandbox enforces a confinement, the
verdict is the one for the confined call, and still carries the confinement: the
command must then be started inside that sandbox. Without a sandbox it is asked
about, in every mode, and refused if nobody is there.

A command that only a mode or a rule for a path allows is approved by nobody:
its verdict applies inside a sandbox that grants only what it declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Final, TypeAlias

from ..core.effects import Effects
from ..core.ports import Proposal
from ..core.verdicts import Behavior, Confinement, Grants, Verdict
from .beyond import Horizon, OutOfReach, unread
from .domains import PreApproval
from .granting import Free, Grant, grant, of_own_form
from .holding import grants_of, is_command, join_confinements
from .modes import Mode, ModeContext, is_free, needs_read_only_sandbox, refusal
from .path_patterns import Places
from .protected import DEFAULT_LISTS, Concern, PathGuard, PathLists
from .rule_matching import RuleIndex, RuleMatch, command_of, restriction
from .rules import Rule
from .secrets import SecretFiles

Confines: TypeAlias = Callable[[Confinement], bool]

_VERBS: Final = {Behavior.ALLOW: "allows", Behavior.ASK: "asks about", Behavior.DENY: "denies"}
_STAYS: Final = Verdict(behavior=Behavior.ALLOW, source="mode", reason="it touches nothing outside of the session")
_LOOKS: Final = Verdict(behavior=Behavior.ALLOW, source="mode", reason="it only reads inside the workspace")
_EDITS: Final = Verdict(behavior=Behavior.ALLOW, source="mode", reason="acceptEdits allows edits inside the workspace")
_FETCHES: Final = Verdict(behavior=Behavior.ALLOW, source="mode", reason="it only fetches from pre-approved domains")
_BYPASSED: Final = Verdict(behavior=Behavior.ALLOW, source="mode", reason="permissions are bypassed", approved=True)
UNHELD: Final = "nobody approved it, and this machine cannot confine it to its declared effects"
_DEFAULT_DOMAINS: Final = PreApproval()


class RuleJudge:
    """Answers at once. Rules are compiled here, once; rules for other tools cost nothing."""

    def __init__(
        self,
        rules: Iterable[Rule],
        mode: Mode,
        places: Places,
        *,
        lists: PathLists = DEFAULT_LISTS,
        domains: PreApproval = _DEFAULT_DOMAINS,
        confines: Confines | None = None,
        keeps_from_paths: Callable[[str], bool] | None = None,
    ) -> None:
        """`keeps_from_paths` tells whether an MCP server is kept from all paths that rules deny."""
        rules = tuple(rules)
        self._keeps_from_paths = keeps_from_paths
        self._mode = mode
        self._confines = confines
        self._allowing: dict[tuple[int, bool], Verdict] = {}
        """The verdict of each rule that has allowed something, by the rule's identity and whether it approved."""
        self._free = _free(mode, ModeContext(places=places, domains=domains))
        self._free_over_https = _free(mode, ModeContext(places=places, domains=domains, https=True))
        self._guard = PathGuard(places, lists)
        self._lists = lists
        self._allows, self._asks, self._denies = (RuleIndex(rules, behavior, places) for behavior in Behavior)
        self._horizon = Horizon(self._denies)

    def judge(self, proposal: Proposal, /) -> Verdict | None:
        verdict = self._with_denies(self._decide(proposal), proposal)
        if self._mode is not Mode.DONT_ASK or (verdict is not None and verdict.behavior is not Behavior.ASK):
            return verdict
        if verdict is None:
            reason = "no rule allows it, and dontAsk mode asks nobody"
            return Verdict(behavior=Behavior.DENY, source="mode", reason=reason)
        return replace(verdict, behavior=Behavior.DENY, reason=f"{verdict.reason}, and dontAsk mode asks nobody")

    def _with_denies(self, verdict: Verdict | None, proposal: Proposal) -> Verdict | None:
        """A yes to one question does not answer another: what rules deny stays denied to a call that is asked about."""
        if verdict is None or verdict.behavior is not Behavior.ASK or verdict.needs_confinement is not None:
            return verdict
        beyond = self._out_of_reach(proposal)
        return verdict if beyond is None else replace(verdict, needs_confinement=beyond.confinement)

    def _decide(self, proposal: Proposal) -> Verdict | None:
        denied = restriction(self._denies, proposal)
        if denied is not None:
            return _verdict_of_rule(denied)
        concerns = [one for one in self._guard.concerns(proposal.effects) if not self._is_settled(one, proposal)]
        never = next((one for one in concerns if one.behavior is Behavior.DENY), None)
        if never is not None:
            return never.verdict()
        refused = refusal(self._mode, proposal.effects)
        if refused is not None:
            return Verdict(behavior=Behavior.DENY, source="mode", reason=refused)
        asked = restriction(self._asks, proposal)
        if asked is not None:
            return _verdict_of_rule(asked)
        hidden = unread((self._denies, self._asks), proposal)
        if hidden is not None:
            reason = f"rule {hidden} {_VERBS[hidden.behavior]} what may be in a part that could not be parsed"
            return Verdict(behavior=Behavior.ASK, source="safety", reason=reason, rule=hidden.text)
        if concerns:
            return concerns[0].verdict()
        return self._decide_allow(proposal)

    def _decide_allow(self, proposal: Proposal) -> Verdict | None:
        granted = grant(self._allows, proposal, self._free_over_https if _is_https(proposal) else self._free)
        beyond = self._out_of_reach(proposal)
        read_only = needs_read_only_sandbox(self._mode, proposal.effects)
        if beyond is not None or read_only:
            return self._verdict_if_confined(proposal, beyond, granted, read_only=read_only)
        if granted is None:
            return None
        verdict = self._verdict_of_grant(granted, proposal.effects)
        return self._hold(proposal, verdict) if is_command(proposal) else verdict

    def _out_of_reach(self, proposal: Proposal) -> OutOfReach | None:
        """The deny rules that neither the call's declared effects nor anything else rules out.

        For a tool of an MCP server they do not apply if its process is kept from the paths and no host is
        denied, or if an allow rule names the tool.
        """
        beyond, server = self._horizon.out_of_reach(proposal), proposal.tool.server
        if beyond is None or server is None:
            return beyond
        if of_own_form(self._allows, proposal) is not None:
            return None
        held = self._keeps_from_paths is not None and self._keeps_from_paths(server)
        left = self._horizon.of_hosts if held else beyond
        return left and replace(left, why=f"{left.why}; a rule that allows {proposal.tool.name} by name settles it")

    def _hold(self, proposal: Proposal, verdict: Verdict) -> Verdict:
        """An allowed command, with its confinement."""
        denied = self._horizon.of_paths
        if not verdict.approved:
            needed = Confinement(
                unreadable=denied.unreadable if denied else (),
                unwritable=denied.unwritable if denied else (),
                grants=grants_of(proposal),
                then=Behavior.ALLOW,
            )
            if self._confines is None or self._confines(needed):
                return _inside(verdict, needed)
            return Verdict(behavior=Behavior.ASK, source="default", reason=UNHELD, needs_confinement=needed)
        if denied is None:
            return verdict
        needed = replace(denied, then=Behavior.ALLOW)
        if self._confines is None or self._confines(needed):
            return replace(verdict, needs_confinement=needed)
        if self._mode is not Mode.BYPASS:
            return verdict  # the rule for the command was matched as deny rules are: by its declared effects
        reason = "rules deny paths, permissions are bypassed, and this machine cannot keep a command from them"
        return Verdict(behavior=Behavior.ASK, source="safety", reason=reason, needs_confinement=needed)

    def _verdict_of_grant(self, granted: Grant, effects: Effects) -> Verdict:
        if granted.rules:
            rule, approved = granted.rules[0], granted.approves or self._mode is Mode.BYPASS
            verdict = self._allowing.get((id(rule), approved))
            if verdict is None:
                verdict = self._allowing[id(rule), approved] = replace(
                    _verdict_of_rule(RuleMatch(rule)), approved=approved
                )
            return verdict
        if self._mode is Mode.BYPASS:
            return _BYPASSED
        if effects.writes:
            return _EDITS
        return _FETCHES if effects.hosts else _LOOKS if effects.reads or effects.commands else _STAYS

    def _verdict_if_confined(
        self, proposal: Proposal, beyond: OutOfReach | None, granted: Grant | None, *, read_only: bool
    ) -> Verdict:
        """Ask, or give the verdict for the confined process. Only a process can be confined."""
        then = Behavior.ALLOW if granted is not None or read_only else Behavior.ASK
        needed = replace(beyond.confinement if beyond else Confinement(), read_only=read_only, then=then)
        if is_command(proposal):
            needed = self._as_command(proposal, needed, granted)
        if proposal.effects.commands and self._confines is not None and self._confines(needed):
            inside = self._verdict_of_grant(granted, proposal.effects) if granted else _LOOKS if read_only else None
            if inside is not None:
                return replace(inside, needs_confinement=needed, reason=f"{inside.reason}, inside a sandbox")
        if beyond is None:
            reason = "plan mode allows only calls known to be read-only, or confined by a sandbox"
            return Verdict(behavior=Behavior.ASK, source="mode", reason=reason, needs_confinement=needed)
        return Verdict(
            behavior=Behavior.ASK,
            source="safety",
            reason=f"rule {beyond.rule} denies something that cannot be ruled out here: {beyond.why}",
            rule=beyond.rule.text,
            origin=str(beyond.rule.origin),
            needs_confinement=needed,
        )

    def _as_command(self, proposal: Proposal, needed: Confinement, granted: Grant | None) -> Confinement:
        """With all the paths that rules deny, and with grants unless somebody approves the command."""
        needed = join_confinements(needed, self._horizon.of_paths)
        approved = granted is not None and (granted.approves or self._mode is Mode.BYPASS)
        if approved or needed.then is not Behavior.ALLOW:
            return needed
        return replace(needed, grants=Grants() if proposal.effects.unknown else grants_of(proposal))

    @property
    def denied_paths(self) -> Confinement | None:
        """The paths that rules deny, for a call that is allowed elsewhere; `None` if they deny none."""
        return self._horizon.of_paths

    @cached_property
    def secrets(self) -> SecretFiles | None:
        """Files that a search does not show unless named; `None` if the mode does not hide them."""
        if self._mode is Mode.BYPASS:
            return None
        return SecretFiles(self._guard, self._lists.secrets, self._is_settled_by_name)

    def names_host(self, host: str) -> bool:
        """Whether an allow rule names exactly this host: only then may it be a local one."""
        return any(pattern.names_one and pattern.matches(host) for pattern, _ in self._allows.hosts)

    def _is_settled(self, concern: Concern, proposal: Proposal) -> bool:
        """Whether the mode ignores the concern, or a rule allows its subject by name."""
        if self._is_settled_by_name(concern):
            return True
        if concern.spelled:
            own = of_own_form(self._allows, proposal)
            return own is not None and own.specifier == command_of(proposal)
        own = of_own_form(self._allows, proposal) if concern.secret is not None else None
        return own is not None and concern.secret is not None and _last_name(concern.secret[0]) in (own.specifier or "")

    def _is_settled_by_name(self, concern: Concern) -> bool:
        if self._mode is Mode.BYPASS and not concern.in_bypass:
            return True
        if concern.host is not None:
            return self.names_host(concern.host)
        if concern.written is not None:
            path, names = concern.written
            return any(each.matches(path) and each.spells(names) for each, _ in self._allows.writes.patterns)
        if concern.secret is None:
            return False
        path, otherwise = concern.secret
        patterns = (*self._allows.reads.patterns, *self._allows.writes.patterns)
        return any(pattern.matches(path) and not pattern.matches(otherwise) for pattern, _ in patterns)


def _free(mode: Mode, ground: ModeContext) -> Free:
    return lambda touch, program: is_free(mode, touch, program, ground)


def _inside(verdict: Verdict, needed: Confinement) -> Verdict:
    """The verdict of a rule or a mode with its confinement. Used for every command, and `replace` is slower."""
    return Verdict(
        behavior=verdict.behavior,
        source=verdict.source,
        reason=verdict.reason,
        rule=verdict.rule,
        origin=verdict.origin,
        needs_confinement=needed,
    )


def _last_name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_https(proposal: Proposal) -> bool:
    url = proposal.arguments.get("url")
    return isinstance(url, str) and url[:8].lower() == "https://"


def _verdict_of_rule(match: RuleMatch) -> Verdict:
    rule = match.rule
    return Verdict(
        behavior=rule.behavior,
        source="rule",
        reason=f"rule {rule} {_VERBS[rule.behavior]} {match.what}",
        rule=rule.text,
        origin=str(rule.origin),
    )
