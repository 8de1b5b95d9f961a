"""What each option comes to, and which ones are refused."""

from __future__ import annotations

import json
import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ferrule.compat import claude_agent_sdk
from ferrule.compat.claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    NotBuilt,
    ProcessError,
    ResultError,
    SystemMessage,
    ToolAnnotations,
    create_sdk_mcp_server,
    fold_session_summary,
    query,
    tool,
)
from ferrule.core.calls import ToolCall
from ferrule.instructions.prompt import builtin_prompt
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.testing import RecordingModel

from ..requirement import requirement
from ..sdk.scenes import of, read, results, texts

KNOWN_OPTIONS = [
    "tools",
    "allowed_tools",
    "disallowed_tools",
    "system_prompt",
    "mcp_servers",
    "strict_mcp_config",
    "permission_mode",
    "continue_conversation",
    "resume",
    "session_id",
    "max_turns",
    "max_budget_usd",
    "model",
    "fallback_model",
    "betas",
    "permission_prompt_tool_name",
    "cwd",
    "cli_path",
    "settings",
    "add_dirs",
    "env",
    "extra_args",
    "max_buffer_size",
    "debug_stderr",
    "stderr",
    "can_use_tool",
    "hooks",
    "user",
    "include_partial_messages",
    "include_hook_events",
    "forward_subagent_text",
    "fork_session",
    "resume_session_at",
    "resume_drops_turn",
    "agents",
    "setting_sources",
    "skills",
    "sandbox",
    "plugins",
    "max_thinking_tokens",
    "thinking",
    "effort",
    "output_format",
    "enable_file_checkpointing",
    "session_store",
    "session_store_flush",
    "load_timeout_ms",
    "task_budget",
]


def _options(*messages: Any, **more: Any) -> ClaudeAgentOptions:
    chosen: dict[str, Any] = {"model_provider": ScriptedModel(messages), "setting_sources": [], **more}
    return ClaudeAgentOptions(**chosen)


async def _asked(*, prompt: str = "x", **more: Any) -> RecordingModel:
    """What the model was sent for one prompt."""
    model = RecordingModel(says("."))
    await read(query(prompt=prompt, options=_options(model_provider=model, **more)))
    return model


@requirement("SDK-1")
def test_every_option_of_that_library_is_there() -> None:
    assert {field.name for field in fields(ClaudeAgentOptions)} == {*KNOWN_OPTIONS, "model_provider", "trust_folder"}


def test_every_public_name_can_be_had() -> None:
    assert [name for name in claude_agent_sdk.__all__ if not hasattr(claude_agent_sdk, name)] == []


def test_errors_stand_in_the_families_that_programs_catch() -> None:
    assert issubclass(CLINotFoundError, CLIConnectionError)
    assert issubclass(ResultError, ProcessError)
    assert all(issubclass(one, ClaudeSDKError) for one in (CLIConnectionError, ProcessError, CLIJSONDecodeError))


@pytest.mark.parametrize(
    "more",
    [
        {"resume_session_at": "x"},
        {"resume_drops_turn": "x"},
        {"task_budget": {"total": 1}},
        {"permission_prompt_tool_name": "x"},
        {"extra_args": {"verbose": None}},
        {"system_prompt": {"type": "preset", "preset": "claude_code", "exclude_dynamic_sections": True}},
    ],
    ids=lambda more: next(iter(more)),
)
async def test_what_is_not_built_is_refused_by_name(more: dict[str, Any]) -> None:
    name = "exclude_dynamic_sections" if "system_prompt" in more else next(iter(more))

    with pytest.raises(NotBuilt, match=f"`{name}"):
        query(prompt="x", options=_options(**more))


async def test_what_means_nothing_in_one_process_is_taken() -> None:
    more: dict[str, Any] = {"cli_path": "/x", "max_buffer_size": 1, "user": "me", "load_timeout_ms": 1}

    assert len((await _asked(**more)).requests) == 1


async def test_options_that_contradict_each_other_are_refused() -> None:
    async def callback(*_: Any) -> Any:
        raise AssertionError

    with pytest.raises(ValueError, match="Give one"):
        query(prompt="x", options=_options(can_use_tool=callback, permission_prompt_tool_name="x"))
    with pytest.raises(CLIConnectionError, match="two conversations"):
        await ClaudeSDKClient(_options(resume="a", continue_conversation=True)).connect()
    with pytest.raises(NotBuilt, match="transport"):
        query(prompt="x", transport=object())  # type: ignore[arg-type]


async def test_the_system_prompt_is_none_one_s_own_ours_or_a_file(folder: Path) -> None:
    (folder / "prompt.md").write_text("From a file.")
    preset = {"type": "preset", "preset": "claude_code", "append": "And be brief."}

    async def system(given: Any) -> str:
        return (await _asked(system_prompt=given)).requests[0][0].system

    assert builtin_prompt() not in await system(None)
    assert (await system("Be a pirate.")).startswith("Be a pirate.")
    assert (await system({"type": "file", "path": "prompt.md"})).startswith("From a file.")
    whole = await system(preset)
    assert whole.startswith(builtin_prompt())
    assert "And be brief." in whole
    with pytest.raises(CLIConnectionError, match="cannot be read"):
        await system({"type": "file", "path": "missing.md"})


