"""Adding a server to the text of a settings file, or removing it, without changing the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from ..text.json_layout import without
from ..text.json_reader import Object, Value
from ..text.lines import LF, dominant_ending
from ..text.matching import Span, TextEdit
from .object_edits import UNIT, ObjectText, layout_of_root, read_root

KEY: Final = "mcpServers"


def adding_server(text: str, name: str, entry: Mapping[str, Any]) -> tuple[TextEdit, ...]:
    """The edits that add it, or replace the one of that name. Raises `NotEdited`."""
    ending = dominant_ending(text) or LF
    if not text.strip():
        new = json.dumps({KEY: {name: entry}}, indent=2, ensure_ascii=False) + "\n"
        return (TextEdit(0, len(text), new.replace("\n", ending)),)
    root = read_root(text)
    top = ObjectText(text, root, layout_of_root(text, root), _unit(text, root))
    servers = top.member(KEY)
    if servers is None:
        return (top.with_member(KEY, _write_value({name: entry}, top, text, root)),)
    inside = top.inside(servers, KEY)
    there = cast(Object, servers.value).get(name)
    written = _write_value(entry, inside, text, root)
    if there is None:
        return (inside.with_member(name, written),)
    return (TextEdit(there.value.start, there.value.end, written),)


def removing_server(text: str, name: str) -> tuple[TextEdit, ...]:
    """The edits that remove it; none if it is not there. Raises `NotEdited`."""
    if not text.strip():
        return ()
    found = cast(Object, read_root(text).value).get(KEY)
    if found is None or not isinstance(found.value.value, Object):
        return ()
    members = found.value.value.members
    gone = {at for at, member in enumerate(members) if member.key == name}
    return tuple(without(members, gone, Span(found.value.start + 1, found.value.end - 1))) if gone else ()


def _write_value(value: Mapping[str, Any], around: ObjectText, text: str, root: Value) -> str:
    """Indented like the object that it is added to; on one line if that is on one."""
    if not around.layout.indent:
        return json.dumps(value, ensure_ascii=False)
    ending = dominant_ending(text) or LF
    lines = json.dumps(value, indent=_unit(text, root), ensure_ascii=False).split("\n")
    return f"{ending}{around.layout.indent}".join(lines)


def _unit(text: str, root: Value) -> str:
    return layout_of_root(text, root).indent or UNIT
