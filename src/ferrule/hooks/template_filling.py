"""An event in the words of a hook: `$ARGUMENTS` in a prompt, `${tool_input.file_path}` in the input of a tool."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from .hook import Payload, ServerTool

ARGUMENTS: Final = "$ARGUMENTS"
_PART: Final = re.compile(r"\$\{([\w-]+(?:\.[\w-]+)*)\}")


def fill_prompt(prompt: str, event: str) -> str:
    """The prompt with the event, which stands below it where the prompt has no place for it.

    >>> fill_prompt("Is $ARGUMENTS safe?", "{}"), fill_prompt("Is it safe?", "{}")
    ('Is {} safe?', 'Is it safe?\\n\\n{}')
    """
    return prompt.replace(ARGUMENTS, event) if ARGUMENTS in prompt else f"{prompt}\n\n{event}"


def arguments_for(tool: ServerTool, payload: Payload) -> Mapping[str, Any]:
    """
    >>> arguments_for(ServerTool("s", "t", '{"path": "${tool_input.file_path}"}'), {"tool_input": {"file_path": "/a"}})
    {'path': '/a'}
    """
    return cast(Mapping[str, Any], _fill(json.loads(tool.input), payload))


def _fill(value: Any, payload: Payload) -> Any:
    match value:
        case str():
            return _PART.sub(lambda found: _as_text(_part(payload, found[1].split("."))), value)
        case dict():
            return {key: _fill(inner, payload) for key, inner in cast(dict[str, Any], value).items()}
        case list():
            return [_fill(inner, payload) for inner in cast(list[Any], value)]
        case _:
            return value


def _part(payload: Any, keys: list[str]) -> Any:
    for key in keys:
        if not isinstance(payload, Mapping):
            return None
        payload = cast(Mapping[str, Any], payload).get(key)
    return payload


def _as_text(value: Any) -> str:
    """What the event does not have is nothing."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
