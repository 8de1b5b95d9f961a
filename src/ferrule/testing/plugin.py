"""The pytest plugin: fixtures for tests of tools and conversations. Importing it loads nothing of Ferrule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ..core.context import ToolContext
    from ..engine.session import Session
    from .doubles import Recorder


@pytest.fixture
def recorder() -> Recorder:
    """Keeps every event it is given."""
    from .doubles import Recorder

    return Recorder()


@pytest.fixture
def tool_context(tmp_path: Path) -> ToolContext:
    """A context for calling a tool's methods directly, with `tmp_path` as the working directory."""
    from .doubles import bare_context

    return bare_context(tmp_path)


@pytest.fixture
def ferrule_session(tmp_path: Path) -> Session:
    """A session in `tmp_path` with the built-in tools, nothing forbidden, and its own state folder."""
    from ..app.build import Settings, open_session
    from ..permissions.modes import Mode

    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return open_session(Settings(cwd=str(workspace), mode=Mode.BYPASS, state_folder=tmp_path / "state"))
