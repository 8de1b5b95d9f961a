"""Path rules: where a pattern is anchored, and gitignore-style matching below that.

`//p` is absolute, `~/p` below the home folder, `/p` below the folder of the
rule's source, `./p` and `p` below the working directory that the session started
in. A rule that restricts matches a directory's name at any
depth; one that allows, only where it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, Generic, TypeVar, cast

from ..core.ports import Paths
from ..core.values import plain_value

_WILD: Final = re.compile(r"[*?\[\\]")
_EVERYTHING: Final = re.compile("")
_MOST_STARS: Final = 3
"""With more, a pattern that came with a repository could keep the judge busy for hours."""

ItemT = TypeVar("ItemT")


class Anchor(StrEnum):
    ROOT = "//"
    HOME = "~/"
    SOURCE = "/"
    CWD = "./"


@dataclass(frozen=True, kw_only=True)
class Places:
    """The folders of the anchors, each as written and as resolved."""

    cwd: tuple[str, ...]
    home: tuple[str, ...]
    roots: tuple[str, ...] = ()
    """The workspace and the additional directories: what may be read without a rule."""

    @classmethod
    def resolve(cls, paths: Paths, *, cwd: str, home: str, roots: Iterable[str]) -> Places:
        """For absolute folders."""

        def forms(*folders: str) -> tuple[str, ...]:
            return tuple(dict.fromkeys(form for folder in folders for form in (folder, paths.resolve(folder)[0])))

        return cls(cwd=forms(cwd), home=forms(home), roots=forms(*roots))

    def of(self, anchor: Anchor, base: str | None) -> tuple[str, ...]:
        """The folders of an anchor; `base` is that of the rule's source, if it is not the working directory."""
        match anchor:
            case Anchor.ROOT:
                return ("",)
            case Anchor.HOME:
                return tuple(folder.rstrip("/") for folder in self.home)
            case Anchor.SOURCE if base is not None:
                return (base.rstrip("/"),)
            case Anchor.SOURCE | Anchor.CWD:
                return tuple(folder.rstrip("/") for folder in self.cwd)

    def inside(self, path: str) -> bool:
        return path.startswith(self._fronts) or path in self.roots

    @cached_property
    def _fronts(self) -> tuple[str, ...]:
        return tuple(f"{root.rstrip('/')}/" for root in self.roots)


def is_below(path: str, folder: str) -> bool:
    """Whether the path is the folder or inside it.

    >>> is_below("/srv/repo/a", "/srv/repo"), is_below("/srv/repo2", "/srv/repo")
    (True, False)
    """
    folder = folder.rstrip("/")
    return path == folder or path.startswith(f"{folder}/")


@plain_value
class PathForm:
    """A path rule's parsed specifier. The pattern is gitignore's, and begins with `/` if it is anchored."""

    anchor: Anchor
    pattern: str

    @property
    def is_literal(self) -> bool:
        return _WILD.search(self.pattern) is None


def why_no_path(specifier: str) -> str | None:
    """What is wrong with the specifier of a path rule; `None` if nothing is."""
    if not specifier.strip():
        return "names no path. Write one such as `./secrets/**`"
    if specifier.startswith("!"):
        return (
            "negates its pattern with `!`, which rules do not support. Write what to match, and `\\!` for the character"
        )
    if "\0" in specifier:
        return "contains a NUL character, which no path can"
    if ".." in re.split(r"/", specifier):
        return "goes up with `..`, but a rule never matches outside its folder. Write the absolute path after `//`"
    segments = specifier.split("/")
    if segments.count("**") > _MOST_STARS or any(segment.count("*") > _MOST_STARS for segment in segments):
        return f"has more than {_MOST_STARS} wildcards in a row of names or in one name. Write a simpler pattern"
    return None


