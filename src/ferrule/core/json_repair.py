"""JSON as models misspell it, read only where it can mean one thing.

Understood: a comma before a closing bracket, single or typographic quotes, line breaks and tabs inside a
string, Python's `True`, `False` and `None`, names without quotes, `\\d` and the like in a string that has no
other escapes, closing brackets that are missing at the end or too many there. A quote inside a string that is
not escaped could end it in two places, so such a text stays what it is: no JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

DEEPEST: Final = 64
_BLANK: Final = re.compile(r"[\s\u200b\ufeff]*")
_NAME: Final = re.compile(r"[A-Za-z_$][\w$-]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_LONGEST_NUMBER: Final = 300
_WORD: Final = re.compile(r"(?:true|false|null|True|False|None)\b")
_WORDS: Final = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_QUOTES: Final = {'"': '"', "'": "'", "\u201c": "\u201d"}
_STRINGS: Final = {closer: re.compile(rf"(?:[^{closer}\\]|\\.)*+{closer}", re.DOTALL) for closer in _QUOTES.values()}
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\", '"': '"'}
_OTHER_ESCAPES: Final = frozenset("u'\nxavUN0123456789")
"""Those of other languages, or of nobody: it is not certain that the backslash was meant."""
_FENCED: Final = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?\s*```\s*", re.DOTALL)
_CLOSERS: Final = re.compile(r"[\s}\]]*")


class NotRepairable(ValueError):
    """The text is not JSON, and it is not certain what was meant."""


def repair_object(text: str, *, may_close: bool = True) -> dict[str, Any] | None:
    """The one object that the text can mean; `None` if there is none, or more than one.

    Without `may_close`, a text that ends too early is not completed: it may have been cut off.

    >>> repair_object("{'path': 'a.py', \\"all\\": True,}")
    {'path': 'a.py', 'all': True}
    >>> repair_object('{"text": "say "hi""}') is None
    True
    """
    fenced = _FENCED.fullmatch(text)
    text = fenced[1] if fenced else text
    try:
        value, end = read_value(text, may_close=may_close)
    except (NotRepairable, RecursionError):
        return None
    if isinstance(value, str) and not text[end:].strip():
        return _object_in(value)
    if not isinstance(value, dict) or _CLOSERS.fullmatch(text, end) is None:
        return None
    return cast(dict[str, Any], value)


def read_value(text: str, at: int = 0, *, may_close: bool = True) -> tuple[Any, int]:
    """The value that begins there, and where it ends. Raises `NotRepairable`."""
    return _Reader(text, may_close=may_close).value(_skip_blank(text, at), 0)


def _object_in(text: str) -> dict[str, Any] | None:
    """The object that a string is the JSON of: some services encode arguments twice."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _skip_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


class _Reader:
    def __init__(self, text: str, *, may_close: bool) -> None:
        self._text = text
        self._may_close = may_close

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > DEEPEST:
            raise NotRepairable("nested too deeply")
        mark = self._text[at : at + 1]
        if mark == "{":
            return self._object(at + 1, depth)
        if mark == "[":
            return self._list(at + 1, depth)
        if mark in _QUOTES and mark:
            return self._string(at)
        if found := _NUMBER.match(self._text, at):
            number = found[0]
            if len(number) > _LONGEST_NUMBER:
                raise NotRepairable("a number that is too long")
            return (int(number) if number.lstrip("-").isdecimal() else float(number)), found.end()
        if found := _WORD.match(self._text, at):
            return _WORDS[found[0]], found.end()
        raise NotRepairable(f"no value at {at}")

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = _skip_blank(self._text, at)
        while self._text[at : at + 1] != "}":
            key, at = self._key(at)
            if key in found:
                raise NotRepairable(f"{key} is given twice")
            found[key], at = self.value(_skip_blank(self._text, at), depth + 1)
            at, is_over = self._next(at, "}")
            if is_over:
                return found, at
        return found, at + 1

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = _skip_blank(self._text, at)
        while self._text[at : at + 1] != "]":
            value, at = self.value(at, depth + 1)
            found.append(value)
            at, is_over = self._next(at, "]")
            if is_over:
                return found, at
        return found, at + 1

    def _next(self, at: int, closer: str) -> tuple[int, bool]:
        """Past the comma or the closing bracket after a value; whether it was the last one."""
        at = _skip_blank(self._text, at)
        mark = self._text[at : at + 1]
        if mark == closer:
            return at + 1, True
        if mark == ",":
            return _skip_blank(self._text, at + 1), False
        if not mark and self._may_close:
            return at, True
        raise NotRepairable(f"neither a comma nor {closer} at {at}")

    def _key(self, at: int) -> tuple[str, int]:
        if self._text[at : at + 1] in _QUOTES and at < len(self._text):
            key, at = self._string(at)
        elif found := _NAME.match(self._text, at):
            key, at = found[0], found.end()
        else:
            raise NotRepairable(f"no name at {at}")
        at = _skip_blank(self._text, at)
        if self._text[at : at + 1] != ":":
            raise NotRepairable(f"no colon at {at}")
        return key, at + 1

    def _string(self, at: int) -> tuple[str, int]:
        text = self._text
        if text.startswith('"""', at):
            return self._block(at + 3)
        closer = _QUOTES[text[at]]
        found = _STRINGS[closer].match(text, at + 1)
        if found is None:
            raise NotRepairable("a string does not end")
        return _unescape(found[0][:-1], closer), found.end()

    def _block(self, at: int) -> tuple[str, int]:
        """Python's string of several lines. With a backslash in it, it could be meant as it is or as an escape."""
        end = self._text.find('"""', at)
        if end < 0 or "\\" in self._text[at:end] or self._text[end + 3 : end + 4] == '"':
            raise NotRepairable("a string of several lines that is not clear")
        return self._text[at:end], end + 3


_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def _unescape(text: str, closer: str) -> str:
    """Raises `NotRepairable` where escapes that JSON has are mixed with those it does not have."""
    if "\\" not in text:
        return text
    kinds = {found[1][0] for found in _ESCAPE.finditer(text)} - {closer, '"'}
    if not kinds - _ESCAPES.keys() - {"u"}:
        if "u" in kinds and any(found[1] == "u" for found in _ESCAPE.finditer(text)):
            raise NotRepairable("a character that is only half written")
        whole = _ESCAPE.sub(lambda found: _character(found[1], closer), text)
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "u" in kinds else whole
    if kinds & (_ESCAPES.keys() | _OTHER_ESCAPES):
        raise NotRepairable("escapes that can mean two things")
    return _ESCAPE.sub(lambda found: found[1] if found[1] in (closer, '"') else found[0], text)


def _character(escape: str, closer: str) -> str:
    if escape == closer:
        return closer
    return chr(int(escape[1:], 16)) if escape[0] == "u" else _ESCAPES[escape]
