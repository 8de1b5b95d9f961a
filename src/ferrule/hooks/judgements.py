"""What a model says about an event: `{"ok": true}`, or `{"ok": false, "reason": "..."}`, as a hook's JSON answer.

A yes means no objection; it permits nothing. A no refuses what is about to happen;
where nothing is, it ends the turn or is passed to the session's model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from .hook import ServiceFailed

_ENDS: Final = frozenset({"Stop", "SubagentStop"})
_DECODER: Final = json.JSONDecoder()
_LONGEST: Final = 100


def judgement(event: str, text: str, *, goes_on: bool = False) -> Mapping[str, Any]:
    """Raises `ServiceFailed` for a text that says neither yes nor no.

    >>> judgement("Stop", 'Not yet: {"ok": false, "reason": "no test was run"}')
    {'decision': 'block', 'reason': 'no test was run'}
    """
    said = _strictest(text)
    if said["ok"]:
        return {}
    reason = said.get("reason")
    reason = reason.strip() if isinstance(reason, str) else ""
    reason = reason or "the condition is not met"
    match event:
        case "PreToolUse":
            decided = {"permissionDecision": "deny", "permissionDecisionReason": reason}
            return {"hookSpecificOutput": {"hookEventName": event, **decided}}
        case "PermissionRequest":
            decided = {"behavior": "deny", "message": reason}
            return {"hookSpecificOutput": {"hookEventName": event, "decision": decided}}
        case "PostToolUseFailure":
            return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": reason}}
        case "PostToolUse" | "PostToolBatch" if not goes_on:
            return {"continue": False, "stopReason": reason}
        case _ if event in _ENDS and said.get("impossible") is True:
            return {"continue": False, "stopReason": reason}
        case _:
            return {"decision": "block", "reason": reason}


def _strictest(text: str) -> Mapping[str, Any]:
    """Of all its text, in case it reasons before its answer or quotes an example."""
    found = [one for one in _objects(text) if isinstance(one.get("ok"), bool)]
    for one in found:
        if not one["ok"]:
            return one
    if found:
        return found[0]
    words = " ".join(text.split())
    heard = f": {words[:_LONGEST]}" if words else ""
    raise ServiceFailed(f'it did not answer with {{"ok": true}} or {{"ok": false, "reason": "..."}}{heard}')


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    begin = text.find("{")
    while begin >= 0:
        try:
            value, end = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):
            end = begin + 1
        else:
            if isinstance(value, dict):
                yield cast(dict[str, Any], value)
        begin = text.find("{", end)
