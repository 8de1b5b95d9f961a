"""JSON that somebody else wrote."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str) -> Any:
    """By the fast parser; what that will not take (half a character, written out or escaped), by the patient one.

    Raises `ValueError` for what is not JSON, `RecursionError` for what is nested too deeply.
    """
    from pydantic_core import from_json

    try:
        return from_json(text)
    except (ValueError, TypeError):  # TypeError: a text that cannot be encoded
        return json.loads(text)
