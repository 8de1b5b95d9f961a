"""Writes, and what is said of those that are refused or fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferrule.host.files.atomic_writes import NotWritten, Written, write_file
from ferrule.host.files.held_folders import ChangedMeanwhile
from ferrule.host.files.open_files import FileSnapshot, read_document

NOBODY = 65534


def rewritten(path: Path, data: bytes) -> Written:
    return write_file(str(path), data, expected=read_document(str(path)).identity)


def refused(path: Path, data: bytes, before: FileSnapshot | None) -> str:
    with pytest.raises(ChangedMeanwhile) as caught:
        write_file(str(path), data, expected=before and before.identity)
    return str(caught.value)


def failed_with(path: Path, data: bytes, before: FileSnapshot | None = None) -> tuple[int | None, str]:
    with pytest.raises(NotWritten) as caught:
        write_file(str(path), data, expected=before and before.identity)
    return caught.value.errno, caught.value.strerror or ""


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))
