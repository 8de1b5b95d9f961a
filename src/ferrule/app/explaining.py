"""What a call would do and whether it is allowed, without running it.

The engine's own pipeline decides, with the rules of a session and the sandbox
of this machine. It stops where a person would be asked or the call would run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from typing import Any, Final

from ..bash_analysis.analysis import explain_analysis as command_lines
from ..core.calls import Refusal, ToolCall
from ..core.context import Facts, ToolContext
from ..core.effects import Effects, describe_touch
from ..core.ports import Judge, Proposal
from ..core.tool import AnyTool, ToolDefinitionError, ToolError
from ..core.values import named_value
from ..core.verdicts import Behavior, Confinement, Risk, Verdict, strictest
from ..engine.pipeline import Pipeline
from ..engine.pool import ToolPool, assemble, select
from ..engine.preparing import look_up, prepare_call
from ..hooks.hook_judge import CallMemory, HookJudge
from ..hooks.payloads import SessionFacts
from ..host.processes.command import CommandFailed
from ..host.web.fetching import Fetcher
from ..host.web.url_guard import Explained, explain_fetch
from ..host.web.web_pages import WebPages
from ..permissions.approvals import NobodyToAsk
from ..permissions.kernel_grants import KernelGrants
from ..permissions.reading_door import NoCall
from ..permissions.rule_forms import NAMED_BY, PRIMARY
from ..permissions.suggesting import suggest_for_call
from ..tools import builtin_tools
from ..tools.bash import Bash
from ..tools.notebook_edit import NotebookEdit
from ..tools.skill import Skill
from ..tools.web_fetch import WebFetch
from .explain_stand_ins import (
    ELSEWHERE,
    CallScene,
    Elsewhere,
    Fetching,
    Foreign,
    HookThatSaid,
    UnseenSkill,
)
from .session_services import LateShell

_DECISIONS: Final = {Behavior.ALLOW: "allow", Behavior.ASK: "ask", Behavior.DENY: "deny"}
_VERBS: Final = {Behavior.ALLOW: "It may run", Behavior.ASK: "A person is asked", Behavior.DENY: "It is refused"}
_PLACEHOLDERS: Final[Mapping[str, Any]] = {
    "integer": 1, "number": 1, "boolean": False, "array": [], "object": {}
}  # fmt: skip

_DECIDING: Final = PRIMARY | {name for names in NAMED_BY.values() for name in names}
"""Parameters that a decision depends on: they are never filled in."""
_ANY_CELL: Final[Mapping[str, Any]] = {"cell_id": "0", "new_source": ""}


class CannotExplain(Exception):
    """The call itself is invalid. The message is the one for the model."""


@named_value
class Answers:
    """What the network would answer to a fetch."""

    resolve: tuple[str, ...] | None = None
    """The addresses of the host; `None` to judge by its name alone."""
    resolve_sequence: tuple[str | tuple[str, ...], ...] = ()
    redirect_to: tuple[str, ...] = ()

    def applied_to(self, verdict: Verdict, proposal: Proposal, scene: CallScene) -> Verdict:
        """The verdict on a call, with the result of the fetch, if it is one."""
        if not isinstance(proposal.tool, WebFetch):
            return verdict
        fetched = explain_fetch(
            proposal.input.url,
            resolve=self.resolve,
            resolve_sequence=self.resolve_sequence,
            redirect_to=self.redirect_to,
            local_hosts=scene.rules.names_host,
        )
        if fetched.unclear and verdict.behavior is not Behavior.ALLOW:
            # no rule for a host allows a fetch that nobody can say the host of, and it is refused once one does
            return replace(verdict, reason=f"{verdict.reason}; and if it were allowed, {fetched.reason}")
        return strictest((_of_fetch(fetched), verdict))


@named_value
class Explanation:
    """Everything known about a call before it runs."""

    effects: Effects
    verdict: Verdict
    risks: tuple[Risk, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why the effects are not all known; empty if they are."""
    suggestions: Callable[[], tuple[str, ...]] = tuple
    """Rules that would allow a call that asks. It takes a while to find them."""
    hooks: tuple[str, ...] = ()
    """Those that are asked before it runs; an explanation does not ask them."""
    grants: KernelGrants | None = None
    """The kernel's confinement of a command once it may run; `None` for none."""
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
            "grants": self.grants.as_data() if self.grants else None,
            **({"hooks": list(self.hooks)} if self.hooks else {}),
        }

    @property
    def lines(self) -> tuple[str, ...]:
        behavior = self.verdict.behavior
        asks = behavior is Behavior.ASK
        lines = [f"{_VERBS[behavior]}: {self.verdict.reason}."]
        if self.grants:
            runs = "If it is approved, it runs" if asks else "It runs"
            lines.append(f"{runs} inside a sandbox: it {self.grants.describe()}.")
        rules = self.suggestions() if asks else ()
        if rules:
            lines.append("It would be allowed by: " + ", ".join(f"`{rule}`" for rule in rules))
        if behavior is not Behavior.DENY:
            lines += (f"Before it runs, {hook} is asked, and may refuse it." for hook in self.hooks)
        return (*lines, "", *self.does)


