"""A rule saved in a settings file, so that nothing else in it changes and no other writer loses anything."""

from __future__ import annotations

import os

from ..core.verdicts import Behavior
from ..host.files import read_document
from ..host.folders import ChangedMeanwhile
from ..host.text import Document, NotEditable, NotText
from ..host.writing import NotWritten, write_file
from ..text.matching import Edit
from .entries import Entry
from .files import FOLDERS
from .grants import is_below, item_of_entry
from .layers import ALLOW
from .levels import LOCAL_NAME, Level, Source, Surroundings
from .rule_edits import NotEdited, adding, removing
from .rules import why_no_rule
from .trust import TrustStore, ground_of

MOST_TRIES = 100
"""Others may write the same file; each try that fails means that one of them succeeded."""


class NotSaved(Exception):
    """The rule was not saved, and the file is as it was. The message says why and what to do."""


def rule_file(around: Surroundings, level: Level) -> str:
    """Where a rule of this level is saved: ours, as the other program does not know what we add."""
    match level:
        case Level.USER:
            return os.path.join(around.home, FOLDERS[1], "settings.json")
        case Level.PROJECT:
            return os.path.join(around.cwd, FOLDERS[1], "settings.json")
        case Level.LOCAL:
            return os.path.join(around.local_folder, FOLDERS[1], LOCAL_NAME)
        case Level.COMMAND_LINE | Level.MANAGED:
            raise ValueError(f"no rule is saved on the level {level.name}")


def save_rule(around: Surroundings, store: TrustStore, level: Level, behavior: Behavior, rule: str) -> str:
    """A person's "always": the rule is saved and, as a person asked for it, trusted. Where it was saved.

    Raises `NotSaved`, or `NotStored` where the rule is saved and will have to be trusted by hand.
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
    """Whether it was added; `False` where it stands there already. Raises `NotSaved`."""
    if words := why_no_rule(rule):
        raise NotSaved(words)
    return _change(path, behavior, rule, add=True)


def remove_rule(path: str, behavior: Behavior, rule: str) -> bool:
    """Whether it stood there. Raises `NotSaved`."""
    return _change(path, behavior, rule, add=False)


def _change(path: str, behavior: Behavior, rule: str, *, add: bool) -> bool:
    for _ in range(MOST_TRIES):
        try:
            return _change_once(path, behavior, rule, add=add)
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


def _change_once(path: str, behavior: Behavior, rule: str, *, add: bool) -> bool:
    try:
        found = read_document(path)
    except FileNotFoundError:
        found = None
    document = found.document if found else Document.decode(b"")
    edits: tuple[Edit, ...] = (adding if add else removing)(document.text, behavior, rule)
    if not edits:
        return False
    write_file(path, document.splice(edits), expected=found.identity if found else None)
    return True


def _check_inside(path: str, around: Surroundings) -> None:
    """A link in the folder must not turn a rule for this folder into one for all, or into a file elsewhere."""
    real, folder = os.path.realpath(path), os.path.realpath(around.local_folder)
    if not is_below(real, folder) and not is_below(real, os.path.realpath(around.cwd)):
        raise NotSaved(f"{path} leads out of the folder, to {real}. Replace the link by a file of the folder's own.")
