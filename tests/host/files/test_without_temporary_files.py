"""Where no temporary file can be made, what needs one says so."""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from ferrule.cli.commands import demo, doctor
from ferrule.cli.exits import Failed
from ferrule.cli.parser import parse_command
from ferrule.host.processes.spawner_link import SpawnerFailed, SpawnerLink
from ferrule.host.processes.worker_process import RanAway, WorkLimits, in_own_process

WORDS = "folder for temporary files"


@pytest.fixture(autouse=True)
def _no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))


async def test_no_command_starts_and_nothing_stays_open() -> None:
    before = len(os.listdir("/proc/self/fd"))

    with pytest.raises(SpawnerFailed, match=WORDS):
        SpawnerLink.open({}, processes=100, memory=1 << 30)

    assert len(os.listdir("/proc/self/fd")) == before


def test_nothing_is_read_in_a_process_of_its_own() -> None:
    with pytest.raises(RanAway, match=WORDS):
        in_own_process("ferrule.host.documents.pdf_process", "", b"", WorkLimits(memory=1 << 30, seconds=1, answer=1))


@pytest.mark.parametrize(("name", "run"), [("demo", demo.run), ("doctor", doctor.run)])
def test_commands_that_need_a_folder_fail_in_words(name: str, run: Callable[[Namespace], int]) -> None:
    with pytest.raises(Failed, match=WORDS):
        run(parse_command([name]))
