"""`ferrule -p` against a model's service on loopback: what goes over the wire."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ferrule.testing.model_server import ModelServer
from tests.cli.prompting import call, fits, kinds
from tests.cli.running import FERRULE, HANG, environment
from tests.requirement import requirement
from tests.settings.folders import put

USAGE = {"input_tokens": 1000, "output_tokens": 100}


async def asked(folder: Path, server: ModelServer, *flags: str, model: str = "anthropic:claude-sonnet-5-5") -> Any:
    """Exit code, lines and stderr of a run."""
    process = await asyncio.create_subprocess_exec(
        *(*FERRULE, "-p", "Do it", "--model", model, "--output-format", "stream-json", *flags),
        cwd=folder,
        env=environment(folder, ANTHROPIC_BASE_URL=server.url, OPENAI_BASE_URL=server.url, PYTHONWARNINGS="error"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(HANG):
        out, err = await process.communicate()
    lines = [json.loads(line) for line in out.splitlines()]
    for line in lines:
        fits(line)
    return process.returncode, lines, err


@requirement("CLI-1", "LOOP-4")
async def test_each_request_begins_with_the_one_before_it(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("Use tabs.")
    (tmp_path / "a.txt").write_text("one\n")
    turns = [{"calls": [call("Read", file_path="a.txt")], "usage": USAGE}, {"text": "Done.", "usage": USAGE}]

    async with ModelServer.playing({"turns": turns}) as server:
        code, lines, err = await asked(tmp_path, server)
        first, second = server.bodies

    assert (code, err) == (0, b"")
    assert kinds(lines)[-1] == "result/success"
    assert lines[-1]["total_cost_usd"] > 0
    assert "Use tabs." in json.dumps(first["system"])
    offered = {tool["name"] for tool in first["tools"]}
    assert all(name in offered or f"- {name}: " in json.dumps(first["system"]) for name in lines[0]["tools"])
    assert _bare(first["tools"]) == _bare(second["tools"])
    assert _bare(first["system"]) == _bare(second["system"])
    assert _bare(second["messages"])[: len(first["messages"])] == _bare(first["messages"])


@requirement("CLI-1")
async def test_a_spent_budget_ends_the_run(tmp_path: Path) -> None:
    glob = {"calls": [call("Glob", pattern="*")], "usage": USAGE}

    async with ModelServer.playing({"turns": [glob, glob, {"text": "Done."}]}) as server:
        code, lines, _ = await asked(tmp_path, server, "--max-budget-usd", "0.000001")

    assert (code, lines[-1]["subtype"], lines[-1]["num_turns"]) == (4, "error_max_budget_usd", 1)


@requirement("CLI-1")
async def test_a_retry_is_a_line_and_the_answer_comes_all_the_same(tmp_path: Path) -> None:
    overloaded = {"fault": {"status": 529, "retry_after": "0"}}

    async with ModelServer.playing({"turns": [overloaded, {"text": "Done."}]}) as server:
        code, lines, _ = await asked(tmp_path, server, model="openai:local")

    assert (code, kinds(lines)) == (0, ["system/init", "system/api_retry", "assistant", "result/success"])


def _bare(value: Any) -> Any:
    """Without the marks for the cache, which move on."""
    if isinstance(value, dict):
        return {key: _bare(part) for key, part in value.items() if key != "cache_control"}  # pyright: ignore[reportUnknownVariableType]
    return [_bare(part) for part in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


@requirement("SET-5", "PERM-12")
async def test_model_key_and_address_of_the_settings_are_used(tmp_path: Path) -> None:
    async with ModelServer.playing({"turns": [{"text": "Done."}]}) as server:
        put(
            tmp_path / "home/.claude/settings.json",
            {"model": "anthropic:claude-haiku-5-5", "apiKey": "key-of-the-file", "customApiUrl": server.url},
        )
        process = await asyncio.create_subprocess_exec(
            *(*FERRULE, "-p", "Do it"),
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(HANG):
            out, _ = await process.communicate()
        ((body,), (headers,)) = server.bodies, [request.headers for request in server.requests]

    assert (process.returncode, out) == (0, b"Done.\n")
    assert body["model"] == "claude-haiku-5-5"
    assert headers["x-api-key"] == "key-of-the-file"


async def test_a_variable_says_how_much_may_be_reasoning(tmp_path: Path) -> None:
    put(tmp_path / "home" / ".claude" / "settings.json", {"env": {"MAX_THINKING_TOKENS": "4000"}})

    async with ModelServer.playing({"turns": [{"text": "Done."}, {"text": "Done."}]}) as server:
        await asked(tmp_path, server, model="anthropic:claude-haiku-4-5")
        await asked(tmp_path, server, model="anthropic:opus")
        budget, adaptive = server.bodies

    assert budget["thinking"] == {"type": "enabled", "budget_tokens": 4000}
    assert (adaptive["model"], adaptive["thinking"]) == ("claude-opus-5-5", {"type": "adaptive"})


@requirement("LOOP-2")
@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-5-5", "openai:local"])
async def test_a_service_that_wants_ids_to_be_unique_gets_them_unique(tmp_path: Path, model: str) -> None:
    twice = {"calls": [call("Glob", "t1", pattern="*.a"), call("Glob", "t1", pattern="*.b")]}

    async with ModelServer.playing({"turns": [twice, twice, {"text": "Done."}]}) as server:
        code, lines, _ = await asked(tmp_path, server, model=model)
        sent = json.dumps(server.bodies[-1]["messages"])

    assert (code, lines[-1]["subtype"]) == (0, "success")
    key, result = ('"id": ', '"tool_use_id": ') if model.startswith("anthropic") else ('"id": ', '"tool_call_id": ')
    asked_for, answered = (re.findall(f'{name}"([^"]+)"', sent) for name in (key, result))
    assert asked_for == answered
    assert len(set(asked_for)) == 4