async def explain(
    name: str,
    arguments: Mapping[str, Any],
    scene: CallScene,
    *,
    server: str | None = None,
    hook: Mapping[str, Any] | None = None,
    answers: Answers = Answers(),  # noqa: B008 - immutable
) -> Explanation:
    """Raises `CannotExplain`.

    `server` makes the tool one of an MCP server; `hook` is what a PreToolUse hook answers, by its `decision`,
    `updatedInput` or `error`, or by its `stdout`, `stderr` and `exit_code`; `answers` are what the network would say.
    """
    call = ToolCall("explain", name, arguments)
    try:
        tool, adapted = _tool(call, scene, server)
        filled = _completed(tool, adapted)
        empty = next((name for name in _required_parameters(tool) if name in PRIMARY and filled.get(name) == ""), None)
        if empty is not None:
            return _refusal(f"`{empty}` is empty.")
        tool.parse(filled)
    except (Refusal, ToolDefinitionError) as refusal:
        raise CannotExplain(str(refusal)) from None
    facts = Facts(workspace=scene.workspace, added_directories=scene.directories)
    ctx = ToolContext("explain", scene.cwd, facts, NoCall())
    judges = (scene.rules, *((_hook_judge(hook, tool, scene),) if hook else ()))
    pipeline = Pipeline(paths=scene.paths, approver=NobodyToAsk(), emit=lambda event: None, judges=judges)
    try:
        ready, verdict = await pipeline.decide(prepare_call(call, tool, filled, ctx, scene.paths))
    except (Refusal, ToolError) as refusal:
        return _refusal(str(refusal).partition("\n")[0])
    proposal = ready.proposal
    verdict = answers.applied_to(verdict, proposal, scene)
    return await _explanation(proposal, verdict, scene)


async def _explanation(proposal: Proposal, verdict: Verdict, scene: CallScene) -> Explanation:
    tool, effects = proposal.tool, proposal.effects
    hooks = scene.rules.hooks.choose("PreToolUse", tool.name, proposal)
    explanation = Explanation(
        effects=effects,
        verdict=verdict,
        reasons=("The tool cannot say what it would do.",) if effects.unknown else (),
        suggestions=lambda: _suggestions(proposal, verdict, scene),
        hooks=tuple(f"the {hook.label} in {hook.origin}" for hook in hooks if not hook.beside),
        does=tuple(_lines(effects)),
    )
    if not isinstance(tool, Bash):
        return explanation
    analysis = tool.analyse(proposal.input, proposal.ctx)
    return replace(
        explanation,
        effects=analysis.effects,
        risks=analysis.risks,
        reasons=analysis.reasons,
        grants=await _grants(tool, proposal, verdict, scene),
        does=tuple(command_lines(analysis)),
    )


