"""What hooks add to an agent: those of the session are told of it, and those of its own file run while it works."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

from ..agents.kinds import AgentKind
from ..agents.spawner import AgentParts
from ..hooks.agents import AgentLifecycle
from ..hooks.hook import HookBook
from ..hooks.lifecycle import Lifecycle
from ..hooks.loading import HookError, Loading, load_hooks
from ..hooks.payloads import Scene
from ..permissions.approvers import NobodyToAsk
from ..settings.entries import entries_of
from ..settings.files import SettingsKind
from ..settings.layers import SourcedHook
from ..settings.levels import Level, SettingsPath
from ..settings.loading import load_text
from .hook_loading import condition
from .hooks import HookParts, MakeParts, tell_of_agents_compactions

_NUMBERS: Final = frozenset({"timeout"})
_TRUTHS: Final = frozenset({"async", "asyncRewake", "continueOnBlock", "failClosed", "once"})


def agent_hooks(session: HookParts | None, make: MakeParts, scene: Scene) -> Callable[[AgentKind, str], AgentParts]:
    """For each agent its own; raises `ValueError` for one whose hooks cannot be run."""

    def parts(kind: AgentKind, agent: str) -> AgentParts:
        own = make(_book(kind, scene.project), NobodyToAsk()) if kind.hooks else None
        told: list[Lifecycle] = [one.lifecycle for one in (session, own) if one]
        if not told:
            return AgentParts()
        turns = AgentLifecycle(told, agent=agent.rpartition("/")[2], kind=kind.name, transcript=scene.transcript)
        attach = partial(tell_of_agents_compactions, lifecycle=turns)
        if own is None:
            return AgentParts(turns=turns, attach=attach)
        return AgentParts(
            turns=turns,
            attach=attach,
            judges=(own.judge,),
            after=own.after,
            approver=own.approver.before,
            closing=(own.runner.close,),
        )

    return parts


def _book(kind: AgentKind, workspace: str) -> HookBook:
    if not kind.counts:
        raise ValueError(
            f"{kind.path} brings hooks, and its folder is not trusted, so {kind.name} is not started. "
            "A person can look at it with `ferrule trust --show` and agree with `ferrule trust`."
        )
    at = SettingsPath(Level.PROJECT, kind.path, SettingsKind.SETTINGS)
    loaded = load_text(at, json.dumps({"hooks": _typed(kind.hooks)}))
    using = Loading(workspace=workspace, condition=lambda text: condition(text, workspace), services={})
    faults = [note.words for note in loaded.skipped]
    try:
        found = load_hooks(
            [
                SourcedHook(
                    event="SubagentStop" if entry.key[1] == "Stop" else entry.key[1],
                    matcher=entry.value["matcher"],
                    hook=entry.value["hook"],
                    source=replace(entry.source, line=None),
                )
                for entry in entries_of(loaded)
            ],
            using,
        )
    except HookError as error:
        raise ValueError(f"{kind.name} is not started: {error}") from None
    for fault in (*faults, *found.warnings):
        raise ValueError(f"{kind.path} brings hooks that cannot be run, so {kind.name} is not started: {fault}")
    return found.book


def _typed(value: Any, key: str = "") -> Any:
    """The head of a file holds texts; where hooks have numbers and truths, they are made of these."""
    match value:
        case dict():
            return {name: _typed(inner, name) for name, inner in cast(Mapping[str, Any], value).items()}
        case list():
            return [_typed(inner) for inner in cast(list[Any], value)]
        case str() if key in _NUMBERS and value.replace(".", "", 1).isdecimal():
            return float(value)
        case str() if key in _TRUTHS and value.lower() in ("true", "false"):
            return value.lower() == "true"
        case _:
            return value
