"""A rule put into the text of a settings file, with all the rest as it is.

What is added follows the file's formatting: its indentation, its line breaks,
its colons. Nothing is added twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..core.verdicts import Behavior
from ..text.json_layout import Layout, encode_string, escapes
from ..text.json_reader import Array, Value
from ..text.lines import LF, dominant_ending
from ..text.matching import Span, TextEdit
from .object_edits import UNIT, NotEdited, ObjectText, layout_of_root, read_root

KEYS: Final[Mapping[Behavior, str]] = {Behavior.ALLOW: "allow", Behavior.ASK: "ask", Behavior.DENY: "deny"}


def adding(text: str, behavior: Behavior, rule: str) -> tuple[TextEdit, ...]:
    """The edits that add the rule; none if it is already there. Raises `NotEdited`."""
    if not text.strip():
        return (TextEdit(0, len(text), _new_text(text, behavior, rule)),)
    root = read_root(text)
    unit = layout_of_root(text, root).indent or UNIT  # of the root's members; all below them uses multiples of it
    quoted = encode_string(rule, ascii_only=escapes(text) is True)
    top = ObjectText(text, root, layout_of_root(text, root), unit)
    permissions = top.member("permissions")
    if permissions is None:
        inner = top.layout.inner(unit)
        rules = inner.inner(unit).around([quoted])
        return (top.with_member("permissions", f"{{{inner.around([f'{top.key(KEYS[behavior])}[{rules}]'])}}}"),)
    second = top.inside(permissions, "permissions")
    found = second.member(KEYS[behavior])
    if found is None:
        return (second.with_member(KEYS[behavior], f"[{second.layout.inner(unit).around([quoted])}]"),)
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
        raise NotEdited(f"`permissions.{KEYS[behavior]}` is not a list.")
    return found.value.items


def _new_text(text: str, behavior: Behavior, rule: str) -> str:
    ending = dominant_ending(text) or LF
    lines = ("{", '  "permissions": {', f'    "{KEYS[behavior]}": [', f"      {encode_string(rule, ascii_only=False)}", "    ]", "  }", "}", "")  # noqa: E501  # fmt: skip
    return ending.join(lines)
