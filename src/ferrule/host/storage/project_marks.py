"""Which project a folder is, also after it was moved: a random mark that goes with the folder.

It is a small file in `.git`, or an attribute of the folder where there is none. Neither is seen by git, copied by
`git clone` or part of anybody's files. Where none can be left, a project is known by its path alone.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from ...core.ids import new_uuid
from ..git.checkouts import checkout_of, first_line
from .session_folder import make_private

FILE: Final = "ferrule-project"
ATTRIBUTE: Final = "user.ferrule.project"
_MARK: Final = re.compile(r"[0-9a-f-]{36}")


class ProjectMarks:
    """The marks of folders, and below one folder of ours where each mark was seen."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def of(self, folder: str) -> tuple[str, ...]:
        """The marks that a folder has now: one or none, or two where a repository was made in a marked folder."""
        real = os.path.realpath(folder)
        found: list[str] = []
        if (place := _git_place(real)) and (mark := _valid(first_line(os.path.join(place[0], FILE)) or "")):
            found.append(f"{mark}/{place[1]}".removesuffix("/."))
        if mark := _attribute_of(real):
            found.append(mark)
        return tuple(found)

    def leave(self, folder: str) -> str:
        """The folder's mark, made if it has none; noted with its path. Empty where none can be left."""
        real = os.path.realpath(folder)
        mark = next(iter(self.of(real)), "") or _make_mark(real)
        if mark:
            self._note(mark, real)
        return mark

    def _note(self, mark: str, real: str) -> None:
        if real in self.places(mark):
            return
        with suppress(OSError):
            make_private(self._root)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._file(mark), flags, 0o600)
            try:
                os.write(descriptor, os.fsencode(real) + b"\0")
            finally:
                os.close(descriptor)

    def places(self, mark: str) -> tuple[str, ...]:
        """The paths at which the mark was seen, the first one first."""
        try:
            noted = self._file(mark).read_bytes()
        except OSError:
            return ()
        return tuple(dict.fromkeys(os.fsdecode(path) for path in noted.split(b"\0") if path))

    def left_behind(self, folder: str) -> tuple[str, ...]:
        """The paths at which this project was before, and where it no longer is. The new one is noted."""
        real, marks = os.path.realpath(folder), self.of(folder)
        places = dict.fromkeys(place for mark in marks for place in self.places(mark))
        if places:
            self._note(marks[0], real)
        return tuple(place for place in places if place != real and not set(marks) & set(self.of(place)))

    def place_now(self, mark: str) -> str:
        """Where the project with this mark is, as far as it was seen; empty if nowhere."""
        return next((place for place in self.places(mark) if mark in self.of(place)), "") if mark else ""

    def _file(self, mark: str) -> Path:
        return self._root / sha256(mark.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _git_place(real: str) -> tuple[str, str] | None:
    """The `.git` folder around a folder, and the folder's path in the checkout.

    One that is a file or a link points somewhere else, and anybody can write such a pointer.
    """
    checkout = checkout_of(real)
    if checkout is None:
        return None
    git = os.path.join(checkout.root, ".git")
    return None if os.path.islink(git) or not os.path.isdir(git) else (git, os.path.relpath(real, checkout.root))


def _make_mark(real: str) -> str:
    mark = new_uuid()
    try:
        if place := _git_place(real):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(os.path.join(place[0], FILE), flags, 0o644), "w") as file:
                file.write(f"{mark}\n")
            return f"{mark}/{place[1]}".removesuffix("/.")
        os.setxattr(real, ATTRIBUTE, mark.encode(), os.XATTR_CREATE)
    except (OSError, AttributeError):  # read-only, a file system or a system without attributes, or made meanwhile
        return ""
    return mark


def _attribute_of(real: str) -> str:
    try:
        return _valid(os.getxattr(real, ATTRIBUTE).decode("ascii", "replace"))
    except (OSError, AttributeError):
        return ""


def _valid(mark: str) -> str:
    return mark if _MARK.fullmatch(mark) else ""
