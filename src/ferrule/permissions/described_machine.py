"""A machine that is only described: its links, and a sandbox that it may have."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import field

from ..core.values import plain_value
from ..core.verdicts import Confinement
from ..host.files.links import part_matches, parts_of


@plain_value
class PathsAsWritten:
    """Satisfies `core.ports.Paths` without disk access; the only links are the given ones."""

    home: str
    links: Mapping[str, str] = field(default_factory=dict[str, str])

    def anchor(self, path: str, cwd: str, /) -> str:
        path = posixpath.join(cwd, self.home + path[1:] if path == "~" or path.startswith("~/") else path)
        done = "/"
        for part in path.split("/"):
            if part == "..":
                done = posixpath.dirname(self.resolve(done)[0])
            elif part not in ("", "."):
                done = posixpath.join(done, part)
        return done

    def resolve(self, path: str, /) -> tuple[str, tuple[str, ...]]:
        if not self.links:
            return path, ()
        links: list[str] = []
        done = "/"
        ahead = path.split("/")[::-1]
        while ahead:
            part = ahead.pop()
            if part == "..":
                done = posixpath.dirname(done)
            elif part not in ("", "."):
                done = posixpath.join(done, part)
                if done in self.links and len(links) < 40:
                    links.append(done)
                    ahead += self.links[done].split("/")[::-1]
                    done = "/" if self.links[done].startswith("/") else posixpath.dirname(done)
        return done, tuple(links)

    def is_folder(self, path: str, /) -> bool | None:
        return None

    def through_links(self, folder: str, names: str, /) -> tuple[str, ...] | None:
        below = f"{folder.rstrip('/')}/"
        parts = parts_of(names)
        found: list[str] = []
        for link in (link for link in self.links if link.startswith(below)):
            steps = link.removeprefix(below).split("/")
            if parts == ("**",):
                found.append(link)
            elif len(steps) <= len(parts) and all(map(part_matches, parts, steps)):
                found.append("/".join((link, *parts[len(steps) :])))
        return tuple(found)

    def notable_entries(self, folder: str, /) -> tuple[str, ...] | None:
        return ()


class AbleBox:
    """A sandbox that can enforce everything, for a scene that says its machine has one. Satisfies `live_rules.Box`."""

    is_tried = True

    async def try_it(self) -> None:
        """Nothing is left to try."""

    def confines(self, needed: Confinement, /) -> bool:
        return True

    def why_unheld(self) -> str:
        return ""
