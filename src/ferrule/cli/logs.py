"""Where tracebacks go when there is a person at the terminal: a file, not the screen."""

from __future__ import annotations

import argparse
import logging
import os
from functools import cached_property
from pathlib import Path

from ..host.storage.session_folder import make_private


def log_to_file(state_folder: Path) -> None:
    """Warnings and errors into `<state>/log/ferrule.log`, made when the first one is written."""
    logger = logging.getLogger("ferrule")
    if any(isinstance(handler, _FromFirstRecord) for handler in logger.handlers):
        return
    logger.addHandler(_FromFirstRecord(state_folder / "log" / "ferrule.log"))
    logger.propagate = False


def log_more(chosen: argparse.Namespace) -> None:
    """What --debug and its relatives ask for: everything into the log, and also into a file or to stderr."""
    places: list[logging.Handler] = []
    if chosen.debug_to_stderr:
        places.append(logging.StreamHandler())
    if chosen.debug_file:
        places.append(_FromFirstRecord(Path(chosen.debug_file).expanduser().absolute()))
    logger = logging.getLogger("ferrule")
    for place in places:
        place.setFormatter(logging.Formatter(_FORMAT))
        logger.addHandler(place)
    if places or chosen.debug is not None:
        logger.setLevel(logging.DEBUG)


_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _FromFirstRecord(logging.Handler):
    """Loading the rotating file handler takes longer than most of the start-up, and most runs log nothing."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    @cached_property
    def _file(self) -> logging.Handler:
        file = _open_private(self._path)
        file.setFormatter(logging.Formatter(_FORMAT))
        return file

    def emit(self, record: logging.LogRecord) -> None:
        self._file.handle(record)

    def close(self) -> None:
        if "_file" in self.__dict__:
            self._file.close()
        super().close()


def _open_private(path: Path) -> logging.Handler:
    """0600 in a folder 0700; where it cannot be written, nothing is logged and nothing fails."""
    from io import TextIOWrapper
    from logging.handlers import RotatingFileHandler

    class PrivateFile(RotatingFileHandler):
        def _open(self) -> TextIOWrapper:
            make_private(Path(self.baseFilename).parent)
            descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")

        def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class names it
            """A log that cannot be written must not fail the run or write to the terminal."""

    return PrivateFile(path, maxBytes=5_000_000, backupCount=2, delay=True)
