"""Values that a JSON Schema of settings allows, so that a key which is added to a model is drawn as well."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from ferrule.settings.rule_entries import RULE_PATTERN
from ferrule.settings.schemas import schema_of
from ferrule.settings.settings_files import SettingsKind

RULES: Final = ("Bash", "Read", "Edit(./**)", "Bash(curl *)", "WebFetch", "mcp__evil")
TEXTS: Final = (
    "*",
    "/",
    "~",
    "./run.sh",
    "os:system",
    "scripted:evil.json",
    "http://127.0.0.1:9/",
    "evil.test",
    "PATH",
)
"""What a hostile file would say; each schema takes those that fit it."""


def _texts(schema: Mapping[str, Any]) -> list[str]:
    pattern = schema.get("pattern", "")
    return [text for text in (RULES if pattern == RULE_PATTERN else TEXTS) if re.search(pattern, text)]


def settings_values(kind: SettingsKind = SettingsKind.SETTINGS) -> st.SearchStrategy[dict[str, Any]]:
    schema = schema_of(kind)
    return st.deferred(lambda: _values(schema, schema))


def fullest(*, switch: bool) -> dict[str, Any]:
    """Settings that hold every key there is, with as much as fits in it, and each switch in one position."""
    schema = schema_of(SettingsKind.SETTINGS)
    return _fullest(schema, schema, switch)


def _fullest(schema: Mapping[str, Any], root: Mapping[str, Any], switch: bool) -> Any:
    if "$ref" in schema:
        return _fullest(root["$defs"][schema["$ref"].rpartition("/")[2]], root, switch)
    if "const" in schema or "enum" in schema:
        return schema.get("const") or schema["enum"][-1]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _fullest(schema[several][0], root, switch)
    match schema.get("type"):
        case "boolean":
            return switch
        case "integer" | "number":
            return schema.get("maximum", 1000)
        case "string":
            return _texts(schema)[-1]
        case "array":
            inner = schema["items"]
            if inner.get("type") == "string" and "enum" not in inner:
                return _texts(inner)
            return [_fullest(inner, root, switch)]
        case "object" if "properties" in schema:
            members = schema["properties"].items()
            most = schema.get("maxProperties", len(members))
            return {name: _fullest(one, root, switch) for name, one in list(members)[:most]}
        case "object":
            inner, names = schema["additionalProperties"], schema.get("propertyNames", {}).get("enum", ["evil"])
            return {name: _fullest(inner, root, switch) for name in names}
        case _:
            return {"x": 1}


def _values(schema: Mapping[str, Any], root: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        return _values(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return st.one_of([_values(one, root) for one in schema[several]])
    match schema.get("type"):
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(max(1, int(schema.get("minimum", 1))), int(schema.get("maximum", 2000)))
        case "number":
            return st.floats(0.5, schema.get("maximum", 60))
        case "string":
            return st.sampled_from(_texts(schema))
        case "array":
            return st.lists(_values(schema["items"], root), max_size=3)
        case "object":
            return _objects(schema, root)
        case _:
            return st.sampled_from([True, "x", {"x": 1}])


def _objects(schema: Mapping[str, Any], root: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    members = schema.get("properties")
    if members is None:
        inner, names = schema.get("additionalProperties", True), schema.get("propertyNames", {})
        keys = st.sampled_from(names.get("enum") or ["PATH", "evil", "ANTHROPIC_BASE_URL"])
        values = st.just(1) if inner is True else _values(inner, root)
        return st.dictionaries(keys, values, max_size=2)
    needed = schema.get("required", ())
    required = {name: _values(members[name], root) for name in needed}
    optional = {name: _values(one, root) for name, one in members.items() if name not in needed}
    return st.fixed_dictionaries(required, optional=optional)
