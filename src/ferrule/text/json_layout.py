"""How a JSON text is laid out, so that what is added to it looks as if it had always been there."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Protocol

from ..core.values import named_value
from .lines import has_break
from .matching import Span, TextEdit

_ESCAPED: Final = re.compile(r"(?:[^\\]++|\\(?!u(?!00[0-7])).)*+\\u", re.DOTALL)
"""Up to the first escape of a character beyond ASCII. Backslashes occur only in strings."""
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


class JsonItem(Protocol):
    """An item of a list or a member of an object."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


@named_value
class Layout:
    """What surrounds the parts of a list or an object."""

    open: str
    separator: str
    """The comma, with the whitespace around it."""
    close: str

    @classmethod
    def of(cls, text: str, inside: Span, parts: Sequence[JsonItem], *, spare: str = ", ") -> Layout | None:
        """As it is, or `None` for an empty one. `spare` separates the parts on one line where nothing shows how."""
        if not parts:
            return None
        open, close = text[inside.start : parts[0].start], text[parts[-1].end : inside.end]
        between = f",{open}" if has_break(open) else spare
        separator = text[parts[0].end : parts[1].start] if len(parts) > 1 else between
        return cls(open=open, separator=separator, close=close)

    @property
    def indent(self) -> str:
        """The whitespace that the parts' own lines begin with."""
        return re.split(r"[\r\n]", self.open)[-1] if has_break(self.open) else ""

    @property
    def on_one_line(self) -> str:
        """What separates parts that are on one line."""
        return ", " if has_break(self.separator) else self.separator

    def inner(self, unit: str) -> Layout:
        """Of a list or object that is a part of this one, a `unit` further in."""
        if not has_break(self.open):
            return Layout(open="", separator=self.separator, close="")
        deeper = self.open + unit
        return Layout(open=deeper, separator=f",{deeper}", close=self.open)

    def around(self, parts: Sequence[str]) -> str:
        return f"{self.open}{self.separator.join(parts)}{self.close}"


def without(parts: Sequence[JsonItem], gone: Collection[int], inside: Span) -> Iterator[TextEdit]:
    """The edits that take these parts out of a list or object, each with one comma and the whitespace beside it."""
    last = len(parts) - 1
    first = next((index for index in range(len(parts)) if index not in gone), None)
    if first is None:
        yield TextEdit(inside.start, inside.end, "")
        return
    if first > 0:
        yield TextEdit(parts[0].start, parts[first].start, "")
    begin = first
    for index in range(first + 1, last + 2):
        if index > last or index not in gone:
            if index - 1 > begin:
                yield TextEdit(parts[begin].end, parts[index - 1].end, "")
            begin = index


def escapes(text: str) -> bool | None:
    r"""Whether characters beyond ASCII are written as escapes; `None` where there are none.

    >>> escapes('"é"'), escapes(r'"\u00e9 \u001b"'), escapes(r'"\\u00e9 \u001b"')
    (False, True, None)
    """
    if not text.isascii():
        return False
    return True if _ESCAPED.match(text) else None


def encode_string(text: str, *, ascii_only: bool) -> str:
    r"""A string in quotes. Half a surrogate pair is escaped in any case, as no file could hold it.

    >>> print(encode_string('é"\ud800', ascii_only=False))
    "é\"\ud800"
    """
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(text, ensure_ascii=ascii_only))
