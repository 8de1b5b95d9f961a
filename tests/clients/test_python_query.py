"""`query()` of the published Python SDK with its `cli_path` on Ferrule."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import (  # pyright: ignore[reportMissingImports]
    AgentDefinition,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SystemMessage,
    TaskNotificationMessage,
    create_sdk_mcp_server,
    tool,
)
from claude_agent_sdk.types import HookEventMessage, StreamEvent  # pyright: ignore[reportMissingImports]

from ..requirement import requirement
from .environment import call
from .scene import kinds, last, playing, results, said

PLAIN = ["init", "assistant", "result"]
ONE_CALL = ["init", "assistant", "user", "assistant", "result"]
DONE = {"text": "Done."}


async def prompts(*texts: str) -> AsyncIterator[dict[str, Any]]:
    for text in texts:
        yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}


@requirement("SDK-1")
async def test_a_text_is_answered(tmp_path: Path) -> None:
    usage = {"input_tokens": 7, "output_tokens": 3}
    async with playing(tmp_path, {"text": "Hi there.", "usage": usage}) as scene:
        messages = await scene.ask("Hello", setting_sources=None)

    assert kinds(messages) == PLAIN
    result = last(messages)
    assert (said(messages), result.result, result.is_error, result.num_turns) == ("Hi there.", "Hi there.", False, 1)
    assert result.usage is not None
    assert (result.usage["input_tokens"], result.usage["output_tokens"]) == (7, 3)
    assert len(result.session_id) == 36
    assert not [line for line in scene.stderr if "rror" in line]


async def test_a_stream_of_prompts_is_answered_one_by_one(tmp_path: Path) -> None:
    async with playing(tmp_path, {"text": "One."}, {"text": "Two."}) as scene:
        messages = await scene.ask(prompts("first", "second"))

    assert [one.result for one in messages if isinstance(one, ResultMessage)] == ["One.", "Two."]
    assert "first" in scene.sent(0)
    assert "second" in scene.sent(1)


async def test_a_system_prompt_replaces_and_one_that_is_appended_follows(tmp_path: Path) -> None:
    preset = {"type": "preset", "preset": "claude_code", "append": "MARK two."}
    async with playing(tmp_path, DONE, DONE, DONE) as scene:
        await scene.ask(system_prompt="MARK one.")
        await scene.ask(system_prompt=preset)
        scene.put("prompt.md", "MARK three.")
        await scene.ask(system_prompt={"type": "file", "path": str(scene.project / "prompt.md")})

    systems = [json.dumps(body["system"]) for body in scene.asked]
    assert [f"MARK {number}." in system for number, system in zip(("one", "two", "three"), systems, strict=True)] == [
        True
    ] * 3
    assert len(systems[1]) > len(systems[0]) + 500


async def test_allowed_tools_run_without_a_question(tmp_path: Path) -> None:
    async with playing(tmp_path, {"calls": [call("Bash", command="echo made > new.txt")]}, DONE) as scene:
        messages = await scene.ask(allowed_tools=["Bash"])

    assert kinds(messages) == ONE_CALL
    assert (scene.project / "new.txt").read_text() == "made\n"
    assert (last(messages).is_error, last(messages).permission_denials) == (False, [])


async def test_everything_runs_where_permissions_are_bypassed(tmp_path: Path) -> None:
    write = call("Write", file_path=str(tmp_path / "project/a.txt"), content="x\n")
    async with playing(tmp_path, {"calls": [write]}, DONE) as scene:
        messages = await scene.ask(permission_mode="bypassPermissions")

    assert kinds(messages) == ONE_CALL
    assert (scene.project / "a.txt").read_text() == "x\n"


async def test_settings_of_the_project_are_read_where_they_are_chosen(tmp_path: Path) -> None:
    async with playing(tmp_path, DONE, DONE) as scene:
        scene.put("CLAUDE.md", "MARK of the project.")
        await scene.ask()
        await scene.ask(setting_sources=["project"])

    assert ["MARK of the project." in scene.sent(number) for number in (0, 1)] == [False, True]


async def test_deny_rules_of_the_project_hold(tmp_path: Path) -> None:
    reading = {"calls": [call("Read", file_path=str(tmp_path / "project/secret.txt"))]}
    async with playing(tmp_path, reading, DONE) as scene:
        scene.put(".claude/settings.json", {"permissions": {"deny": ["Read(./secret.txt)"]}})
        scene.put("secret.txt", "sesame")
        messages = await scene.ask(setting_sources=["project"], permission_mode="bypassPermissions")

    ((text, is_error),) = results(messages)
    assert is_error
    assert "sesame" not in text


async def test_words_come_as_they_are_written(tmp_path: Path) -> None:
    async with playing(tmp_path, {"text": "one two three"}) as scene:
        messages = await scene.ask(include_partial_messages=True)

    events = [one.event for one in messages if isinstance(one, StreamEvent)]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert events[0]["type"] == "message_start"
    assert "".join(delta["text"] for delta in deltas) == "one two three"
    assert kinds(messages) == PLAIN


async def test_an_answer_has_the_form_of_a_schema(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    answer = {"calls": [call("StructuredOutput", count=3)]}
    async with playing(tmp_path, answer, DONE, DONE) as scene:
        messages = await scene.ask(output_format={"type": "json_schema", "schema": schema})

    assert last(messages).structured_output == {"count": 3}


async def test_a_conversation_is_resumed_and_forked(tmp_path: Path) -> None:
    async with playing(tmp_path, {"text": "One."}, {"text": "Two."}, {"text": "Three."}) as scene:
        first = last(await scene.ask("Remember walnut.")).session_id
        resumed = last(await scene.ask("Which?", resume=first)).session_id
        forked = last(await scene.ask("And now?", resume=first, fork_session=True)).session_id

    assert resumed == first
    assert forked != first
    assert "walnut" in scene.sent(1)
    assert "Two." in scene.sent(2)


async def test_a_conversation_has_the_id_that_it_is_given_and_the_last_one_goes_on(tmp_path: Path) -> None:
    given = "c0ffee00-1111-4222-8333-444455556666"
    async with playing(tmp_path, {"text": "One."}, {"text": "Two."}) as scene:
        first = last(await scene.ask("Remember walnut.", session_id=given)).session_id
        again = last(await scene.ask("Which?", continue_conversation=True)).session_id

    assert first == again == given
    assert "walnut" in scene.sent(1)


def _writing(folder: Path, name: str = "a.txt") -> dict[str, Any]:
    return {"calls": [call("Write", file_path=str(folder / "project" / name), content="x\n")]}


@requirement("SDK-2")
async def test_a_program_that_is_asked_may_allow(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def allow(name: str, input: dict[str, Any], context: Any) -> PermissionResultAllow:
        asked.append((name, input))
        return PermissionResultAllow()

    async with playing(tmp_path, _writing(tmp_path), DONE) as scene:
        messages = await scene.ask(prompts("go"), can_use_tool=allow)

    ((name, input),) = asked
    assert (name, input["content"]) == ("Write", "x\n")
    assert (scene.project / "a.txt").exists()
    assert kinds(messages) == ONE_CALL
    assert last(messages).permission_denials == []


async def test_a_program_that_is_asked_may_change_the_input(tmp_path: Path) -> None:
    async def change(name: str, input: dict[str, Any], context: Any) -> PermissionResultAllow:
        return PermissionResultAllow(updated_input={**input, "content": "changed\n"})

    async with playing(tmp_path, _writing(tmp_path), DONE) as scene:
        await scene.ask(prompts("go"), can_use_tool=change)

    assert (scene.project / "a.txt").read_text() == "changed\n"


@requirement("SDK-2")
async def test_a_program_that_is_asked_may_refuse_and_the_run_goes_on(tmp_path: Path) -> None:
    async def refuse(name: str, input: dict[str, Any], context: Any) -> PermissionResultDeny:
        return PermissionResultDeny(message="Not this one.")

    async with playing(tmp_path, _writing(tmp_path), {"text": "Another way then."}) as scene:
        messages = await scene.ask(prompts("go"), can_use_tool=refuse)

    ((text, is_error),) = results(messages)
    assert is_error
    assert "Not this one." in text
    assert (last(messages).result, last(messages).is_error) == ("Another way then.", False)
    assert [one["tool_name"] for one in last(messages).permission_denials or ()] == ["Write"]
    assert not (scene.project / "a.txt").exists()


async def test_a_refusal_may_end_the_run(tmp_path: Path) -> None:
    async def refuse(name: str, input: dict[str, Any], context: Any) -> PermissionResultDeny:
        return PermissionResultDeny(message="Stop.", interrupt=True)

    async with playing(tmp_path, _writing(tmp_path), DONE) as scene:
        seen: list[Any] = []
        error = None
        try:
            seen = await scene.ask(prompts("go"), can_use_tool=refuse)
        except Exception as problem:
            error = problem

    assert error is not None or seen[-1].is_error
    assert len(scene.asked) == 1
    assert not (scene.project / "a.txt").exists()


async def test_where_nobody_answers_a_refusal_is_told_and_the_run_succeeds(tmp_path: Path) -> None:
    async with playing(tmp_path, _writing(tmp_path), {"text": "I may not."}) as scene:
        messages, error = await scene.ask_until_error("go")

    assert error is None
    assert (last(messages).result, last(messages).is_error) == ("I may not.", False)
    assert [one["tool_name"] for one in last(messages).permission_denials or ()] == ["Write"]


async def test_a_limit_of_turns_ends_the_run_as_an_error(tmp_path: Path) -> None:
    async with playing(tmp_path, {"calls": [call("Bash", command="true")]}, DONE) as scene:
        messages, error = await scene.ask_until_error(max_turns=1, allowed_tools=["Bash"])

    assert error is not None
    assert [one.subtype for one in messages if isinstance(one, ResultMessage)] == ["error_max_turns"]


@requirement("HOOK-2")
async def test_hooks_are_called_and_their_word_counts(tmp_path: Path) -> None:
    seen: list[str] = []

    async def before(event: Any, id: str | None, context: Any) -> dict[str, Any]:
        seen.append(f"{event['hook_event_name']} {event['tool_name']} {id}")
        if "forbidden" not in str(event["tool_input"]):
            return {}
        decision = {"permissionDecision": "deny", "permissionDecisionReason": "It is forbidden."}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

    async def after(event: Any, id: str | None, context: Any) -> dict[str, Any]:
        seen.append(f"{event['hook_event_name']} {event['tool_name']} {id}")
        said = {"hookEventName": "PostToolUse", "additionalContext": "MARK after it."}
        return {"hookSpecificOutput": said}

    async def submitted(event: Any, id: str | None, context: Any) -> dict[str, Any]:
        seen.append(f"{event['hook_event_name']} {event['prompt']}")
        said = {"hookEventName": "UserPromptSubmit", "additionalContext": "MARK of the prompt."}
        return {"hookSpecificOutput": said}

    turns = [
        {"calls": [call("Bash", "a", command="echo forbidden")]},
        {"calls": [call("Bash", "b", command="echo ok")]},
    ]
    hooks = {
        "PreToolUse": [HookMatcher(matcher="Bash", hooks=[before])],
        "PostToolUse": [HookMatcher(hooks=[after])],
        "UserPromptSubmit": [HookMatcher(hooks=[submitted])],
    }
    async with playing(tmp_path, *turns, DONE) as scene:
        messages = await scene.ask(prompts("go"), hooks=hooks, allowed_tools=["Bash"])

    assert seen == ["UserPromptSubmit go", "PreToolUse Bash a", "PreToolUse Bash b", "PostToolUse Bash b"]
    (refused, is_error), (ran, _) = results(messages)
    assert is_error
    assert "It is forbidden." in refused
    assert "ok" in ran
    assert "MARK of the prompt." in scene.sent(0)
    assert "MARK after it." in scene.sent(2)


@requirement("TASK-1")
async def test_agents_of_the_program_do_their_work(tmp_path: Path) -> None:
    agents = {
        "reviewer": AgentDefinition(
            description="Reviews code.", prompt="MARK of the reviewer.", tools=["Read"], model="haiku"
        )
    }
    hire = call("Agent", description="look", prompt="Look at it.", subagent_type="reviewer", run_in_background=False)
    async with playing(tmp_path, {"calls": [hire]}, {"text": "It is fine."}, DONE) as scene:
        messages = await scene.ask(agents=agents)

    theirs = scene.asked[1]
    assert "MARK of the reviewer." in json.dumps(theirs["system"])
    assert "Read" in [tool["name"] for tool in theirs["tools"]]
    assert "Write" not in [tool["name"] for tool in theirs["tools"]]
    assert "haiku" in theirs["model"]
    assert "It is fine." in scene.sent(2)
    assert last(messages).result == "Done."
    finished = [one for one in messages if isinstance(one, TaskNotificationMessage)]
    assert [one.status for one in finished] == ["completed"]


@requirement("SDK-1")
async def test_tools_of_the_program_are_called(tmp_path: Path) -> None:
    @tool("add", "Add two numbers.", {"a": float, "b": float})
    async def add(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"the sum is {given['a'] + given['b']:g}"}]}

    server = create_sdk_mcp_server("calc", tools=[add])
    async with playing(tmp_path, {"calls": [call("mcp__calc__add", a=2, b=3)]}, DONE) as scene:
        messages = await scene.ask(mcp_servers={"calc": server}, allowed_tools=["mcp__calc__add"])

    assert results(messages) == [("the sum is 5", False)]
    init = next(one for one in messages if isinstance(one, SystemMessage) and one.subtype == "init")
    assert [(one["name"], one["status"]) for one in init.data["mcp_servers"]] == [("calc", "connected")]


ECHO_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    match asked["method"]:
        case "initialize":
            said = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                    "serverInfo": {"name": "lab", "version": "1"}}
        case "tools/list":
            schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
            said = {"tools": [{"name": "echo", "description": "Say it again.", "inputSchema": schema}]}
        case "tools/call":
            said = {"content": [{"type": "text", "text": "again: " + asked["params"]["arguments"]["text"]}]}
        case _:
            said = None
    answer = {"error": {"code": -32601, "message": "no"}} if said is None else {"result": said}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


async def test_a_server_works_beside_a_rule_that_denies_a_path(tmp_path: Path) -> None:
    async with playing(tmp_path, {"calls": [call("mcp__lab__echo", text="hi")]}, DONE) as scene:
        scene.put(".claude/settings.json", {"permissions": {"deny": ["Read(./.env)"]}})
        lab = {"command": "python3", "args": [str(scene.put("lab.py", ECHO_SERVER))]}
        messages = await scene.ask(
            mcp_servers={"lab": lab}, allowed_tools=["mcp__lab__echo"], setting_sources=["project"]
        )

    assert results(messages) == [("again: hi", False)]


async def test_another_model_answers_where_the_first_is_overloaded(tmp_path: Path) -> None:
    overloaded = {"fault": {"status": 529, "retry_after": "0"}}
    async with playing(tmp_path, *[overloaded] * 3, *[DONE] * 12) as scene:
        scene_env = {**scene.environment, "CLAUDE_CODE_MAX_RETRIES": "3"}
        messages = await scene.ask(fallback_model="claude-haiku-4-5", env=scene_env)

    assert last(messages).result == "Done."
    assert "haiku" in scene.asked[-1]["model"]


async def test_thinking_and_effort_reach_the_model(tmp_path: Path) -> None:
    async with playing(tmp_path, DONE, DONE, DONE) as scene:
        await scene.ask(max_thinking_tokens=4000)
        await scene.ask(thinking={"type": "enabled", "budget_tokens": 5000})
        await scene.ask(effort="low", model="claude-opus-4-6")

    budgets = [body["thinking"]["budget_tokens"] for body in scene.asked[:2]]
    assert budgets == [4000, 5000]
    assert scene.asked[2]["output_config"]["effort"] == "low"


async def test_a_plugin_brings_its_commands(tmp_path: Path) -> None:
    async with playing(tmp_path, DONE) as scene:
        scene.put("plugin/.claude-plugin/plugin.json", {"name": "demo", "version": "1.0.0", "description": "d"})
        scene.put("plugin/commands/greet.md", "---\ndescription: Greets.\n---\nMARK says hello.\n")
        plugin = {"type": "local", "path": str(scene.project / "plugin")}
        messages = await scene.ask("/demo:greet", plugins=[plugin])

    init = next(one for one in messages if isinstance(one, SystemMessage) and one.subtype == "init")
    assert [one["name"] for one in init.data["plugins"]] == ["demo"]
    assert "demo:greet" in init.data["slash_commands"]
    assert "MARK says hello." in scene.sent(0)


async def test_events_of_hooks_come_where_they_are_asked_for(tmp_path: Path) -> None:
    hook = {"matcher": "", "hooks": [{"type": "command", "command": "echo seen"}]}
    async with playing(tmp_path, {"calls": [call("Bash", command="true")]}, DONE) as scene:
        settings = json.dumps({"hooks": {"PreToolUse": [hook]}})
        messages = await scene.ask(settings=settings, include_hook_events=True, allowed_tools=["Bash"])

    events = [one for one in messages if isinstance(one, HookEventMessage)]
    about = [(one.subtype, one.hook_event_name) for one in events if one.hook_event_name == "PreToolUse"]
    assert about == [("hook_started", "PreToolUse"), ("hook_response", "PreToolUse")]


async def test_tools_are_those_that_are_chosen(tmp_path: Path) -> None:
    async with playing(tmp_path, DONE, DONE, DONE) as scene:
        await scene.ask(tools=["Read", "Glob"])
        await scene.ask(tools=[])
        await scene.ask(disallowed_tools=["Bash", "Write"])

    names = [{tool["name"] for tool in body.get("tools", ())} for body in scene.asked]
    assert names[:2] == [{"Read", "Glob"}, set()]
    assert "Read" in names[2]
    assert not names[2] & {"Bash", "Write"}


async def test_more_directories_are_open(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside/a.txt").write_text("beside\n")
    reading = {"calls": [call("Read", file_path=str(tmp_path / "beside/a.txt"))]}
    async with playing(tmp_path, reading, DONE) as scene:
        messages = await scene.ask(add_dirs=[tmp_path / "beside"])

    ((text, is_error),) = results(messages)
    assert (is_error, "beside" in text) == (False, True)


async def test_a_budget_that_is_spent_ends_the_run(tmp_path: Path) -> None:
    dear = {"calls": [call("Bash", command="true")], "usage": {"input_tokens": 1000000, "output_tokens": 100000}}
    async with playing(tmp_path, dear, dear, DONE) as scene:
        messages, error = await scene.ask_until_error(max_budget_usd=0.01, allowed_tools=["Bash"])

    assert error is not None
    assert [one.subtype for one in messages if isinstance(one, ResultMessage)] == ["error_max_budget_usd"]


async def test_a_program_that_leaves_early_leaves_nothing_running(tmp_path: Path) -> None:
    slow = {"text": "word " * 200, "fault": {"slow": 0.05}}
    async with playing(tmp_path, slow) as scene, asyncio.timeout(60):
        task = asyncio.create_task(scene.ask())
        while not scene.asked:  # noqa: ASYNC110 - another process asks
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
