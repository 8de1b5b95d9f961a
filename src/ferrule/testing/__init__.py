"""For tests of tools, judges and conversations: the contract every tool must pass, and honest doubles.

Nothing here imports pytest but `tool_contract` and `plugin`. A name is loaded
when it is first used: pytest loads the plugin in every project of an
environment, and most of them never touch Ferrule.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .doubles import Answering, FixedJudge, Recorder, RecordingModel, allow, ask, bare_context, deny
    from .model_server import ModelServer
    from .running import run_call, run_calls, well_formed
    from .services import LoggedRequest, PlayedTurn, Refusal, StrictService, open_service

_HOMES = {
    "doubles": ("Answering", "FixedJudge", "Recorder", "RecordingModel", "allow", "ask", "bare_context", "deny"),
    "model_server": ("ModelServer",),
    "running": ("run_call", "run_calls", "well_formed"),
    "services": ("LoggedRequest", "PlayedTurn", "Refusal", "StrictService", "open_service"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Answering",
    "FixedJudge",
    "LoggedRequest",
    "ModelServer",
    "PlayedTurn",
    "Recorder",
    "RecordingModel",
    "Refusal",
    "StrictService",
    "allow",
    "ask",
    "bare_context",
    "deny",
    "open_service",
    "run_call",
    "run_calls",
    "well_formed",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ferrule.testing' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
