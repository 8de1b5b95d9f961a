"""Options of the wrong form are told by name before anything runs."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ferrule.compat.claude_agent_sdk import ClaudeAgentOptions, CLIConnectionError, ResultMessage, query
from ferrule.providers.scripted import ScriptedModel, says

from ..sdk.scenes import of, read

WRONG: list[tuple[str, Any]] = [
    ("allowed_tools", "Read"),
    ("disallowed_tools", "Bash"),
    ("tools", "Read"),
    ("betas", "x"),
    ("skills", "one"),
    ("plugins", {"type": "local", "path": "."}),
    ("hooks", ["PreToolUse"]),
    ("hooks", {"PreToolUse": [len]}),
    ("agents", {"a": {"description": "d", "prompt": "p"}}),
    ("can_use_tool", "no"),
    ("stderr", 5),
    ("system_prompt", 5),
    ("system_prompt", {"type": "other"}),
    ("setting_sources", "user"),
    ("add_dirs", "/tmp"),
    ("cwd", 5),
    ("mcp_servers", [1]),
    ("mcp_servers", {"a": "x"}),
    ("env", {"A": 1}),
    ("max_turns", "3"),
    ("max_budget_usd", True),
    ("resume", 5),
    ("effort", "huge"),
    ("disallowed_tools", [5]),
]
OURS = {"add_dirs": "added_directories", "disallowed_tools": "d"}


def _options(**more: Any) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(**{"model_provider": ScriptedModel([says(".")]), "setting_sources": [], **more})


@pytest.mark.parametrize(("name", "value"), WRONG)
async def test_an_option_of_the_wrong_form_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises((TypeError, CLIConnectionError), match=f"`{OURS.get(name, name)}"):
        await read(query(prompt="x", options=_options(**{name: value})))


def test_without_a_loop_of_asyncio_it_is_said_what_to_use() -> None:
    """As under another library, whose tasks know nothing of asyncio."""
    reading = query(prompt="x", options=_options()).__anext__()

    with pytest.raises(CLIConnectionError, match="asyncio"):
        reading.send(None)


async def test_a_callback_for_standard_error_that_fails_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)

    def fail(line: str) -> None:
        raise ValueError(line)

    options = _options(stderr=fail, extra_args={"debug-to-stderr": None})

    assert of(ResultMessage, await read(query(prompt="x", options=options)))[0].subtype == "success"
