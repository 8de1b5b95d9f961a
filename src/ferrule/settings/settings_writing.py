"""Saving rules and servers in settings files without changing anything else or losing another writer's changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ..core.verdicts import Behavior
from ..host.files.atomic_writes import NotWritten, write_file
from ..host.files.held_folders import ChangedMeanwhile
from ..host.files.open_files import read_document
from ..host.files.text_files import NotEditable, NotText, TextDocument
from ..text.matching import TextEdit
from .layers import ALLOW
from .levels import LOCAL_NAME, Level, SettingsContext, Source
from .rule_entries import why_no_rule
from .settings_edits import SERVERS, NotEdited, adding_rule, adding_server, removing_server
from .settings_entries import Entry
from .settings_files import FOLDERS, PROJECT_SERVERS
from .trust_items import is_below, item_of_entry
from .trust_store import TrustStore, ground_of

MOST_TRIES = 100
"""Others may write the same file; each failed attempt means that one of them succeeded."""


class NotSaved(Exception):
    """Nothing was saved, and the file is as it was. The message says why and what to do."""


def rule_file(around: SettingsContext, level: Level) -> str:
    """Where a rule of this level is saved: our own file, as the other program does not know our additions."""
    match level:
        case Level.USER:
            return os.path.join(around.home, FOLDERS[1], "settings.json")
        case Level.PROJECT:
            return os.path.join(around.cwd, FOLDERS[1], "settings.json")
        case Level.LOCAL:
            return os.path.join(around.local_folder, FOLDERS[1], LOCAL_NAME)
        case Level.COMMAND_LINE | Level.MANAGED:
            raise ValueError(f"rules cannot be saved on the level {level.name}")


def save_rule(around: SettingsContext, store: TrustStore, level: Level, behavior: Behavior, rule: str) -> str:
    """A person's "always": the rule is saved and, as a person asked for it, trusted. Returns where it was saved.

    Raises `NotSaved`, or `NotStored` if the rule was saved but has to be trusted by hand.
    """
    path = rule_file(around, level)
    if level.in_folder:
        _check_inside(path, around)
    add_rule(path, behavior, rule)
    ground = ground_of(around)
    entry = Entry(key=ALLOW, value=rule, source=Source(level, path), in_list=True)
    item = item_of_entry(entry, ground) if behavior is Behavior.ALLOW else None
    if item is not None:
        store.agree_to_one(ground, item)
    return path


def add_rule(path: str, behavior: Behavior, rule: str) -> bool:
    """Whether it was added; `False` if it was already there. Raises `NotSaved`."""
    if words := why_no_rule(rule):
        raise NotSaved(words)
    return _change(path, lambda text: adding_rule(text, behavior, rule))


def server_file(around: SettingsContext, level: Level) -> str:
    """Where a server of this level is saved. Those of a project are in the file that other programs share."""
    return os.path.join(around.cwd, PROJECT_SERVERS) if level is Level.PROJECT else rule_file(around, level)


def save_server(around: SettingsContext, store: TrustStore, level: Level, name: str, entry: Mapping[str, Any]) -> str:
    """A person adds it, so it is trusted too. Returns where it was saved.

    Raises `NotSaved`, or `NotStored` if it was saved but has to be trusted by hand.
    """
    path = server_file(around, level)
    if level.in_folder:
        _check_inside(path, around)
    _change(path, lambda text: adding_server(text, name, entry))
    ground = ground_of(around)
    item = item_of_entry(Entry(key=(SERVERS, name), value=dict(entry), source=Source(level, path)), ground)
    if item is not None:
        store.agree_to_one(ground, item)
    return path


def remove_server(around: SettingsContext, level: Level, name: str) -> str | None:
    """Where it was; `None` if it was not there. Raises `NotSaved`."""
    path = server_file(around, level)
    return path if _change(path, lambda text: removing_server(text, name)) else None


def _change(path: str, edits_for: Callable[[str], tuple[TextEdit, ...]]) -> bool:
    for _ in range(MOST_TRIES):
        try:
            return _change_once(path, edits_for)
        except ChangedMeanwhile:
            continue
        except NotEdited as error:
            raise NotSaved(f"{path} was not changed, because {error}") from None
        except (NotText, NotEditable) as error:
            raise NotSaved(f"{path} was not changed: {error}.") from None
        except NotWritten as error:
            raise NotSaved(f"{path} was not written: {error.strerror}.") from None
        except OSError as error:
            raise NotSaved(f"{path} cannot be read: {error.strerror or error}.") from None
    raise NotSaved(f"{path} is being changed all the time. Try again later.")


def _change_once(path: str, edits_for: Callable[[str], tuple[TextEdit, ...]]) -> bool:
    try:
        found = read_document(path)
    except FileNotFoundError:
        found = None
    document = found.document if found else TextDocument.decode(b"")
    edits = edits_for(document.text)
    if not edits:
        return False
    write_file(path, document.splice(edits), expected=found.identity if found else None)
    return True


def _check_inside(path: str, around: SettingsContext) -> None:
    """A link in the folder must not turn a rule for this folder into one for all folders, or write a file elsewhere."""
    real, folder = os.path.realpath(path), os.path.realpath(around.local_folder)
    if not is_below(real, folder) and not is_below(real, os.path.realpath(around.cwd)):
        raise NotSaved(f"{path} is a link out of the folder, to {real}. Replace the link with a regular file.")
