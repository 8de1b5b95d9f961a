"""Conversations as lines of JSON, with the results of the built-in tools in the shapes that others know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.calls import ToolOutcome
from ..output.stream_json import StreamJson


def lines_of(
    session_id: str, model: Callable[[], str], *, partial: bool = False, parent: str | None = None
) -> StreamJson:
    """`parent` is the call that an agent other than the main one is for."""
    return StreamJson(session_id, model=model, partial=partial, parent=parent, shape=shape_if_known)


def shape_if_known(outcome: ToolOutcome) -> Mapping[str, Any] | None:
    """See `tool_responses.shape`. The tools are loaded by the time one of them has given something."""
    from .tool_responses import shape

    return shape(outcome)
