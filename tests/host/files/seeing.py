"""Files as an agent has seen them, without a tool to show them."""

from __future__ import annotations

import os
from pathlib import Path

from ferrule.host.files.ledger import Ledger, Stamp, lines_of
from ferrule.host.files.open_files import FileSnapshot, read_document


def snapshot_of(path: Path) -> FileSnapshot:
    return read_document(str(path))


def see(ledger: Ledger, path: Path) -> None:
    """All of it."""
    seen = snapshot_of(path)
    ledger.saw_whole(seen.identity, seen.document.text)


def see_lines(ledger: Ledger, path: Path, first: int, last: int) -> None:
    lines = lines_of(snapshot_of(path).document.text)[first - 1 : last]
    ledger.saw_lines(os.path.realpath(path), Stamp.of(os.stat(path)), first=first, lines=lines)
