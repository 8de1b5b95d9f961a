"""What a tool returned, checked to be what the contract says it is."""

from __future__ import annotations

import os
from typing import Any, assert_never, cast

from ..core.content import Block, Document, Image, Text
from ..core.state import Granted, ModeChanged, MovedTo, Queued, StateChange, StateSet, ToolsFound, TurnStopped
from ..core.tool import AnyTool, Result


def as_result(returned: Any) -> Result[Any]:
    return cast(Result[Any], returned) if isinstance(returned, Result) else Result(returned)


def check_blocks(tool: AnyTool, content: object) -> tuple[Block, ...]:
    if not isinstance(content, tuple):
        raise TypeError(f"{tool.name} gave {type(content).__name__} where a tuple of blocks belongs")
    for block in cast(tuple[object, ...], content):
        if not isinstance(block, (Text, Image, Document)):
            raise TypeError(f"{tool.name} gave {type(block).__name__} where a block belongs")
    return cast(tuple[Block, ...], content)


def require_extras(tool: AnyTool, result: Result[Any]) -> None:
    """Messages and changes of state leave the tool's hands here, so they must be what they are taken for."""
    for change in result.changes:
        if not isinstance(change, StateChange):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{tool.name} gave {change!r} where a change of state belongs")
        if not _can_be_made(change):
            raise TypeError(f"{tool.name} gave {change!r}, a change of state that cannot be made")
    if isinstance(result.messages, str):
        raise TypeError(f"{tool.name} gave one text where a tuple of texts for the conversation belongs")
    for message in result.messages:
        if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{tool.name} gave {message!r} where a text for the conversation belongs")


def _can_be_made(change: StateChange) -> bool:
    """Whether the session can apply it. What cannot be applied must not get as far as being tried."""
    match change:
        case MovedTo(path):
            return _is_text(path) and os.path.isabs(path)
        case Granted(words) | Queued(words) | ModeChanged(words):
            return _is_text(words)
        case TurnStopped():
            return True
        case ToolsFound(names):
            return isinstance(names, tuple) and all(_is_text(name) for name in names)  # pyright: ignore[reportUnnecessaryIsInstance]
        case StateSet(key):
            return _is_text(key)
        case _:
            assert_never(change)


def _is_text(thing: object) -> bool:
    return isinstance(thing, str)
