"""Parses a hook's reply from its exit code, its output or its JSON.

Whatever a hook prints, parsing it gives a `HookAnswer` and never an error. What is
wrong with an answer is kept as its `fault`, for people to see. A refusal applies
anywhere in the JSON; a permission only where it belongs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Final, Literal, TypeAlias, cast

from ..core.content import encodable
from ..core.values import named_value
from .event_names import MOMENTS
from .hook import Hook

Permission: TypeAlias = Literal["allow", "ask", "defer", "deny"]

LONGEST_TEXT: Final = 10_000
PREVIEW: Final = 2_000
PERMISSIONS: Final[tuple[Permission, ...]] = ("allow", "ask", "defer", "deny")
OLDER_DECISIONS: Final[Mapping[str, Permission]] = {"approve": "allow", "block": "deny"}
_ANSWER_WORDS: Final = ('"decision"', '"permissionDecision"', '"hookSpecificOutput"', '"continue"')
_NOTHING: Final[Mapping[str, Any]] = {}
_BLANKS: Final = " \t\r\n\v\f\ufeff"
"""Around an answer; some programs put a byte order mark before what they print."""
_REFUSALS: Final = frozenset({"ask", "block", "deny"})

Save: TypeAlias = Callable[[str], str | None]
"""Keeps a text that is too long and gives the path, or nothing where it could not."""


@named_value
class Reply:
    """What came back from a hook, not read yet."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    json: object = None
    """From a function, which returns it directly."""
    failure: str = ""
    """Why an answer is missing: it timed out, could not be started, or crashed."""


