"""Schemas for answers: which are taken before a model is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ferrule.app.headless_run import SchemaError, StructuredOutput, read_schema

LIST = {"type": "object", "properties": {"next": {"$ref": "#"}}}


@pytest.mark.parametrize(
    "schema",
    [
        LIST,
        {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "string"}}},
        {"properties": {"a": {"$ref": "#b"}}, "$defs": {"b": {"$anchor": "b", "type": "string"}}},
        {"$id": "http://x/root", "properties": {"a": {"$ref": "root#/$defs/b"}}, "$defs": {"b": {}}},
        {"properties": {"a": {"$ref": "part"}}, "$defs": {"b": {"$id": "part", "properties": {"c": {"$ref": "#/d"}}}}},
        {"properties": {"$ref": {"type": "string"}, "a": {"enum": [{"$ref": "nowhere"}]}}},
    ],
    ids=str,
)
def test_references_inside_of_a_schema_are_taken(schema: dict[str, Any]) -> None:
    assert StructuredOutput(read_schema(json.dumps(schema))).input_schema()["type"] == "object"


@pytest.mark.parametrize("reference", ["#/$defs/nowhere", "#nowhere", "other.json", "http://localhost:1/s"])
def test_a_reference_to_nothing_is_refused_before_a_model_is_asked(reference: str) -> None:
    schema = {"anyOf": [{"properties": {"a": {"items": {"$ref": reference}}}}]}

    with pytest.raises(SchemaError, match="cannot be resolved"):
        StructuredOutput(read_schema(json.dumps(schema)))
