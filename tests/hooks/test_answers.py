"""Whatever a hook says, reading it gives an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.hooks.event_names import MOMENTS
from ferrule.hooks.hook import Hook
from ferrule.hooks.reply_parsing import LONGEST_TEXT, HookAnswer, Reply, parse_reply
from tests.requirement import requirement

from .scripts import deciding, program

DECIDING = ("PreToolUse", "PermissionRequest")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
WORDS = st.sampled_from(["allow", "deny", "ask", "defer", "block", "approve", "PreToolUse", "Stop", True, False])
KEYS = st.sampled_from(
    [
        *("continue", "stopReason", "systemMessage", "decision", "reason", "hookSpecificOutput", "hookEventName"),
        *("permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext", "behavior"),
    ]
)
NEAR = st.dictionaries(
    KEYS, st.recursive(WORDS | JSON, lambda inner: st.dictionaries(KEYS, inner, max_size=5), max_leaves=12), max_size=6
)
TELLING = st.sampled_from(["PreToolUse", "PermissionRequest", "PostToolUse", "UserPromptSubmit"])
EVENTS = st.sampled_from(sorted(MOMENTS))


def read(hook: Hook, **reply: Any) -> HookAnswer:
    return parse_reply(hook, Reply(**reply), lambda _: None)


def said(event: str = "PreToolUse", **answer: Any) -> HookAnswer:
    return read(program("x", event), stdout=json.dumps(answer))


@given(EVENTS, st.booleans(), st.integers(0, 255), st.text(), st.text())
def test_no_output_of_any_kind_is_an_error(event: str, closed: bool, code: int, out: str, err: str) -> None:
    answer = read(program("x", event, fails_closed=closed), exit_code=code, stdout=out, stderr=err)

    assert isinstance(answer, HookAnswer)


@requirement("HOOK-4")
@given(TELLING, st.booleans(), JSON | NEAR, st.integers(0, 3))
def test_no_json_of_any_shape_is_an_error(event: str, closed: bool, value: Any, code: int) -> None:
    hook = program("x", event, fails_closed=closed)
    for answer in (read(hook, stdout=json.dumps(value), exit_code=code), read(hook, json=value)):
        assert answer.permission is None or event in DECIDING
        assert not (closed and answer.fault and event in DECIDING and answer.permission != "deny")


@requirement("HOOK-1")
@pytest.mark.parametrize("event", sorted(event for event in MOMENTS if MOMENTS[event].blocks and event != "PreToolUse"))
def test_exit_code_2_blocks_where_something_can_be_blocked(event: str) -> None:
    answer = read(program("x", event), exit_code=2, stderr="no\n")

    assert (answer.blocks, answer.reason) == (True, "no")


def test_exit_code_2_answers_no_question_for_a_person() -> None:
    answer = read(program("x", "PermissionRequest"), exit_code=2, stderr="no")

    assert (answer.permission, answer.message) == (None, "no")
    assert "decides nothing" in answer.fault


@requirement("HOOK-1")
@pytest.mark.parametrize("event", ["UserPromptSubmit", "UserPromptExpansion", "SessionStart"])
def test_plain_text_is_context_on_three_events(event: str) -> None:
    assert read(program("x", event), stdout="it rains\n").context == "it rains"
    assert read(program("x", event), stdout='as in\n{"decision": 1}').context == 'as in\n{"decision": 1}'
    assert read(program("x", "Stop"), stdout="it rains\n").context == ""


@pytest.mark.parametrize(
    "answer",
    [
        {"permissionDecision": "deny", "permissionDecisionReason": "why"},
        {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "why"}},
        {"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "deny"}, "reason": "why"},
        {"decision": "deny", "reason": "why"},
    ],
    ids=["not nested", "without its event", "with another event", "by another word"],
)
def test_a_refusal_counts_wherever_it_stands(answer: dict[str, Any]) -> None:
    assert (said(**answer).permission, said(**answer).reason) == ("deny", "why")


@pytest.mark.parametrize(
    "answer",
    [
        {"permissionDecision": "allow"},
        {"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "allow"}},
        {"decision": "allow"},
    ],
    ids=["not nested", "with another event", "by another word"],
)
def test_a_permission_counts_only_where_it_belongs(answer: dict[str, Any]) -> None:
    assert said(**answer).permission is None


def test_continue_false_stops_with_its_reason() -> None:
    assert said(**{"continue": False, "stopReason": "enough"}).stops == "enough"
    assert read(program("x"), json={"continue_": False}).stops == "PreToolUse hook `x` stopped it"
    assert said(**{"continue": True}).stops is None


def test_the_words_for_a_person_and_for_the_model_are_kept_apart() -> None:
    answer = said(systemMessage="for you", **deciding("ask", additionalContext="for it", updatedInput={"a": 1}))

    assert (answer.message, answer.context, answer.changed_input) == ("for you", "for it", {"a": 1})


def test_an_answer_for_the_person_is_read() -> None:
    decision = {"behavior": "allow", "updatedInput": {"command": "ls"}}
    allowed = said("PermissionRequest", hookSpecificOutput={"decision": decision})
    denied = said("PermissionRequest", hookSpecificOutput={"decision": {"behavior": "deny", "message": "not now"}})

    assert (allowed.permission, allowed.changed_input) == ("allow", {"command": "ls"})
    assert (denied.permission, denied.reason) == ("deny", "not now")


def test_a_text_that_is_too_long_is_saved_and_shown_in_part() -> None:
    saved: list[str] = []

    def save(text: str) -> str:
        saved.append(text)
        return "/kept/hook.txt"

    text = "x" * (LONGEST_TEXT + 1)
    answer = parse_reply(program("x"), Reply(json={"systemMessage": text}), save)

    assert saved == [text]
    assert answer.message.endswith("[... 8,001 characters left out; the full text is in /kept/hook.txt ...]")


@requirement("HELD-3")
@pytest.mark.parametrize(
    "printed",
    [
        '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "DENY"}}',
        '{"hookSpecificOutput": {"permissionDecision": " Deny "}}',
        '{"permissionDecision": "DENY"}',
        '{"decision": "BLOCK"}',
        '\ufeff{"decision": "block"}',
        '\n\ufeff {"decision": "block"}',
        '{"decision": "block", "decision": "approve"}',
        '{"decision": "approve", "decision": "block"}',
        '{"hookSpecificOutput": {"permissionDecision": "deny"}, "hookSpecificOutput": {"permissionDecision": "allow"}}',
        '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecision": "allow"}}',
        '{"hookSpecificOutput": [{"permissionDecision": "allow"}, {"permissionDecision": "deny"}]}',
    ],
)
def test_what_is_meant_as_a_refusal_refuses(printed: str) -> None:
    assert read(program("x", "PreToolUse"), stdout=printed).permission == "deny"


@requirement("HELD-3")
@pytest.mark.parametrize(
    "answer",
    [
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ALLOW"}},
        {"hookSpecificOutput": [{"hookEventName": "PreToolUse", "permissionDecision": "allow"}]},
        {"decision": "Approve"},
    ],
)
def test_a_permission_counts_only_as_it_is_spelt_and_placed(answer: dict[str, Any]) -> None:
    found = said(**answer)

    assert found.permission is None
    assert found.fault


@requirement("HELD-3")
@pytest.mark.parametrize(
    ("event", "printed"),
    [
        ("UserPromptSubmit", '{"decision": "BLOCK"}'),
        ("UserPromptSubmit", '{"decision": "block", "decision": "approve"}'),
        ("Stop", '{"continue": false, "continue": true}'),
    ],
)
def test_it_refuses_on_other_events_too(event: str, printed: str) -> None:
    found = read(program("x", event), stdout=printed)

    assert found.blocks or found.stops is not None


@requirement("HELD-3")
@pytest.mark.parametrize("decision", ['"DENY"', '{"behavior": "Deny"}'])
def test_a_permission_is_refused_in_capitals_too(decision: str) -> None:
    printed = f'{{"hookSpecificOutput": {{"decision": {decision}}}}}'

    assert read(program("x", "PermissionRequest"), stdout=printed).permission == "deny"
