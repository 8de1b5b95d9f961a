"""Options of the wrong form, as far as our own options do not have them; the rest is told when those are opened."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from .hooks import HookMatcher
from .options import AgentDefinition, ClaudeAgentOptions


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


_FORMS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "allowed_tools": (_is_list, "a list of rules"),
    "disallowed_tools": (_is_list, "a list of rules"),
    "betas": (_is_list, "a list of names"),
    "plugins": (_is_list, "a list"),
    "tools": (lambda value: _is_list(value) or isinstance(value, dict), "a list of names, or the preset"),
    "skills": (lambda value: _is_list(value) or value == "all", 'a list of names, or "all"'),
    "hooks": (lambda value: isinstance(value, Mapping), "a mapping of events to lists of HookMatcher"),
    "agents": (lambda value: isinstance(value, Mapping), "a mapping of names to AgentDefinition"),
    "can_use_tool": (callable, "a function"),
    "stderr": (callable, "a function"),
}


def faults_in(options: ClaudeAgentOptions) -> Iterator[str]:
    """What is wrong, in words, one option at a time."""
    for name, (fits, form) in _FORMS.items():
        value: Any = getattr(options, name)
        if value is not None and not fits(value):
            yield f"`{name}` must be {form}, not {reprlib.repr(value)}."
    for name, agent in cast(Mapping[str, Any], options.agents or {}).items():
        if not isinstance(agent, AgentDefinition):
            yield f"`agents.{name}` must be an AgentDefinition, not {reprlib.repr(agent)}."
    for event, matchers in cast(Mapping[str, Any], options.hooks or {}).items():
        if not _is_list(matchers) or not all(isinstance(one, HookMatcher) for one in matchers):
            yield f"`hooks.{event}` must be a list of HookMatcher, not {reprlib.repr(matchers)}."
