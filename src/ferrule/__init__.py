"""Ferrule: the joint between a language model and a machine.

Importing this package loads nothing heavy; a name is loaded when it is first used.
"""

from __future__ import annotations

from ._version import __version__

TYPE_CHECKING = False  # type checkers know the name; importing it from `typing` would cost more than all the rest
if TYPE_CHECKING:
    from .app.build import Settings, open_session
    from .core.calls import CallRecord, Status, ToolCall, ToolOutcome
    from .core.content import Document, Image, Text
    from .core.context import ToolContext
    from .core.effects import Change, Effects, ReachesHost, ReadsPath, RunsCommand, WritesPath
    from .core.functions import tool
    from .core.inputs import PathText, ToolInput
    from .core.tool import Alias, Exposure, Result, Tool, ToolError
    from .core.verdicts import Behavior, Verdict
    from .engine.session import Session

_HOMES = {
    "app.build": ("Settings", "open_session"),
    "core.calls": ("CallRecord", "Status", "ToolCall", "ToolOutcome"),
    "core.content": ("Document", "Image", "Text"),
    "core.context": ("ToolContext",),
    "core.effects": ("Change", "Effects", "ReachesHost", "ReadsPath", "RunsCommand", "WritesPath"),
    "core.functions": ("tool",),
    "core.inputs": ("PathText", "ToolInput"),
    "core.tool": ("Alias", "Exposure", "Result", "Tool", "ToolError"),
    "core.verdicts": ("Behavior", "Verdict"),
    "engine.session": ("Session",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Alias",
    "Behavior",
    "CallRecord",
    "Change",
    "Document",
    "Effects",
    "Exposure",
    "Image",
    "PathText",
    "ReachesHost",
    "ReadsPath",
    "Result",
    "RunsCommand",
    "Session",
    "Settings",
    "Status",
    "Text",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolInput",
    "ToolOutcome",
    "Verdict",
    "WritesPath",
    "__version__",
    "open_session",
    "tool",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOME_OF:
        raise AttributeError(f"module 'ferrule' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
