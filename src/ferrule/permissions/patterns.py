"""Wildcards in the text of a command, a skill or an argument.

`*` is any text and `?` one character; a backslash escapes them. At the end, ` *`
and `:*` mean "and any arguments": the text before them must be followed by a space
or by nothing. A pattern is matched in linear time, since rules may come with
repositories.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

_TOKEN: Final = re.compile(r"\\(?P<escaped>.)|(?P<wild>[*?])|(?P<plain>[^\\*?]+|\\$)", re.DOTALL)
_BLANK: Final = re.compile(r"\s")
_BOUNDARY: Final = r"(?=\s|\Z)"


class TextPattern:
    """One pattern, compiled.

    >>> TextPattern("npm run test:*").matches("npm run test --watch"), TextPattern("ls *").matches("lsof")
    (True, False)
    """

    __slots__ = ("__dict__", "_bounded", "_tokens", "text")

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        self.text = text.casefold() if ignore_case else text
        head, self._bounded = _without_ending(self.text)
        self._tokens = tuple(_tokens(head))

    def matches(self, text: str) -> bool:
        return self._regex.match(text) is not None

    @cached_property
    def exact(self) -> str | None:
        """The one text it matches; `None` for a pattern with wildcards."""
        if self._bounded or any(wild for wild, _ in self._tokens):
            return None
        return self.literal

    @property
    def ends_in_wildcard(self) -> bool:
        """Whether it ends in "any arguments"."""
        return self._bounded

    @cached_property
    def literal(self) -> str:
        """All of its text but the wildcards."""
        return "".join(text for wild, text in self._tokens if not wild)

    @cached_property
    def head(self) -> str:
        """The text before the first wildcard."""
        words: list[str] = []
        for wild, text in self._tokens:
            if wild:
                break
            words.append(text)
        return "".join(words)

    @cached_property
    def first_word(self) -> str | None:
        """The word every match begins with; `None` if it contains a wildcard."""
        word = _BLANK.split(self.head, maxsplit=1)[0]
        whole = len(word) < len(self.head) or not any(wild for wild, _ in self._tokens)
        return word if word and whole else None

    def words_stand_in(self, text: str) -> bool:
        """Whether all words of the pattern are in the text, in any order: it may match a part of that."""
        return bool(self._words) and all(word in text for word in self._words)

    @cached_property
    def _words(self) -> tuple[str, ...]:
        return tuple(word for wild, words in self._tokens if not wild for word in words.split())

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        pieces = [""]
        for wild, text in self._tokens:
            if wild and text == "*":
                pieces.append("")
            else:
                pieces[-1] += "." if wild else re.escape(text)
        first, *rest = pieces
        if not rest:
            return re.compile(first + (_BOUNDARY if self._bounded else r"\Z"), re.DOTALL)
        # Each piece is matched at its first occurrence without backtracking, so that nothing is tried twice.
        *middle, last = rest
        found = "".join(f"(?>.*?{piece})" for piece in middle)
        end = f"(?>.*?{last}{_BOUNDARY})" if self._bounded else rf".*{last}\Z"
        return re.compile(first + found + end, re.DOTALL)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextPattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"TextPattern({self.text!r})"


def _without_ending(text: str) -> tuple[str, bool]:
    """The pattern without its trailing "any arguments" wildcard, and whether it had one."""
    for ending in (":*", " *"):
        head = text.removesuffix(ending)
        if head != text and head.strip() and not _ends_in_escape(head):
            return head.rstrip() if ending == " *" else head, True
    return text, False


def _ends_in_escape(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _tokens(text: str) -> list[tuple[bool, str]]:
    """Wildcards and plain texts, in order."""
    tokens: list[tuple[bool, str]] = []
    for found in _TOKEN.finditer(text):
        if found["wild"]:
            if found["wild"] == "?" or tokens[-1:] != [(True, "*")]:
                tokens.append((True, found["wild"]))
        else:
            tokens.append((False, found["escaped"] if found["escaped"] is not None else found["plain"]))
    return tokens