def path_form(specifier: str, *, allows: bool) -> PathForm:
    """
    >>> path_form("./secrets/**", allows=False)
    PathForm(anchor=<Anchor.CWD: './'>, pattern='secrets')
    >>> path_form("~/notes/**", allows=True)
    PathForm(anchor=<Anchor.HOME: '~/'>, pattern='/notes/**')
    """
    text = specifier.strip()
    anchor, rest = _split_anchor(text)
    rest = re.sub(r"/(\./)+", "/", re.sub(r"//+", "/", rest))
    if allows:
        explicit = anchor is not Anchor.CWD or text.startswith("./") or "/" in rest
        return PathForm(anchor, f"/{rest}" if explicit else rest)
    # Restricting a folder's content restricts the folder itself: whoever may list or remove it may do so below.
    rest = re.sub(r"(/\*\*|/)+$", "", rest) or "**"
    return PathForm(anchor, rest if anchor is Anchor.CWD else f"/{rest}")


def _split_anchor(text: str) -> tuple[Anchor, str]:
    if text == "~":
        return Anchor.HOME, "**"
    for anchor in Anchor:
        if text.startswith(anchor.value):
            return anchor, text[len(anchor.value) :].lstrip("/") or "**"
    return Anchor.CWD, "**" if text == "." else text


class PathPattern:
    """A path rule with its anchor resolved."""

    __slots__ = ("_regex", "bases", "form")

    def __init__(self, form: PathForm, bases: tuple[str, ...]) -> None:
        self.form = form
        self.bases = bases
        self._regex = _compile(form.pattern)

    @property
    def regex(self) -> re.Pattern[str]:
        return self._regex

    def matches(self, path: str) -> bool:
        return any(self._regex.match(rest) is not None for rest in below(path, self.bases))

    def may_match_below(self, folder: str) -> bool:
        """Whether something inside the folder could match, although the folder does not."""
        head, wild = self._head()
        return any(
            is_below(place, folder) or (wild and is_below(folder, place)) for place in (b + head for b in self.bases)
        )

    def covers_folder(self, folder: str) -> bool:
        """Whether it matches everything in the folder: `dir/**` for dir."""
        head = self.form.pattern.removesuffix("/**")
        if head == self.form.pattern or _WILD.search(head):
            return False
        return any(folder == (f"{base}{head}" or "/") for base in self.bases)

    def spells(self, names: Iterable[str]) -> bool:
        """Whether it contains each of these names literally, without wildcards."""
        spelled = {part.casefold() for part in self.form.pattern.split("/") if not _WILD.search(part)}
        return all(name.casefold() in spelled for name in names)

    @property
    def is_plain(self) -> bool:
        """Whether it matches only one path, and what is below that."""
        return self.form.is_literal and self.form.pattern.startswith("/")

    def spell_out(self) -> tuple[str, ...]:
        """The pattern as absolute paths, one for each form of its folder."""
        pattern = self.form.pattern
        depth = pattern if pattern.startswith("/") else f"/{pattern}" if "/" in pattern else f"/**/{pattern}"
        return tuple(f"{base}{depth}" for base in self.bases)

    def _head(self) -> tuple[str, bool]:
        """The folder below the base that contains every match, and whether matches may be anywhere below it."""
        pattern = self.form.pattern
        if "/" not in pattern:
            return "", True
        plain: list[str] = []
        for segment in pattern.strip("/").split("/"):
            if _WILD.search(segment):
                return "".join(f"/{one}" for one in plain), True
            plain.append(segment)
        return "".join(f"/{one}" for one in plain), False


def below(path: str, bases: Iterable[str]) -> Iterator[str]:
    """The path relative to each base that contains it."""
    for base in bases:
        if path == base or (path == "/" and not base):
            yield "."
        elif path.startswith(base) and path[len(base) : len(base) + 1] == "/":
            yield path[len(base) + 1 :]


