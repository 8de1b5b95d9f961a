"""Reading one file in a session, for tests of Read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ferrule.core.calls import Status
from ferrule.core.content import Text
from ferrule.testing import run_call
from ferrule.tools.read import REMINDER, Read


async def read_file(folder: Path, file_path: str | Path, **more: Any) -> str:
    outcome = await run_call(folder, Read(), {"file_path": str(file_path), **more})
    assert outcome.status is Status.OK, outcome.content
    return text_of_file(outcome.content)


async def read_refused(folder: Path, file_path: str | Path, **more: Any) -> tuple[Status, str]:
    outcome = await run_call(folder, Read(), {"file_path": str(file_path), **more})
    assert outcome.is_error
    return outcome.status, text_of_file(outcome.content)


def text_of_file(content: tuple[Any, ...]) -> str:
    """What is said of the file; what is said of all files has its own test."""
    (block,) = (block for block in content if block != Text(REMINDER))
    assert isinstance(block, Text)
    return block.text
