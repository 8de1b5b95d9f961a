"""What a program may send to a model: text, blocks, or messages in the form of a stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Mapping
from typing import Any, TypeAlias, cast

from ..core.content import Block, Text
from ..output.stream_input import BadLine, InputMessage, read_line

Said: TypeAlias = str | tuple[Block, ...]
Prompt: TypeAlias = Said | Mapping[str, Any]
"""Text, blocks, or `{"type": "user", "message": {"role": "user", "content": ...}}`."""
Prompts: TypeAlias = AsyncIterable[Prompt]


def turn_of_prompt(prompt: Prompt) -> Said:
    """Raises `ValueError` for an invalid prompt."""
    match prompt:
        case str():
            if not prompt.strip():
                raise ValueError("The prompt is empty. Say what to do.")
            return prompt
        case Mapping():
            return _of_message(prompt)
        case _:
            if not isinstance(prompt, tuple) or not prompt:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ValueError(f"{type(prompt).__name__} is not a valid prompt. Give a string, blocks or messages.")
            return prompt


def join_prompts(first: str, then: Said) -> Said:
    """
    >>> join_prompts("Begin.", "Go on."), join_prompts("", "Go on.")
    ('Begin.\\n\\nGo on.', 'Go on.')
    """
    if not first:
        return then
    match then:
        case str():
            return f"{first}\n\n{then}"
        case (Text(text), *others):
            return (Text(f"{first}\n\n{text}"), *others)
        case _:
            return (Text(first), *then)


def _of_message(message: Mapping[str, Any]) -> Said:
    try:
        line = json.dumps(message, ensure_ascii=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"A message of the prompt cannot be written as JSON: {error}.") from None
    match read_line(line, 2):
        case InputMessage(content):
            return content
        case BadLine(_, reason):
            raise ValueError(f"A message of the prompt is invalid: {reason}")
        case _:
            kind = cast(object, message.get("type"))
            raise ValueError(f"A message of the prompt must be of the type user, not {kind!r}.")
