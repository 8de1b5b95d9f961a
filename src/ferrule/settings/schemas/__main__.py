"""Write the schemas anew, after a change of the models."""

from __future__ import annotations

from ..files import SettingsKind
from . import schema_file, written_schema

for kind in SettingsKind:
    schema_file(kind).write_text(written_schema(kind), encoding="utf-8")
