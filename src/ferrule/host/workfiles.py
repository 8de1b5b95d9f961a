"""Files as the tools of one session read and change them.

What every tool that changes a file must do stands here once: it opens what was
judged and nothing else, notes where it writes, and says in words what failed.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ..core.context import ToolContext
from ..core.tool import ToolError
from .files import FileIdentity, FileSnapshot, kind_of, read_document
from .folders import ChangedMeanwhile
from .journal import Journal
from .ledger import Ledger, Ledgers
from .text import Document, NotText
from .writing import NotWritten, Written, write_file

IN_A_THREAD = 1 << 18
"""Bytes above which a file is read beside the event loop and not on it."""


Objection: TypeAlias = Callable[[str, str | None, str], str | None]
"""Path, text before (`None` where there is no file) and after; the words of the objection, if there is one."""


@dataclass(frozen=True, slots=True)
class Workfiles:
    ledgers: Ledgers = field(default_factory=Ledgers)
    journal: Journal | None = None
    """`None` where nobody will tidy up after a kill."""
    objection: Objection | None = None
    """Who may object to what a file is about to become."""

    def ledger(self, ctx: ToolContext) -> Ledger:
        return self.ledgers.of(ctx.facts.agent)

    def read(self, path: str, ctx: ToolContext) -> FileSnapshot | None:
        """The text file, `None` where there is none. Raises `ToolError`."""
        try:
            return read_document(path, judged=ctx.real(path))
        except FileNotFoundError:
            return None
        except NotText as reason:
            raise ToolError(f"{path} cannot be changed as text: {reason}.") from None
        except ChangedMeanwhile as change:
            raise ToolError(str(change)) from None
        except OSError as error:
            raise ToolError(f"{path} cannot be read: {error.strerror}.") from None
        except ValueError:
            raise ToolError(f"{path!r} holds a character that no path can. Use Glob to find the file.") from None

    def check_change(self, path: str, before: FileSnapshot | None, after: Document) -> None:
        """Raises `ToolError` if the file must not become this."""
        words = self.objection and self.objection(path, before and before.document.text, after.text)
        if words:
            raise ToolError(words)

    def write(self, path: str, ctx: ToolContext, data: bytes, expected: FileIdentity | None) -> Written:
        """Replace what was read, or make what was missing. Raises `ToolError`, or `ChangedMeanwhile`."""
        real_path = ctx.real(path)
        if self.journal:
            self.journal.note(os.path.dirname(real_path or os.path.realpath(path)))
        owner = self.journal.owner if self.journal else ""
        try:
            return write_file(path, data, expected=expected, judged=real_path, owner=owner)
        except NotWritten as error:
            raise ToolError(f"{path} was not written: {error.strerror}.") from None


def in_workspace(path: str, ctx: ToolContext) -> str:
    """The path as a patch names it: from the workspace on, for a file that is in it."""
    return path.removeprefix(ctx.facts.workspace.rstrip("/") + "/") if ctx.facts.workspace else path


def is_large(path: str) -> bool:
    """Whether reading it would keep everybody else waiting."""
    try:
        return os.stat(path).st_size > IN_A_THREAD
    except (OSError, ValueError):
        return False


def unseen(path: str) -> str:
    """Why nothing can be done to a file that was not read; nothing of it is read for these words."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return missing(path)
    if not stat.S_ISREG(mode):
        return f"{path} cannot be changed as text: it is {kind_of(mode)}."
    return f"{path} has not been read yet. Read it first, then edit it."


def missing(path: str) -> str:
    """Say what is there instead: a near name in the same folder, or that the folder is missing too."""
    folder, name = os.path.split(path)
    try:
        near = difflib.get_close_matches(name, os.listdir(folder), n=3, cutoff=0.6)
    except OSError:
        return f"{path} does not exist, and neither does {folder}. Use Glob to find the file."
    if near:
        return f"{path} does not exist. In that folder there is {', '.join(near)}."
    return f"{path} does not exist. Use Glob to find the file."
