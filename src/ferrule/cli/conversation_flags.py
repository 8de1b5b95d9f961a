"""The flags of `ferrule -p` as the options of a conversation."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..sdk.options import Options
from .exits import UsageError
from .session_flags import (
    chosen_mode,
    chosen_tools,
    existing_directories,
    load_managed,
    parse_levels,
    split_rules,
    usable_allows,
    working_directory,
)

if TYPE_CHECKING:
    from ..agents.agent_kinds import AgentKind


def options_from(chosen: argparse.Namespace) -> Options:
    """Raises `UsageError` for a flag that cannot be honoured."""
    cwd = working_directory(chosen.cwd)
    parse_levels(chosen.setting_sources)
    resumes = bool(chosen.resume or chosen.latest)
    return Options(
        model=chosen.model,
        fallback_model=chosen.fallback_model,
        cwd=cwd,
        added_directories=tuple(existing_directories(chosen.add_dir, cwd)),
        system_prompt=chosen.system_prompt,
        append_system_prompt=chosen.append_system_prompt,
        allow=list(usable_allows(rule for text in chosen.allow for rule in split_rules(text))),
        deny=[rule for text in chosen.deny for rule in split_rules(text)],
        mode=chosen_mode(chosen),
        may_bypass=chosen.allow_dangerously_skip_permissions,
        builtin_tools=chosen_tools(chosen.tools),
        mcp_configs=chosen.mcp_config,
        strict_mcp_config=chosen.strict_mcp_config,
        agents=_agents(chosen),
        agent=chosen.agent,
        skills=() if chosen.disable_slash_commands else None,
        slash_commands=not chosen.disable_slash_commands,
        plugins=chosen.plugin_dir or (),
        plugins_without_servers=chosen.plugin_dir_no_mcp or (),
        setting_sources=_names(chosen.setting_sources),
        settings=chosen.settings,
        more_settings=tuple(load_managed(chosen.managed_settings)),
        trust=chosen.trust,
        without_project_hooks=chosen.without_project_hooks,
        bare=chosen.bare,
        env={"ANTHROPIC_BETAS": ",".join(chosen.betas)} if chosen.betas else {},
        max_turns=chosen.max_turns,
        max_budget_usd=chosen.max_budget_usd,
        thinking_tokens=_thinking_tokens(chosen),
        effort=chosen.effort,
        output_schema=_schema(chosen.json_schema),
        resume=chosen.resume,
        continue_last=chosen.latest,
        fork=chosen.fork_session and resumes,
        fork_at=chosen.resume_session_at,
        session_id=chosen.session_id,
        persist=resumes or not chosen.no_session_persistence,
        checkpoints=_keeps_checkpoints(chosen),
        prompt_messages=chosen.replay_user_messages,
        partial_messages=chosen.include_partial_messages,
        hook_messages=chosen.include_hook_events,
        task_messages=chosen.output_format == "stream-json",
    )


def _names(levels: str | None) -> list[str] | None:
    return None if levels is None else [name.strip() for name in levels.split(",") if name.strip()]


CHECKPOINTS_VARIABLE = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"


def _keeps_checkpoints(chosen: argparse.Namespace) -> bool:
    """Where a program may ask for `rewind_files`; the SDKs say so by a variable."""
    wanted = os.environ.get(CHECKPOINTS_VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")
    return wanted and chosen.input_format == "stream-json"


def _agents(chosen: argparse.Namespace) -> tuple[AgentKind, ...]:
    if not chosen.agents:
        return ()
    from .control import CannotDo
    from .initializing import agents_from

    try:
        return agents_from(chosen.agents)
    except CannotDo as error:
        raise UsageError(f"--agents: {error}") from None


THINKING_TOKENS = 31_999
"""For a model that needs a number; others decide by themselves."""


def _thinking_tokens(chosen: argparse.Namespace) -> int | None:
    """How many tokens of an answer may be thinking, 0 for none; `None` for what the environment says."""
    match chosen.thinking, chosen.max_thinking_tokens:
        case "disabled", _:
            return 0
        case None, tokens:
            return tokens
        case _, tokens:
            return THINKING_TOKENS if tokens is None else tokens


def _schema(given: str | None) -> dict[str, Any] | None:
    """JSON, or a file with it."""
    if given is None:
        return None
    from ..app.headless_run import SchemaError, read_schema

    text = given
    if not given.lstrip().startswith(("{", "[", '"')):
        try:
            text = Path(given).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--json-schema: {given} is neither valid JSON nor a readable file: {error}.") from None
    try:
        return dict(read_schema(text))
    except SchemaError as error:
        raise UsageError(f"--json-schema: {error}.") from None
