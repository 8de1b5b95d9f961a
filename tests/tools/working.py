"""Calls of the tools that change files, in one session with one ledger."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ferrule.app.build import Settings, open_session
from ferrule.app.session_services import settings_objection
from ferrule.core.calls import ToolCall, ToolOutcome
from ferrule.core.content import plain_text
from ferrule.host.files.workfiles import Workfiles
from ferrule.permissions.modes import Mode
from ferrule.testing import Answering, allow
from ferrule.tools import Services, builtin_tools
from tests.host.files.seeing import see, see_lines


class Workplace:
    """A folder, what was seen in it, and a session that works there."""

    def __init__(self, folder: Path, *, files: Workfiles | None = None, agent: str = "main") -> None:
        self.folder = folder
        self.files = files or Workfiles(objection=settings_objection(str(folder)))
        self.agent = agent
        settings = Settings(cwd=str(folder), mode=Mode.BYPASS, state_folder=folder.parent / f"{folder.name}-state")
        tools = builtin_tools(Services(files=self.files))
        self.session = open_session(settings, tools=tools, approver=Answering(allow()))
        self.session.agent = agent

    def put(self, name: str, content: str | bytes, *, seen: bool = True) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if seen:
            self.see(path)
        return path

    def see(self, path: Path, *, first: int | None = None, last: int | None = None) -> None:
        ledger = self.files.ledgers.of(self.agent)
        if first is None or last is None:
            see(ledger, path)
        else:
            see_lines(ledger, path, first, last)

    def run(self, *calls: tuple[str, dict[str, Any]]) -> list[ToolOutcome]:
        return asyncio.run(self.session.run(ToolCall(f"call-{n}", name, args) for n, (name, args) in enumerate(calls)))

    def edit(self, path: Path | str, old: str, new: str, **more: Any) -> ToolOutcome:
        arguments = {"file_path": str(path), "old_string": old, "new_string": new, **more}
        (outcome,) = self.run(("Edit", arguments))
        return outcome

    def write(self, path: Path | str, content: str) -> ToolOutcome:
        (outcome,) = self.run(("Write", {"file_path": str(path), "content": content}))
        return outcome


def words(outcome: ToolOutcome, folder: Path) -> str:
    """What the model reads, without the folder of this test."""
    return plain_text(outcome.content).replace(f"{folder}/", "")