async def test_tools_are_all_some_or_none() -> None:
    async def offered(**more: Any) -> set[str]:
        return {spec.name for spec in (await _asked(**more)).requests[0][0].tools}

    assert await offered(tools=["Read", "Glob"]) == {"Read", "Glob"}
    assert await offered(tools=[]) == set()
    assert {"Read", "Write", "Bash"} <= await offered(tools={"type": "preset", "preset": "claude_code"})
    assert "Bash" not in await offered(disallowed_tools=["Bash"])
    assert "Skill" not in await offered(skills=[])


@requirement("SDK-1")
@pytest.mark.parametrize(("sources", "counts"), [(None, True), ([], False), (["user"], True), (["project"], False)])
async def test_setting_sources_say_whose_settings_count(
    folder: Path, tmp_path: Path, sources: Any, counts: bool
) -> None:
    settings = tmp_path / "home" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"permissions": {"allow": ["Write"]}}))
    call = ToolCall("1", "Write", {"file_path": "a.txt", "content": ""})

    await read(query(prompt="x", options=_options(says("", call), says("."), setting_sources=sources)))

    assert (folder / "a.txt").exists() is counts


async def test_settings_and_directories_are_given_with_the_options(folder: Path, tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    call = ToolCall("1", "Write", {"file_path": str(beside / "a.txt"), "content": ""})
    more: dict[str, Any] = {"add_dirs": [beside], "settings": '{"permissions": {"defaultMode": "acceptEdits"}}'}

    await read(query(prompt="x", options=_options(says("", call), says("."), **more)))

    assert (beside / "a.txt").exists()


async def test_agents_of_the_program_are_started_by_their_names() -> None:
    agents = {
        "reviewer": AgentDefinition("Reviews code.", "You review.", tools=["Read", "Grep"], model="sonnet"),
    }
    call = ToolCall("1", "Agent", {"description": "review", "prompt": "Look.", "subagent_type": "reviewer"})
    model = RecordingModel(says("", call), says("All is well."), says("Reviewed."))
    messages = await read(query(prompt="x", options=_options(model_provider=model, agents=agents)))

    assert "reviewer" in of(SystemMessage, messages)[0].data["agents"]
    inner = model.requests[1][0]
    assert inner.system.startswith("You review.")
    assert {spec.name for spec in inner.tools} == {"Read", "Grep"}
    assert "All is well." in str(results(messages)[0].content)
    assert texts(messages) == ["Reviewed."]


async def test_limits_end_the_turn_with_a_result_that_says_so() -> None:
    calls = [says("", ToolCall(str(number), "Glob", {"pattern": "*"})) for number in range(3)]

    messages = await read(query(prompt="x", options=_options(*calls, max_turns=2)))

    assert (messages[-1].subtype, messages[-1].is_error) == ("error_max_turns", True)
    with pytest.raises(CLIConnectionError, match="price of scripted"):
        await read(query(prompt="x", options=_options(max_budget_usd=0.1)))


async def test_thinking_is_a_number_of_tokens() -> None:
    async def tokens(**more: Any) -> int | None:
        return (await _asked(**more)).requests[0][0].thinking_tokens

    assert await tokens(thinking={"type": "enabled", "budget_tokens": 2000}) == 2000
    assert await tokens(max_thinking_tokens=1000) == 1000
    assert await tokens(thinking={"type": "disabled"}, max_thinking_tokens=1000) is None


async def test_an_answer_has_the_form_that_was_asked_for() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    call = ToolCall("1", "StructuredOutput", {"n": 5})
    options = _options(says("", call), output_format={"type": "json_schema", "schema": schema})

    assert (await read(query(prompt="x", options=options)))[-1].structured_output == {"n": 5}
    with pytest.raises(ValueError, match="json_schema"):
        query(prompt="x", options=_options(output_format={"type": "text"}))


async def test_the_log_goes_to_the_callback_for_standard_error(folder: Path) -> None:
    (folder / ".claude").mkdir()
    (folder / ".claude" / "settings.json").write_text('{"permissions": {"allow": ["Bash(rm *)"]}}')
    lines: list[str] = []
    options = _options(
        says("."), stderr=lines.append, extra_args={"debug-to-stderr": None}, setting_sources=["project"]
    )

    await read(query(prompt="x", options=options))

    assert any(line.startswith("[WARNING]") and "not trusted" in line for line in lines)
    assert "[DEBUG] ResultMessage" in lines


async def test_a_connection_that_fails_leaves_no_callback_behind() -> None:
    lines: list[str] = []

    with pytest.raises(CLIConnectionError, match="Session gone was not found"):
        await ClaudeSDKClient(_options(resume="gone", stderr=lines.append)).connect()
    logging.getLogger("ferrule").warning("for nobody")

    assert lines == []


async def test_annotations_take_either_spelling() -> None:
    assert ToolAnnotations(readOnlyHint=True) == ToolAnnotations(read_only_hint=True)  # type: ignore[call-arg]

    @tool("big", "Big.", {}, annotations=ToolAnnotations(title="A big one", max_result_size_chars=400_000))
    async def big(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": []}

    (made,) = create_sdk_mcp_server("x", tools=[big])["instance"].tools
    assert (made.title, made.result_limit) == ("A big one", 400_000)


def test_what_is_not_there_can_be_imported_and_says_so() -> None:
    with pytest.raises(NotBuilt, match="fold_session_summary"):
        fold_session_summary(None, {"project_key": "x", "session_id": "x"}, [])
