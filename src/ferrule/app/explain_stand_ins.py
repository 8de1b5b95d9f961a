"""Replacements for tools, paths, hooks and the machine when a call is only explained."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Never, cast

from ..core.context import ToolContext
from ..core.effects import Change, Effects, ReadsPath, Touch, WritesPath
from ..core.inputs import PathText, ToolInput
from ..core.ports import Paths
from ..core.state import SessionState
from ..core.tool import Tool, ToolError
from ..core.values import named_value
from ..core.verdicts import Behavior
from ..hooks.hook import Hook, HookBook, Payload, Program
from ..hooks.hook_matching import everything
from ..hooks.reply_parsing import OLDER_DECISIONS, PERMISSIONS, HookAnswer, Reply, parse_reply
from ..hooks.runner import Runner
from ..permissions.described_machine import AbleBox, PathsAsWritten
from ..permissions.domains import PreApproval
from ..permissions.modes import Mode
from ..permissions.path_patterns import Places
from ..permissions.rules import Origin, parse_valid_rules
from ..tools.skill import Skill, SkillInput
from ..tools.web_fetch import WebFetch, WebFetchInput
from .session_services import LateShell, build_policy, sessions_folder
from .session_settings import SessionRules, Settings

KINDS: Final = {"allow": Behavior.ALLOW, "ask": Behavior.ASK, "deny": Behavior.DENY}


@named_value
class CallScene:
    """Where a call would be made, and who decides about it."""

    cwd: str
    home: str
    workspace: str
    paths: Paths
    rules: SessionRules
    directories: tuple[str, ...] = ()
    shell: LateShell | None = None
    """This machine's; `None` in a hypothetical scene, for which no file is read."""

    async def close(self) -> None:
        if self.shell:
            await self.shell.close()


def open_scene(settings: Settings, *, mode: str = "") -> CallScene:
    """This folder on this machine, as a session would see them. Whoever opens it closes it."""
    parts = build_policy(settings, sessions_folder(settings) / f"explain-{os.urandom(4).hex()}")
    parts.state.mode = mode
    return CallScene(
        cwd=parts.cwd,
        home=os.path.expanduser("~"),
        workspace=parts.cwd,
        paths=parts.paths,
        rules=parts.rules,
        directories=parts.state.added_directories,
        shell=parts.shell,
    )


def tell_scene(
    settings: Settings,
    *,
    cwd: str,
    home: str,
    project_root: str | None = None,
    symlinks: Mapping[str, str] | None = None,
    sandbox: bool = False,
) -> CallScene:
    """A hypothetical scene, under the policy of the settings.

    It has no machine: a command that is understood is confined to what it declared, and one that only a sandbox
    could make safe is asked about, unless `sandbox` says that one is available.
    """
    root, paths = project_root or cwd, PathsAsWritten(home, symlinks or {})
    policy = settings.policy_source()()
    policy = policy if policy.mode is settings.mode else replace(policy, mode=settings.mode)
    added = settings.added_directories
    rules = SessionRules(
        lambda: policy,
        Places.resolve(paths, cwd=cwd, home=home, roots=(root, *added)),
        SessionState(cwd, added_directories=added),
        lists=settings.path_lists,
        domains=settings.pre_approval,
    )
    rules.box = AbleBox() if sandbox else None
    return CallScene(cwd=cwd, home=home, workspace=root, paths=paths, rules=rules, directories=added)


def described(
    *,
    cwd: str,
    home: str,
    project_root: str | None = None,
    rules: Mapping[str, list[str] | None],
    mode: str = Mode.DEFAULT,
    symlinks: Mapping[str, str] | None = None,
    sandbox: bool = False,
) -> CallScene:
    """A hypothetical scene, with its rules. Only these apply, and invalid rules are skipped."""
    origin = Origin("rules", base=project_root or cwd)
    parsed = (parse_valid_rules(rules.get(kind) or (), behavior, origin) for kind, behavior in KINDS.items())
    settings = Settings(
        cwd=cwd,
        rules=tuple(rule for some in parsed for rule in some),
        mode=Mode(mode),
        pre_approval=PreApproval(allowed=()),
    )
    return tell_scene(settings, cwd=cwd, home=home, project_root=project_root, symlinks=symlinks, sandbox=sandbox)


