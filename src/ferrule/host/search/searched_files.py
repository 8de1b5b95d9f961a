"""Files of a folder that was searched, opened once more with no link on the way.

Whoever searches goes by names, and a folder can be put out of the way and a
link in its place while the search is under way. What was found is believed
where the file that lies inside of the folder, and nowhere else, holds it.
"""

from __future__ import annotations

import os
import stat
from typing import Final

from ..files.held_folders import SEARCH

MOST_DECODED: Final = 64 << 20
"""Bytes of a file whose text is compared as a whole, since it was decoded for the search."""

MOST_HELD: Final = 24
"""Folders held open at a time."""

_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MARKS: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\xef\xbb\xbf": "utf-8"}
"""How a file begins that is decoded for the search."""


class SearchedFiles:
    """Seen from a descriptor of the folder. Used by one thread; `close` ends it."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._path: str | None = None
        self._file = -1
        self._decoded: bytes | None = None
        self._folders: dict[str, int] = {}
        self._plain: dict[str, bool] = {"": True}
        """Folders, by whether no link leads to them."""

    def hold(self, path: str, offset: int, data: bytes) -> bool:
        """Whether the file has these bytes there. The lines of a file are asked for one after the other."""
        if path != self._path:
            self._let_go()
            self._path, self._file = path, self._open(path)
        if self._file < 0:
            return False
        try:
            return os.pread(self._file, len(data), offset) == data or data in self._text()
        except OSError:
            return False

    def is_inside(self, path: str) -> bool:
        """Whether no link leads there now."""
        return self._is_plain(os.path.dirname(path))

    def close(self) -> None:
        self._let_go()
        while self._folders:
            os.close(self._folders.popitem()[1])

    def _let_go(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._path, self._file, self._decoded = None, -1, None

    def _is_plain(self, folder: str) -> bool:
        known = self._plain.get(folder)
        if known is None:
            try:
                mode = os.stat(folder, dir_fd=self._folder, follow_symlinks=False).st_mode
                known = stat.S_ISDIR(mode) and self._is_plain(os.path.dirname(folder))
            except OSError:
                known = False
            self._plain[folder] = known
        return known

    def _open(self, path: str) -> int:
        """A descriptor of the file; -1 where there is none without a link on the way."""
        folder, _, name = path.rpartition("/")
        try:
            file = os.open(name, _FILE, dir_fd=self._hold(folder))
        except OSError:
            return -1
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        return -1

    def _hold(self, folder: str) -> int:
        """A descriptor of a folder, reached with no link on the way; those of the last ones are kept."""
        if not folder:
            return self._folder
        held = self._folders.get(folder)
        if held is None:
            above, _, name = folder.rpartition("/")
            held = os.open(name, SEARCH, dir_fd=self._hold(above))
            if len(self._folders) >= MOST_HELD:
                os.close(self._folders.pop(next(iter(self._folders))))
            self._folders[folder] = held
        return held

    def _text(self) -> bytes:
        """The file as the search read it, where a mark at its beginning says how; nothing for any other."""
        if self._decoded is None:
            head = os.pread(self._file, 3, 0)
            coding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
            self._decoded = b""
            if coding is not None and os.fstat(self._file).st_size <= MOST_DECODED:
                content = os.pread(self._file, MOST_DECODED, 0)
                self._decoded = content.decode(coding, "replace").encode("utf-8", "replace")
        return self._decoded
