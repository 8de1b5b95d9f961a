"""For tests of tools, judges and conversations: the contract every tool must pass, and honest doubles.

Nothing here imports pytest but `tool_contract` and `plugin`.
"""

from .doubles import Answering, FixedJudge, Recorder, allow, ask, bare_context, deny
from .running import run_call, run_calls, well_formed
from .scripted import RecordingModel

__all__ = [
    "Answering",
    "FixedJudge",
    "Recorder",
    "RecordingModel",
    "allow",
    "ask",
    "bare_context",
    "deny",
    "run_call",
    "run_calls",
    "well_formed",
]
