"""The table of contents: every built-in tool, one line each."""

from __future__ import annotations

from ..core.tool import AnyTool
from .glob import Glob
from .grep import Grep
from .read import Read
from .tool_search import ToolSearch


def builtin_tools() -> tuple[AnyTool, ...]:
    return (
        Glob(),
        Grep(),
        Read(),
        ToolSearch(),
    )
