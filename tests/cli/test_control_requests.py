"""The control protocol: what a program asks for changes what the model's service then receives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ferrule.testing.model_server import ModelServer
from tests.cli.prompting import call, fits, kinds
from tests.cli.running import FERRULE, HANG, environment
from tests.requirement import requirement
from tests.settings.folders import put

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
STREAMS = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
ADD = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}


class Host:
    """A program that starts Ferrule, and answers what it asks by `answers`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.answers: dict[str, Answer] = {}
        self.asked: list[dict[str, Any]] = []
        self._number = 0

    async def send(self, line: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        await self.process.stdin.drain()

    async def request(self, subtype: str, **more: Any) -> dict[str, Any]:
        """The response, success or error."""
        self._number += 1
        id = f"request-{self._number}"
        await self.send({"type": "control_request", "request_id": id, "request": {"subtype": subtype, **more}})
        return (await self.until("control_response"))[-1]["response"]

    async def done(self, subtype: str, **more: Any) -> dict[str, Any]:
        response = await self.request(subtype, **more)
        assert response["subtype"] == "success", response
        return response["response"]

    async def ask(self, text: str, **more: Any) -> list[dict[str, Any]]:
        """The lines up to the result."""
        await self.send({"type": "user", "message": {"role": "user", "content": text}, **more})
        return await self.until("result")

    async def until(self, kind: str) -> list[dict[str, Any]]:
        assert self.process.stdout is not None
        lines: list[dict[str, Any]] = []
        while text := await asyncio.wait_for(self.process.stdout.readline(), HANG):
            line = json.loads(text)
            fits(line)
            if line["type"] == "control_request":
                await self._answer(line)
            lines.append(line)
            if line["type"] == kind:
                return lines
        raise AssertionError(f"no {kind} in {kinds(lines)}")

    async def _answer(self, line: dict[str, Any]) -> None:
        request = line["request"]
        self.asked.append(request)
        response = self.answers[request["subtype"]](request)
        answer = {"subtype": "success", "request_id": line["request_id"], "response": response}
        await self.send({"type": "control_response", "response": answer})

    def serve(self, tool: Mapping[str, Any], result: Callable[[Any], str]) -> None:
        """Has a tool server of this name: any, since there is one."""

        def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
            message = request["message"]
            match message["method"]:
                case "initialize":
                    version = message["params"]["protocolVersion"]
                    given: Any = {"protocolVersion": version, "capabilities": {"tools": {}}}
                    given["serverInfo"] = {"name": "mine", "version": "1"}
                case "tools/list":
                    given = {"tools": [tool]}
                case "tools/call":
                    text = result(message["params"]["arguments"])
                    given = {"content": [{"type": "text", "text": text}]}
                case _:
                    given = {}
            return {"mcp_response": {"jsonrpc": "2.0", "id": message.get("id"), "result": given}}

        self.answers["mcp_message"] = answer


@asynccontextmanager
async def hosting(
    folder: Path, server: ModelServer, *flags: str, exit_code: int = 0, env: Mapping[str, str] | None = None
) -> AsyncGenerator[Host]:
    keys = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key", **(env or {})}
    process = await asyncio.create_subprocess_exec(
        *(*FERRULE, *STREAMS, "--model", "anthropic:claude-haiku-4-5", *flags),
        cwd=folder,
        env=environment(folder, **keys),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    host = Host(process)
    try:
        yield host
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), HANG) == exit_code
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@requirement("CLI-1")
async def test_what_initialize_chooses_is_in_the_first_request(tmp_path: Path) -> None:
    for name in ("first", "second"):
        text = f"---\nname: {name}-skill\ndescription: The {name} one.\n---\nDo it."
        put(tmp_path / f".claude/skills/{name}-skill/SKILL.md", text)
    answers = {"calls": [call("StructuredOutput", count=3)]}

    async with ModelServer.playing({"turns": [answers]}) as server, hosting(tmp_path, server) as host:
        told = await host.done(
            "initialize",
            systemPrompt=["You are the marked one."],
            appendSystemPrompt="And this is appended.",
            jsonSchema={"type": "object", "properties": {"count": {"type": "integer"}}},
            agents={"counter": {"description": "Counts the marks.", "prompt": "Count."}},
            skills=["first-skill"],
        )
        lines = await host.ask("Count")
        (body,) = server.bodies

    system, tools = json.dumps(body["system"]), json.dumps(body["tools"])
    assert "You are the marked one." in system
    assert "And this is appended." in system
    assert {"StructuredOutput", "Agent"} <= {tool["name"] for tool in body["tools"]}
    assert "Counts the marks." in tools
    assert ("first-skill" in tools, "second-skill" in tools) == (True, False)
    assert lines[-1]["structured_output"] == {"count": 3}
    assert "counter" in [agent["name"] for agent in told["agents"]]
    assert told["models"][0]["description"] == "claude-haiku-4-5"
    assert told["account"] == {"apiKeySource": "ANTHROPIC_API_KEY"}
    assert lines[0]["apiKeySource"] == "ANTHROPIC_API_KEY"


