"""Files as the tools of one session read and change them.

What every tool that changes a file must do is written here once: it opens what was
judged and nothing else, notes where it writes, and says in words what failed.
"""

from __future__ import annotations

import difflib
import heapq
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from ...core.context import ToolContext
from ...core.ports import Note
from ...core.tool import ToolError
from ...core.values import plain_value
from ...text.lines import on_one_line
from .atomic_writes import NotWritten, Written, write_file
from .held_folders import ChangedMeanwhile
from .journal import Journal
from .ledger import Ledger, Ledgers
from .open_files import MOST, FileIdentity, FileSnapshot, TooLarge, kind_of, read_document
from .text_files import NotText, TextDocument

if TYPE_CHECKING:
    from .checkpoints import Checkpoints

IN_A_THREAD = 1 << 18
"""Bytes above which a file is read beside the event loop and not on it."""
NAMES_TRIED = 20_000
"""Names of a folder among which a missing one is looked for."""


Objection: TypeAlias = Callable[[str, str | None, str], str | None]
"""Path, text before (`None` for a new file) and after; the words of the objection, if any."""

MOST_NAMED = 100
"""Files that are named after a compaction."""


@plain_value
class Workfiles:
    ledgers: Ledgers = field(default_factory=Ledgers)
    journal: Journal | None = None
    """`None` where nobody will tidy up after a kill."""
    objection: Objection | None = None
    """Who may object to what a file is about to become."""
    checkpoints: Checkpoints | None = None
    """Keeps the previous content, where somebody may want it back."""
    _written: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    """The paths of the files that each agent has changed, in order."""

    def lasting(self, agent: str, /) -> tuple[Note, ...]:
        """The files that an agent has changed, with those of its own agents; satisfies `core.ports.Lasting`."""
        of_agents = (paths for name, paths in self._written.items() if f"{name}/".startswith(f"{agent}/"))
        paths = list(dict.fromkeys(path for paths in of_agents for path in paths))
        left = len(paths) - MOST_NAMED
        more = (f"and {left:,} before these",) if left > 0 else ()
        return (Note("files_you_changed", "\n".join((*paths[-MOST_NAMED:], *more))),) if paths else ()

    def ledger(self, ctx: ToolContext) -> Ledger:
        return self.ledgers.of(ctx.facts.agent)

    async def close(self) -> None:
        """The session is over, and nothing is written any more."""
        if self.journal:
            self.journal.close()

    def read(self, path: str, ctx: ToolContext, *, most: int = MOST) -> FileSnapshot | None:
        """The text file, `None` where there is none. Raises `ToolError`, also for one of more than `most` bytes."""
        try:
            return read_document(path, judged=ctx.real(path), most=most)
        except FileNotFoundError:
            return None
        except TooLarge as reason:
            raise ToolError(
                f"{path} is too large to be edited: {reason}. Use a command, such as sed with Bash."
            ) from None
        except NotText as reason:
            raise ToolError(f"{path} cannot be changed as text: {reason}.") from None
        except ChangedMeanwhile as change:
            raise ToolError(str(change)) from None
        except OSError as error:
            raise ToolError(f"{path} cannot be read: {error.strerror}.") from None
        except ValueError:
            raise ToolError(
                f"{on_one_line(path)} holds a character that no path can. Use Glob to find the file."
            ) from None

    def check_change(self, path: str, before: FileSnapshot | None, after: TextDocument) -> None:
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
        write = self.checkpoints.write_file if self.checkpoints else write_file
        try:
            written = write(path, data, expected=expected, judged=real_path, owner=owner)
        except NotWritten as error:
            raise ToolError(f"{path} was not written: {error.strerror}.") from None
        self._written.setdefault(ctx.facts.agent, {})[path] = None
        return written


def in_workspace(path: str, ctx: ToolContext) -> str:
    """The path as a patch names it: from the workspace on, for a file that is in it."""
    return path.removeprefix(ctx.facts.workspace.rstrip("/") + "/") if ctx.facts.workspace else path


def if_moved(ctx: ToolContext) -> str:
    """What to add to an error about a path where the working directory is not where the session began."""
    start = ctx.facts.workspace
    return f" The working directory is {ctx.cwd}, not {start}." if start and ctx.cwd != start else ""


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
    if os.path.islink(path):
        return f"{path} does not exist. That name is a link to {os.path.realpath(path)}, and nothing is there."
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, NAMES_TRIED)]
    except (FileNotFoundError, NotADirectoryError):
        return f"{path} does not exist, and neither does {folder}. Use Glob to find the file."
    except OSError:
        return f"{path} does not exist, and what else is in that folder cannot be listed. Ask for the name."
    if near := _near(name, names):
        return f"{path} does not exist. In that folder there is {', '.join(map(on_one_line, near))}."
    return f"{path} does not exist. Use Glob to find the file."


def _near(name: str, names: Sequence[str]) -> list[str]:
    """The few most like it. Comparing is dear, so of very many names only the likeliest are compared."""
    key = name.casefold()
    shortest, longest = len(name) * 3 // 7, len(name) * 7 // 3  # beyond, they are never as alike as is asked for
    if same := [one for one in names if one.casefold() == key]:
        return sorted(same)[:3]
    stem = os.path.splitext(key)[0]
    if stem and (same_stem := [one for one in names if os.path.splitext(one.casefold())[0] == stem]):
        return sorted(same_stem)[:3]
    others = [one for one in names if shortest <= len(one) <= longest]
    most = min(300, max(5, 150_000 // len(name) ** 2)) if name else 0
    for part in (slice(1), slice(3), slice(-1, None), slice(-3, None)):
        if len(others) > most:
            others = [one for one in others if one[part].casefold() == key[part]] or others
    likeliest = heapq.nsmallest(most, others, key=lambda one: (abs(len(one) - len(name)), one))
    by_key = {one.casefold(): one for one in likeliest}
    return [by_key[one] for one in difflib.get_close_matches(key, by_key, n=3, cutoff=0.6)]