def _compile(pattern: str) -> re.Pattern[str]:
    # It takes 40 ms to load, and few sessions have a path rule.
    from pathspec.patterns.gitignore.base import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    if pattern in ("**", "/**"):
        return _EVERYTHING
    text = f"\\{pattern}" if pattern.startswith("#") else pattern
    try:
        written = cast("re.Pattern[str] | None", GitIgnoreSpecPattern(text).regex)  # pyright: ignore[reportUnknownMemberType]
    except GitIgnorePatternError:
        written = None
    if written is None:
        # An invalid gitignore pattern is treated as a literal name.
        depth = "" if "/" in pattern else "(?:.*/)?"
        return re.compile(f"{depth}{re.escape(pattern.strip('/'))}(?:/|\\Z)", re.DOTALL)
    source = written.pattern.replace("(?P<ps_d>/)", "/").replace("$)", r"\Z)")
    return re.compile(source, re.DOTALL)


class PathIndex(Generic[ItemT]):
    """Many patterns matched in one pass; the values of those that match are returned.

    Names without wildcards are looked up, so that only patterns with some are tried.
    """

    def __init__(self, patterns: Iterable[tuple[PathPattern, ItemT]]) -> None:
        self.patterns = tuple(patterns)
        groups: dict[tuple[str, ...], _Group[ItemT]] = {}
        for pattern, item in self.patterns:
            groups.setdefault(pattern.bases, _Group()).add(pattern, item)
        self._groups = tuple(groups.items())

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def find(self, path: str) -> ItemT | None:
        for bases, group in self._groups:
            for rest in below(path, bases):
                item = group.find(rest)
                if item is not None:
                    return item
        return None


class _Group(Generic[ItemT]):
    """The patterns that share their bases. Only those other than a plain name, path, prefix or suffix are tried."""

    def __init__(self) -> None:
        self._names: dict[str, ItemT] = {}
        self._paths: dict[str, ItemT] = {}
        self._folders: dict[str, ItemT] = {}
        self._beginnings: dict[str, ItemT] = {}
        self._endings: dict[str, ItemT] = {}
        self._begins: tuple[str, ...] = ()
        self._ends: tuple[str, ...] = ()
        self._wild: list[tuple[re.Pattern[str], ItemT]] = []
        self._any_wild: re.Pattern[str] | None = None

    def add(self, pattern: PathPattern, item: ItemT) -> None:
        text = pattern.form.pattern
        folder = text.removesuffix("/**")
        if pattern.form.is_literal and not text.endswith("/"):
            (self._paths if "/" in text else self._names).setdefault(text.strip("/"), item)
        elif folder != text and "/" in folder and _WILD.search(folder) is None:
            self._folders.setdefault(folder.strip("/"), item)
        elif "/" not in text and len(text) > 1 and text.startswith("*") and _WILD.search(text[1:]) is None:
            self._endings.setdefault(text[1:], item)
            self._ends = tuple(self._endings)
        elif "/" not in text and len(text) > 1 and text.endswith("*") and _WILD.search(text[:-1]) is None:
            self._beginnings.setdefault(text[:-1], item)
            self._begins = tuple(self._beginnings)
        else:
            self._wild.append((pattern.regex, item))
            self._any_wild = None

    def find(self, rest: str) -> ItemT | None:
        found = self._by_name(rest)
        if found is not None or not self._wild:
            return found
        if self._any_wild is None:
            self._any_wild = re.compile("|".join(f"(?:{regex.pattern})" for regex, _ in self._wild), re.DOTALL)
        if self._any_wild.match(rest) is None:
            return None
        return next((item for regex, item in self._wild if regex.match(rest)), None)

    def _by_name(self, rest: str) -> ItemT | None:
        end = -1
        while end < len(rest):
            start = end + 1
            end = rest.find("/", start)
            end = len(rest) if end < 0 else end
            part, so_far = rest[start:end], rest[:end]
            if part in self._names:
                return self._names[part]
            if so_far in self._paths:
                return self._paths[so_far]
            if so_far in self._folders and end < len(rest):
                return self._folders[so_far]
            if self._ends and part.endswith(self._ends):
                return next(item for ending, item in self._endings.items() if part.endswith(ending))
            if self._begins and part.startswith(self._begins):
                return next(item for beginning, item in self._beginnings.items() if part.startswith(beginning))
        return None
