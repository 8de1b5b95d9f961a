"""Hooks before and after a call, in a whole session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule import Settings, ToolCall, hook, open_session, parse_rule
from ferrule.core.calls import Status, ToolOutcome
from ferrule.core.content import plain_text
from ferrule.core.events import HookRan, NoteAdded
from ferrule.core.verdicts import Behavior
from ferrule.engine.session import Session
from ferrule.hooks.hook import Hook, HookBook
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.testing import Answering, Recorder, RecordingModel, allow, deny
from tests.requirement import requirement

from .scripts import deciding, printing, program


def opened(folder: Path, *hooks: Hook, rules: tuple[tuple[str, Behavior], ...] = (), **more: Any) -> Session:
    (folder / "a.txt").write_text("one\n")
    given = tuple(parse_rule(text, behavior, "test") for text, behavior in rules)
    mode = more.pop("mode", Mode.DEFAULT)
    return open_session(
        Settings(cwd=str(folder), state_folder=folder / ".state", rules=given, mode=mode), hooks=hooks, **more
    )


async def run(session: Session, name: str = "Read", /, **arguments: Any) -> ToolOutcome:
    async with session:
        (outcome,) = await session.run([ToolCall("call-1", name, arguments or {"file_path": "a.txt"})])
        return outcome


def answering(**answer: Any) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    return lambda event: answer


@requirement("HOOK-2", "HOOK-4")
async def test_a_function_refuses_a_call_with_its_reason(tmp_path: Path) -> None:
    outcome = await run(opened(tmp_path, hook("PreToolUse", answering(**deciding("deny", "Not today.")), name="guard")))

    assert outcome.status is Status.DENIED
    assert plain_text(outcome.content) == "Read was not allowed: PreToolUse hook `guard` says: Not today."


@requirement("HOOK-1", "HOOK-2")
async def test_a_hook_is_told_of_the_call_as_rules_see_it(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    session = opened(tmp_path, hook("PreToolUse", seen.append), hook("PostToolUse", seen.append))

    await run(session)

    common = {"session_id": session.id, "transcript_path": "", "cwd": str(tmp_path), "permission_mode": "default"}
    path = str(tmp_path / "a.txt")
    call = {"tool_name": "Read", "tool_input": {"file_path": path}, "tool_use_id": "call-1"}
    file = {"filePath": path, "content": "one", "numLines": 1, "startLine": 1, "totalLines": 1}
    before, after = seen
    assert before == {**common, "hook_event_name": "PreToolUse", **call}
    duration = after.pop("duration_ms")  # type: ignore[attr-defined]
    assert isinstance(duration, int)
    response = {"type": "text", "file": file}
    assert after == {**common, "hook_event_name": "PostToolUse", **call, "tool_response": response}


@requirement("HOOK-3")
@pytest.mark.parametrize(
    ("rule", "status"), [(Behavior.DENY, Status.DENIED), (Behavior.ASK, Status.DENIED), (None, Status.OK)]
)
async def test_an_allow_answers_the_usual_question_and_passes_no_rule(
    rule: Behavior | None, status: Status, tmp_path: Path
) -> None:
    rules = (("Write", rule),) if rule is not None else ()
    session = opened(tmp_path, hook("PreToolUse", answering(**deciding("allow"))), rules=rules)

    assert (await run(session, "Write", file_path="new", content="x")).status is status
    assert (tmp_path / "new").exists() is (status is Status.OK)


ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "decision": st.sampled_from(["approve", "allow", "block", 1]),
        "continue": st.booleans(),
        "hookSpecificOutput": st.fixed_dictionaries(
            {},
            optional={
                "permissionDecision": st.sampled_from(["allow", "ask", "deny", "defer", ""]),
                "updatedInput": st.sampled_from([{"file_path": "b"}, {}, {"file_path": 7}, {"file_path": "a.txt"}]),
            },
        ),
    },
)


@requirement("HOOK-3")
@given(st.lists(ANSWERS, max_size=3))
def test_no_answer_of_hooks_passes_a_deny_rule(tmp_path_factory: Any, answers: list[dict[str, Any]]) -> None:
    folder = tmp_path_factory.mktemp("law")
    hooks = [hook("PreToolUse", answering(**answer)) for answer in answers]

    outcome = asyncio.run(run(opened(folder, *hooks, rules=(("Read", Behavior.DENY),))))

    assert outcome.status in (Status.DENIED, Status.INVALID)


@requirement("HOOK-3")
async def test_the_strictest_hook_wins(tmp_path: Path) -> None:
    hooks = [hook("PreToolUse", answering(**deciding(one, one))) for one in ("allow", "deny", "ask")]

    assert "says: deny" in plain_text((await run(opened(tmp_path, *hooks))).content)


@requirement("PIPE-3", "HOOK-1")
async def test_a_changed_input_is_judged_by_rules_and_by_the_other_hooks(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("two\n")
    seen: list[str] = []

    def other(event: Mapping[str, Any]) -> dict[str, Any] | None:
        seen.append(Path(event["tool_input"]["file_path"]).name)
        return deciding("deny", "not b") if seen[-1] == "b.txt" else None

    change = hook("PreToolUse", answering(**deciding("allow", updatedInput={"file_path": "b.txt"})))
    outcome = await run(opened(tmp_path, change, hook("PreToolUse", other)))

    assert seen == ["a.txt", "b.txt"]
    assert outcome.status is Status.DENIED
    assert outcome.record is not None
    assert outcome.record.rewrites == ({"file_path": "b.txt"},)


@requirement("PIPE-3")
async def test_a_hook_is_not_asked_about_what_it_wrote_and_several_build_on_each_other(tmp_path: Path) -> None:
    def adding(letter: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        def add(event: Mapping[str, Any]) -> dict[str, Any]:
            given = event["tool_input"]
            return deciding("allow", updatedInput={**given, "content": given["content"] + letter})

        return add

    hooks = [hook("PreToolUse", adding(letter)) for letter in "xy"]
    outcome = await run(opened(tmp_path, *hooks), "Write", file_path="new", content="-")

    assert outcome.status is Status.OK
    assert (tmp_path / "new").read_text() == "-yx"


@requirement("PIPE-3")
async def test_where_only_managed_hooks_may_change_input_another_leads_to_a_question(tmp_path: Path) -> None:
    command = printing(**deciding("allow", updatedInput={"file_path": "b.txt"}))
    settings = Settings(
        cwd=str(tmp_path),
        state_folder=tmp_path / ".state",
        hooks=HookBook([program(command, name="mine", may_change_input=False)]),
    )
    (tmp_path / "a.txt").write_text("one\n")

    outcome = await run(open_session(settings))

    assert outcome.status is Status.DENIED
    assert outcome.record is not None
    assert outcome.record.rewrites == ()


@requirement("HOOK-4")
@pytest.mark.parametrize("closed", [True, False])
async def test_a_function_that_raises_has_refused_unless_it_fails_open(closed: bool, tmp_path: Path) -> None:
    def broken(event: Mapping[str, Any]) -> None:
        raise SystemExit(1)

    async def slow(event: Mapping[str, Any]) -> None:
        await asyncio.sleep(600)

    for function in (broken, slow):
        one = hook("PreToolUse", function, fails_closed=closed, seconds=0.01)
        assert (await run(opened(tmp_path, one))).status is (Status.DENIED if closed else Status.OK)


async def test_what_a_function_does_to_the_event_changes_nothing(tmp_path: Path) -> None:
    def meddling(event: Any) -> None:
        event["tool_input"]["file_path"] = "/etc/passwd"

    assert (await run(opened(tmp_path, hook("PreToolUse", meddling)))).status is Status.OK


@requirement("HOOK-2")
async def test_a_permission_request_hook_answers_in_place_of_the_person(tmp_path: Path) -> None:
    person = Answering(deny("the person says no"))
    decision = {"decision": {"behavior": "allow", "updatedInput": {"file_path": "new", "content": "changed"}}}
    one = hook("PermissionRequest", answering(hookSpecificOutput=decision), match="Write")

    outcome = await run(opened(tmp_path, one, approver=person), "Write", file_path="new", content="x")

    assert (outcome.status, person.asked) == (Status.OK, [])
    assert (tmp_path / "new").read_text() == "changed"


async def test_a_permission_request_hook_that_says_nothing_leaves_it_to_the_person(tmp_path: Path) -> None:
    person = Answering(allow())
    one = hook("PermissionRequest", lambda event: None)

    outcome = await run(opened(tmp_path, one, approver=person), "Write", file_path="new", content="x")

    assert (outcome.status, len(person.asked)) == (Status.OK, 1)


@requirement("HOOK-2", "PIPE-1")
async def test_what_hooks_say_after_a_call_is_told_to_the_model(tmp_path: Path) -> None:
    hooks = [
        hook("PreToolUse", answering(hookSpecificOutput={"additionalContext": "before"}), name="a"),
        hook("PostToolUse", answering(decision="block", reason="after"), name="b"),
    ]

    outcome = await run(opened(tmp_path, *hooks))

    assert outcome.status is Status.OK
    assert outcome.messages == (
        "<hook>\nPreToolUse hook `a`: before\n</hook>",
        "<hook>\nPostToolUse hook `b`: after\n</hook>",
    )


@requirement("HOOK-2")
async def test_a_call_that_failed_is_told_as_a_failure(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    session = opened(
        tmp_path, hook("PostToolUseFailure", seen.append), hook("PostToolUse", seen.append), mode=Mode.BYPASS
    )

    await run(session, "Bash", command="echo why; exit 3")

    (event,) = seen
    assert (event["hook_event_name"], event["is_interrupt"]) == ("PostToolUseFailure", False)
    assert "why\nExit code 3." in event["error"]


async def test_an_output_that_a_hook_replaces_is_what_the_model_reads(tmp_path: Path) -> None:
    def hidden(event: Mapping[str, Any]) -> dict[str, Any]:
        changed = {**event["tool_response"], "stdout": event["tool_response"]["stdout"].replace("secret", "***")}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": changed}}

    outcome = await run(
        opened(tmp_path, hook("PostToolUse", hidden), mode=Mode.BYPASS), "Bash", command="echo a secret"
    )

    assert plain_text(outcome.content) == "a ***"


@requirement("HELD-3")
async def test_instead_of_an_output_that_a_hook_could_not_replace_the_model_reads_why(tmp_path: Path) -> None:
    one = hook("PostToolUse", answering(hookSpecificOutput={"updatedToolOutput": {"stdout": 7}}))

    outcome = await run(opened(tmp_path, one, mode=Mode.BYPASS), "Bash", command="echo a secret")

    text = plain_text(outcome.content)
    assert "secret" not in text
    assert "does not have the shape of this tool's output" in text


@requirement("HOOK-1")
async def test_a_program_refuses_what_its_script_knows(tmp_path: Path) -> None:
    script = tmp_path / "guard.sh"
    script.write_text('#!/bin/sh\ngrep -q "rm -rf" && { echo "no removing" >&2; exit 2; }\nexit 0\n')
    script.chmod(0o755)
    settings = Settings(
        cwd=str(tmp_path),
        state_folder=tmp_path / ".state",
        mode=Mode.BYPASS,
        hooks=HookBook([program('"$CLAUDE_PROJECT_DIR"/guard.sh', name="guard.sh")]),
    )

    refused = await run(open_session(settings), "Bash", command="rm -rf x")
    allowed = await run(open_session(settings), "Bash", command="echo fine")

    assert plain_text(refused.content) == "Bash was not allowed: PreToolUse hook `guard.sh` says: no removing."
    assert plain_text(allowed.content) == "fine"


async def test_observers_are_told_of_each_hook(tmp_path: Path) -> None:
    seen = Recorder()
    session = opened(tmp_path, hook("PreToolUse", answering(systemMessage="hello", decision="approve"), name="a"))

    with session.bus.listen(lambda envelope: seen(envelope.event)):
        await run(session)

    (told,) = seen.of(HookRan)
    assert (told.event, told.name, told.outcome, told.message) == ("PreToolUse", "a", "allow", "hello")


def test_without_hooks_nothing_is_plugged_in(tmp_path: Path) -> None:
    session = opened(tmp_path)

    assert (len(session.pipeline.judges), session.pipeline.after, session.hooks) == (2, (), None)


@requirement("HOOK-2")
async def test_an_error_in_input_that_a_hook_wrote_names_the_hook(tmp_path: Path) -> None:
    wrong = hook("PreToolUse", answering(hookSpecificOutput={"updatedInput": {"zz": 1}}), name="helper")

    outcome = await run(opened(tmp_path, wrong))

    assert outcome.status is Status.INVALID
    text = plain_text(outcome.content)
    assert text.startswith(
        "Read did not run because its input was changed: PreToolUse hook `helper` changed the input."
    )
    assert "`zz`" in text


@requirement("HOOK-2", "HOOK-3")
async def test_the_reason_of_an_ask_is_part_of_the_refusal_where_nobody_can_be_asked(tmp_path: Path) -> None:
    careful = hook("PreToolUse", answering(**deciding("ask", "It is a Friday.")), name="guard")

    outcome = await run(opened(tmp_path, careful))

    assert outcome.status is Status.DENIED
    assert "PreToolUse hook `guard` says: It is a Friday; it needs a person's approval" in plain_text(outcome.content)


@requirement("HOOK-2")
async def test_what_a_hook_adds_to_a_call_that_is_refused_reaches_the_model(tmp_path: Path) -> None:
    words = {"hookEventName": "PreToolUse", "additionalContext": "Use b.txt instead."}
    session = opened(
        tmp_path,
        hook("PreToolUse", answering(hookSpecificOutput=words), name="adviser"),
        rules=(("Read(./a.txt)", Behavior.ASK),),
    )
    model = RecordingModel(says("", ToolCall("1", "Read", {"file_path": "a.txt"})), says("I see."))

    async with session, session.ask("go", model) as events:
        notes = [one.event.text async for one in events if isinstance(one.event, NoteAdded)]

    assert [note for note in notes if "Use b.txt instead." in note] == ["PreToolUse hook `adviser`: Use b.txt instead."]
