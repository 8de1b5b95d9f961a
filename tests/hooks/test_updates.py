"""What a PermissionRequest hook makes to hold for longer than the call that it is asked about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule import Settings, ToolCall, hook, open_session
from ferrule.core.calls import Status
from ferrule.hooks.hook_approver import NotKept
from ferrule.hooks.updates import updates_of
from tests.requirement import requirement

WRITES = [ToolCall(name, "Write", {"file_path": name, "content": "x"}) for name in ("one", "two", "three")]


def add(rule: str, content: str | None = None, **more: Any) -> dict[str, Any]:
    said = {"toolName": rule} | ({"ruleContent": content} if content else {})
    return {"type": "addRules", "rules": [said], "behavior": "allow", "destination": "session"} | more


async def statuses(folder: Path, *updates: Any) -> list[Status]:
    """Of three calls, of which the hook is asked about as many as it must be, and answers the first alone."""
    given: list[Any] = []

    def answer(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        given.append(event)
        if len(given) > 1:
            return None
        decision = {"behavior": "allow", "updatedPermissions": list(updates)}
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}

    settings = Settings(cwd=str(folder), state_folder=folder / ".state")
    async with open_session(settings, hooks=[hook("PermissionRequest", answer)]) as session:
        return [outcome.status for call in WRITES for outcome in await session.run([call])]


@requirement("HOOK-1")
@pytest.mark.parametrize(
    ("updates", "found"),
    [
        ([], [Status.OK, Status.DENIED, Status.DENIED]),
        ([add("Write")], [Status.OK, Status.OK, Status.OK]),
        ([add("Edit", "two")], [Status.OK, Status.OK, Status.DENIED]),
        ([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}], [Status.OK, Status.OK, Status.OK]),
    ],
    ids=["nothing", "a rule", "a narrow rule", "a mode"],
)
async def test_what_a_hook_adds_holds_for_the_session(tmp_path: Path, updates: Any, found: list[Status]) -> None:
    assert await statuses(tmp_path, *updates) == found


@requirement("HOOK-1")
async def test_a_rule_for_good_is_saved_in_its_file(tmp_path: Path) -> None:
    deny = add("WebFetch", destination="localSettings", behavior="deny")

    assert await statuses(tmp_path, add("Write", destination="localSettings"), deny) == [Status.OK] * 3
    saved = json.loads((tmp_path / ".ferrule" / "settings.local.json").read_text())
    assert saved == {"permissions": {"allow": ["Write"], "deny": ["WebFetch"]}}


@pytest.mark.parametrize(
    "update",
    [
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
        {"type": "addDirectories", "directories": ["/"], "destination": "session"},
        {"type": "removeRules", "rules": [{"toolName": "Write"}], "behavior": "deny", "destination": "session"},
        add("Write", behavior="deny"),
        add("Wr)ite"),
        add("Write", destination="elsewhere"),
        add("Write", behavior=None),
        "Write",
    ],
    ids=lambda update: update["type"] if isinstance(update, dict) else "text",
)
async def test_an_answer_of_which_not_all_can_be_done_allows_nothing(tmp_path: Path, update: Any) -> None:
    assert await statuses(tmp_path, add("Write"), update) == [Status.DENIED] * 3


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5) | st.sampled_from(["addRules", "setMode", "session", "allow"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "rules", "behavior", "destination", "mode", "toolName"]), inner)
    ),
    max_leaves=12,
)


@given(ANYTHING)
def test_whatever_stands_there_is_read_or_refused(value: Any) -> None:
    try:
        updates_of(value)
    except NotKept:
        return


@requirement("HOOK-1")
async def test_a_hook_is_given_the_narrowest_rules_and_may_give_them_back(tmp_path: Path) -> None:
    offered: list[Any] = []

    def always(event: Mapping[str, Any]) -> Mapping[str, Any]:
        offered.append(event.get("permission_suggestions"))
        kept = [one | {"destination": "session"} for one in event["permission_suggestions"]]
        decision = {"behavior": "allow", "updatedPermissions": kept}
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}

    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / ".state")
    calls = [ToolCall("1", "Bash", {"command": "touch a"}), ToolCall("2", "Bash", {"command": "touch a"}), WRITES[0]]
    async with open_session(settings, hooks=[hook("PermissionRequest", always)]) as session:
        found = [outcome.status for call in calls for outcome in await session.run([call])]

    assert found == [Status.OK] * 3
    assert offered == [
        [add("Bash", "touch a", destination="localSettings")],
        [add("Edit", "./one", destination="localSettings")],
    ]


async def suggestions_for(folder: Path, call: ToolCall) -> list[Any]:
    """What a hook that decides nothing is offered for the call; `None` where the event has no such field."""
    seen: list[Mapping[str, Any]] = []
    settings = Settings(cwd=str(folder), state_folder=folder / ".state")
    async with open_session(settings, hooks=[hook("PermissionRequest", seen.append)]) as session:
        await session.run([call])
    return [event.get("permission_suggestions") for event in seen]


@requirement("HOOK-1")
async def test_where_no_rule_helps_a_hook_is_given_none(tmp_path: Path) -> None:
    critical = ToolCall("1", "Bash", {"command": f"rm -r {tmp_path}"})

    assert await suggestions_for(tmp_path, critical) == [None]
    assert tmp_path.is_dir()


@requirement("HOOK-1")
async def test_for_a_protected_name_a_hook_is_given_the_rule_that_spells_it(tmp_path: Path) -> None:
    protected = ToolCall("1", "Write", {"file_path": ".git/config", "content": "x"})

    offered = [add("Edit", "./.git/config", destination="localSettings")]
    assert await suggestions_for(tmp_path, protected) == [offered]