@requirement("CLI-1")
async def test_what_initialize_cannot_honour_is_an_error_and_nothing_is_asked(tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"toolAliases": {"A": "B"}}, "`toolAliases` of initialize is not supported"),
        ({"hooks": {"NoEvent": [{"hookCallbackIds": ["a"]}]}}, "No event is named NoEvent"),
        ({"hooks": {"PreToolUse": [{}]}}, "`hooks.PreToolUse.hookCallbackIds` must be a list"),
        ({"agents": {"a": {"description": "d"}}}, "needs a `description` and a `prompt`"),
        ({"agents": {"a": {"description": "d", "prompt": "p", "wings": 2}}}, "`agents.a.wings` is not supported"),
        ({"jsonSchema": {"type": "nothing"}}, "`type` must be"),
        ({"sdkMcpServers": "mine"}, "`sdkMcpServers` must be a list"),
        ({"hooks": {"PreToolUse": [{"hookCallbackIds": ["a"], "timeout": "1"}]}}, "must be a number of seconds"),
    ]

    async with ModelServer.playing({"turns": [{"text": "Never."}]}) as server, hosting(tmp_path, server) as host:
        for given, words in wrong:
            response = await host.request("initialize", **given)
            assert (response["subtype"], words in response.get("error", "")) == ("error", True), response
        response = await host.request("mcp_status")
        assert "`initialize` was refused" in response["error"]
        assert server.bodies == []


@requirement("CLI-1", "HOOK-1")
async def test_a_prompt_behind_a_refused_initialize_is_not_answered_without_its_hooks(tmp_path: Path) -> None:
    async with ModelServer.playing({"turns": [{"text": "Never."}]}) as server:
        async with hosting(tmp_path, server, exit_code=2) as host:
            await host.request("initialize", hooks={"NoEvent": [{"hookCallbackIds": ["a"]}]})
            await host.send({"type": "user", "message": {"role": "user", "content": "go"}})
            assert host.process.stdout is not None
            assert await asyncio.wait_for(host.process.stdout.read(), HANG) == b""
        assert server.bodies == []


@requirement("CLI-1", "HOOK-1")
async def test_hooks_of_the_host_decide_and_add_to_what_the_model_reads(tmp_path: Path) -> None:
    turns = [{"calls": [call("Bash", "b", command="echo ran > ran.txt")]}, {"text": "Done."}]
    said = {
        "prompts": {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "It is noon."}},
        "calls": {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "not at noon",
            }
        },
    }
    hooks = {
        "UserPromptSubmit": [{"hookCallbackIds": ["prompts"]}],
        "PreToolUse": [
            {"matcher": "Bash", "hookCallbackIds": ["calls"]},
            {"matcher": "Read", "hookCallbackIds": ["no"]},
        ],
    }

    async with (
        ModelServer.playing({"turns": turns}) as server,
        hosting(tmp_path, server, "--allow", "Bash", "--include-hook-events") as host,
    ):
        host.answers["hook_callback"] = lambda request: said[request["callback_id"]]
        assert (await host.done("initialize", hooks=hooks))["hooks_applied"] is True
        lines = await host.ask("go")
        first, second = server.bodies

    assert "It is noon." in json.dumps(first["messages"])
    assert "not at noon" in json.dumps(second["messages"])
    assert not (tmp_path / "ran.txt").exists()
    assert [one["callback_id"] for one in host.asked] == ["prompts", "calls"]
    assert host.asked[1]["tool_use_id"] == host.asked[1]["input"]["tool_use_id"] == "b"
    runs = [line for line in lines if line.get("subtype") in ("hook_started", "hook_response")]
    assert [line["subtype"] for line in runs] == ["hook_started", "hook_response"] * 2
    assert runs[0]["hook_id"] == runs[1]["hook_id"]


