"""The schemas of the built-in tools as they are sent."""

from __future__ import annotations

import json

from ferrule.tools import builtin_tools

SCHEMAS = {tool.name: json.dumps(json.loads(tool.spec.schema_json()), indent=2) for tool in builtin_tools()}
"""Written out, keys in the order in which they are sent."""
