"""A log file that only its owner can read."""

from __future__ import annotations

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from ..host.storage.session_folder import make_private


class PrivateFile(RotatingFileHandler):
    """0600 in a folder 0700; where it cannot be written, nothing is logged and nothing fails."""

    def _open(self) -> TextIOWrapper:
        make_private(Path(self.baseFilename).parent)
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class names it
        """A log that cannot be written is no reason to fail, or to write over the terminal."""
