"""What a command is told that a sandbox refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import plain_text
from ferrule.permissions.modes import Mode
from tests.permissions.scene import rules_of
from tests.requirement import requirement


@requirement("BOX-2", "BOX-4")
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (Mode.BYPASS, "It ran in a sandbox that keeps from it what rules deny."),
        (Mode.PLAN, "as in this mode nothing changes."),
    ],
)
async def test_a_refused_write_names_what_refused_it(tmp_path: Path, mode: Mode, words: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "kept").write_text("old")
    settings = Settings(
        cwd=str(tmp_path / "work"),
        mode=mode,
        rules=rules_of({"deny": ["Edit(./kept)"]}),
        state_folder=tmp_path / "state",
    )
    command = """python3 -c 'open("kept", "w").write("new")'"""
    async with open_session(settings) as session:
        (outcome,) = await session.run([ToolCall("1", "Bash", {"command": command})])

    if outcome.status is Status.DENIED:
        pytest.skip("nothing can be protected on this machine")
    assert words in plain_text(outcome.content)
    assert "taken for one that only reads" not in plain_text(outcome.content)
    assert (tmp_path / "work" / "kept").read_text() == "old"
