"""Read: files made to keep it busy for ever."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import plain_text
from ferrule.core.threads import in_a_thread
from ferrule.host.documents.contents import PartsRead
from ferrule.host.documents.pdfs import PROCESS
from ferrule.permissions.modes import Mode
from ferrule.testing import run_call
from ferrule.tools.read import Read
from tests.host.documents.making import nested_pdf, pdf
from tests.requirement import requirement


def _documents_in_work() -> list[str]:
    """The processes below this one that take a document apart."""
    found: list[str] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:  # it has just ended
            continue
        if f"PPid:\t{os.getpid()}\n" in status and PROCESS.encode() in command:
            found.append(pid)
    return found


def _until_in_work() -> None:
    while not _documents_in_work():
        time.sleep(0.01)


@requirement("READ-5")
async def test_a_time_limit_ends_the_work_and_not_only_the_wait(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(nested_pdf(12, 10))
    (tmp_path / "b.pdf").write_bytes(pdf(["another"]))
    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state", time_limits={"Read": 1.0})
    session = open_session(settings)

    (stopped,) = await session.run([ToolCall("1", "Read", {"file_path": "a.pdf"})])

    assert (stopped.status, plain_text(stopped.content)) == (
        Status.FAILED,
        "Read was stopped after 1 s, its time limit.",
    )
    assert _documents_in_work() == []


@requirement("READ-5")
async def test_one_document_that_never_ends_keeps_nobody_from_another(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(nested_pdf(12, 10))
    (tmp_path / "b.pdf").write_bytes(pdf(["another"]))
    session = open_session(Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state"))

    endless = asyncio.ensure_future(session.run([ToolCall("1", "Read", {"file_path": "a.pdf"})]))
    await in_a_thread(_until_in_work)
    (read,) = await session.run([ToolCall("2", "Read", {"file_path": "b.pdf"})])
    endless.cancel()
    await asyncio.wait((endless,))

    assert (read.status, plain_text(read.content).splitlines()[:2]) == (Status.OK, ["[Page 1 of 1]", "another"])
    assert _documents_in_work() == []


@requirement("READ-7")
async def test_a_line_without_an_end_in_sight_gives_its_beginning_and_says_so(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("wb") as file:
        file.write(b"word " * 60_000)
        file.truncate(40 << 30)
    tool = Read(parts_folder=tmp_path / "parts")

    outcome = await run_call(tmp_path, tool, {"file_path": "a.txt"})

    assert isinstance(outcome.output, PartsRead)
    assert outcome.output.count < 800
    assert "The parts hold only the beginning of it" in plain_text(outcome.content)
    written = sum(path.stat().st_size for path in Path(outcome.output.folder).iterdir())
    assert (60 << 20) < written <= (64 << 20)
