"""Regenerates the schemas after a change of the models."""

from __future__ import annotations

from ..settings_files import SettingsKind
from . import schema_file, schema_text

for kind in SettingsKind:
    schema_file(kind).write_text(schema_text(kind), encoding="utf-8")
