"""What a call would do and whether it may, without doing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from ..core.calls import Refusal, ToolCall
from ..core.context import Facts, ToolContext
from ..core.effects import Effects, describe_touch
from ..core.ports import Opinion, Paths, Proposal
from ..core.tool import AnyTool, ToolDefinitionError, ToolError
from ..core.values import named_value
from ..core.verdicts import Behavior, Risk, Verdict, of_risks, strictest
from ..engine.pool import ToolPool, assemble, select
from ..engine.preparing import looked_up, prepared
from ..hooks.answers import OLDER_DECISIONS, Reply, understood
from ..hooks.hook import NO_HOOKS, Hook, HookBook, Program
from ..hooks.judge import consent_of, refusal_of
from ..hooks.matching import everything
from ..host.web.fetching import Fetcher
from ..host.web.guard import Explained, explain_fetch
from ..host.web.pages import Pages
from ..permissions.domains import PreApproval
from ..permissions.forms import NAMED_BY, PRIMARY
from ..permissions.judge import RuleJudge
from ..permissions.modes import Mode
from ..permissions.paths import Places
from ..permissions.rules import Origin, Rule, parse_rule, read_rules
from ..permissions.suggesting import suggested
from ..shell.explain import explained as command_lines
from ..tools import builtin_tools
from ..tools.bash import Bash
from ..tools.notebook_edit import NotebookEdit
from ..tools.skill import Skill
from ..tools.web_fetch import WebFetch
from .pretended import ELSEWHERE, Elsewhere, Fetching, Foreign, Nobody, PathsAsWritten, UnseenSkill

KINDS: Final = {"allow": Behavior.ALLOW, "ask": Behavior.ASK, "deny": Behavior.DENY}
_DECISIONS: Final = {Behavior.ALLOW: "allow", Behavior.ASK: "ask", Behavior.DENY: "deny"}
_VERBS: Final = {Behavior.ALLOW: "It may run", Behavior.ASK: "A person is asked", Behavior.DENY: "It is refused"}
_PLACEHOLDERS: Final[Mapping[str, Any]] = {
    "integer": 1, "number": 1, "boolean": False, "array": [], "object": {}
}  # fmt: skip

_DECIDING: Final = PRIMARY | {name for names in NAMED_BY.values() for name in names}
"""Parameters that a decision hangs on: nothing stands in for them."""
_ANY_CELL: Final[Mapping[str, Any]] = {"cell_id": "0", "new_source": ""}


class CannotExplain(Exception):
    """The call itself is wrong. The message is what the model would be told."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where a call would be made, and under which rules."""

    cwd: str
    home: str
    workspace: str
    paths: Paths
    rules: tuple[Rule, ...] = ()
    mode: Mode = Mode.DEFAULT
    directories: tuple[str, ...] = ()
    domains: PreApproval = field(default_factory=PreApproval)
    lost: str | None = None
    """Why nothing may be allowed without a question, if so."""
    hooks: HookBook = NO_HOOKS

    @cached_property
    def judge(self) -> RuleJudge:
        return self.judging(self.rules)

    def judging(self, rules: tuple[Rule, ...]) -> RuleJudge:
        return RuleJudge(rules, self.mode, self.places, domains=self.domains)

    @cached_property
    def places(self) -> Places:
        roots = (self.workspace, *self.directories)
        return Places(cwd=self._forms(self.cwd), home=self._forms(self.home), roots=self._forms(*roots))

    def _forms(self, *folders: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(form for one in folders for form in (one, self.paths.resolve(one)[0])))


@named_value
class Answers:
    """What the network would answer to a fetch."""

    resolve: tuple[str, ...] | None = None
    """The addresses of the host; judged by its name alone where it is `None`."""
    resolve_sequence: tuple[str | tuple[str, ...], ...] = ()
    redirect_to: tuple[str, ...] = ()

    def of_fetch(self, tool: AnyTool, input: Any, scene: Scene) -> Explained | None:
        """What would become of the call, as far as it is a fetch."""
        if not isinstance(tool, WebFetch):
            return None
        return explain_fetch(
            input.url,
            resolve=self.resolve,
            resolve_sequence=self.resolve_sequence,
            redirect_to=self.redirect_to,
            local_hosts=scene.judge.names_host,
        )


