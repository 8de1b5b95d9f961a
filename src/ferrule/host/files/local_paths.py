"""Paths on this machine: where they are, and where their links lead."""

from __future__ import annotations

import os
import stat
import unicodedata

from .links import notable_entries, through_links

MAX_LINKS = 40
"""As many as Linux follows before it gives up."""


class LocalPaths:
    """Answers `core.ports.Paths` from the local file system."""

    def anchor(self, path: str, cwd: str, /) -> str:
        if path.startswith("~"):
            path = os.path.expanduser(path)
        path = os.path.join(cwd, path)
        if ".." in path.split("/"):
            path = self._climb(path)
        path = os.path.normpath(path)
        if path.startswith("//"):
            path = path[1:]
        return path if path.isascii() else _existing_form(path)

    def _climb(self, path: str) -> str:
        """Without `..`, which leads out of where a link leads, and not out of where the link is."""
        done = "/"
        for part in path.split("/"):
            if part == "..":
                real = self.resolve(done)[0] if os.path.islink(done) else done
                done = os.path.dirname(real)
            elif part not in ("", "."):
                done = os.path.join(done, part)
        return done

    def resolve(self, path: str, /) -> tuple[str, tuple[str, ...]]:
        """Component by component, so that the links on the way are known too.

        A missing tail is kept as it is: a file about to be created has a real
        path as well. A loop of links ends where Linux would end it.
        """
        links: list[str] = []
        done = "/" if path.startswith("/") else os.getcwd()
        ahead = [part for part in reversed(path.split("/")) if part]
        missing = False
        while ahead:
            part = ahead.pop()
            if part == ".":
                continue
            if part == "..":
                done, missing = os.path.dirname(done), False
                continue
            step = done + part if done.endswith("/") else f"{done}/{part}"
            target = None if missing else _link_target(step)
            if target is _ABSENT:
                missing = True
            elif isinstance(target, str) and len(links) < MAX_LINKS:
                links.append(step)
                if target.startswith("/"):
                    done = "/"
                ahead += [part for part in reversed(target.split("/")) if part]
                continue
            done = step
        return done or "/", tuple(links)

    def is_folder(self, path: str, /) -> bool | None:
        return os.path.isdir(path)

    def through_links(self, folder: str, names: str, /) -> tuple[str, ...] | None:
        return through_links(folder, names)

    def notable_entries(self, folder: str, /) -> tuple[str, ...] | None:
        return notable_entries(folder)


_ABSENT = object()


def _link_target(path: str) -> object:
    """Where the link leads; `None` for anything but a link, `_ABSENT` for a missing path."""
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            return os.readlink(path)
    except (OSError, ValueError):
        return _ABSENT
    return None


def _existing_form(path: str) -> str:
    """The Unicode form under which each part of the path exists; as written from where none does."""
    if os.path.lexists(path):
        return path
    done = ""
    for part in path.split("/")[1:]:
        forms = (part, unicodedata.normalize("NFC", part), unicodedata.normalize("NFD", part))
        done = next((step for form in forms if os.path.lexists(step := f"{done}/{form}")), f"{done}/{part}")
    return done
