"""`can_use_tool`: who is asked, with which context, and what the answer changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from ...core.verdicts import Behavior
from ...permissions.approvals import ApprovalAnswer, ApprovalQuestion
from ...permissions.rules import Rule, parse_rule
from ...sdk.conversation import Conversation
from ...settings.levels import Level, surroundings
from ...settings.settings_writing import save_rule
from ...settings.trust_store import TrustStore
from .errors import ClaudeSDKError, NotBuilt

PermissionMode: TypeAlias = Literal["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"]
PermissionBehavior: TypeAlias = Literal["allow", "deny", "ask"]
PermissionUpdateDestination: TypeAlias = Literal[
    "userSettings", "projectSettings", "localSettings", "session", "cliArg"
]
PermissionUpdateType: TypeAlias = Literal[
    "addRules", "replaceRules", "removeRules", "setMode", "addDirectories", "removeDirectories"
]

_BEHAVIORS: Final = {"allow": Behavior.ALLOW, "deny": Behavior.DENY, "ask": Behavior.ASK}
_LEVELS: Final = {"userSettings": Level.USER, "projectSettings": Level.PROJECT, "localSettings": Level.LOCAL}


@dataclass
class PermissionRuleValue:
    tool_name: str
    rule_content: str | None = None

    @classmethod
    def of(cls, rule: str) -> PermissionRuleValue:
        """
        >>> PermissionRuleValue.of("Bash(git log *)")
        PermissionRuleValue(tool_name='Bash', rule_content='git log *')
        """
        name, bracket, inside = rule.partition("(")
        return cls(name, inside.removesuffix(")") if bracket else None)

    def __str__(self) -> str:
        return self.tool_name if self.rule_content is None else f"{self.tool_name}({self.rule_content})"


@dataclass
class PermissionUpdate:
    type: PermissionUpdateType
    rules: list[PermissionRuleValue] | None = None
    behavior: PermissionBehavior | None = None
    mode: PermissionMode | None = None
    directories: list[str] | None = None
    destination: PermissionUpdateDestination | None = None

    def to_dict(self) -> dict[str, Any]:
        """In its JSON form: fields that its type does not use are left out."""
        said: dict[str, Any] = {"type": self.type}
        if self.destination is not None:
            said["destination"] = self.destination
        if self.type.endswith("Rules") and self.rules is not None:
            said["rules"] = [{"toolName": one.tool_name, "ruleContent": one.rule_content} for one in self.rules]
        if self.type.endswith("Rules") and self.behavior is not None:
            said["behavior"] = self.behavior
        if self.type == "setMode" and self.mode is not None:
            said["mode"] = self.mode
        if self.type.endswith("Directories") and self.directories is not None:
            said["directories"] = self.directories
        return said

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PermissionUpdate:
        rules = data.get("rules")
        return cls(
            type=data["type"],
            rules=None
            if rules is None
            else [PermissionRuleValue(one["toolName"], one.get("ruleContent")) for one in rules],
            behavior=data.get("behavior"),
            mode=data.get("mode"),
            directories=data.get("directories"),
            destination=data.get("destination"),
        )


@dataclass
class ToolPermissionContext:
    signal: Any = None
    suggestions: list[PermissionUpdate] = field(default_factory=list[PermissionUpdate])
    """The narrowest rules that would allow the call from now on, to be returned as `updated_permissions`."""
    tool_use_id: str | None = None
    agent_id: str | None = None
    blocked_path: str | None = None
    decision_reason: str | None = None
    """Why it is asked."""
    title: str | None = None
    display_name: str | None = None
    description: str | None = None


@dataclass
class PermissionResultAllow:
    behavior: Literal["allow"] = "allow"
    updated_input: dict[str, Any] | None = None
    """The whole input that is to be used instead."""
    updated_permissions: list[PermissionUpdate] | None = None


@dataclass
class PermissionResultDeny:
    behavior: Literal["deny"] = "deny"
    message: str = ""
    interrupt: bool = False
    """Whether the turn ends with it."""


PermissionResult: TypeAlias = PermissionResultAllow | PermissionResultDeny
CanUseTool: TypeAlias = Callable[[str, dict[str, Any], ToolPermissionContext], Awaitable[PermissionResult]]


class CallbackPerson:
    """A `can_use_tool` instead of a person. Any failure of it is a no."""

    def __init__(self, can_use_tool: CanUseTool) -> None:
        self._ask = can_use_tool
        self.conversation: Conversation | None = None
        """Whose calls it is asked about, once that is open."""

    async def answer(self, question: ApprovalQuestion, /) -> ApprovalAnswer:
        proposal = question.proposal
        if self.conversation is not None:
            await self.conversation.has_told_of(proposal.call.id)
        said = cast(object, await self._ask(proposal.tool.name, dict(proposal.arguments), _context(question)))
        match said:
            case PermissionResultAllow():
                await self._apply(said.updated_permissions or ())
                return ApprovalAnswer(allowed=True, arguments=said.updated_input)
            case PermissionResultDeny():
                if said.interrupt and self.conversation is not None:
                    self.conversation.session.interrupt()
                return ApprovalAnswer(allowed=False, words=said.message)
            case _:
                raise TypeError(
                    f"can_use_tool returned {type(said).__name__}; return PermissionResultAllow or PermissionResultDeny"
                )

    async def _apply(self, updates: Sequence[PermissionUpdate]) -> None:
        if not updates:
            return
        if self.conversation is None:
            raise ClaudeSDKError("No conversation is open, so permissions cannot be changed.")
        await apply_updates(updates, self.conversation)


async def apply_updates(updates: Sequence[PermissionUpdate], conversation: Conversation) -> None:
    """All of them or none: raises `ClaudeSDKError` if one cannot be made, `NotSaved` or `NotStored` for a file."""
    for make in [_checked(update, conversation) for update in updates]:
        await make()


def _checked(update: PermissionUpdate, conversation: Conversation) -> Callable[[], Awaitable[None]]:
    """What makes the change. Raises `ClaudeSDKError`, before anything is changed."""
    rules = [_rule(str(one), update) for one in update.rules or ()]
    live = conversation.opened.rules
    match str(update.type):
        case "addRules":
            level = _level(update)

            async def make() -> None:
                await _save(rules, level, conversation)
                live.add(rules)
        case "replaceRules":
            behavior = _session_behavior(update)

            async def make() -> None:
                live.replace(behavior, rules)
        case "removeRules":
            behavior = _session_behavior(update)

            async def make() -> None:
                live.remove(behavior, (rule.text for rule in rules))
        case "setMode":
            mode = _mode(update, conversation)

            async def make() -> None:
                conversation.set_mode(mode)
        case "addDirectories" | "removeDirectories":
            raise NotBuilt(
                "Working directories cannot change while a conversation lasts. Give `add_dirs` when opening it."
            )
        case unknown:
            raise ClaudeSDKError(f"{unknown!r} is not a type of permission update.")
    return make


def _context(question: ApprovalQuestion) -> ToolPermissionContext:
    proposal = question.proposal
    agent = proposal.ctx.facts.agent
    rules = [PermissionRuleValue.of(rule) for rule in question.rules]
    suggestion = PermissionUpdate("addRules", rules=rules, behavior="allow", destination="session")
    return ToolPermissionContext(
        suggestions=[suggestion] if rules else [],
        tool_use_id=proposal.call.id,
        agent_id=None if agent == "main" else agent.rpartition("/")[2],
        decision_reason=question.verdict.reason,
        title=f"Allow {proposal.tool.describe(proposal.input)}?",
        display_name=proposal.tool.title or proposal.tool.name,
        description=proposal.tool.describe(proposal.input),
    )


def _behavior(update: PermissionUpdate) -> Behavior:
    if update.behavior not in ("allow", "deny", "ask"):
        raise ClaudeSDKError(f"`{update.type}` needs a `behavior`: allow, deny or ask.")
    return _BEHAVIORS[update.behavior]


def _rule(text: str, update: PermissionUpdate) -> Rule:
    try:
        return parse_rule(text, _behavior(update), "can_use_tool")
    except ValueError as error:
        raise ClaudeSDKError(str(error)) from None


def _mode(update: PermissionUpdate, conversation: Conversation) -> str:
    try:
        return conversation.check_mode(update.mode or "default")
    except ValueError as error:
        raise ClaudeSDKError(str(error)) from None


def _session_behavior(update: PermissionUpdate) -> Behavior:
    if _level(update) is not None:
        raise NotBuilt(f"`{update.type}` changes no file. Leave out `destination`, or edit the settings.")
    return _behavior(update)


def _level(update: PermissionUpdate) -> Level | None:
    """Of the file that a rule is saved in; `None` for the session alone."""
    if update.destination in (None, "session", "cliArg"):
        return None
    for name, level in _LEVELS.items():
        if name == update.destination:
            return level
    raise ClaudeSDKError(f"{update.destination!r} is not a destination. Available: session, {', '.join(_LEVELS)}.")


async def _save(rules: list[Rule], level: Level | None, conversation: Conversation) -> None:
    """Raises `NotSaved` or `NotStored`."""
    if level is None:
        return
    around = surroundings(conversation.session.workspace, os.environ)
    store = TrustStore(conversation.opened.state_folder)
    for rule in rules:
        await asyncio.to_thread(save_rule, around, store, level, rule.behavior, rule.text)
