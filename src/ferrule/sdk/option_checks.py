"""Checks the form of options before anything is opened: a string instead of a list would protect nothing."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast, get_args

from ..core.model import Effort
from .options import Options

_LISTS: Final = (
    "allow",
    "deny",
    "added_directories",
    "builtin_tools",
    "skills",
    "plugins",
    "setting_sources",
    "tools",
    "agents",
    "hooks",
)
_OF_TEXTS: Final = frozenset({"allow", "deny", "builtin_tools", "skills", "setting_sources"})
_TEXTS: Final = (
    "fallback_model",
    "system_prompt",
    "append_system_prompt",
    "settings",
    "agent",
    "resume",
    "session_id",
    "fork_at",
)
_EFFORTS: Final[tuple[str, ...]] = get_args(Effort)
_NUMBERS: Final = ("max_turns", "max_budget_usd", "thinking_tokens")


def faults_in(options: Options) -> Iterator[str]:
    """What is wrong, as text, one option at a time."""
    for name in _LISTS:
        yield from _faults_of(options, name, _is_list, "a list")
    for name in _OF_TEXTS:
        yield from _faults_of(
            options, name, lambda value: all(isinstance(one, str) for one in value), "a list of texts"
        )
    for name in _TEXTS:
        yield from _faults_of(options, name, lambda value: isinstance(value, str), "a text")
    for name in _NUMBERS:
        yield from _faults_of(options, name, _is_number, "a number")
    yield from _faults_of(options, "cwd", lambda value: isinstance(value, str | os.PathLike), "a path")
    yield from _faults_of(options, "model", lambda value: isinstance(value, str) or hasattr(value, "stream"), "a name")
    yield from _faults_of(options, "env", _is_of_texts, "a mapping of texts")
    yield from _faults_of(options, "mcp_servers", _is_servers, "a mapping of entries, or a path")
    yield from _faults_of(options, "effort", lambda value: value in _EFFORTS, f"one of {', '.join(_EFFORTS)}")


def _faults_of(options: Options, name: str, fits: Callable[[Any], bool], form: str) -> Iterator[str]:
    value: Any = getattr(options, name)
    if value is not None and not fits(value):
        yield f"`{name}` must be {form}, not {reprlib.repr(value)}."


def _is_list(value: Any) -> bool:
    """Any iterable except a string or a mapping."""
    return not isinstance(value, str | bytes | Mapping) and hasattr(value, "__iter__")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_of_texts(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    given = cast(Mapping[Any, Any], value)
    return all(isinstance(key, str) and isinstance(text, str) for key, text in given.items())


def _is_servers(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return isinstance(value, str | os.PathLike)
    return all(isinstance(entry, Mapping) for entry in cast(Mapping[Any, Any], value).values())
