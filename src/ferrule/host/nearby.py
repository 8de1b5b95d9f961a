"""What is there instead of a file that is not."""

from __future__ import annotations

import difflib
import os


def missing(path: str) -> str:
    """Say so, with a near name in the same folder, or the part of the path that does not exist either."""
    folder, name = os.path.split(path)
    try:
        near = difflib.get_close_matches(name, os.listdir(folder), n=3, cutoff=0.6)
    except OSError:
        return f"{path} does not exist, and neither does {folder}. Use Glob to find the file."
    if near:
        return f"{path} does not exist. In that folder there is {', '.join(near)}."
    return f"{path} does not exist. Use Glob to find the file."
