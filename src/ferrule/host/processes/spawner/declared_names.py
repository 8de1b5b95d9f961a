"""What a held command may do to a name, for its supervisor. Paths are bytes without links."""

from __future__ import annotations

import os

from .declarations import Declarations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .protocol import Jail

MOST_REMEMBERED = 10_000
MOST_LOOKED_AT = 20_000
"""Entries of a folder that is to be renamed."""


class DeclaredNames:
    """Answers from the jail alone; what is on disk plays no part, except in `can_move`."""

    def __init__(self, jail: Jail, scratch: str) -> None:
        declared = [(os.fsencode(path), tree) for path, tree in jail["declared"] or ()]
        self._declarations = Declarations(jail, jail["workspace"])
        self._names = frozenset(path for path, _ in declared)
        self._roots = frozenset(path for path, tree in declared if tree)
        self._trees = _beginnings(path for path, tree in jail["declared"] or () if tree)
        self._folders = frozenset(map(os.path.dirname, self._names))
        self._ancestors = frozenset(above for path in self._names for above in _above(path))
        self._workspace = _beginnings(jail["workspace"])
        self._readable = None if jail["readable"] is None else _beginnings(jail["readable"])
        self._hidden = _beginnings(jail["hidden"])
        self._guarded = tuple(os.fsencode(path) for path in (*jail["hidden"], *jail["protected"]))
        guarded = (*jail["hidden"], *jail["protected"], *jail["protected_names"])
        self._last_names = frozenset(os.fsencode(os.path.basename(path).lower()) for path in guarded)
        self._scratch = os.fsencode(scratch) + b"/"
        self._known: dict[bytes, bool] = {}
        """Whether paths that were asked about are guarded."""

    def is_own(self, path: bytes) -> bool:
        """In the command's own temporary folder, or that folder."""
        return (path + b"/").startswith(self._scratch)

    def is_declared(self, path: bytes) -> bool:
        """Whether the name may be made, changed and removed."""
        return (path in self._names or path.startswith(self._trees)) and not self.is_guarded(path)

    def is_declared_tree(self, path: bytes) -> bool:
        """Whether all that will be below the name may be as well."""
        return (path in self._roots or path.startswith(self._trees)) and not self.is_guarded(path)

    def is_parent(self, path: bytes) -> bool:
        """Whether a declared name lies below it, so that a folder may be made there if it is missing."""
        return path in self._ancestors and not self.is_guarded(path)

    def is_beside(self, path: bytes) -> bool:
        """Whether it lies in the folder of a declared name, where a temporary one may be made."""
        return os.path.dirname(path) in self._folders and self.is_in_workspace(path) and not self.is_guarded(path)

    def is_in_workspace(self, path: bytes) -> bool:
        """Below one of its folders; not such a folder itself."""
        return path.startswith(self._workspace)

    def is_guarded(self, path: bytes) -> bool:
        """Hidden or protected, or below such a path."""
        if (known := self._known.get(path)) is not None:
            return known
        guarded = (path + b"/").startswith(self._hidden) or self._declarations.protect(os.fsdecode(path))
        if len(self._known) < MOST_REMEMBERED:
            self._known[path] = guarded
        return guarded

    def can_move(self, path: bytes, new: bytes) -> bool:
        """Whether nothing in a folder is hidden or protected where it is, or would be under the new path.

        `False` also for one with too many entries to look at.
        """
        inside = path + b"/"
        if any(one.startswith(inside) and os.path.lexists(one) for one in self._guarded):
            return False
        left, ahead = MOST_LOOKED_AT, [b""]
        while ahead:
            below = ahead.pop()
            with os.scandir(path + below) as entries:
                for entry in entries:
                    left -= 1
                    name = below + b"/" + entry.name
                    if left < 0 or self._is_guarded_name(path + name) or self._is_guarded_name(new + name):
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        ahead.append(name)
        return True

    def _is_guarded_name(self, path: bytes) -> bool:
        """The same as `is_guarded` for what is not below something guarded, and quicker."""
        return os.path.basename(path).lower() in self._last_names and self.is_guarded(path)

    def may_be_read(self, path: bytes) -> bool:
        whole = path + b"/"
        return (self._readable is None or whole.startswith(self._readable)) and not whole.startswith(self._hidden)


def holds_reading(jail: Jail) -> bool:
    """Whether a declared name lies in a folder that Landlock cannot grant as a whole, for what is hidden in it.

    What the command makes there it could not read again, unless its supervisor opens it.
    """
    if jail["readable"] is None:
        return False
    ungranted = {above for path in jail["hidden"] for above in _above(os.fsencode(path))}
    declared = [(os.fsencode(path), tree) for path, tree in jail["declared"] or ()]
    names = any(os.path.dirname(path) in ungranted for path, _ in declared)
    return names or any(
        above == path or above.startswith(path + b"/") for path, tree in declared if tree for above in ungranted
    )


def _beginnings(paths: Iterable[str]) -> tuple[bytes, ...]:
    """Of the paths and of all below them, for a path with a slash at its end."""
    return tuple(os.fsencode(path).rstrip(b"/") + b"/" for path in paths)


def _above(path: bytes) -> list[bytes]:
    found: list[bytes] = []
    while (parent := os.path.dirname(path)) != path:
        found.append(parent)
        path = parent
    return found