async def _grants(tool: Bash, proposal: Proposal, verdict: Verdict, scene: CallScene) -> KernelGrants | None:
    """For a call that asks: its confinement once a person has approved it."""
    if verdict.behavior is Behavior.DENY:
        return None
    if verdict.behavior is Behavior.ASK:
        verdict = replace(verdict, approved=True)
    needed = tool.confinement(proposal.input, proposal.ctx, proposal.effects, verdict)
    if needed is None:
        return None
    if scene.shell and not await _confines(scene.shell, needed):
        return None
    roots = (scene.workspace, *scene.directories)
    return KernelGrants.of(needed, proposal.effects, roots=roots, on_disk=scene.shell is not None)


async def _confines(shell: LateShell, needed: Confinement) -> bool:
    try:
        await shell.try_it()
    except (CommandFailed, OSError):  # where nothing can be started, nothing holds it, and the call fails
        return False
    return shell.confines(needed)


def _suggestions(proposal: Proposal, verdict: Verdict, scene: CallScene) -> tuple[str, ...]:
    """Empty if it is not the rules that ask."""
    critical = any(risk.severity == "critical" for risk in verdict.risks)
    if critical or verdict.source in ("tool", "hook"):
        return ()
    return suggest_for_call(proposal, scene.rules, scene.cwd)


def _hook_judge(said: Mapping[str, Any], tool: AnyTool, scene: CallScene) -> Judge:
    runner = HookThatSaid(said, lambda arguments: _completed(tool, arguments))
    return HookJudge(runner, SessionFacts(session_id="explain", project=scene.workspace), CallMemory())


def _of_fetch(fetched: Explained) -> Verdict:
    return Verdict(behavior=fetched.behavior, source="tool", reason=fetched.reason)


def _lines(effects: Effects) -> list[str]:
    first = "What this does is not known." if effects.unknown else "This only looks." if effects.read_only else ""
    return [first or "This changes something.", *(f"  {describe_touch(touch)}" for touch in effects.touches)]


def _refusal(words: str) -> Explanation:
    """For a call that reaches no judge: it is refused as invalid."""
    verdict = Verdict(behavior=Behavior.DENY, source="tool", reason=words.rstrip("."))
    return Explanation(effects=Effects(), verdict=verdict, reasons=(words,), does=("Never reached.",))


def _required_parameters(tool: AnyTool) -> tuple[str, ...]:
    return tuple(tool.spec.input_schema.get("required", ()))


def _completed(tool: AnyTool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """With placeholders for missing required parameters, except for those that decide."""
    if isinstance(tool, NotebookEdit) and not arguments.keys() - {"notebook_path"}:
        return {**_ANY_CELL, **arguments}
    properties: Mapping[str, Mapping[str, Any]] = tool.spec.input_schema.get("properties", {})
    left_out = (name for name in _required_parameters(tool) if name not in arguments and name not in _DECIDING)
    missing = {name: _PLACEHOLDERS.get(properties.get(name, {}).get("type", "string"), name) for name in left_out}
    return {**missing, **arguments}


def _tool(call: ToolCall, scene: CallScene, server: str | None) -> tuple[AnyTool, Mapping[str, Any]]:
    if server:
        foreign = Foreign(call.name, server)
        _ = foreign.spec  # a name that no tool can have shows here
        return foreign, call.arguments
    if call.name in ELSEWHERE:
        return Elsewhere(call.name), call.arguments
    tool, arguments = look_up(call, _pool(scene.home, is_told=scene.shell is None))
    if isinstance(tool, WebFetch):
        return Fetching(WebPages(fetcher=Fetcher(local_hosts=scene.rules.names_host))), arguments
    return (UnseenSkill() if isinstance(tool, Skill) else tool), arguments


@lru_cache(maxsize=4)
def _pool(home: str, *, is_told: bool) -> ToolPool:
    bash = Bash(home=home, follow_git=tuple) if is_told else Bash(home=home)
    return assemble(select((bash, *(tool for tool in builtin_tools() if not isinstance(tool, Bash)))))