@named_value
class Explanation:
    """All that is known of a call before it runs."""

    effects: Effects
    verdict: Verdict
    risks: tuple[Risk, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why the effects are not all known; empty if they are."""
    suggestions: Callable[[], tuple[str, ...]] = tuple
    """Rules that would allow a call that asks. It takes a while to find them."""
    hooks: tuple[str, ...] = ()
    """Those that are asked before it runs, which an explanation does not do."""
    does: tuple[str, ...] = field(default=(), repr=False)
    """What it would do, in lines for people."""

    def as_data(self) -> dict[str, Any]:
        return {
            "decision": _DECISIONS[self.verdict.behavior],
            "reason": self.verdict.reason,
            "rule": self.verdict.rule,
            "source": self.verdict.origin or self.verdict.source,
            "read_only": self.effects.read_only,
            "effects": {
                "reads": [touch.path for touch in self.effects.reads],
                "writes": [touch.path for touch in self.effects.writes],
                "hosts": [touch.host for touch in self.effects.hosts],
                "commands": [list(touch.argv) for touch in self.effects.commands],
                "unknown": self.effects.unknown,
            },
            "risks": [{"kind": risk.kind, "severity": risk.severity, "message": risk.message} for risk in self.risks],
            "reasons": list(self.reasons),
            **({"hooks": list(self.hooks)} if self.hooks else {}),
        }

    @property
    def lines(self) -> tuple[str, ...]:
        decided = f"{_VERBS[self.verdict.behavior]}: {self.verdict.reason}."
        needed = self.verdict.needs_confinement
        inside = needed is not None and needed.then is Behavior.ALLOW and self.verdict.behavior is Behavior.ASK
        confined = "Where this machine has a sandbox (`ferrule doctor`), it runs inside that instead."
        rules = self.suggestions() if self.verdict.behavior is Behavior.ASK else ()
        allowed_by = "It would be allowed by: " + ", ".join(f"`{rule}`" for rule in rules)
        asked = () if self.verdict.behavior is Behavior.DENY else self.hooks
        hooks = (f"Before it runs, {hook} is asked, and may refuse it." for hook in asked)
        return (decided, *((confined,) * inside), *((allowed_by,) * bool(rules)), *hooks, "", *self.does)


def explain(
    name: str,
    arguments: Mapping[str, Any],
    scene: Scene,
    *,
    server: str | None = None,
    others: tuple[Opinion, ...] = (),
    answers: Answers = Answers(),  # noqa: B008 - immutable
) -> Explanation:
    """Raises `CannotExplain`.

    `server` makes the tool one of an MCP server; `others` are judges beside
    the rules; `answers` are what the network would say.
    """
    call = ToolCall("explain", name, arguments)
    try:
        tool, adapted = _tool(call, scene, server)
        filled = {**_missing(tool, adapted), **adapted}
        empty = next((name for name in _required(tool) if name in PRIMARY and filled.get(name) == ""), None)
        if empty is not None:
            return _refused(f"`{empty}` is empty.")
        tool.parse(filled)
    except (Refusal, ToolDefinitionError) as refusal:
        raise CannotExplain(str(refusal)) from None
    try:
        proposal = _proposed(call, tool, filled, scene)
    except (Refusal, ToolError) as refusal:
        return _refused(str(refusal).partition("\n")[0])
    effects, reasons = proposal.effects, _reasons(proposal.effects)
    risks: tuple[Risk, ...] = ()
    does = tuple(_lines(effects))
    if isinstance(tool, Bash):
        analysis = tool.analysed(proposal.input, proposal.ctx)
        effects, risks, reasons, does = (
            analysis.effects,
            analysis.risks,
            analysis.reasons,
            tuple(command_lines(analysis)),
        )
    fetched = answers.of_fetch(tool, proposal.input, scene)
    opinions = (of_risks(risks), _of_fetch(fetched), *others)
    ruled = _ruled(scene, proposal)
    verdict = _asked_first(strictest((*others, ruled)), fetched) or strictest((*opinions, ruled))
    return Explanation(
        effects=effects,
        verdict=verdict,
        risks=risks,
        reasons=reasons,
        suggestions=lambda: suggested(proposal, scene.cwd, _would_allow(scene, proposal, opinions)),
        hooks=tuple(_asked(hook) for hook in scene.hooks.chosen("PreToolUse", tool.name, proposal) if not hook.beside),
        does=does,
    )


def described(
    *,
    cwd: str,
    home: str,
    project_root: str | None = None,
    rules: Mapping[str, list[str] | None],
    mode: str = Mode.DEFAULT,
    symlinks: Mapping[str, str] | None = None,
) -> Scene:
    """A scene that is only told of: no file is looked at, only these rules count, and what is no rule is skipped."""
    root = project_root or cwd
    origin = Origin("rules", base=root)
    return Scene(
        cwd=cwd,
        home=home,
        workspace=root,
        paths=PathsAsWritten(home, symlinks or {}),
        rules=tuple(
            rule
            for kind, behavior in KINDS.items()
            for rule in read_rules([(text, origin) for text in rules.get(kind) or ()], behavior).rules
        ),
        mode=Mode(mode),
        domains=PreApproval(allowed=()),
    )


@named_value
class SaidByHook:
    opinion: Opinion = None
    changed_input: Mapping[str, Any] | None = None
    """The arguments that the hook puts in the place of the model's; rules judge those."""


def said_by_hook(said: Mapping[str, Any]) -> SaidByHook:
    """What a PreToolUse hook says: by its `decision`, or by its `stdout`, `stderr` and `exit_code`."""
    decision = str(said.get("decision"))
    behavior = KINDS.get(OLDER_DECISIONS.get(decision, decision))
    if behavior is not None:
        return SaidByHook(opinion=Verdict(behavior=behavior, source="hook", reason="a hook said so"))
    hook = Hook(event="PreToolUse", name="the hook", matches=everything, work=Program(""), seconds=0)
    code = said.get("exit_code")
    reply = Reply(
        exit_code=code if isinstance(code, int) else 0,
        stdout=str(said.get("stdout", "")),
        stderr=str(said.get("stderr", "")),
    )
    answer = understood(hook, reply, lambda text: None)
    return SaidByHook(
        opinion=refusal_of((answer,)) or consent_of((answer,)),
        changed_input=answer.changed_input,
    )


def _asked_first(verdict: Verdict, fetched: Explained | None) -> Verdict | None:
    """Of a fetch that nobody can say the host of: no rule for a host allows it, and it is refused once one does."""
    if fetched is None or not fetched.unclear or verdict.behavior is Behavior.ALLOW:
        return None
    return replace(verdict, reason=f"{verdict.reason}; and if it were allowed, {fetched.reason}")


def _of_fetch(fetched: Explained | None) -> Opinion:
    return None if fetched is None else Verdict(behavior=fetched.behavior, source="tool", reason=fetched.reason)


def _ruled(scene: Scene, proposal: Proposal, more: tuple[Rule, ...] = ()) -> Opinion:
    judge = scene.judging((*scene.rules, *more)) if more else scene.judge
    verdict = judge.judge(proposal)
    if scene.lost is None or (verdict and verdict.behavior is Behavior.DENY):
        return verdict
    return Verdict(behavior=Behavior.ASK, source="rule", reason=scene.lost)


def _would_allow(scene: Scene, proposal: Proposal, others: tuple[Opinion, ...]) -> Callable[[tuple[str, ...]], bool]:
    def would_allow(texts: tuple[str, ...]) -> bool:
        more = tuple(parse_rule(text, Behavior.ALLOW, "suggested") for text in texts)
        return strictest((*others, _ruled(scene, proposal, more))).behavior is Behavior.ALLOW

    return would_allow


def _asked(hook: Hook) -> str:
    return f"the {hook.label} in {hook.origin}"


def _reasons(effects: Effects) -> tuple[str, ...]:
    return ("The tool cannot say what it would do.",) if effects.unknown else ()


def _lines(effects: Effects) -> list[str]:
    first = "What this does is not known." if effects.unknown else "This only looks." if effects.read_only else ""
    return [first or "This changes something.", *(f"  {describe_touch(touch)}" for touch in effects.touches)]


def _refused(words: str) -> Explanation:
    """Of a call that nobody judges: it is refused for what it is."""
    verdict = Verdict(behavior=Behavior.DENY, source="tool", reason=words.rstrip("."))
    return Explanation(effects=Effects(), verdict=verdict, reasons=(words,), does=("It never gets so far.",))


def _proposed(call: ToolCall, tool: AnyTool, arguments: Mapping[str, Any], scene: Scene) -> Proposal:
    ctx = ToolContext("explain", scene.cwd, Facts(workspace=scene.workspace), Nobody())
    return prepared(call, tool, arguments, ctx, scene.paths).proposal


def _required(tool: AnyTool) -> tuple[str, ...]:
    return tuple(tool.spec.input_schema.get("required", ()))


def _missing(tool: AnyTool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Stand-ins for required parameters that were left out, but for those that decide."""
    if isinstance(tool, NotebookEdit) and not arguments.keys() - {"notebook_path"}:
        return _ANY_CELL
    properties: Mapping[str, Mapping[str, Any]] = tool.spec.input_schema.get("properties", {})
    left_out = (name for name in _required(tool) if name not in arguments and name not in _DECIDING)
    return {name: _PLACEHOLDERS.get(properties.get(name, {}).get("type", "string"), name) for name in left_out}


def _tool(call: ToolCall, scene: Scene, server: str | None) -> tuple[AnyTool, Mapping[str, Any]]:
    if server:
        foreign = Foreign(call.name, server)
        _ = foreign.spec  # a name that no tool can have shows here
        return foreign, call.arguments
    if call.name in ELSEWHERE:
        return Elsewhere(call.name), call.arguments
    tool, arguments = looked_up(call, _pool(scene.home))
    if isinstance(tool, WebFetch):
        return Fetching(Pages(fetcher=Fetcher(local_hosts=scene.judge.names_host))), arguments
    return (UnseenSkill() if isinstance(tool, Skill) else tool), arguments


@lru_cache(maxsize=4)
def _pool(home: str) -> ToolPool:
    others = (tool for tool in builtin_tools() if not isinstance(tool, Bash))
    return assemble(select((Bash(home=home), *others)))