@named_value
class HookAnswer:
    hook: Hook
    permission: Permission | None = None
    blocks: bool = False
    """On events that are not about a permission: block what is about to happen, or continue."""
    reason: str = ""
    stops: str | None = None
    """Why everything is to end, if it is."""
    context: str = ""
    """For the model."""
    message: str = ""
    """For the person."""
    changed_input: Mapping[str, Any] | None = None
    special: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The content of `hookSpecificOutput`."""
    fault: str = ""

    @property
    def outcome(self) -> str:
        """In one word, for the record."""
        if self.stops is not None:
            return "stop"
        if self.permission is not None:
            return self.permission
        return "block" if self.blocks else "failed" if self.fault else "ok"


def parse_reply(hook: Hook, reply: Reply, save: Save) -> HookAnswer:
    if reply.failure:
        return _failure(hook, reply.failure)
    if reply.json is not None:
        return _from_json(hook, reply.json, save)
    if reply.exit_code == 2:
        return _blocking(hook, reply, save)
    stdout = reply.stdout.strip().strip(_BLANKS)
    if stdout.startswith("{"):
        try:
            value = _parse_json(stdout)
        except (ValueError, RecursionError) as error:
            return _failure(hook, f"it printed invalid JSON: {_short(str(error))}")
        return _from_json(hook, value, save)
    if reply.exit_code:
        said = _first_line(reply.stderr) or _first_line(stdout)
        return _failure(hook, f"it ended with exit code {reply.exit_code}" + (f": {said}" if said else ""))
    if "\0" in stdout:
        return _failure(hook, "it printed binary data")
    takes_text = MOMENTS[hook.event].text_is_context
    if (hook.fails_closed or not takes_text) and _hides_json(stdout):
        return _failure(hook, "its JSON follows other output and was ignored. It must print only the JSON")
    if takes_text:
        return HookAnswer(hook=hook, context=_bound(stdout, save))
    return HookAnswer(hook=hook)


def _hides_json(text: str) -> bool:
    """Whether an answer seems to follow other output."""
    _, brace, rest = text.partition("{")
    return brace != "" and any(word in rest for word in _ANSWER_WORDS)


def _parse_json(text: str) -> object:
    """For a duplicate key, a value that refuses takes precedence."""
    return json.loads(text, object_pairs_hook=_strictest)


def _strictest(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict[str, Any]()
    for key, value in pairs:
        if key not in found or not _refuses(found[key]):
            found[key] = value
        elif isinstance(found[key], dict) and isinstance(value, dict):
            found[key] = {**value, **found[key]}
    return found


def _refuses(value: object) -> bool:
    """Whether a value in an answer says no: `false` for `continue`, a word, or an object with one in it."""
    match value:
        case False:
            return True
        case str():
            return value.strip().lower() in _REFUSALS
        case dict():
            said = cast(Mapping[str, object], value)
            return any(_refuses(said.get(key)) for key in ("permissionDecision", "decision", "behavior", "continue"))
        case _:
            return False


def _blocking(hook: Hook, reply: Reply, save: Save) -> HookAnswer:
    """Exit code 2. JSON cannot override it."""
    said = _bound(reply.stderr.strip(), save) or "it gave no reason"
    if hook.event == "PreToolUse":
        return HookAnswer(hook=hook, permission="deny", reason=said)
    if MOMENTS[hook.event].blocks:
        return HookAnswer(hook=hook, blocks=True, reason=said)
    if hook.event == "PostToolUseFailure":
        return HookAnswer(hook=hook, context=said)
    fault = f"exit code 2 decides nothing on {hook.event}"
    return _failure(hook, fault) if hook.fails_closed else HookAnswer(hook=hook, message=said, fault=fault)


def _failure(hook: Hook, why: str) -> HookAnswer:
    """It did not answer. That refuses only if the hook fails closed."""
    fault = f"{hook.label}: {why}"
    if not hook.fails_closed:
        return HookAnswer(hook=hook, fault=fault)
    return _refusal(hook, f"it failed ({why}) and fails closed", fault=fault)


def _refusal(hook: Hook, reason: str, *, fault: str = "", **more: Any) -> HookAnswer:
    if hook.event in ("PreToolUse", "PermissionRequest"):
        return HookAnswer(hook=hook, permission="deny", reason=reason, fault=fault, **more)
    return HookAnswer(hook=hook, blocks=MOMENTS[hook.event].blocks, reason=reason, fault=fault, **more)


def _from_json(hook: Hook, value: object, save: Save) -> HookAnswer:
    if not isinstance(value, Mapping):
        return _failure(hook, f"its answer is {_kind(value)} and must be an object")
    reading = _Reading(hook, cast(Mapping[str, Any], value), save)
    answer = reading.answer()
    if not reading.faults:
        return answer
    fault = f"{hook.label}: {'; '.join(reading.faults)}"
    if hook.fails_closed and answer.permission != "deny" and not answer.blocks:
        return _refusal(hook, f"its answer is invalid ({reading.faults[0]}) and it fails closed", fault=fault)
    return replace(answer, fault=fault)


class _Reading:
    """Reads one object key by key. A value of the wrong type is a fault and is ignored."""

    def __init__(self, hook: Hook, value: Mapping[str, Any], save: Save) -> None:
        self._hook = hook
        self._value = value
        self._save = save
        self.faults: list[str] = []
        special = value.get("hookSpecificOutput", _NOTHING)
        misplaced = not isinstance(special, Mapping)
        if misplaced:
            self.faults.append(f"`hookSpecificOutput` is {_kind(special)} and must be an object")
            special = _refusing_part(special)
        self._special = cast(Mapping[str, Any], special)
        self._foreign = self._is_foreign() or misplaced

    def _is_foreign(self) -> bool:
        named = self._special.get("hookEventName", self._hook.event)
        if named == self._hook.event:
            return False
        self.faults.append(f"`hookEventName` is not {self._hook.event}, so only a refusal in it applies")
        return True

    def answer(self) -> HookAnswer:
        hook, special = self._hook, _NOTHING if self._foreign else self._special
        permission, reason = self._permission()
        blocks = False
        if hook.event != "PreToolUse" and hook.event != "PermissionRequest":
            blocks = _refusal_word(self._value.get("decision")) in ("block", "deny")
            reason = self._text(self._value, "reason") if blocks else reason
            self._check_decision()
        return HookAnswer(
            hook=hook,
            permission=permission,
            blocks=blocks,
            reason=reason or ("it gave no reason" if blocks or permission in ("deny", "defer") else ""),
            stops=self._stops(),
            context=self._text(special, "additionalContext"),
            message=self._text(self._value, "systemMessage"),
            changed_input=self._read_changed_input(special),
            special=special,
        )

    def _stops(self) -> str | None:
        goes_on = self._value.get("continue", self._value.get("continue_", True))
        if not isinstance(goes_on, bool):
            self.faults.append(f"`continue` is {_kind(goes_on)} and must be true or false")
            return None
        return None if goes_on else self._text(self._value, "stopReason") or f"{self._hook.label} stopped it"

    def _permission(self) -> tuple[Permission | None, str]:
        if self._hook.event == "PreToolUse":
            return self._before_a_call()
        if self._hook.event == "PermissionRequest":
            return self._for_the_person()
        return None, ""

    def _before_a_call(self) -> tuple[Permission | None, str]:
        stated = self._special.get("permissionDecision")
        reason = self._text(self._special, "permissionDecisionReason") or self._text(self._value, "reason")
        if stated is not None:
            return self._read_permission(stated, "permissionDecision", trusted=not self._foreign), reason
        misplaced = self._value.get("permissionDecision")
        if misplaced is not None:
            self.faults.append("`permissionDecision` belongs under `hookSpecificOutput`")
            reason = reason or self._text(self._value, "permissionDecisionReason")
            return self._read_permission(misplaced, "permissionDecision", trusted=False), reason
        older = _refusal_word(self._value.get("decision"))
        if older is None:
            return None, reason
        meant = OLDER_DECISIONS.get(older) if isinstance(older, str) else None
        return self._read_permission(meant or older, "decision", trusted=meant is not None), reason

    def _read_permission(self, word: object, key: str, *, trusted: bool) -> Permission | None:
        for permission in PERMISSIONS:
            if _refusal_word(word) == permission:
                return permission if trusted or permission in ("deny", "ask") else None
        self.faults.append(f"`{key}` is {_kind(word)} and must be one of {', '.join(PERMISSIONS)}")
        return None

    def _for_the_person(self) -> tuple[Permission | None, str]:
        decision = self._special.get("decision", self._value.get("decision"))
        if decision is None:
            return None, ""
        if not isinstance(decision, Mapping):
            if _refusal_word(decision) in ("block", "deny"):
                return "deny", self._text(self._value, "reason")
            self.faults.append(f"`decision` is {_kind(decision)} and must be an object")
            return None, ""
        said = cast(Mapping[str, Any], decision)
        placed = not self._foreign and "decision" in self._special
        match _refusal_word(said.get("behavior")):
            case "deny":
                return "deny", self._text(said, "message")
            case "allow" if placed:
                return "allow", ""
            case "allow":
                self.faults.append("`decision` belongs under `hookSpecificOutput`")
            case other:
                self.faults.append(f"`decision.behavior` is {_kind(other)} and must be allow or deny")
        return None, ""

    def _check_decision(self) -> None:
        decision = _refusal_word(self._value.get("decision"))
        if decision not in (None, "block", "approve", "allow", "deny"):
            self.faults.append(f"`decision` is {_kind(decision)} and must be block")

    def _read_changed_input(self, special: Mapping[str, Any]) -> Mapping[str, Any] | None:
        holder = special.get("decision") if self._hook.event == "PermissionRequest" else special
        if not isinstance(holder, Mapping):
            return None
        changed = cast(Mapping[str, Any], holder).get("updatedInput")
        if changed is None:
            return None
        if not isinstance(changed, Mapping):
            self.faults.append(f"`updatedInput` is {_kind(changed)} and must be an object")
            return None
        return cast(Mapping[str, Any], changed)

    def _text(self, holder: Mapping[str, Any], key: str) -> str:
        value = holder.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.faults.append(f"`{key}` is {_kind(value)} and must be text")
            return ""
        return _bound(encodable(value), self._save)


def _refusing_part(value: object) -> Mapping[str, Any]:
    """The first object of a list that says no. Everything else in a list is ignored."""
    for part in cast(list[Any], value) if isinstance(value, list) else ():
        if isinstance(part, dict) and _refuses(cast(object, part)):
            return cast(Mapping[str, Any], part)
    return _NOTHING


def _refusal_word(word: object) -> object:
    """Lower-cased if it refuses or asks; any other word must match exactly."""
    return word.strip().lower() if isinstance(word, str) and _refuses(word) else word


def _bound(text: str, save: Save) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    place = save(text)
    where = f"the full text is in {place}" if place else "the rest was not kept"
    return f"{text[:PREVIEW]}\n[... {len(text) - PREVIEW:,} characters left out; {where} ...]"


def _first_line(text: str) -> str:
    return _short(text.strip().partition("\n")[0])


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{_short(value)}"'
        case int() | float():
            return "a number"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"of the type {type(value).__name__}"
