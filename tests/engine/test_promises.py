"""What a tool promises of every input, and what becomes of one that does otherwise."""

from __future__ import annotations

from pathlib import Path

from ferrule.core.effects import Effects, WritesPath
from ferrule.core.functions import tool
from ferrule.testing import run_call


async def test_a_tool_that_promises_to_only_read_and_would_write_counts_as_unknown(tmp_path: Path) -> None:
    @tool(effects=lambda path: Effects.of(WritesPath(path)))
    def look(path: str) -> str:
        """Look at a file."""
        return path

    look.only_reads = True

    outcome = await run_call(tmp_path, look, {"path": "/etc/hosts"})

    assert outcome.record is not None
    assert outcome.record.effects == Effects()


def test_a_function_whose_effects_are_one_fixed_reading_only_reads() -> None:
    @tool(effects=Effects.reading("/etc/hosts"))
    def hosts() -> str:
        """The hosts file."""
        return ""

    @tool(effects=lambda: Effects.reading("/etc/hosts"))
    def depends() -> str:
        """Says what it touches only when it is called."""
        return ""

    assert (hosts.only_reads, depends.only_reads) == (True, False)
