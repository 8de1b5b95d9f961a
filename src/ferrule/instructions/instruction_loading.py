"""Instruction files, read with what they import: bounded, each once, and nothing outside without approval."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ..core.ports import Door
from ..core.values import plain_value
from ..host.files.held_folders import ChangedMeanwhile
from ..host.files.open_files import open_file
from ..host.files.text_files import NotText
from ..settings.levels import Level
from .instruction_places import InstructionFile
from .markdown import front_matter, imports, readings, without_comments

MOST_BYTES: Final = 100_000
"""Of one file; the rest of it is left out, with a warning."""
MOST_IN_ALL: Final = 400_000
LEFT_OUT: Final = "[left out: the rules of this session require approval to read it]"
"""What the model gets instead of such a file."""
DEEPEST: Final = 4
"""Imports of imports."""


@plain_value
class Instruction:
    path: str
    text: str
    level: Level
    paths: tuple[str, ...] = ()
    """The files that it is about, as patterns below `base`; empty for all."""
    base: str = ""

    def __str__(self) -> str:
        return f'<instructions from="{self.path}">\n{self.text.strip()}\n</instructions>'


@dataclass(slots=True)
class Reader:
    """Reads places in turn. Remembers what it has read, so that nothing is included twice."""

    roots: tuple[str, ...]
    """Real paths inside which a project's files may lead and import."""
    trusting: bool = False
    """Whether a project may import from anywhere."""
    door: Door | None = None
    """Judges what a project's files are, and what any file imports."""
    warnings: list[str] = field(default_factory=list[str])
    _seen: set[str] = field(default_factory=set[str])
    _taken: int = 0

    def read(self, places: Iterable[InstructionFile]) -> list[Instruction]:
        return [instruction for place in places for instruction in self._place(place)]

    def _place(self, place: InstructionFile) -> Iterator[Instruction]:
        text = self._text(place.path, place)
        if text is None:
            return
        paths: tuple[str, ...] = ()
        if place.is_rule:
            matter = front_matter(text)
            paths, text = matter.paths, matter.body
            if matter.fault:
                self.warnings.append(f"{place.path}: {matter.fault}, so it applies to every file.")
        text = without_comments(text)
        if text.strip():
            yield Instruction(place.path, text, place.level, paths, place.base)
            for imported in self._follow_imports(text, place, os.path.dirname(place.path), 1):
                yield Instruction(imported.path, imported.text, place.level, paths, place.base)

    def _follow_imports(self, text: str, place: InstructionFile, folder: str, depth: int) -> Iterator[Instruction]:
        for written in imports(text):
            path = _resolve(written, folder)
            if path is None:
                continue  # an address or a handle, most likely
            if depth > DEEPEST:
                self.warnings.append(f"{path} is left out: it is imported more than {DEEPEST} files deep.")
                continue
            content = self._text(path, place)
            if content is None:
                continue
            content = without_comments(content)
            yield Instruction(path, content, place.level)
            yield from self._follow_imports(content, place, os.path.dirname(path), depth + 1)

    def _text(self, path: str, place: InstructionFile) -> str | None:
        """`None` if there is nothing to include; a problem with it becomes a warning."""
        real = os.path.realpath(path)
        if real in self._seen:
            return None
        self._seen.add(real)
        objection = self._objection(path, real, place)
        refusal = self._refusal(path, place) if objection is None else None
        if refusal is not None:
            self.warnings.append(f"{path} is left out: {refusal}.")
            return LEFT_OUT
        if objection is None and self._taken >= MOST_IN_ALL:
            objection = f"instructions of {MOST_IN_ALL:,} bytes in all were read before it"
        if objection is not None:
            self.warnings.append(f"{path} is left out: {objection}.")
            return None
        try:
            data, cut = _read_bounded(path, real)
        except NotText as reason:
            self.warnings.append(f"{path} is left out: {reason}.")
            return None
        except (OSError, ChangedMeanwhile) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self.warnings.append(f"{path} is left out: {why}.")
            return None
        self._taken += len(data)
        if cut:
            self.warnings.append(f"{path} is longer than {MOST_BYTES:,} bytes; the rest of it is left out.")
        return _decode(data)

    def _refusal(self, path: str, place: InstructionFile) -> str | None:
        """Why it may not be read. A project cannot take away a user's or an administrator's own file."""
        if self.door is None or (path == place.path and not place.level.in_folder):
            return None
        return self.door.objection(path)

    def _objection(self, path: str, real: str, place: InstructionFile) -> str | None:
        if not place.level.in_folder or self.trusting:
            return None
        if any(_is_within(real, root) for root in self.roots):
            return None
        if path == place.path and real == os.path.realpath(os.path.dirname(path)) + "/" + os.path.basename(path):
            return None if _is_ours(real) else "it belongs to another user"  # in a folder above the workspace
        return f"it leads to {real}, outside of the workspace. --trust allows that for one run"


def _read_bounded(path: str, judged: str) -> tuple[bytes, bool]:
    """The first bytes of a text file, and whether there are more. Raises `NotText`, `ChangedMeanwhile` or `OSError`."""
    with open_file(path, judged=judged) as file:
        data = b""
        for chunk in file.chunks():
            data += chunk
            if file.complete or len(data) > MOST_BYTES:
                break
    if b"\0" in data:
        raise NotText("it is not text")
    return data[:MOST_BYTES], len(data) > MOST_BYTES


def _decode(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _resolve(written: str, folder: str) -> str | None:
    for reading in readings(written):
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(reading)))
        if os.path.lexists(path) and not os.path.isdir(path):
            return path
    return None


def _is_within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _is_ours(path: str) -> bool:
    try:
        return os.stat(path).st_uid in (0, os.geteuid())
    except OSError:
        return True  # what is wrong with it is said when it is read