class Fetching(WebFetch):
    """Refuses no URL, so that the rules are applied to it too; `Answers` say what the fetch itself refuses."""

    def check(self, input: WebFetchInput, ctx: ToolContext) -> None:
        return None


class UnseenSkill(Skill):
    """A skill that is not looked up, so its content is unknown."""

    def effects(self, input: SkillInput, ctx: ToolContext) -> Effects:
        return Effects()


class _AnyInput(ToolInput):
    model_config = {"extra": "allow"}


class Foreign(Tool[_AnyInput, str]):
    """A third-party tool of which only the name is known."""

    input_model = _AnyInput

    def __init__(self, name: str, server: str) -> None:
        self.name = name
        self.server = server

    async def call(self, input: _AnyInput, ctx: ToolContext) -> str:
        raise ToolError("A call that is only explained is not made.")


class _PathInput(_AnyInput):
    file_path: PathText | None = None
    notebook_path: PathText | None = None
    path: PathText | None = None


class Elsewhere(Tool[_PathInput, str]):
    """A tool of other programs that rules may name: it reads or writes the given path."""

    input_model = _PathInput

    def __init__(self, name: str) -> None:
        self.name = name

    def effects(self, input: _PathInput, ctx: ToolContext) -> Effects:
        path = input.file_path or input.notebook_path or input.path or ctx.cwd
        return Effects.of(ELSEWHERE[self.name](path))

    async def call(self, input: _PathInput, ctx: ToolContext) -> str:
        raise ToolError("A call that is only explained is not made.")


ELSEWHERE: Final[Mapping[str, Callable[[str], Touch]]] = {
    "MultiEdit": lambda path: WritesPath(path, Change.REPLACES),
    **dict.fromkeys(("LS", "LSP", "NotebookRead"), ReadsPath),
}


class HookThatSaid(Runner):
    """One PreToolUse hook whose reply is known. `complete` fills in what a changed input leaves out."""

    def __init__(self, said: Mapping[str, Any], complete: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        self._reply = _reply_of(said)
        self._complete = complete
        fails_closed = said.get("failClosed") is True
        hook = Hook(
            event="PreToolUse", name="hook", matches=everything, work=Program(""), seconds=0, fails_closed=fails_closed
        )
        book = HookBook((hook,))
        super().__init__(lambda agent, chain: book, _no_worker)

    def at_once(self, hooks: Sequence[Hook], payload: Payload) -> list[HookAnswer]:
        return [self._completed(parse_reply(hook, self._reply, lambda text: None)) for hook in hooks]

    def _completed(self, answer: HookAnswer) -> HookAnswer:
        if answer.changed_input is None:
            return answer
        return replace(answer, changed_input=self._complete(answer.changed_input))


def _reply_of(said: Mapping[str, Any]) -> Reply:
    """As the hook itself would have returned it: anything outside of `stdout` is its output."""
    code, error, stdout = said.get("exit_code"), said.get("error"), said.get("stdout")
    special = said.get("hookSpecificOutput")
    printed: dict[str, Any] = dict(cast(Mapping[str, Any], special)) if isinstance(special, Mapping) else {}
    decision = str(said.get("decision"))
    decision = OLDER_DECISIONS.get(decision, decision)
    if decision in PERMISSIONS:
        printed.setdefault("permissionDecision", decision)
    if said.get("updatedInput") is not None:
        printed.setdefault("updatedInput", said["updatedInput"])
    return Reply(
        exit_code=code if isinstance(code, int) else 0,
        stdout=stdout if isinstance(stdout, str) else json.dumps({"hookSpecificOutput": printed}) if printed else "",
        stderr=str(said.get("stderr", "")),
        failure=(error if isinstance(error, str) else "it failed") if error else "",
    )


def _no_worker() -> Never:
    raise AssertionError("a hook whose reply is known is not run")
