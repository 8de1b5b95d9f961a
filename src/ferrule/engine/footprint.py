"""What a call occupies while it runs, in a form that two calls can be compared by.

Effects are grounded once (links resolved), then flattened to strings; after
that, comparing two calls never touches the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from ..core.effects import (
    CWD,
    MODE,
    Change,
    ChangesState,
    Effects,
    Opaque,
    ReachesHost,
    ReadsPath,
    ReadsState,
    RunsCommand,
    Touch,
    WritesPath,
)
from ..core.ports import Paths
from ..core.values import plain_value


def ground(effects: Effects, paths: Paths) -> Effects:
    """The same effects with every path resolved on the links of this moment."""
    for touch in effects.touches:
        if isinstance(touch, ReadsPath | WritesPath):
            return Effects(tuple(_ground_all(effects.touches, paths)))
    return effects


def _ground_all(touches: Iterable[Touch], paths: Paths) -> Iterator[Touch]:
    for touch in touches:
        grounded = _ground_touch(touch, paths)
        if isinstance(touch, WritesPath) and touch.if_folder and isinstance(grounded, WritesPath):
            is_folder = paths.is_folder(grounded.real)
            if is_folder is not False:
                yield from _ground_all((replace(one, found=True) for one in touch.if_folder), paths)
            if is_folder:
                grounded = replace(grounded, like="")
        yield grounded
        if isinstance(grounded, WritesPath) or (isinstance(grounded, ReadsPath) and grounded.follows):
            yield from _behind_links(grounded, paths)
        if isinstance(grounded, WritesPath) and grounded.like:
            yield from _put_below(grounded, paths)


def _ground_touch(touch: Touch, paths: Paths) -> Touch:
    if isinstance(touch, ReadsPath | WritesPath) and not os.path.isabs(touch.path):
        return Opaque()  # a place nobody can compare or match may be any place
    if isinstance(touch, ReadsPath):
        return ReadsPath(touch.path, *paths.resolve(_way(touch)), touch.names, touch.follows, touch.found)
    if isinstance(touch, WritesPath) and touch.change is Change.UNLINKS:
        folder, name = os.path.split(_way(touch))
        if name != "..":
            real, links = paths.resolve(folder)
            return WritesPath(touch.path, touch.change, os.path.join(real, name), links, found=touch.found)
    if isinstance(touch, WritesPath):
        resolved = paths.resolve(_way(touch))
        return WritesPath(touch.path, touch.change, *resolved, touch.names, touch.like, found=touch.found)
    return touch


def _behind_links(touch: ReadsPath | WritesPath, paths: Paths) -> Iterator[Touch]:
    """What a glob means through links, path by path. Removing affects the link, not what it leads to."""
    if not touch.names:
        return
    found = paths.through_links(touch.real or touch.path, touch.names)
    if found is None:
        yield Opaque()
        return
    for path in found:
        if isinstance(touch, ReadsPath):
            yield _ground_touch(ReadsPath(path, found=True), paths)
        else:
            change = Change.UNLINKS if touch.change is Change.DELETES else touch.change
            yield _ground_touch(WritesPath(path, change, found=True), paths)


def _put_below(touch: WritesPath, paths: Paths) -> Iterator[Touch]:
    entries = paths.notable_entries(touch.like)
    if entries is None:
        yield Opaque()
        return
    for entry in entries:
        yield _ground_touch(WritesPath(os.path.join(touch.path, entry), touch.change, found=True), paths)


def _way(touch: ReadsPath | WritesPath) -> str:
    """The path as the system follows it: `..` after a link starts from where the link leads."""
    return touch.real if ".." in touch.real.split("/") else touch.path


@plain_value
class Footprint:
    """Paths and state keys, read and written. `unknown` means all of them."""

    unknown: bool
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    state_reads: frozenset[str]
    state_writes: frozenset[str]
    makes: tuple[str, ...] = ()
    """Those of `writes` where a link may come, go or lead elsewhere afterwards."""
    follows: tuple[str, ...] = ()
    """Links on the way: read themselves, not what is below them."""
    cwd: str = CWD
    """The key of the working directory: each agent has its own."""

    @property
    def only_reads(self) -> bool:
        return not (self.unknown or self.writes or self.state_writes)

    @property
    def is_empty(self) -> bool:
        return self.only_reads and not (self.reads or self.state_reads)

    @classmethod
    def of(cls, effects: Effects, *, reads_cwd: bool = False, agent: str = "main") -> Footprint:
        """Of grounded effects. A path is included as written, as resolved, and by each link on the way.

        A call that touches nothing does not depend on the working directory either.
        """
        if not effects.touches:
            return NOTHING
        cwd = CWD if agent == "main" else f"{CWD} of {agent}"
        reads: list[str] = []
        writes: list[str] = []
        state_reads: list[str] = [cwd] if reads_cwd else []
        state_writes: list[str] = []
        makes: list[str] = []
        follows: list[str] = []
        unknown = False
        for touch in effects.touches:
            match touch:
                case ReadsPath(path, real, links):
                    reads += (path, real or path)
                    follows += links
                case WritesPath(path, change, real, links):
                    written = [path, real or path]
                    name = path[path.rfind("/") :]
                    for link in links:  # the one at the end of the path may itself be what is replaced
                        (written if link.endswith(name) else follows).append(link)
                    writes += written
                    if change is not Change.REPLACES:
                        makes += written
                case RunsCommand():
                    unknown = unknown or not touch.accounted
                case ReachesHost(host, sends):
                    (state_writes if sends else state_reads).append(f"host:{host}")
                case ReadsState(key):
                    state_reads.append(cwd if key == CWD else key)
                case ChangesState(key):
                    state_writes.append(cwd if key == CWD else key)
                    unknown = unknown or key == MODE
                case Opaque():
                    unknown = True
                case _:
                    assert_never(touch)
        return cls(
            unknown,
            tuple(dict.fromkeys(reads)),
            tuple(dict.fromkeys(writes)),
            _set(state_reads),
            _set(state_writes),
            tuple(makes),
            tuple(follows),
            cwd,
        )

    def conflicts(self, other: Footprint) -> bool:
        """Whether the order of the two matters. Nothing conflicts with a call that touches nothing."""
        if self.only_reads and other.only_reads:
            return False
        if self.is_empty or other.is_empty:
            return False
        if self.unknown or other.unknown:
            return True
        if self.state_writes and not (
            self.state_writes.isdisjoint(other.state_writes) and self.state_writes.isdisjoint(other.state_reads)
        ):
            return True
        if not other.state_writes.isdisjoint(self.state_reads):
            return True
        if _overlap(self.writes, other.writes + other.reads) or _overlap(other.writes, self.reads):
            return True
        if not (self.follows or other.follows):
            return False
        return _redirects(self.writes, other.follows) or _redirects(other.writes, self.follows)

    def may_concern(self, other: Footprint) -> bool:
        """Whether the order of the two could matter if the paths of this one led elsewhere."""
        return not ((self.only_reads and other.only_reads) or self.is_empty or other.is_empty)

    def moves(self, other: Footprint) -> bool:
        """Whether `other`, which conflicts, may have to be stated differently once this one is over."""
        if self.unknown or (self.cwd in self.state_writes and self.cwd in other.state_reads):
            return not other.unknown
        return bool(self.makes) and _redirects(self.makes, other.reads + other.writes + other.follows)


_NO_KEYS: frozenset[str] = frozenset()
NOTHING = Footprint(unknown=False, reads=(), writes=(), state_reads=_NO_KEYS, state_writes=_NO_KEYS)


def _set(keys: list[str]) -> frozenset[str]:
    return frozenset(keys) if keys else _NO_KEYS


def _overlap(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return any(_is_nested(one, other) for one in some for other in others)


def _redirects(written: tuple[str, ...], paths: tuple[str, ...]) -> bool:
    """Whether something written is one of the paths, or a folder on the way to it."""
    return any(_within(path, folder) for folder in written for path in paths)


def _is_nested(one: str, other: str) -> bool:
    """Whether the two paths are the same or one contains the other."""
    return _within(one, other) if len(one) > len(other) else _within(other, one)


def _within(path: str, folder: str) -> bool:
    return path.startswith(folder) and (len(path) == len(folder) or folder.endswith("/") or path[len(folder)] == "/")
