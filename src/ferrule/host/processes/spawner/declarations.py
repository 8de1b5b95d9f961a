"""Which names a command may change: those it declared, less what is protected."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .protocol import Jail


class Declarations:
    """Absolute paths in, yes or no out."""

    def __init__(self, jail: Jail, roots: Iterable[str]) -> None:
        declared = jail["declared"] or []
        self._names = frozenset(path for path, _ in declared)
        self._trees = tuple(path.rstrip("/") for path, tree in declared if tree)
        self._parents = frozenset(parent for path, _ in declared for parent in _parents(path))
        self._roots = tuple(roots)
        self._protected = tuple(jail["protected"])
        self._reopened = tuple(jail["reopened"])
        self._protected_names = tuple(f"/{name.casefold()}/" for name in jail["protected_names"])

    def allow(self, path: str, *, makes_folder: bool = False) -> bool:
        """A folder on the way to a declared name may be made as well, but not changed."""
        declared = path in self._names or any(is_at_or_below(path, tree) for tree in self._trees)
        return (declared or (makes_folder and path in self._parents)) and not self.protect(path)

    def protect(self, path: str) -> bool:
        """Whether it never changes, declared or not."""
        reopened = next((one for one in self._reopened if is_at_or_below(path, one)), None)
        if reopened is None and any(is_at_or_below(path, one) for one in self._protected):
            return True
        root = reopened or next((one for one in self._roots if is_at_or_below(path, one)), "/")
        inside = f"/{path[len(root) :].strip('/').casefold()}/"
        return any(name in inside for name in self._protected_names)


def is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _parents(path: str) -> Iterable[str]:
    while (parent := os.path.dirname(path)) != path:
        yield parent
        path = parent
