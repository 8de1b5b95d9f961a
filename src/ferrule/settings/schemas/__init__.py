"""The JSON Schemas of settings files, for editors and other programs.

They are generated from the models by `python -m ferrule.settings.schemas`
and shipped beside this file. They leave out only what needs code: the balance of
parentheses in a rule, and reserved server names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import WithDefaultSchema

from ..settings_files import SettingsKind
from ..settings_models import MODELS

FOLDER: Final = Path(__file__).parent


def schema_of(kind: SettingsKind) -> dict[str, Any]:
    """The schema of a kind of file, from its model."""
    schema = MODELS[kind].model_json_schema(schema_generator=_PlainSchema)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}


def schema_text(kind: SettingsKind) -> str:
    return json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"


def schema_file(kind: SettingsKind) -> Path:
    return FOLDER / f"{kind}.json"


class _PlainSchema(GenerateJsonSchema):
    """Without titles, and without the default `null`, which no file may contain."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        return (
            self.generate_inner(schema["schema"]) if schema.get("default") is None else super().default_schema(schema)
        )
