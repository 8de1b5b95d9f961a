"""Hooks in the head of an agent's or a skill's file: all of them run, or the agent or skill is not used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from ..core.values import named_value
from ..settings.layers import SourcedHook
from ..settings.levels import Level, SettingsPath
from ..settings.settings_entries import entries_of
from ..settings.settings_files import SettingsKind
from ..settings.settings_loading import load_text
from .hook import HookBook
from .hook_loading import HookError, Loading, load_hooks
from .hook_settings import condition

_NUMBERS: Final = frozenset({"timeout"})
_TRUTHS: Final = frozenset({"async", "asyncRewake", "continueOnBlock", "failClosed", "once"})


@named_value
class Brought:
    """The hooks of one file."""

    path: str
    given: Any
    """As written in the head."""
    is_trusted: bool
    without: str
    """The consequence if they cannot be run, for the message: `greet is not used`."""
    by_agent: bool = False
    """Whether it is an agent that stops, so that Stop is SubagentStop."""
    once_counts: bool = False
    """Whether a hook of it may say that it runs once in a session."""


def hooks_from_head(brought: Brought, workspace: str) -> HookBook:
    """Raises `ValueError` with a message if one of them cannot be run."""
    if not brought.is_trusted:
        raise ValueError(
            f"{brought.path} contains hooks, and its folder is not trusted, so {brought.without}. "
            "A person can review it with `ferrule trust --show` and trust it with `ferrule trust`."
        )
    at = SettingsPath(Level.PROJECT, brought.path, SettingsKind.SETTINGS)
    loaded = load_text(at, json.dumps({"hooks": _convert_value(brought.given)}))
    using = Loading(
        workspace=workspace,
        condition=lambda text: condition(text, workspace),
        services={},
        once_counts=brought.once_counts,
    )
    found = [
        SourcedHook(
            event="SubagentStop" if brought.by_agent and entry.key[1] == "Stop" else entry.key[1],
            matcher=entry.value["matcher"],
            hook=entry.value["hook"],
            source=replace(entry.source, line=None),
        )
        for entry in entries_of(loaded)
    ]
    try:
        hooks = load_hooks(found, using)
    except HookError as error:
        raise ValueError(f"{brought.without}: {error}") from None
    for fault in (*(note.words for note in loaded.skipped if not note.is_harmless), *hooks.warnings):
        raise ValueError(f"{brought.path} contains hooks that cannot be run, so {brought.without}: {fault}")
    return hooks.book


def _convert_value(value: Any, key: str = "") -> Any:
    """The head of a file holds strings; they are converted where hooks have numbers and booleans."""
    match value:
        case dict():
            return {name: _convert_value(inner, name) for name, inner in cast(Mapping[str, Any], value).items()}
        case list():
            return [_convert_value(inner) for inner in cast(list[Any], value)]
        case str() if key in _NUMBERS and value.replace(".", "", 1).isdecimal():
            return float(value)
        case str() if key in _TRUTHS and value.lower() in ("true", "false"):
            return value.lower() == "true"
        case _:
            return value