@requirement("CLI-1", "MCP-1")
async def test_tools_of_the_host_are_offered_called_and_switched(tmp_path: Path) -> None:
    adds = {"calls": [call("mcp__mine__add", "a", left=1, right=2)]}
    config = json.dumps({"mcpServers": {"mine": {"type": "sdk", "name": "mine"}}})
    flags = ("--mcp-config", config, "--allow", "mcp__mine")

    async with (
        ModelServer.playing({"turns": [adds, {"text": "3"}, {"text": "Off."}, {"text": "On."}]}) as server,
        hosting(tmp_path, server, *flags) as host,
    ):
        host.serve(ADD, lambda given: str(given["left"] + given["right"]))
        await host.done("initialize")
        await host.ask("add")
        status = await host.done("mcp_status")
        await host.done("mcp_toggle", serverName="mine", enabled=False)
        await host.ask("without")
        await host.done("mcp_toggle", serverName="mine", enabled=True)
        await host.done("mcp_reconnect", serverName="mine")
        await host.ask("with")
        bodies = server.bodies

    offered = ["mcp__mine__add" in {tool["name"] for tool in body["tools"]} for body in bodies]
    assert offered == [True, True, False, True]
    assert '"3"' in json.dumps(bodies[1]["messages"][-1])
    assert status == {"mcpServers": [{"name": "mine", "status": "connected", "tools": [{"name": "mcp__mine__add"}]}]}


@requirement("CLI-1", "PERM-3")
async def test_an_always_of_the_host_answers_the_next_call_too(tmp_path: Path) -> None:
    runs = {"calls": [call("Bash", command="touch made")]}

    async with (
        ModelServer.playing({"turns": [runs, runs, {"text": "Done."}]}) as server,
        hosting(tmp_path, server, "--permission-prompt-tool", "stdio") as host,
    ):
        host.answers["can_use_tool"] = lambda request: {
            "behavior": "allow",
            "updatedInput": request["input"],
            "updatedPermissions": [{**one, "destination": "session"} for one in request["permission_suggestions"]],
        }
        lines = await host.ask("go")

    (asked,) = host.asked
    assert asked["permission_suggestions"][0]["rules"] == [{"toolName": "Bash", "ruleContent": "touch made"}]
    assert lines[-1]["permission_denials"] == []


@requirement("CLI-1", "PERM-3")
async def test_an_allow_with_something_that_cannot_be_done_changes_nothing_and_is_a_no(tmp_path: Path) -> None:
    rule = {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash"}], "destination": "session"}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"updatedPermissions": [rule, {"type": "setMode", "mode": "bypassPermissions"}]}, "must be chosen when"),
        ({"updatedPermissions": [rule, {"type": "grantAll"}]}, "'grantAll' is not a type"),
        ({"updatedPermissions": [{**rule, "behavior": "maybe"}]}, "needs a `behavior`"),
        ({"updatedPermissions": [{**rule, "behavior": ["allow"]}]}, "needs a `behavior`"),
        ({"updatedPermissions": [{**rule, "destination": "managed"}]}, "'managed' is not a destination"),
        ({"updatedPermissions": [{**rule, "destination": ["session"]}]}, "is not a destination"),
        ({"updatedInput": "rm -rf ."}, "`updatedInput` that is not an object"),
    ]
    answers = iter(wrong)
    turns = [{"calls": [call("Bash", command=f"touch made{number}")]} for number in range(len(wrong))]

    async with (
        ModelServer.playing({"turns": [*turns, {"text": "Done."}]}) as server,
        hosting(tmp_path, server, "--permission-prompt-tool", "stdio") as host,
    ):
        host.answers["can_use_tool"] = lambda request: {"behavior": "allow", **next(answers)[0]}
        lines = await host.ask("go")

    told = [line["message"]["content"][0]["content"] for line in lines if line["type"] == "user"]
    assert [words in text for (_, words), text in zip(wrong, told, strict=True)] == [True] * len(wrong), told
    assert not [*tmp_path.glob("made*")]


@requirement("CLI-1", "PERM-3")
async def test_a_tool_of_a_server_is_asked_for_permission_and_the_model_never_sees_it(tmp_path: Path) -> None:
    tool = {"name": "approve", "description": "Approves.", "inputSchema": {"type": "object"}}
    writes = [call("Write", "w1", file_path="a.txt", content="a"), call("Write", "w2", file_path="b.txt", content="b")]
    flags = ("--permission-prompt-tool", "mcp__mine__approve")

    def decide(given: Any) -> str:
        if given["input"]["file_path"].endswith("a.txt"):
            return json.dumps({"behavior": "allow", "updatedInput": given["input"]})
        return json.dumps({"behavior": "deny", "message": "only a.txt"})

    async with (
        ModelServer.playing({"turns": [{"calls": writes}, {"text": "Done."}]}) as server,
        hosting(tmp_path, server, *flags) as host,
    ):
        host.serve(tool, decide)
        await host.done("initialize", sdkMcpServers=["mine"])
        await host.ask("go")
        first, second = server.bodies

    assert "mcp__mine__approve" not in json.dumps(first["tools"])
    assert "only a.txt" in json.dumps(second["messages"])
    assert ((tmp_path / "a.txt").exists(), (tmp_path / "b.txt").exists()) == (True, False)


