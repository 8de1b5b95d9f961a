"""What decides over Ferrule is protected wherever it lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule import Settings, ToolCall, open_session
from ferrule.app.settings_interpretation import interpret_settings
from ferrule.core.calls import Status
from ferrule.core.content import plain_text
from ferrule.permissions.modes import Mode
from ferrule.settings.settings_sources import open_layers
from tests.requirement import requirement
from tests.settings.folders import put

STATE = "odd [state]*/ferrule"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that is the workspace too, with the state and the user's own settings in unusual places."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str((tmp_path / STATE).parent))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path


async def run(home: Path, tool: str, **given: Any) -> tuple[Status, str]:
    session = open_session(Settings(cwd=str(home), mode=Mode.ACCEPT_EDITS, state_folder=home / STATE))
    async with session, session.executor() as executor:
        executor.submit(ToolCall("1", tool, given))
        (outcome,) = await executor.drain()
    return outcome.status, plain_text(outcome.content)


@requirement("HELD-2")
@pytest.mark.parametrize(
    "name",
    [f"{STATE}/trust.json", f"{STATE}/new/file", "config/settings.json", "config/agents/a.md", "config/CLAUDE.md"],
)
async def test_a_file_that_decides_is_not_written_unasked(home: Path, name: str) -> None:
    for tool, given in (
        ("Write", {"file_path": str(home / name), "content": "{}"}),
        ("Bash", {"command": f"touch '{home / name}'", "description": "x"}),
        ("Bash", {"command": f"rm -f '{home / name}'", "description": "x"}),
    ):
        status, words = await run(home, tool, **given)

        assert status is Status.DENIED, tool
        assert "is protected" in words


@requirement("HELD-2")
async def test_what_lies_beside_it_is_written_as_ever(home: Path) -> None:
    for name in ("odd [state]*/note.txt", "config/note.txt", "ferrule/trust.json"):
        assert (await run(home, "Write", file_path=str(home / name), content="x"))[0] is Status.OK


@requirement("HELD-2")
def test_a_sandbox_that_may_write_the_home_may_not_write_it(home: Path) -> None:
    put(home / "config" / "settings.json", {"sandbox": {"enabled": True}})

    found = interpret_settings(open_layers(str(home), home / STATE).current(), str(home))

    assert found.sandbox is not None
    assert any(path.endswith("/ferrule") for path in found.sandbox.unwritable)
    assert f"{home}/config/settings.json" in found.sandbox.unwritable
