"""Programs that show names, sizes and times of files, but not their contents."""

from __future__ import annotations

from typing import Final

NAMES_ONLY: Final = frozenset(
    {"ls", "cd", "find", "tree", "du", "df", "stat", "test", "[", "[[", "pushd", "popd", "pwd", "dirname", "basename"}
    | {"realpath", "readlink", "mkdir", "touch", "rmdir", "rm", "which", "type", "file"}
)