@requirement("CLI-1")
async def test_each_request_changes_the_next_one_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("before\n")
    edits = [call("Read", file_path="a.txt"), call("Edit", file_path="a.txt", old_string="before", new_string="after")]
    sleeps = {"calls": [call("Bash", "s", command="sleep 100", run_in_background=True)]}
    turns = [{"calls": edits}, {"text": "1"}, {"text": "2"}, {"text": "3"}, sleeps, {"text": "4"}, {"text": "5"}]
    flags = ("--allow", "Edit", "Bash", "--replay-user-messages")
    kept = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true"}

    async with (
        ModelServer.playing({"turns": turns}) as server,
        hosting(tmp_path, server, *flags, env=kept) as host,
    ):
        lines = await host.ask("edit", uuid="11111111-2222-4333-8444-555555555555")
        assert (tmp_path / "a.txt").read_text() == "after\n"
        await host.done("rewind_files", user_message_id="11111111-2222-4333-8444-555555555555")
        await host.done("set_max_thinking_tokens", max_thinking_tokens=3000)
        await host.ask("think")
        await host.done("set_max_thinking_tokens", max_thinking_tokens=None)
        assert (await host.done("set_model", model="claude-sonnet-5-5"))["model"] == "claude-sonnet-5-5"
        assert (await host.done("set_permission_mode", mode="acceptEdits"))["mode"] == "acceptEdits"
        settings = await host.done("get_settings")
        usage = await host.done("get_context_usage")
        await host.ask("other model")
        started = [line for line in await host.ask("sleep") if line.get("subtype") == "task_started"]
        await host.done("stop_task", task_id=started[0]["task_id"])
        await host.ask("stopped?")
        await host.done("end_session")
        await host.send({"type": "user", "message": {"role": "user", "content": "too late"}})
        bodies = server.bodies

    assert (tmp_path / "a.txt").read_text() == "before\n"
    replayed = [line for line in lines if line.get("isReplay")]
    assert [line["uuid"] for line in replayed] == ["11111111-2222-4333-8444-555555555555"]
    assert [body.get("thinking", {}).get("budget_tokens") for body in bodies[:3]] == [None, None, 3000]
    assert [body["model"] for body in bodies[2:4]] == ["claude-haiku-4-5", "claude-sonnet-5-5"]
    assert settings["applied"] == {"model": "claude-sonnet-5-5", "effort": None, "permissionMode": "acceptEdits"}
    assert settings["effective"]["permissions"]["allow"] == ["Edit", "Bash"]
    assert usage["totalTokens"] > 0
    assert (started[0]["task_type"], started[0]["tool_use_id"]) == ("local_bash", "s")
    assert len(bodies) == 7
    assert "too late" not in json.dumps(bodies)


@requirement("CLI-1")
async def test_agents_of_flags_are_offered_and_the_conversation_may_be_one_of_them(tmp_path: Path) -> None:
    reader = {"description": "Reads the marks.", "prompt": "You only read.", "tools": ["Read", "Agent"]}
    agents = {"reader": {**reader, "initialPrompt": "First look around.", "effort": "high"}}
    flags = ("--agents", json.dumps(agents), "--agent", "reader", "--no-session-persistence")

    async with (
        ModelServer.playing({"turns": [{"text": "Done."}]}) as server,
        hosting(tmp_path, server, *flags) as host,
    ):
        await host.ask("go")
        (body,) = server.bodies

    assert body["messages"][0]["content"][0]["text"] == "First look around.\n\ngo"
    assert [tool["name"] for tool in body["tools"]] == ["Agent", "Read"]
    assert "Reads the marks." in json.dumps(body["tools"])
    assert "You only read." in json.dumps(body["system"])
    assert list((tmp_path / "xdg-state").rglob("*.jsonl")) == []


@requirement("CLI-1", "TASK-1")
async def test_an_agent_has_lines_from_its_start_to_its_end(tmp_path: Path) -> None:
    starts = {"calls": [call("Agent", "a", description="Look", prompt="Look.", subagent_type="Explore")]}
    looks = {"calls": [call("Glob", pattern="*")]}

    async with (
        ModelServer.playing({"turns": [starts, looks, {"text": "Nothing."}, {"text": "Done."}]}) as server,
        hosting(tmp_path, server) as host,
    ):
        lines = await host.ask("go")

    tasks = [line for line in lines if str(line.get("subtype", "")).startswith("task_")]
    assert [line["subtype"] for line in tasks] == ["task_started", "task_progress", "task_notification"]
    assert {line["tool_use_id"] for line in tasks} == {"a"}
    assert (tasks[0]["task_type"], tasks[1]["last_tool_name"]) == ("local_agent", "Glob")
    assert (tasks[2]["status"], tasks[2]["usage"]["tool_uses"]) == ("completed", 1)
