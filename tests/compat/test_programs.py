"""Programs as people write them for the Claude Agent SDK, with only the import changed, against a loopback service."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ferrule.compat.claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query
from ferrule.providers.script import check_script
from ferrule.testing import ModelServer

from ..requirement import requirement
from ..sdk.scenes import no_task_but_this

PROGRAMS = Path(__file__).parents[2] / "examples" / "claude_agent_sdk"
HANG = 60.0


def _loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ran:
    """What a program printed, and what the service was sent."""

    def __init__(self, output: str, bodies: list[dict[str, Any]]) -> None:
        self.lines = output.splitlines()
        self.bodies = bodies


async def _run(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *turns: dict[str, Any]
) -> Ran:
    async with ModelServer(check_script({"turns": list(turns)}, name)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        async with asyncio.timeout(HANG):
            await _loaded(name).main()
        bodies = [
            json.loads(request.body) if isinstance(request.body, bytes) else request.body for request in server.requests
        ]
    await no_task_but_this()
    return Ran(capsys.readouterr().out, bodies)


def _calls(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"name": name, "input": input} for name, input in calls]}


def test_every_program_is_run_here() -> None:
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}

    assert {path.stem for path in PROGRAMS.glob("*.py")} <= tests


@requirement("SDK-1")
async def test_quick_start(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write = _calls(("Write", {"file_path": "hello.txt", "content": "Hello, world."}))
    usage = {"usage": {"input_tokens": 1000, "output_tokens": 100}}
    ran = await _run(
        "quick_start", monkeypatch, capsys, {"text": "4", **usage}, {"text": "A language."}, write, {"text": "Done."}
    )

    words = [line for line in ran.lines if not line.startswith("Cost: ")]
    assert words == ["Model: 4", "Model: A language.", "Model: Done."]
    assert ran.lines[1] == "Cost: $0.0030"
    assert (folder / "hello.txt").read_text() == "Hello, world."


@requirement("SDK-1")
async def test_streaming_mode(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.txt").touch()
    answers = [{"text": text} for text in ("Paris.", "Two million.")]
    rest = [
        {"text": "A joke."},
        {"text": "Tokyo."},
        {"text": "30."},
        _calls(("Glob", {"pattern": "*"})),
        {"text": "One."},
    ]
    ran = await _run("streaming_mode", monkeypatch, capsys, *answers, *rest)

    assert ran.lines == [
        "--- several_turns",
        "Model: Paris.",
        "Ended: success",
        "Model: Two million.",
        "Ended: success",
        "--- with_an_interrupt",
        "Ended: error_during_execution",
        "Model: A joke.",
        "Ended: success",
        "--- a_stream_of_prompts",
        "Model: Tokyo.",
        "Ended: success",
        "Model: 30.",
        "Ended: success",
        "--- a_command",
        "Uses Glob: {'pattern': '*'}",
        "Result: a.txt",
        "Model: One.",
        "Ended: success",
        "Output style: default",
        "--- not_connected",
        "Not connected: Not connected. Call connect() first, or use `async with`.",
    ]


@requirement("SDK-1")
async def test_mcp_calculator(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    calls = _calls(
        ("mcp__calc__add", {"a": 15, "b": 27}), ("mcp__calc__divide", {"a": 1, "b": 0}), ("mcp__calc__sqrt", {"n": -1})
    )
    ran = await _run("mcp_calculator", monkeypatch, capsys, calls, {"text": "42, and two that cannot be."})

    results = [line for line in ran.lines if line.startswith("Result")]
    assert results[:2] == ["Result: 15 + 27 = 42", "Result (error): There is no division by zero."]
    assert "math domain error" in results[2]
    assert ran.lines[-2:] == ["Model: 42, and two that cannot be.", "Ended: success"]
    offered = {tool["name"]: tool for tool in ran.bodies[0]["tools"]}
    assert offered["mcp__calc__add"]["input_schema"]["required"] == ["a", "b"]


@requirement("SDK-1")
async def test_hooks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran = await _run(
        "hooks",
        monkeypatch,
        capsys,
        _calls(("Bash", {"command": "./foo.sh --help"})),
        {"text": "It was refused."},
        _calls(("Bash", {"command": "echo hello"})),
        {"text": "hello"},
        {"text": "Pink."},
        _calls(("Bash", {"command": "echo critical"})),
    )

    assert ran.lines[:5] == [
        "Model: It was refused.",
        "Ended: success, refused: 1",
        "Model: hello",
        "Ended: success, refused: 0",
        "Model: Pink.",
    ]
    assert "My favourite colour is pink." in json.dumps(ran.bodies[4]["messages"])
    assert len(ran.bodies) == 6


@requirement("SDK-1")
async def test_tool_permission_callback(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = _calls(
        ("Write", {"file_path": "hello.py", "content": "print('hello')"}),
        ("Write", {"file_path": "/etc/ferrule-example", "content": "hello"}),
        ("Bash", {"command": "sudo python hello.py"}),
    )
    ran = await _run("tool_permission_callback", monkeypatch, capsys, calls, {"text": "Partly done."})

    assert [line.partition(":")[0] for line in ran.lines if line.startswith("Asked")] == [
        "Asked about Write",
        "Asked about Write",
        "Asked about Bash",
    ]
    assert ran.lines[-2:] == ["Model: Partly done.", "Ended: success, refused: Write, Bash"]
    assert (folder / "safe" / "hello.py").exists()


@requirement("SDK-1")
async def test_agents(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    errand = {"description": "review", "prompt": "Review it.", "subagent_type": "code-reviewer"}
    ran = await _run(
        "agents", monkeypatch, capsys, _calls(("Agent", errand)), {"text": "No faults."}, {"text": "It is fine."}
    )

    assert ran.lines == ["Model: It is fine.", "Ended: success"]
    assert {tool["name"] for tool in ran.bodies[1]["tools"]} == {"Read", "Grep"}
    assert "You review code." in json.dumps(ran.bodies[1]["system"])


@requirement("SDK-1")
async def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "home" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"permissions": {"defaultMode": "plan"}}')
    dear = {**_calls(("Glob", {"pattern": "*"})), "usage": {"input_tokens": 100_000, "output_tokens": 1000}}
    four = {"text": "Four."}
    ran = await _run("options", monkeypatch, capsys, four, four, four, {"text": "One two"}, four, four, four, dear)

    assert [line for line in ran.lines if line.startswith("Piece")] == ["Piece: 'One '", "Piece: 'two'"]
    assert [line for line in ran.lines if line.startswith("Mode with")] == [
        "Mode with None: plan",
        "Mode with []: default",
    ]
    assert int(ran.lines[ran.lines.index("--- standard error") + 3].removeprefix("Lines: ")) >= 3
    assert ran.lines[-1] == "Ended: error_max_budget_usd"
    systems = [json.dumps(body.get("system", "")) for body in ran.bodies]
    assert "You are a pirate." in systems[1]
    assert "End with a fun fact." in systems[2]
    assert "End with a fun fact." not in systems[0] + systems[1]


@requirement("SDK-1")
async def test_plugin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran = await _run("plugin", monkeypatch, capsys, {"text": "Hello, Ann!"})

    assert ran.lines == ["Plugins: ['greetings']", "Model: Hello, Ann!"]
    assert "Greet Ann in one short sentence." in json.dumps(ran.bodies[0]["messages"])


@requirement("SDK-1")
async def test_structured_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = {"language": "Python", "files": 2}
    ran = await _run("structured_output", monkeypatch, capsys, _calls(("StructuredOutput", answer)))

    assert ran.lines == [f"Ended: success, answer: {answer}"]


@requirement("SDK-1")
async def test_deferred_call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    call = _calls(("Bash", {"command": "echo hello"}))
    ran = await _run("deferred_call", monkeypatch, capsys, call, call, {"text": "It said hello."})

    assert ran.lines == ["Put off: Bash {'command': 'echo hello'}", "Model: It said hello."]


@requirement("SDK-1")
async def test_an_answer_of_the_last_turn_counts_although_the_turns_are_used_up() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    async with ModelServer(check_script({"turns": [_calls(("StructuredOutput", {"n": 5}))]}, "x")) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key"}
        options = ClaudeAgentOptions(output_format={"type": "json_schema", "schema": schema}, max_turns=1, env=env)
        results = [one async for one in query(prompt="x", options=options) if isinstance(one, ResultMessage)]

    assert [(one.subtype, one.structured_output) for one in results] == [("success", {"n": 5})]
