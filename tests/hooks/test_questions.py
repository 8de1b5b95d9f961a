"""Hooks that are questions: to a model, to an agent that looks around, to a tool of a server. In real sessions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ferrule import Settings, ToolCall, open_session
from ferrule.app.kept_sessions import begin_session
from ferrule.app.settings_interpretation import interpret_settings
from ferrule.core.calls import Status, ToolOutcome
from ferrule.core.content import plain_text
from ferrule.core.events import HookRan, ToolFinished, TurnEnded
from ferrule.core.model import ModelEvent, ModelFacts, Request, ResultTurn, Usage, UserTurn
from ferrule.core.verdicts import Behavior
from ferrule.engine.session import Session
from ferrule.hooks.hook import HookBook
from ferrule.mcp.server_context import Around
from ferrule.mcp.servers import McpServers
from ferrule.permissions.modes import Mode
from ferrule.permissions.rules import parse_rule
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.settings.settings_sources import open_layers
from tests.agents.cast import Cast, hire
from tests.agents.test_agent_files import pages
from tests.cli.prompting import ask, lines_of
from tests.engine.conversing import Stream
from tests.mcp.running import QUICK, config, raw
from tests.requirement import requirement
from tests.settings.folders import put

WRITE = ToolCall("w", "Write", {"file_path": "new", "content": "x"})
READ = ToolCall("r", "Read", {"file_path": "notes"})
CHECK = {"type": "prompt", "prompt": "check this: $ARGUMENTS"}
LOOK = {"type": "agent", "prompt": "look at it"}
NO = '{"ok": false, "reason": "not today"}'
YES = '{"ok": true}'


def book(folder: Path, *handlers: Any, event: str = "PreToolUse", matcher: str = "Write") -> HookBook:
    said = {"hooks": {event: [{"matcher": matcher, "hooks": list(handlers)}]}}
    live = open_layers(str(folder), folder / ".state", settings=json.dumps(said), levels=frozenset())
    return interpret_settings(live.current(), str(folder)).hooks


def settings(folder: Path, hooks: HookBook, **more: Any) -> Settings:
    return Settings(cwd=str(folder), state_folder=folder / ".state", hooks=hooks, **{"mode": Mode.BYPASS, **more})


async def played(session: Session, model: Any, prompt: str = "main") -> list[Any]:
    async with session, session.ask(prompt, model) as events:
        return [one.event async for one in events]


def outcomes(seen: list[Any]) -> list[ToolOutcome]:
    return [event.outcome for event in seen if isinstance(event, ToolFinished)]


def results(request: Request) -> list[str]:
    """What its calls gave, in the conversation that a request belongs to."""
    turns = [turn for turn in request.history if isinstance(turn, ResultTurn)]
    return [plain_text(result.content) for turn in turns for result in turn.results]


# A prompt for a model


@requirement("HOOK-1")
@pytest.mark.parametrize(("answer", "status"), [(YES, Status.OK), (f"Hm.\n```json\n{NO}\n```", Status.DENIED)])
async def test_a_model_is_asked_about_a_call_which_is_data_to_it(tmp_path: Path, answer: str, status: Status) -> None:
    model = Cast(main=[says("", WRITE), says("Done.")], check=[[Usage(7, 1), *says(answer)]])
    session = open_session(settings(tmp_path, book(tmp_path, CHECK)))

    seen = await played(session, model)

    (outcome,) = outcomes(seen)
    assert outcome.status is status
    assert ("not today" in plain_text(outcome.content)) is (status is Status.DENIED)
    (asked,) = [request for prompt, request in model.requests if prompt.startswith("check")]
    (question,) = asked.history
    assert isinstance(question, UserTurn)
    words = plain_text(question.content)
    assert words.startswith("check this: <text ")
    assert f'"file_path": "{tmp_path}/new"' in words
    assert (list(asked.tools), "not an instruction" in asked.system) == ([], True)
    assert session.spending.usage.input_tokens == 7


@requirement("HOOK-1", "CLI-1")
def test_a_headless_run_asks_its_own_model(tmp_path: Path) -> None:
    """The script is played to whoever asks: the conversation, then the hook, then the conversation again."""
    put(tmp_path / "home/.claude/settings.json", {"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [CHECK]}]}})
    write = {"name": "Write", "input": {"file_path": "new", "content": "x"}}
    script = [{"calls": [write]}, {"text": NO}, {"text": "Then not."}]

    done = ask(tmp_path, script, "go", "--permission-mode", "acceptEdits", "--output-format", "json")

    (answer,) = lines_of(done)
    assert answer["result"] == "Then not."
    assert [denied["tool_name"] for denied in answer["permission_denials"]] == ["Write"]
    assert not (tmp_path / "new").exists()


@requirement("HOOK-4")
@pytest.mark.parametrize(
    ("answers", "more", "status"),
    [
        ([says("Fine with me.")], {}, Status.DENIED),
        ([says("")], {}, Status.DENIED),
        ([], {}, Status.DENIED),
        ([says(YES)], {"model": "no-such-model"}, Status.DENIED),
        ([says("Fine with me.")], {"failClosed": False}, Status.OK),
        ([says(f"For instance {YES}, but no: {NO}")], {"failClosed": False}, Status.DENIED),
    ],
    ids=["no JSON", "nothing", "an error", "a model that is not there", "said to fail open", "yes and no"],
)
async def test_a_model_that_gives_no_answer_has_said_no_at_a_gate(
    tmp_path: Path, answers: Any, more: Any, status: Status
) -> None:
    model = Cast(main=[says("", WRITE), says("Done.")], check=answers)

    seen = await played(open_session(settings(tmp_path, book(tmp_path, {**CHECK, **more}))), model)

    assert [outcome.status for outcome in outcomes(seen)] == [status]


async def test_a_model_may_be_named_and_a_small_one_goes_before_the_sessions_own(tmp_path: Path) -> None:
    named, small = Cast(check=[says(NO)]), Cast(check=[says(NO)])
    hooks = book(tmp_path, CHECK, {**CHECK, "model": "other"})
    chosen = {"other": named}
    session = open_session(settings(tmp_path, hooks), small_model=small, models=chosen.__getitem__)

    await played(session, ScriptedModel([says("", WRITE), says("Done.")]))

    assert [len(model.requests) for model in (named, small)] == [1, 1]
    assert session.spending.usage == Usage()


@pytest.mark.parametrize(
    ("event", "matcher", "more", "reason", "told"),
    [
        ("UserPromptSubmit", "", {}, "blocked", False),
        ("PostToolUse", "Write", {}, "stopped", False),
        ("PostToolUse", "Write", {"continueOnBlock": True}, "end", True),
    ],
)
async def test_what_a_no_means_depends_on_the_event(
    tmp_path: Path, event: str, matcher: str, more: Any, reason: str, told: bool
) -> None:
    model = Cast(main=[says("", WRITE), says("Done.")], check=[says(NO)])
    session = open_session(settings(tmp_path, book(tmp_path, {**CHECK, **more}, event=event, matcher=matcher)))

    seen = await played(session, model)

    (ended,) = [one for one in seen if isinstance(one, TurnEnded)]
    assert ended.reason == reason
    assert "not today" in ended.error or reason == "end"
    results = [turn for turn in session.history if isinstance(turn, ResultTurn)]
    assert any("not today" in message for turn in results for message in turn.messages) is told


@pytest.mark.parametrize(("extra", "reason", "messages"), [("", "end", 2), (', "impossible": true', "stopped", 1)])
async def test_at_the_end_of_a_turn_a_no_sends_the_model_back_unless_it_is_hopeless(
    tmp_path: Path, extra: str, reason: str, messages: int
) -> None:
    answers = iter((f'{{"ok": false, "reason": "run the tests"{extra}}}', YES))

    class Checks(ScriptedModel):
        def __init__(self) -> None:
            super().__init__([says(next(answers)), says(next(answers))])

    session = open_session(settings(tmp_path, book(tmp_path, CHECK, event="Stop", matcher="")), small_model=Checks())

    seen = await played(session, ScriptedModel([says("Done."), says("Now it is.")]))

    assert [one.reason for one in seen if isinstance(one, TurnEnded)] == [reason]
    assert sum(isinstance(turn, UserTurn) for turn in session.history) == messages


@requirement("HOOK-4")
async def test_without_a_model_a_gate_stays_shut_and_says_why(tmp_path: Path) -> None:
    async with open_session(settings(tmp_path, book(tmp_path, CHECK, LOOK))) as session:
        (outcome,) = await session.run([WRITE])

    assert outcome.status is Status.DENIED
    assert "no model is available to ask" in plain_text(outcome.content)


@pytest.mark.parametrize("handler", [CHECK, LOOK])
async def test_a_question_that_takes_too_long_is_given_up(tmp_path: Path, handler: Any) -> None:
    never = Stream(ending=asyncio.Event())
    hooks = book(tmp_path, {**handler, "timeout": 0.05, "model": "slow"})
    session = open_session(settings(tmp_path, hooks), models=lambda name: never)

    async with asyncio.timeout(20):
        seen = await played(session, ScriptedModel([says("", WRITE), says("Done.")]))

    assert [outcome.status for outcome in outcomes(seen)] == [Status.DENIED]
    assert "took longer than 0.05 s" in next(event for event in seen if isinstance(event, HookRan)).message
    assert never.closed


@pytest.mark.parametrize("handler", [CHECK, LOOK])
async def test_an_interrupt_ends_a_question(tmp_path: Path, handler: Any) -> None:
    begun = asyncio.Event()

    class Never(Stream):
        def stream(self, request: Request, /) -> Any:
            begun.set()
            return super().stream(request)

    never = Never(ending=asyncio.Event())
    session = open_session(settings(tmp_path, book(tmp_path, {**handler, "model": "slow"})), models=lambda name: never)

    model = ScriptedModel([says("", WRITE), says("Done.")])
    async with asyncio.timeout(20), session, session.ask("main", model) as events:
        await begun.wait()
        session.interrupt()
        _ = [one async for one in events]

    assert never.closed
    assert not (tmp_path / "new").exists()


# An agent


@requirement("HOOK-1")
@pytest.mark.parametrize(("answer", "status"), [(YES, Status.OK), (NO, Status.DENIED)])
async def test_an_agent_looks_at_files_before_it_answers(tmp_path: Path, answer: str, status: Status) -> None:
    """The call that it judges changes the very file that it reads: neither waits for the other."""
    put(tmp_path / "notes", "forty-two\n")
    edit = ToolCall("e", "Edit", {"file_path": "notes", "old_string": "forty", "new_string": "fifty"})
    model = Cast(
        main=[says("", READ), says("", edit), says("Done.")],
        look=[[Usage(5, 1), *says("", READ)], says(answer)],
    )
    session = open_session(settings(tmp_path, book(tmp_path, LOOK, matcher="Edit")))

    seen = await played(session, model)

    assert [outcome.status for outcome in outcomes(seen)] == [Status.OK, status]
    first, second = [request for prompt, request in model.requests if prompt.startswith("look")]
    assert [tool.name for tool in first.tools] == ["Glob", "Grep", "Read"]
    assert "forty-two" in results(second)[0]
    assert session.spending.usage.input_tokens == 5
    assert sum(isinstance(event, HookRan) for event in seen) == 1


@requirement("HOOK-3")
async def test_an_agents_own_calls_are_guarded_by_rules_and_by_all_hooks_but_agents(tmp_path: Path) -> None:
    put(tmp_path / "notes", "one\n")
    put(tmp_path / "secret", "two\n")
    calls = [
        READ,
        ToolCall("s", "Read", {"file_path": "secret"}),
        ToolCall("o", "Read", {"file_path": "/etc/hostname"}),
        ToolCall("w", "Write", {"file_path": "planted", "content": "x"}),
    ]
    model = Cast(main=[says("", WRITE), says("Done.")], look=[says("", *calls), says(YES)])
    guard = {"type": "command", "command": "tee -a told | grep -q /notes && exit 2; exit 0"}
    hooks = book(tmp_path, LOOK, guard, matcher="*")
    session = open_session(
        settings(tmp_path, hooks, mode=Mode.ACCEPT_EDITS, rules=(parse_rule("Read(secret)", Behavior.DENY, "x"),))
    )

    async with asyncio.timeout(20):
        seen = await played(session, model)

    assert [outcome.status for outcome in outcomes(seen)] == [Status.OK]
    (_, second) = [request for prompt, request in model.requests if prompt.startswith("look")]
    said = results(second)
    assert "PreToolUse hook `tee -a told" in said[0]
    assert "`Read(secret)` in x denies" in said[1]
    assert "may not ask" in said[2]
    assert "only looks around" in said[3]
    assert not (tmp_path / "planted").exists()
    assert '"agent_type": "hook"' in (tmp_path / "told").read_text()


async def test_an_agent_may_read_the_conversation_that_it_judges(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()

    class Reads(Cast):
        def stream(self, request: Request, /) -> Any:
            self._roles = {"look": [says("", ToolCall("t", "Read", {"file_path": path()})), says(YES)]}
            return super().stream(request)

    def path() -> str:
        return session.transcript_path

    reader = Reads()
    chosen = Settings(
        cwd=str(project),
        state_folder=tmp_path / "state",
        hooks=book(project, {**LOOK, "model": "reader"}, event="Stop", matcher=""),
    )
    session = begin_session(chosen, models=lambda name: reader)

    await played(session, ScriptedModel([says("The last word.")]), "the first word")

    assert "the first word" in results(reader.requests[1][1])[0]


async def test_an_agent_that_never_comes_to_an_end_has_said_no(tmp_path: Path) -> None:
    class Restless:
        name = "restless"
        facts = ModelFacts()

        def stream(self, request: Request, /) -> Any:
            turns: list[list[ModelEvent]] = [says("", ToolCall("g", "Glob", {"pattern": "*"}))]
            return ScriptedModel(turns).stream(request)

    hooks = book(tmp_path, {**LOOK, "model": "restless"})
    session = open_session(settings(tmp_path, hooks), models=lambda name: Restless())

    seen = await played(session, ScriptedModel([says("", WRITE), says("Done.")]))

    assert "did not finish: max_turns" in plain_text(outcomes(seen)[0].content)


@requirement("HOOK-1", "TASK-1")
async def test_the_file_of_an_agent_may_bring_questions_too(tmp_path: Path) -> None:
    check = "{type: prompt, prompt: 'check it', continueOnBlock: true, timeout: 20}"
    head = f"hooks: {{PreToolUse: [{{matcher: Write, hooks: [{check}]}}]}}"
    put(tmp_path / "project/.claude/agents/h.md", f"---\nname: h\ndescription: d\n{head}\n---\nWork.\n")
    model = Cast(
        main=[says("", hire("1", "task", subagent_type="h")), says("", WRITE), says("")],
        task=[says("", WRITE), says("Done.")],
        check=[says(NO)],
    )
    chosen = settings(tmp_path / "project", HookBook(), pages=pages(tmp_path, trusted=True))

    seen = await played(open_session(chosen), model)

    assert [outcome.status for outcome in outcomes(seen)] == [Status.DENIED, Status.OK, Status.OK]


# A tool of a server


def with_server(folder: Path, *handlers: Any, **more: Any) -> Session:
    held = McpServers([config(raw())], Around(state_folder=folder / ".state", timing=QUICK))
    return open_session(settings(folder, book(folder, *handlers, **more)), mcp=held)


def tool(name: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "mcp_tool", "server": "raw", "tool": name, **({"input": {"text": text}} if text else {}), **more}


@requirement("HOOK-1")
async def test_a_servers_tool_is_asked_with_parts_of_the_event_and_its_text_is_the_answer(tmp_path: Path) -> None:
    said = '{"decision": "block", "reason": "${tool_input.content}${no.such} by ${tool_name}"}'
    async with with_server(tmp_path, tool("echo", said)) as session:
        (outcome,) = await session.run([WRITE])

    assert outcome.status is Status.DENIED
    assert "says: x by Write." in plain_text(outcome.content)


@requirement("HOOK-4")
@pytest.mark.parametrize(
    ("handler", "status", "words"),
    [
        (tool("echo", "all is well"), Status.OK, "created"),
        (tool("fail"), Status.DENIED, "`fail` of the server `raw` failed"),
        (tool("fail", failClosed=False), Status.OK, "created"),
        (tool("hang", timeout=0.2), Status.DENIED, "took longer than 0.2 s"),
        (tool("die"), Status.DENIED, "was lost"),
        ({**tool("echo"), "server": "other"}, Status.DENIED, "The server `other` was not found"),
    ],
    ids=["plain text", "a failure", "said to fail open", "a hang", "a death", "no such server"],
)
async def test_a_servers_tool_that_fails_has_refused_at_a_gate(
    tmp_path: Path, handler: Any, status: Status, words: str
) -> None:
    async with asyncio.timeout(30), with_server(tmp_path, handler) as session:
        (outcome,) = await session.run([WRITE])

    assert outcome.status is status
    assert words in plain_text(outcome.content).lower() or words in plain_text(outcome.content)
