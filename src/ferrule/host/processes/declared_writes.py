"""The exact names that a command touches, from its effects and a look at the disk right before it runs.

Effects say `cp a dir` writes dir. If that is a folder now, the name that is
created is dir/a, and no other name in it is declared. A pattern declares the
names that it matches now. What goes by trees (`rm -r`, `cp -r`, `chmod -R`, a
folder that is moved) declares trees; everything else declares the name alone.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ...core.effects import Change, Effects, ReadsPath, RunsCommand, WritesPath
from ...core.values import plain_value
from ...core.verdicts import DeclaredWrite, Grants

MOST_NAMES: Final = 2_000
"""Names that one pattern declares; with more, the folder is declared with all below it."""
_TRANSFERS: Final = frozenset({"cp", "mv", "ln", "install"})
_NAMES_ALONE: Final = frozenset({"touch", "mkdir", "rmdir", "unlink", "truncate", "tee", "sed", "ln", "shred"})
_BY_OPTION: Final = frozenset({"rm", "cp", "chmod", "chown", "chgrp"})
_SHOWS_NAMES: Final = frozenset(
    {"ls", "find", "tree", "du", "df", "stat", "file", "cd", "pwd", "test", "[", "git", "mkdir", "touch", "rm", "rmdir"}
)
"""Programs that show no contents of a folder that they read, so that nothing is missing where some are hidden."""
_READS_FILES: Final = frozenset(
    {
        "cat",
        "head",
        "tail",
        "wc",
        "sort",
        "uniq",
        "cut",
        "nl",
        "tac",
        "less",
        "more",
        "od",
        "xxd",
        "strings",
        "sed",
        "awk",
    }
    | {"md5sum", "sha1sum", "sha256sum", "base64", "jq", "bat", "paste", "cmp", "column"}
)
"""Programs that read the files they are given, and nothing of a folder."""
_RECURSIVE: Final = re.compile(r"-[A-Za-z]*[rRa][A-Za-z]*|--recursive|--archive")
_TARGET_FIRST: Final = re.compile(r"-[A-Za-z]*t.*|--target-directory.*", re.DOTALL)
_NO_FOLDER: Final = re.compile(r"-[A-Za-z]*T[A-Za-z]*|--no-target-directory")
_WILD: Final = re.compile(r"[*?\[]")
_DOTS: Final = (".", "..")
_UNREADABLE: Final = re.compile(r"[\"'\\${}~`]")
"""What the shell reads before a pattern. Such a word is not tried."""


class _Untold(Exception):
    """A pattern whose names are not known, or are too many: all below its folder is meant."""


@plain_value
class _Part:
    """One program of a command, or the shell itself, with what it touches."""

    argv: tuple[str, ...]
    reads: tuple[ReadsPath, ...]
    writes: tuple[WritesPath, ...]

    @property
    def program(self) -> str:
        return self.argv[0].rpartition("/")[2] if self.argv else ""

    def has(self, option: re.Pattern[str]) -> bool:
        return any(option.fullmatch(word) for word in self.argv[1:])


class _Made:
    """The disk as it is, with what the command itself will have put there by then."""

    def __init__(self, *, on_disk: bool) -> None:
        """Without a disk nothing is there but what the command puts there."""
        self._on_disk = on_disk
        self._names: dict[str, bool] = {}
        """Declared so far, each with whether a folder may be there."""

    def add(self, part: _Part, declared: DeclaredWrite) -> None:
        self._names[declared.path] = declared.tree or part.program == "mkdir"

    def may_hold_names(self, path: str) -> bool:
        return (self._on_disk and os.path.isdir(path)) or self._names.get(path, False)

    def is_folder(self, path: str) -> bool:
        """A link to one is a name like any other."""
        return not self.is_link(path) and self.may_hold_names(path)

    def is_link(self, path: str) -> bool:
        return self._on_disk and os.path.islink(path)

    def real(self, path: str) -> str:
        return os.path.realpath(path) if self._on_disk else path

    def names_in(self, folder: str) -> Sequence[str]:
        try:
            names = os.listdir(folder) if self._on_disk else ()
        except OSError:
            return ()
        if len(names) > MOST_NAMES:
            raise _Untold
        return names

    def matching(self, folder: str, pattern: str) -> Iterator[str]:
        if self._on_disk:
            yield from glob.iglob(pattern.replace("[^", "[!"), root_dir=folder)
        for path in self._names:
            above, name = os.path.split(path)
            if above == folder and fnmatch.fnmatchcase(name, pattern):
                yield name


def declared_writes(effects: Effects, *, on_disk: bool = True) -> tuple[DeclaredWrite, ...]:
    """For effects whose links are resolved. Without a look at the disk a pattern declares the folder it is about."""
    found: dict[str, bool] = {}
    made = _Made(on_disk=on_disk)
    for part in _parts(effects):
        for declared in _of_part(part, made):
            found[declared.path] = found.get(declared.path, False) or declared.tree
            made.add(part, declared)
    return _leave_out_covered(DeclaredWrite(path=path, tree=tree) for path, tree in found.items())


def granted_writes(effects: Effects, grants: Grants, *, on_disk: bool = True) -> tuple[DeclaredWrite, ...]:
    """The exact names that a command may change, as far as they were judged."""
    judged = tuple(one.path for one in grants.writes)
    declared = () if effects.unknown else declared_writes(effects, on_disk=on_disk)
    return tuple(one for one in declared if any(one.path == path or one.path.startswith(f"{path}/") for path in judged))


def hidden_in_passing(effects: Effects, hidden: Iterable[str]) -> tuple[str, ...]:
    """Those of the hidden paths whose contents the command would show: by a pattern, or with a folder."""
    hidden = tuple(hidden)
    found: dict[str, None] = {}
    for part in _parts(effects):
        for touch in part.reads if part.program not in _SHOWS_NAMES else ():
            folder = touch.real or touch.path
            below = [path for path in hidden if path != folder and _is_below(path, folder)]
            patterns = [rest for word in part.argv[1:] if (rest := _rest_of_pattern(word, touch.path))]
            goes_on = part.program not in _READS_FILES
            found |= dict.fromkeys(
                one for one in below if _is_meant(one, folder, patterns, goes_on=goes_on) or (goes_on and not patterns)
            )
    return tuple(found)


def _is_meant(path: str, folder: str, patterns: Iterable[str], *, goes_on: bool) -> bool:
    """Whether a pattern matches the path; or a folder that it lies in, for a program that goes on below folders.

    A dot at the front has to be spelled.
    """
    parts = path[len(folder.rstrip("/")) + 1 :].split("/")
    for pattern in patterns:
        segments = pattern.rstrip("/").split("/")
        pairs = list(zip(parts, segments, strict=False))
        reaches = len(pairs) == len(segments) and (goes_on or len(parts) == len(segments))
        if reaches and all(
            fnmatch.fnmatchcase(part, segment) and (part[:1] != "." or segment[:1] == ".") for part, segment in pairs
        ):
            return True
    return False


def _parts(effects: Effects) -> Iterator[_Part]:
    argv: tuple[str, ...] = ()
    reads: list[ReadsPath] = []
    writes: list[WritesPath] = []
    for touch in effects.touches:
        if isinstance(touch, RunsCommand):
            yield _Part(argv, tuple(reads), tuple(writes))
            argv, reads, writes = touch.argv, [], []
        elif isinstance(touch, ReadsPath | WritesPath) and touch.found:
            continue  # the names are looked for here, as they are by now
        elif isinstance(touch, ReadsPath):
            reads.append(touch)
        elif isinstance(touch, WritesPath):
            writes.append(touch)
    yield _Part(argv, tuple(reads), tuple(writes))


def _of_part(part: _Part, made: _Made) -> Iterator[DeclaredWrite]:
    for touch in part.writes:
        real = touch.real or touch.path
        if part.program in _TRANSFERS and touch.change is Change.REPLACES:
            yield from _names_received(part, touch, made)
            continue
        try:
            matched = _match_pattern(part.argv[1:], touch, made)
        except _Untold:
            yield DeclaredWrite(path=real, tree=True)
            continue
        for name in (real,) if matched is None else matched:
            yield DeclaredWrite(path=name, tree=_takes_tree(part, name, made))
        if matched is None and touch.change is not Change.UNLINKS:
            yield from _by_own_name(touch, made)


def _by_own_name(touch: WritesPath, made: _Made) -> Iterator[DeclaredWrite]:
    """A link by its own name too: some programs replace it, others write what it leads to. Both were judged."""
    folder, name = os.path.split(touch.path)
    own = os.path.join(made.real(folder), name)
    if made.is_link(own) and own != touch.real:
        yield DeclaredWrite(path=own)


def _takes_tree(part: _Part, path: str, made: _Made) -> bool:
    """Whether the program goes on below the name."""
    if not part.argv or part.program in _NAMES_ALONE:
        return False
    if part.program in _BY_OPTION:
        return part.has(_RECURSIVE)
    return made.is_folder(path)


# What cp, mv and ln put where


def _names_received(part: _Part, touch: WritesPath, made: _Made) -> Iterator[DeclaredWrite]:
    """The names that are created in the target, if it is a folder; otherwise the target."""
    target = touch.real or touch.path
    try:
        sources = list(_sources(part, touch, made))
    except _Untold:
        yield DeclaredWrite(path=target, tree=True)
        return
    whole = part.program == "mv" or (part.program in ("cp", "install") and part.has(_RECURSIVE))
    if made.may_hold_names(target) and not part.has(_NO_FOLDER):
        for source, name in sources:
            yield DeclaredWrite(path=os.path.join(target, name), tree=whole and made.is_folder(source))
        return
    tree = whole and any(made.is_folder(source) for source, _ in sources)
    yield DeclaredWrite(path=target, tree=tree)
    yield from _by_own_name(touch, made)


def _sources(part: _Part, target: WritesPath, made: _Made) -> Iterator[tuple[str, str]]:
    """Each source, and the name under which it is put into a folder."""
    contents = {os.path.normpath(word) for word in part.argv[1:] if word in (".", "..") or word.endswith(("/.", "/.."))}
    given: list[ReadsPath | WritesPath] = [*part.reads]
    given += [touch for touch in part.writes if touch is not target and touch.change is not Change.REPLACES]
    words = part.argv[1:] if part.has(_TARGET_FIRST) else part.argv[1:-1]
    for touch in given:
        real = touch.real or touch.path
        matched = _match_pattern(words, touch, made)
        if matched is not None:
            yield from ((path, os.path.basename(path)) for path in matched)
        elif any(_may_be(touch.path, word) for word in contents):
            yield from ((os.path.join(real, name), name) for name in made.names_in(real))
        else:
            yield real, os.path.basename(touch.path)
            if "--parents" in part.argv:
                yield real, next((word.strip("/") for word in part.argv[1:] if _may_be(touch.path, word)), "")


# Patterns


def _match_pattern(words: Sequence[str], touch: ReadsPath | WritesPath, made: _Made) -> list[str] | None:
    """What a pattern among the words matches in the folder it looks in; `None` for a touch without a pattern.

    Raises `_Untold`.
    """
    plain = [word for word in words if not _WILD.search(word) and os.path.normpath(word).split("/")[0] not in _DOTS]
    if any(_may_be(touch.path, word) for word in plain):
        return None
    folder = touch.real or touch.path
    patterns = [rest for word in words if (rest := _rest_of_pattern(word, touch.path))]
    if not made.may_hold_names(folder):
        return None
    if not patterns and any("$" in word or "`" in word for word in words):
        raise _Untold  # the names come from a loop variable
    if not patterns:
        return None
    names: dict[str, None] = {}
    for pattern in patterns:
        if _UNREADABLE.search(pattern):
            raise _Untold
        for name in made.matching(folder, pattern):
            above, last = os.path.split(os.path.join(folder, name))
            real = made.real(above)
            if _is_below(real, folder):  # a link on the way leads where nobody judged
                names[os.path.join(real, last)] = None
            if len(names) > MOST_NAMES:
                raise _Untold
    return list(names)


def _rest_of_pattern(word: str, looked_in: str) -> str:
    """The pattern below the folder that it looks in; empty where it looks elsewhere."""
    segments = word.split("/")
    first = next((at for at, segment in enumerate(segments) if _WILD.search(segment)), None)
    if first is None:
        return ""
    front = "/".join(segments[:first]) or ("/" if first else "")
    return "/".join(segments[first:]) if _may_be(looked_in, front or ".") else ""


def _may_be(path: str, word: str) -> bool:
    """Whether the word, read from some working directory, may have become the path."""
    if not word or word.startswith("-"):
        return False
    normal = os.path.normpath(word)
    if normal.split("/")[0] in _DOTS:
        return True
    return path == normal if normal.startswith("/") else path.endswith(f"/{normal}")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _leave_out_covered(writes: Iterable[DeclaredWrite]) -> tuple[DeclaredWrite, ...]:
    """Without names that a declared tree holds anyway."""
    writes = tuple(writes)
    trees = [one.path for one in writes if one.tree]
    return tuple(one for one in writes if not any(one.path != tree and _is_below(one.path, tree) for tree in trees))
