"""The flags of `ferrule -p` as the options of a conversation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..sdk.options import Options
from .exits import UsageError
from .session_flags import (
    chosen_mode,
    chosen_tools,
    existing_directories,
    parse_levels,
    split_rules,
    working_directory,
)


def options_from(chosen: argparse.Namespace) -> Options:
    """Raises `UsageError` for a flag that cannot be honoured."""
    cwd = working_directory(chosen.cwd)
    parse_levels(chosen.setting_sources)
    betas = getattr(chosen, "betas", None)
    return Options(
        model=chosen.model,
        fallback_model=getattr(chosen, "fallback_model", None),
        cwd=cwd,
        added_directories=tuple(existing_directories(chosen.add_dir, cwd)),
        system_prompt=chosen.system_prompt,
        append_system_prompt=chosen.append_system_prompt,
        allow=[rule for text in chosen.allow for rule in split_rules(text)],
        deny=[rule for text in chosen.deny for rule in split_rules(text)],
        mode=chosen_mode(chosen),
        builtin_tools=chosen_tools(chosen.tools),
        mcp_configs=chosen.mcp_config,
        strict_mcp_config=chosen.strict_mcp_config,
        plugins=getattr(chosen, "plugin_dir", None) or (),
        setting_sources=_names(chosen.setting_sources),
        settings=chosen.settings,
        trust=chosen.trust,
        without_project_hooks=chosen.without_project_hooks,
        env={"ANTHROPIC_BETAS": _joined(betas)} if betas else {},
        max_turns=chosen.max_turns,
        max_budget_usd=chosen.max_budget_usd,
        thinking_tokens=_thinking_tokens(chosen),
        effort=getattr(chosen, "effort", None),
        output_schema=_schema(chosen.json_schema),
        resume=chosen.resume,
        continue_last=chosen.latest,
        fork=chosen.fork_session,
        session_id=chosen.session_id,
        persist=not getattr(chosen, "no_session_persistence", False),
        prompt_messages=getattr(chosen, "replay_user_messages", False),
        partial_messages=chosen.include_partial_messages,
        hook_messages=getattr(chosen, "include_hook_events", False),
    )


def _names(levels: str | None) -> list[str] | None:
    return None if levels is None else [name.strip() for name in levels.split(",") if name.strip()]


def _joined(names: str | list[str]) -> str:
    return names if isinstance(names, str) else ",".join(names)


ADAPTIVE_TOKENS = 31_999
"""For a model that needs a number; others decide by themselves."""


def _thinking_tokens(chosen: argparse.Namespace) -> int | None:
    match getattr(chosen, "thinking", None):
        case "disabled":
            return 0
        case "adaptive":
            return ADAPTIVE_TOKENS
        case _:
            return getattr(chosen, "max_thinking_tokens", None)


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
