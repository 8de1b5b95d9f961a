"""Programs that leave a loop early and end at once, as most short ones do."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from ferrule.core.calls import ToolCall
from ferrule.providers.scripted import says
from ferrule.sdk.client import query

from .scenes import options


@pytest.mark.parametrize("read", [2, 3, 5])
def test_a_program_that_ends_right_after_its_loop_leaves_a_whole_transcript(
    read: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = (says("", ToolCall("1", "Bash", {"command": "echo hello"})), says("Done."))

    async def main() -> None:
        unread = read
        async for _ in query(prompt="Say hello.", options=options(tmp_path, *script)):
            unread -= 1
            if not unread:
                break

    with caplog.at_level(logging.WARNING):
        for _ in range(3):  # where the loop's end finds the turn differs from run to run
            asyncio.run(main())

    assert [record.getMessage() for record in caplog.records] == []
    for transcript in (tmp_path / "state" / "projects").rglob("*.jsonl"):
        assert transcript.read_text().splitlines()[-1].startswith('{"type":"end"')
