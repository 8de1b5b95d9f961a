"""Ferrule: the joint between a language model and a machine.

Importing this package loads nothing heavy; a name is loaded when it is first used.
"""

from __future__ import annotations

from ._version import __version__

TYPE_CHECKING = False  # type checkers know the name; importing it from `typing` would cost more than all the rest
if TYPE_CHECKING:
    from .app.build import Settings, open_session
    from .core.calls import CallRecord, Status, ToolCall, ToolOutcome
    from .core.content import Document, Image, Line, Text
    from .core.context import ToolContext
    from .core.effects import Change, ChangesState, Effects, ReachesHost, ReadsPath, ReadsState, RunsCommand, WritesPath
    from .core.functions import tool
    from .core.inputs import PathText, ToolInput
    from .core.ports import AfterCall, Amendment, Approver, Judge, Proposal
    from .core.state import MovedTo, StateSet
    from .core.tool import Alias, Exposure, Result, Tool, ToolError
    from .core.verdicts import Behavior, Verdict
    from .engine.session import Session
    from .hooks.hook import hook
    from .permissions.modes import Mode
    from .permissions.rules import Rule, parse_rule
    from .sdk.client import FerruleClient, query
    from .sdk.options import Options
    from .sdk.tools import create_sdk_mcp_server

_HOMES = {
    "app.build": ("Settings", "open_session"),
    "core.calls": ("CallRecord", "Status", "ToolCall", "ToolOutcome"),
    "core.content": ("Document", "Image", "Line", "Text"),
    "core.context": ("ToolContext",),
    "core.effects": (
        "Change",
        "ChangesState",
        "Effects",
        "ReachesHost",
        "ReadsPath",
        "ReadsState",
        "RunsCommand",
        "WritesPath",
    ),
    "core.functions": ("tool",),
    "core.inputs": ("PathText", "ToolInput"),
    "core.ports": ("AfterCall", "Amendment", "Approver", "Judge", "Proposal"),
    "core.state": ("MovedTo", "StateSet"),
    "core.tool": ("Alias", "Exposure", "Result", "Tool", "ToolError"),
    "core.verdicts": ("Behavior", "Verdict"),
    "engine.session": ("Session",),
    "hooks.hook": ("hook",),
    "permissions.modes": ("Mode",),
    "permissions.rules": ("Rule", "parse_rule"),
    "sdk.client": ("FerruleClient", "query"),
    "sdk.options": ("Options",),
    "sdk.tools": ("create_sdk_mcp_server",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AfterCall",
    "Alias",
    "Amendment",
    "Approver",
    "Behavior",
    "CallRecord",
    "Change",
    "ChangesState",
    "Document",
    "Effects",
    "Exposure",
    "FerruleClient",
    "Image",
    "Judge",
    "Line",
    "Mode",
    "MovedTo",
    "Options",
    "PathText",
    "Proposal",
    "ReachesHost",
    "ReadsPath",
    "ReadsState",
    "Result",
    "Rule",
    "RunsCommand",
    "Session",
    "Settings",
    "StateSet",
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
    "create_sdk_mcp_server",
    "hook",
    "open_session",
    "parse_rule",
    "query",
    "tool",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOME_OF:
        raise AttributeError(f"module 'ferrule' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
