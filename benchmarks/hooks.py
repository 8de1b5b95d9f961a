"""What hooks cost a call: none of them, one for another tool, a function in this process, and a program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ferrule import Session, Settings, hook, open_session
from ferrule.core.verdicts import Behavior
from ferrule.hooks.hook import HookBook
from ferrule.hooks.hook_loading import Loading, load_hooks
from ferrule.permissions.rules import parse_rules
from ferrule.settings.layers import SourcedHook
from ferrule.settings.levels import Level, Source

from . import subject
from .figures import Figure
from .timing import Timed, Work, interleaved

CALLS = 10
"""In one run: few, so that a run slips between the interruptions of a busy machine."""
PROGRAMS = 2
TARGET_US = 50.0


def looks(event: Mapping[str, Any]) -> None:
    """The least that a guard does."""
    event["tool_input"].get("text")


async def measure(*, runs: int) -> list[Figure]:
    sessions = {
        "none": _session(),
        "other": _session(hook("PreToolUse", looks, match="Bash")),
        "function": _session(hook("PreToolUse", looks)),
        "program": _session(settings_hooks=_program()),
    }
    works: dict[str, Work] = {
        name: partial(_repeated, session, PROGRAMS if name == "program" else CALLS)
        for name, session in sessions.items()
    }
    timed = await interleaved(works, runs=runs)
    return [
        _figure("a hook for another tool", _beyond(timed, "other", CALLS), timed),
        _figure("a function in this process", _beyond(timed, "function", CALLS), timed, target=TARGET_US),
        _figure("a program, `cat >/dev/null`", _beyond(timed, "program", PROGRAMS), timed),
    ]


def _session(*hooks: Any, settings_hooks: HookBook | None = None) -> Session:
    rules = parse_rules(["echo"], Behavior.ALLOW, "benchmark")
    settings = Settings(rules=rules, **({"hooks": settings_hooks} if settings_hooks else {}))
    return open_session(settings, tools=[subject.echo], hooks=hooks)


def _program() -> HookBook:
    found = SourcedHook(
        event="PreToolUse",
        matcher="",
        hook={"type": "command", "command": "cat >/dev/null"},
        source=Source(Level.USER, "benchmark"),
    )
    loading = Loading(workspace="/", condition=lambda _: lambda _: True, services={})
    return load_hooks([found], loading).book


async def _repeated(session: Session, calls: int) -> None:
    for _ in range(calls):
        (outcome,) = await session.run([subject.call()])
        assert not outcome.is_error, outcome


def _beyond(timed: Timed, name: str, calls: int) -> float:
    """Seconds of one call beyond those of a call without hooks."""
    return timed.seconds[name] / calls - timed.seconds["none"] / CALLS


def _figure(what: str, seconds: float, timed: Timed, *, target: float | None = None) -> Figure:
    return Figure(
        benchmark="hooks",
        what=what,
        value=seconds * 1e6,
        unit="µs",
        calibration_ms=timed.calibration * 1e3,
        target=target,
    )
