"""The examples that come with the Python SDK, as they are, with a link named `claude` that leads to Ferrule.

Left out: those that need another service (session_stores), IPython or trio, and `streaming_mode async_iterable_prompt`,
which waits for half a minute by design; test_python_query.py has the same case.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ferrule.testing import ModelServer

from ..requirement import requirement
from .conftest import CLI, PYTHON_SDK
from .environment import MODEL, QUIET, call

HANG = 110
DONE: dict[str, Any] = {"text": "Done.", "usage": {"input_tokens": 10, "output_tokens": 5}}
SLOW: dict[str, Any] = {"text": "number " * 300, "fault": {"slow": 0.1}}


@dataclass(frozen=True)
class Example:
    arguments: tuple[str, ...]
    turns: Sequence[Mapping[str, Any]]
    prints: tuple[str, ...]
    """What must be in its output."""
    asked: tuple[str, ...] = ()
    """What must be in the requests to the model."""
    code: int = 0
    """With which it ends; the one about budgets does not catch the error that it shows."""


def _bash(command: str) -> dict[str, Any]:
    return {"calls": [call("Bash", command=command)]}


def _write(name: str) -> dict[str, Any]:
    path = name if name.startswith("/") else f"FOLDER/{name}"
    return {"calls": [call("Write", file_path=path, content="test data\n")]}


def _hire(kind: str) -> dict[str, Any]:
    input: dict[str, Any] = {"description": "d", "prompt": "Go.", "subagent_type": kind, "run_in_background": False}
    return {"calls": [call("Agent", **input)]}


def _sum(name: str, **input: float) -> dict[str, Any]:
    return {"calls": [call(f"mcp__calc__{name}", **input)]}


EXAMPLES = {
    "quick_start": Example(("quick_start",), [DONE, DONE, _write("hello.txt"), DONE], ("=== With Tools", "Cost: $")),
    "agents": Example(
        ("agents",),
        [
            _hire("code-reviewer"),
            {"text": "Reviewed."},
            DONE,
            _hire("doc-writer"),
            {"text": "Written."},
            DONE,
            _hire("analyzer"),
            {"text": "Analyzed."},
            DONE,
        ],
        ("Multiple Agents", "Claude: Done."),
        ("You are a code reviewer.", "Reviewed.", "technical documentation expert", "You are a code analyzer."),
    ),
    "filesystem_agents": Example(
        ("filesystem_agents",),
        [DONE],
        ("SUCCESS: Received full response", "SUCCESS: test-agent was loaded from filesystem"),
    ),
    "hooks before a call": Example(
        ("hooks", "PreToolUse"),
        [_bash("./foo.sh --help"), DONE, _bash("echo 'Hello from hooks example!'"), DONE],
        ("Blocked command: ./foo.sh --help", "Result ended"),
        ("Command contains invalid pattern: foo.sh", "Hello from hooks example!"),
    ),
    "hooks of a prompt": Example(("hooks", "UserPromptSubmit"), [DONE], ("Result ended",)),
    "hooks after a call": Example(
        ("hooks", "PostToolUse"),
        [_bash("ls /nonexistent_directory; echo an error"), DONE],
        ("Result ended",),
        ("The command encountered an error.",),
    ),
    "hooks that decide": Example(
        ("hooks", "DecisionFields"),
        [_write("important_config.txt"), DONE, _write("regular_file.txt"), DONE],
        ("Blocked Write to:", "Result ended"),
        ("Security policy blocks writes to important files",),
    ),
    "hooks that stop": Example(
        ("hooks", "ContinueControl"),
        [_bash("echo 'CRITICAL ERROR: system failure'"), DONE],
        ("Critical error detected", "Result ended"),
    ),
    "include_partial_messages": Example(
        ("include_partial_messages",),
        [{"thinking": "Hm.", "text": "A joke."}],
        ("StreamEvent(", "text_delta", "ResultMessage("),
    ),
    "max_budget_usd": Example(
        ("max_budget_usd",),
        [DONE, DONE, {**_bash("true"), "usage": {"input_tokens": 100000, "output_tokens": 1000}}, DONE],
        ("Status: success", "Status: error_max_budget_usd", "Budget limit exceeded"),
        code=1,
    ),
    "mcp_calculator": Example(
        ("mcp_calculator",),
        [
            DONE,
            _sum("add", a=15, b=27),
            DONE,
            _sum("divide", a=100, b=7),
            DONE,
            _sum("sqrt", n=144),
            DONE,
            _sum("power", base=2, exponent=8),
            DONE,
            _sum("add", a=12, b=8),
            _sum("multiply", a=20, b=3),
            _sum("subtract", a=60, b=10),
            DONE,
        ],
        ("Using tool: mcp__calc__add", "15 + 27 = 42", "√144 = 12.0", "2^8 = 256"),
    ),
    "plugin_example": Example(
        ("plugin_example",), [DONE], ("Plugins loaded:", "demo-plugin", "Plugin successfully configured!")
    ),
    "setting_sources": Example(
        ("setting_sources", "all"),
        [DONE] * 4,
        ("✓ /commit is available (expected: CLI defaults loaded)", "✓ /commit is NOT available (expected)"),
    ),
    "stderr_callback_example": Example(("stderr_callback_example",), [DONE], ("Captured ",)),
    "streaming": Example(("streaming_mode", "basic_streaming"), [DONE], ("Claude: Done.", "Result ended")),
    "several turns": Example(("streaming_mode", "multi_turn_conversation"), [DONE] * 2, ("Claude: Done.",)),
    "prompts while answers come": Example(("streaming_mode", "concurrent_responses"), [DONE] * 3, ("Claude: Done.",)),
    "interrupt": Example(("streaming_mode", "with_interrupt"), [SLOW, {"text": "A joke."}], ("Claude: A joke.",)),
    "messages by hand": Example(
        ("streaming_mode", "manual_message_handling"), [{"text": "Python and Java."}], ("Found language: Python",)
    ),
    "options": Example(("streaming_mode", "with_options"), [_write("hello.txt"), DONE], ("Tools used: Write",)),
    "a command": Example(
        ("streaming_mode", "bash_command"), [_bash("echo 'Hello from bash!'"), DONE], ("Tool Use: Bash", "Result ended")
    ),
    "control protocol": Example(
        ("streaming_mode", "control_protocol"),
        [SLOW, {"text": "Hello!"}],
        ("✓ Server info retrieved", "✓ Interrupt sent successfully", "Claude: Hello!"),
    ),
    "errors": Example(("streaming_mode", "error_handling"), [_bash("sleep 5"), DONE], ("Error Handling Example",)),
    "system_prompt": Example(
        ("system_prompt",), [DONE] * 4, ("Preset System Prompt with Append",), ("You are a pirate assistant.",)
    ),
    "tool_permission_callback": Example(
        ("tool_permission_callback",),
        [_bash("touch listed"), _write("/etc/hello.py"), _bash("rm -rf ./nothing"), DONE],
        (
            "Allowing bash command: touch listed",
            "Denying write to system directory",
            "Denying dangerous command",
            "Task completed!",
        ),
    ),
    "tools_option": Example(
        ("tools_option",), [DONE] * 3, ("['Glob', 'Grep', 'Read']", "Tools from system message: []")
    ),
}


@requirement("SDK-1")
@pytest.mark.parametrize("name", EXAMPLES)
async def test_an_example_of_the_library_runs(name: str, tmp_path: Path) -> None:
    example, folder = EXAMPLES[name], tmp_path / "sdk"
    file, *arguments = example.arguments
    shutil.copytree(PYTHON_SDK / "examples", folder / "examples")
    _put(folder / ".claude/commands/commit.md", "---\ndescription: Commits.\n---\nCommit.\n")
    _put(folder / ".claude/agents/test-agent.md", "---\nname: test-agent\ndescription: Tests.\n---\nTest.\n")
    _put(folder / "README.md", "# Read me\n")
    _put(folder / "bin/claude", f'#!/bin/sh\nexec "{CLI}" "$@"\n')
    (folder / "bin/claude").chmod(0o755)

    turns = [_in(folder, turn) for turn in (*example.turns, DONE, DONE)]
    async with ModelServer.playing({"turns": turns}) as server, asyncio.timeout(HANG):
        variables = {
            **QUIET,
            "PATH": f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": str(PYTHON_SDK / "src"),
            "PYTHONUNBUFFERED": "1",
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-ant-of-a-test",
            "ANTHROPIC_MODEL": MODEL,
            "HOME": str(tmp_path / "home"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, f"examples/{file}.py", *arguments),
            cwd=folder,
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        asked = "\n".join(one.raw.decode() for one in server.requests)

    output = printed.decode()
    assert process.returncode == example.code, output
    assert [text for text in example.prints if text not in output] == [], output
    assert [text for text in example.asked if text not in asked] == []
    assert "❌ /commit" not in output


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _in(folder: Path, turn: Mapping[str, Any]) -> dict[str, Any]:
    """With paths that lead into this folder."""
    calls = [
        {**one, "input": {key: _placed(folder, value) for key, value in one["input"].items()}}
        for one in turn.get("calls", ())
    ]
    return {**turn, "calls": calls}


def _placed(folder: Path, value: Any) -> Any:
    return value.replace("FOLDER", str(folder)) if isinstance(value, str) else value
