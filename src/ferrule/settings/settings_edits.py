"""A rule or a server put into the text of a settings file, with all the rest as it is.

What is added follows the file's formatting: its indentation, its line breaks,
its colons. Nothing is added twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from ..core.verdicts import Behavior
from ..text.json_layout import Layout, encode_string, escapes, without
from ..text.json_reader import Array, NotJson, Object, Value, read_json, strict_reader
from ..text.lines import LF, dominant_ending
from ..text.matching import Span, TextEdit

_RULE_KEYS: Final[Mapping[Behavior, str]] = {Behavior.ALLOW: "allow", Behavior.ASK: "ask", Behavior.DENY: "deny"}
SERVERS: Final = "mcpServers"
_UNIT: Final = "  "
"""The indentation of one level if the file does not show any."""


class NotEdited(ValueError):
    """The file cannot take this change. The message says what is wrong with it."""


def adding_rule(text: str, behavior: Behavior, rule: str) -> tuple[TextEdit, ...]:
    """The edits that add the rule; none if it is already there. Raises `NotEdited`."""
    if not text.strip():
        return (TextEdit(0, len(text), _new_text(text, behavior, rule)),)
    root = _read_root(text)
    unit = _unit(text, root)
    quoted = encode_string(rule, ascii_only=escapes(text) is True)
    top = _ObjectText(text, root, _layout_of_root(text, root), unit)
    permissions = top.member("permissions")
    if permissions is None:
        inner = top.layout.inner(unit)
        rules = inner.inner(unit).around([quoted])
        return (top.with_member("permissions", f"{{{inner.around([f'{top.key(_RULE_KEYS[behavior])}[{rules}]'])}}}"),)
    second = top.inside(permissions, "permissions")
    found = second.member(_RULE_KEYS[behavior])
    if found is None:
        return (second.with_member(_RULE_KEYS[behavior], f"[{second.layout.inner(unit).around([quoted])}]"),)
    items = _items(found, behavior)
    if any(item.value == rule for item in items):
        return ()
    span = Span(found.start + 1, found.end - 1)
    layout = Layout.of(text, span, items, spare=second.layout.on_one_line)
    if layout is None:
        return (TextEdit(span.start, span.end, second.layout.inner(unit).around([quoted])),)
    return (TextEdit(items[-1].end, items[-1].end, layout.separator + quoted),)


def _items(found: Value, behavior: Behavior) -> tuple[Value, ...]:
    if not isinstance(found.value, Array):
        raise NotEdited(f"`permissions.{_RULE_KEYS[behavior]}` is not a list.")
    return found.value.items


def _new_text(text: str, behavior: Behavior, rule: str) -> str:
    ending = dominant_ending(text) or LF
    lines = ("{", '  "permissions": {', f'    "{_RULE_KEYS[behavior]}": [', f"      {encode_string(rule, ascii_only=False)}", "    ]", "  }", "}", "")  # noqa: E501  # fmt: skip
    return ending.join(lines)


def adding_server(text: str, name: str, entry: Mapping[str, Any]) -> tuple[TextEdit, ...]:
    """The edits that add it, or replace the one of that name. Raises `NotEdited`."""
    ending = dominant_ending(text) or LF
    if not text.strip():
        new = json.dumps({SERVERS: {name: entry}}, indent=2, ensure_ascii=False) + "\n"
        return (TextEdit(0, len(text), new.replace("\n", ending)),)
    root = _read_root(text)
    top = _ObjectText(text, root, _layout_of_root(text, root), _unit(text, root))
    servers = top.member(SERVERS)
    if servers is None:
        return (top.with_member(SERVERS, _write_value({name: entry}, top, text, root)),)
    inside = top.inside(servers, SERVERS)
    there = cast(Object, servers.value).get(name)
    written = _write_value(entry, inside, text, root)
    if there is None:
        return (inside.with_member(name, written),)
    return (TextEdit(there.value.start, there.value.end, written),)


def removing_server(text: str, name: str) -> tuple[TextEdit, ...]:
    """The edits that remove it; none if it is not there. Raises `NotEdited`."""
    if not text.strip():
        return ()
    found = cast(Object, _read_root(text).value).get(SERVERS)
    if found is None or not isinstance(found.value.value, Object):
        return ()
    members = found.value.value.members
    gone = {at for at, member in enumerate(members) if member.key == name}
    return tuple(without(members, gone, Span(found.value.start + 1, found.value.end - 1))) if gone else ()


def _write_value(value: Mapping[str, Any], around: _ObjectText, text: str, root: Value) -> str:
    """Indented like the object that it is added to; on one line if that is on one."""
    if not around.layout.indent:
        return json.dumps(value, ensure_ascii=False)
    ending = dominant_ending(text) or LF
    lines = json.dumps(value, indent=_unit(text, root), ensure_ascii=False).split("\n")
    return f"{ending}{around.layout.indent}".join(lines)


def _unit(text: str, root: Value) -> str:
    """The indentation of the root's members; everything below them uses multiples of it."""
    return _layout_of_root(text, root).indent or _UNIT


def _read_root(text: str) -> Value:
    """All of the file, which must be an object. Raises `NotEdited`."""
    try:
        root = read_json(text, strict_reader())
    except NotJson as error:
        raise NotEdited(f"it is invalid: {error}") from None
    if not isinstance(root.value, Object):
        raise NotEdited("it holds no object.")
    return root


class _ObjectText:
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

    def inside(self, value: Value, name: str) -> _ObjectText:
        if not isinstance(value.value, Object):
            raise NotEdited(f"`{name}` is not an object.")
        span = Span(value.start + 1, value.end - 1)
        layout = Layout.of(self._text, span, value.value.members, spare=self.layout.on_one_line)
        return _ObjectText(self._text, value, layout or self.layout.inner(self._unit), self._unit, self._colon)

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


def _layout_of_root(text: str, root: Value) -> Layout:
    span, ending = Span(root.start + 1, root.end - 1), dominant_ending(text) or LF
    fresh = Layout(open=f"{ending}{_UNIT}", separator=f",{ending}{_UNIT}", close=ending)
    return Layout.of(text, span, cast(Object, root.value).members) or fresh
