"""Permissions that a hook grants beyond one call: for the session, or saved in a settings file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Final, assert_never

from ..core.state import Granted, ModeChanged, SessionState
from ..core.verdicts import Behavior
from ..permissions.modes import Mode
from ..permissions.rules import RuleError, parse_rule
from ..settings.levels import Level, surroundings
from ..settings.settings_writing import NotSaved, save_rule
from ..settings.trust_store import NotStored, TrustStore
from .hook_approver import NotKept
from .updates import SESSION, ModeSet, RuleAdded, Update, updates_of

_LEVELS: Final[Mapping[str, Level]] = {
    "localSettings": Level.LOCAL,
    "projectSettings": Level.PROJECT,
    "userSettings": Level.USER,
}
_MODES: Final = frozenset({Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.PLAN, Mode.DONT_ASK})
"""Modes that a session may switch to; the others are chosen at its start."""


async def make_hold(wanted: object, state: SessionState, cwd: str, store: TrustStore) -> None:
    """`store` remembers that a saved rule was wanted. Raises `NotKept`."""
    updates = updates_of(wanted)
    for update in updates:
        _check(update)
    for update in updates:  # what can fail comes first, so that nothing is granted beside it
        if isinstance(update, RuleAdded) and update.destination != SESSION:
            await asyncio.to_thread(_save, update, cwd, store)
    for update in updates:
        match update:
            case RuleAdded(rule, behavior, _):
                if behavior is Behavior.ALLOW:
                    state.apply(Granted(rule))
            case ModeSet(mode):
                state.apply(ModeChanged(mode))
            case _:
                assert_never(update)


def _check(update: Update) -> None:
    match update:
        case RuleAdded(rule, behavior, destination):
            try:
                parse_rule(rule, behavior, "a hook")
            except RuleError as error:
                raise NotKept(str(error)) from None
            if behavior is not Behavior.ALLOW and destination == SESSION:
                raise NotKept(f"a rule that does not allow must be saved in a file, such as localSettings: {rule}")
        case ModeSet(mode):
            if mode not in _MODES:
                raise NotKept(f"the mode `{mode}` can only be chosen at the start of a session")
        case _:
            assert_never(update)


def _save(update: RuleAdded, cwd: str, store: TrustStore) -> None:
    around = surroundings(cwd, os.environ)
    try:
        save_rule(around, store, _LEVELS[update.destination], update.behavior, update.rule)
    except (NotSaved, NotStored) as error:
        raise NotKept(str(error)) from None
