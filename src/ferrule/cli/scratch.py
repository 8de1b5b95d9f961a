"""A folder for as long as a command runs."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from .exits import Failed


@contextmanager
def scratch_folder(prefix: str) -> Generator[str]:
    """Raises `Failed` where none can be made."""
    try:
        folder = tempfile.TemporaryDirectory(prefix=prefix)
    except OSError:
        raise Failed("no writable folder for temporary files was found. Set TMPDIR to one.") from None
    with folder as name:
        yield name
