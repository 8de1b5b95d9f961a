"""JSON that somebody else wrote."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str) -> Any:
    """Uses the fast parser; what that rejects (half a character, written out or escaped) goes to the lenient one.

    Raises `ValueError` for what is not JSON, `RecursionError` for what is nested too deeply.
    """
    from pydantic_core import from_json

    try:
        return from_json(text)
    except (ValueError, TypeError):  # TypeError: a text that cannot be encoded
        return json.loads(text)
