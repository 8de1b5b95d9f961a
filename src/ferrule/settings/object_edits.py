"""An object in the text of a settings file, and how to add a member that is formatted like the others."""

from __future__ import annotations

from typing import Final, cast

from ..text.json_layout import Layout, encode_string
from ..text.json_reader import NotJson, Object, Value, read_json, strict_reader
from ..text.lines import LF, dominant_ending
from ..text.matching import Span, TextEdit

UNIT: Final = "  "
"""The indentation of one level if the file does not show any."""


class NotEdited(ValueError):
    """The file cannot take this change. The message says what is wrong with it."""


def read_root(text: str) -> Value:
    """All of the file, which must be an object. Raises `NotEdited`."""
    try:
        root = read_json(text, strict_reader())
    except NotJson as error:
        raise NotEdited(f"it is invalid: {error}") from None
    if not isinstance(root.value, Object):
        raise NotEdited("it holds no object.")
    return root


class ObjectText:
    """An object of the file, and how it is laid out."""

    def __init__(self, text: str, value: Value, layout: Layout, unit: str, colon: str = ": ") -> None:
        self._text = text
        self._spare_colon = colon
        self._value = value
        self._object = cast(Object, value.value)
        self._unit = unit
        self.layout = layout

    def member(self, key: str) -> Value | None:
        found = self._object.get(key)
        return found.value if found else None

    def inside(self, value: Value, name: str) -> ObjectText:
        if not isinstance(value.value, Object):
            raise NotEdited(f"`{name}` is not an object.")
        span = Span(value.start + 1, value.end - 1)
        layout = Layout.of(self._text, span, value.value.members, spare=self.layout.on_one_line)
        return ObjectText(self._text, value, layout or self.layout.inner(self._unit), self._unit, self._colon)

    def key(self, name: str) -> str:
        return encode_string(name, ascii_only=True) + self._colon

    @property
    def _colon(self) -> str:
        """As the first member has it, otherwise the object around this one."""
        if not self._object.members:
            return self._spare_colon
        first = self._object.members[0]
        between = self._text[first.start : first.value.start]
        return between[len(between.rstrip(" \t\r\n:")) :]

    def with_member(self, name: str, value: str) -> TextEdit:
        members, written = self._object.members, f"{self.key(name)}{value}"
        if members:
            return TextEdit(members[-1].end, members[-1].end, self.layout.separator + written)
        return TextEdit(self._value.start + 1, self._value.end - 1, self.layout.around([written]))


def layout_of_root(text: str, root: Value) -> Layout:
    span, ending = Span(root.start + 1, root.end - 1), dominant_ending(text) or LF
    fresh = Layout(open=f"{ending}{UNIT}", separator=f",{ending}{UNIT}", close=ending)
    return Layout.of(text, span, cast(Object, root.value).members) or fresh
