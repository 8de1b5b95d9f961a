"""A path where each line is one: a name may hold a line break."""

from __future__ import annotations

import json
import re

_BREAKS_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def on_one_line(path: str) -> str:
    r"""The path as it is, or as a JSON string where it holds a line break or another control character.

    No absolute path begins with a quote, so the two cannot be taken for each other.

    >>> on_one_line("/a/b c"), on_one_line("/a\nb")
    ('/a/b c', '"/a\\nb"')
    """
    if not _BREAKS_A_LINE.search(path):
        return path
    return _BREAKS_A_LINE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(path, ensure_ascii=False))
