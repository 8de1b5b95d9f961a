"""Glob patterns as ripgrep reads them, for paths that it has already found.

ripgrep's own `--glob` overrides every ignore file: `--glob '**/*'` lists what
git ignores. So ripgrep walks and ignores, and the pattern is matched here; what
ripgrep can rule out by a file's name alone it still does, by a file type made
for the search.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ...core.values import plain_value

TYPE_NAME: Final = "ferruleglob"


class BadGlob(ValueError):
    """No path can match this. The message says why."""


@plain_value
class GlobSelection:
    """What a pattern leaves for ripgrep to rule out, and the test of what comes back."""

    arguments: tuple[str, ...] = ()
    matches: Callable[[str], object] | None = None
    """Takes a path relative to the searched folder; `None` where ripgrep rules out all that does not match."""


def below(pattern: str) -> GlobSelection:
    """For Glob: the pattern is the whole path. Only `**`, or a slash at the end, goes deeper than the pattern does."""
    whole = f"{pattern}**" if pattern.endswith("/") else pattern
    parts = [part for part in whole.split("/") if part not in ("", ".")]
    plain = "/".join(parts)
    matches = compile_glob(plain).fullmatch
    deep = "**" in plain or _slash_in_braces(plain)
    depth = () if deep else (f"--max-depth={max(len(parts), 1)}",)
    kind = _by_name(plain)
    if parts[:-1] in ([], ["**"]) and kind and (not deep or len(parts) == 2):
        return GlobSelection((*depth, *kind))
    return GlobSelection((*depth, *kind), None if plain in ("**", "**/*") else matches)


def anywhere(pattern: str, *, by_name: bool = True) -> GlobSelection:
    """For Grep, as `rg --glob`: a pattern without a slash matches at any depth, one with `!` before it excludes.

    Several are separated by commas: what one of them matches and none excludes.
    """
    patterns = split_globs(pattern)
    return _anywhere(patterns[0], by_name=by_name) if len(patterns) == 1 else _any_of(patterns)


def split_globs(text: str) -> tuple[str, ...]:
    """At commas outside of braces and sets, where a part follows on each side.

    >>> split_globs("*.md, *.ts"), split_globs("*.{md,ts}"), split_globs("a,b.txt")
    (('*.md', '*.ts'), ('*.{md,ts}',), ('a,b.txt',))
    """
    parts, depth, start = list[str](), 0, 0
    for at, char in enumerate(text):
        depth += (char in "{[") - (char in "}]")
        if char == "," and depth == 0 and text[at - 1 : at] != "\\":
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    several = len(parts) > 1 and all(re.search(r"[*?\[{/!]|^\.\w", part) for part in parts)
    return tuple(parts) if several else (text,)


def _any_of(patterns: tuple[str, ...]) -> GlobSelection:
    """Matched here, all but what is excluded, which ripgrep does."""
    chosen = [_anywhere(one, by_name=False).matches for one in patterns if not one.startswith("!")]
    excluding = tuple(word for one in patterns if one.startswith("!") for word in _anywhere(one).arguments)
    if not chosen:
        return GlobSelection(excluding)
    return GlobSelection(excluding, lambda path: any(matches is None or matches(path) for matches in chosen))


def _anywhere(pattern: str, *, by_name: bool = True) -> GlobSelection:
    if pattern.startswith("!"):
        compile_glob(pattern[1:])
        return GlobSelection((f"--glob={pattern}",))
    anchored = pattern.startswith("/") or "/" in pattern.rstrip("/")
    plain = pattern.strip("/") + ("/**" if pattern.endswith("/") else "")
    if not anchored:
        plain = f"**/{plain}"
    matches = compile_glob(plain.removeprefix("./")).fullmatch
    kind = _by_name(plain) if by_name else ()
    return GlobSelection(kind, None if kind and not anchored and not pattern.endswith("/") else matches)


def compile_glob(glob: str) -> re.Pattern[str]:
    """A regular expression for whole relative paths. Raises `BadGlob`.

    >>> bool(compile_glob("src/**/*.{py,pyi}").fullmatch("src/a/b.pyi"))
    True
    """
    return re.compile(_Translation(glob).regex(), re.DOTALL)


def _by_name(glob: str) -> tuple[str, ...]:
    """The arguments by which ripgrep keeps only files with a fitting name.

    ripgrep matches `?` and sets byte by byte, so a pattern with one of them is left to us.
    """
    head, _, tail = glob.rpartition("/")
    if re.search(r"[{}\[\]\\]", head) or re.search(r"[?:\[\]\\]", tail) or not tail.strip("*"):
        return ()
    return (f"--type-add={TYPE_NAME}:{tail}", f"--type={TYPE_NAME}")


def _slash_in_braces(glob: str) -> bool:
    return any("/" in group for group in re.findall(r"\{.*\}", glob, re.DOTALL))


class _Translation:
    """One walk over the characters of a glob."""

    def __init__(self, glob: str) -> None:
        self._glob = glob
        self._at = 0
        self._depth = 0

    def regex(self) -> str:
        parts: list[str] = []
        while self._at < len(self._glob):
            parts.append(self._next())
        if self._depth:
            raise BadGlob("a `{` is never closed")
        return "".join(parts)

    def _next(self) -> str:
        char = self._glob[self._at]
        self._at += 1
        match char:
            case "*":
                return self._star()
            case "?":
                return "[^/]"
            case "[":
                return self._set()
            case "{":
                self._depth += 1
                return "(?:"
            case "}":
                if not self._depth:
                    raise BadGlob("a `}` closes nothing")
                self._depth -= 1
                return ")"
            case "," if self._depth:
                return "|"
            case "\\":
                return self._escape()
            case _:
                return re.escape(char)

    def _star(self) -> str:
        if not self._glob.startswith("*", self._at):
            return "[^/]*"
        before = self._glob[self._at - 2 : self._at - 1] if self._at > 1 else "/"
        after = self._glob[self._at + 1 : self._at + 2] or "/"
        inside = self._depth > 0
        starts = before == "/" or (inside and before in "{,")
        ends = after == "/" or (inside and after in ",}")
        self._at += 1
        if not (starts and ends):
            return "[^/]*"
        if self._glob.startswith("/", self._at):
            self._at += 1
            return "(?:.*/)?"
        return ".*" if before != "/" or self._at <= 2 else ".+"

    def _set(self) -> str:
        """A set never matches the slash, as in git."""
        end = self._at
        if self._glob.startswith(("!", "^"), end):
            end += 1
        end = self._glob.find("]", end + 1)
        if end < 0:
            raise BadGlob("a `[` is never closed")
        body = self._glob[self._at : end]
        self._at = end + 1
        negated = body.startswith(("!", "^"))
        body = re.sub(r"([\\\[\]^&~|]|-(?=-))", r"\\\1", body[1:] if negated else body)
        try:
            re.compile(f"[{body}]")
        except re.error as error:
            raise BadGlob(f"`[{body}]` is not a valid set: {error}") from None
        return f"(?!/)[{'^' if negated else ''}{body}]"

    def _escape(self) -> str:
        if self._at == len(self._glob):
            raise BadGlob("it ends in a backslash")
        self._at += 1
        return re.escape(self._glob[self._at - 1])
