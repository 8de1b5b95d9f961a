"""The published TypeScript SDK with its `pathToClaudeCodeExecutable` on Ferrule."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ferrule.testing import ModelServer

from ..requirement import requirement
from .conftest import CLI, TYPESCRIPT_SDK
from .environment import MODEL, QUIET, call

NODE = shutil.which("node")
PROGRAM = Path(__file__).parent / "typescript_program.mjs"
HANG = 100
DONE = {"text": "Done."}

pytestmark = pytest.mark.skipif(
    not TYPESCRIPT_SDK.is_dir() or NODE is None, reason="scripts/clients was never run here, or node is missing"
)


async def run(folder: Path, case: str, *turns: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the program saw, and what the model's service was asked."""
    for name in ("project", "home"):
        (folder / name).mkdir(exist_ok=True)
    async with ModelServer.playing({"turns": list(turns)}) as server, asyncio.timeout(HANG):
        env = {
            **QUIET,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-ant-of-a-test",
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
        }
        options = {
            "pathToClaudeCodeExecutable": CLI,
            "cwd": str(folder / "project"),
            "model": MODEL,
            "env": env,
            "settingSources": [],
        }
        assert NODE is not None
        process = await asyncio.create_subprocess_exec(
            *(NODE, str(PROGRAM), str(TYPESCRIPT_SDK), case, json.dumps(options)),
            env=env,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        bodies = [one.body for one in server.requests if one.path.partition("?")[0].endswith("/messages")]
    return json.loads(printed), bodies


def kinds(told: Mapping[str, Any]) -> list[str]:
    names: list[str] = []
    for message in told["messages"]:
        if message["type"] == "system":
            names += ["init"] if message["subtype"] == "init" else []
        elif message["type"] in ("assistant", "user", "result"):
            names.append(message["type"])
    return names


def results(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [message for message in told["messages"] if message["type"] == "result"]


def tool_results(told: Mapping[str, Any]) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    for message in told["messages"]:
        if message["type"] == "user" and isinstance(message["message"]["content"], list):
            for block in message["message"]["content"]:
                if block["type"] == "tool_result":
                    content = block["content"]
                    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                    found.append((text, bool(block.get("is_error"))))
    return found


def _writing(folder: Path) -> dict[str, Any]:
    return {"calls": [call("Write", file_path=str(folder / "project/a.txt"), content="x\n")]}


@requirement("SDK-1")
async def test_a_text_is_answered(tmp_path: Path) -> None:
    told, _ = await run(tmp_path, "text", {"text": "Hi."})

    assert (told["error"], kinds(told)) == (None, ["init", "assistant", "result"])
    assert results(told)[0]["result"] == "Hi."


async def test_a_stream_of_prompts_is_answered(tmp_path: Path) -> None:
    told, asked = await run(tmp_path, "stream", {"text": "One."}, {"text": "Two."})

    assert (told["error"], [one["result"] for one in results(told)]) == (None, ["One.", "Two."])
    assert len(asked) == 2


async def test_everything_runs_where_permissions_are_bypassed(tmp_path: Path) -> None:
    told, _ = await run(tmp_path, "bypass", _writing(tmp_path), DONE)

    assert (told["error"], kinds(told)) == (None, ["init", "assistant", "user", "assistant", "result"])
    assert (tmp_path / "project/a.txt").exists()


@requirement("SDK-2")
async def test_a_program_that_is_asked_allows_and_changes(tmp_path: Path) -> None:
    told, _ = await run(tmp_path, "allow", _writing(tmp_path), DONE)

    assert (told["error"], told["asked"]) == (None, ["Write"])
    assert (tmp_path / "project/a.txt").read_text() == "changed\n"


@requirement("SDK-2")
async def test_a_program_that_is_asked_refuses_and_the_run_goes_on(tmp_path: Path) -> None:
    told, _ = await run(tmp_path, "deny", _writing(tmp_path), DONE)

    assert told["error"] is None
    ((text, is_error),) = tool_results(told)
    assert is_error
    assert "Not this one." in text
    assert results(told)[0]["subtype"] == "success"


@requirement("HOOK-2")
async def test_hooks_are_called(tmp_path: Path) -> None:
    told, _ = await run(tmp_path, "hooks", {"calls": [call("Bash", command="echo hi")]}, DONE)

    assert (told["error"], told["asked"]) == (None, ["PreToolUse Bash"])
    ((text, is_error),) = tool_results(told)
    assert (is_error, "It is forbidden." in text) == (True, True)


async def test_tools_of_the_program_are_called(tmp_path: Path) -> None:
    told, _ = await run(tmp_path, "tools", {"calls": [call("mcp__calc__add", a=2, b=3)]}, DONE)

    assert (told["error"], tool_results(told)) == (None, [("the sum is 5", False)])


async def test_a_system_prompt_replaces_and_one_that_is_appended_follows(tmp_path: Path) -> None:
    replaced, (first,) = await run(tmp_path, "system", DONE)
    appended, (second,) = await run(tmp_path, "append", DONE)

    assert (replaced["error"], appended["error"]) == (None, None)
    one, other = json.dumps(first["system"]), json.dumps(second["system"])
    assert "MARK of the program." in one
    assert "MARK behind it." in other
    assert len(other) > len(one) + 500


async def test_an_answer_has_the_form_of_a_schema(tmp_path: Path) -> None:
    told, _ = await run(tmp_path, "schema", {"calls": [call("StructuredOutput", count=3)]}, DONE, DONE)

    assert (told["error"], results(told)[0]["structured_output"]) == (None, {"count": 3})


async def test_agents_of_the_program_do_their_work(tmp_path: Path) -> None:
    hire = call("Agent", description="look", prompt="Look.", subagent_type="reviewer", run_in_background=False)
    told, asked = await run(tmp_path, "agents", {"calls": [hire]}, {"text": "Fine."}, DONE)

    assert (told["error"], results(told)[0]["result"]) == (None, "Done.")
    assert "MARK of the reviewer." in json.dumps(asked[1]["system"])


async def test_words_come_as_they_are_written(tmp_path: Path) -> None:
    told, _ = await run(tmp_path, "partial", {"text": "one two three"})

    events = [one["event"] for one in told["messages"] if one["type"] == "stream_event"]
    deltas = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert (told["error"], "".join(deltas)) == (None, "one two three")


async def test_a_conversation_is_resumed_and_forked(tmp_path: Path) -> None:
    told, asked = await run(tmp_path, "resume", {"text": "One."}, {"text": "Two."}, {"text": "Three."})

    first, second, third = results(told)
    assert told["error"] is None
    assert first["session_id"] == second["session_id"] != third["session_id"]
    assert "walnut" in json.dumps(asked[1])
    assert "Two." in json.dumps(asked[2])


async def test_a_limit_of_turns_is_told(tmp_path: Path) -> None:
    told, _ = await run(tmp_path, "turns", {"calls": [call("Bash", command="true")]}, DONE)

    assert [one["subtype"] for one in results(told)] == ["error_max_turns"]


async def test_directories_tools_and_a_session_that_is_not_kept(tmp_path: Path) -> None:
    told, (asked,) = await run(tmp_path, "extra", DONE)

    assert (told["error"], results(told)[0]["result"]) == (None, "Done.")
    assert "Write" not in [tool["name"] for tool in asked["tools"]]
    assert not list(tmp_path.glob("**/projects/*/*.jsonl"))


async def test_a_program_asks_and_changes_things_while_it_runs(tmp_path: Path) -> None:
    told, asked = await run(tmp_path, "control", {"text": "One."}, {"text": "Two."})

    assert (told["error"], [one["result"] for one in results(told)]) == (None, ["One.", "Two."])
    assert [body["model"] for body in asked] == [MODEL, "claude-haiku-4-5"]
    assert told["models"] > 0
    assert told["servers"] == []
    assert "compact" in told["commands"]


async def test_what_is_interrupted_ends(tmp_path: Path) -> None:
    told, _ = await run(tmp_path, "interrupt", {"text": "word " * 300, "fault": {"slow": 0.1}})

    assert [one["subtype"] for one in results(told)] == ["error_during_execution"]
