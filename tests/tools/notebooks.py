"""Notebooks to edit, and a session in which they were read."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import plain_text
from ferrule.core.ports import Judge
from ferrule.host.files.workfiles import Workfiles
from ferrule.permissions.modes import Mode
from ferrule.tools.notebook_edit import NotebookEdit
from tests.host.files.seeing import see
from tests.text.notebook_strategies import by_nbformat


def notebook(*cells: dict[str, Any], minor: int = 5) -> str:
    model = {"cells": list(cells), "metadata": {"title": "é"}, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(model, indent=1, ensure_ascii=False) + "\n"


def code(source: str, *, id: str | None = None, outputs: int = 0) -> dict[str, Any]:
    output = {"name": "stdout", "output_type": "stream", "text": ["1\n"]}
    named = {"id": id} if id else {}
    lines = source.splitlines(keepends=True)
    cell = {"cell_type": "code", "execution_count": outputs or None, **named, "metadata": {"tags": ["kept"]}}
    return {**cell, "outputs": [output] * outputs, "source": lines}


def prose(source: str, *, id: str | None = None) -> dict[str, Any]:
    named = {"id": id} if id else {}
    return {"cell_type": "markdown", **named, "metadata": {}, "source": source.splitlines(keepends=True)}


WITH_IDS = notebook(
    prose("# Title", id="intro"), code("a = 1\nprint(a)", id="load", outputs=2), code("b", id="plot", outputs=1)
)
WITHOUT_IDS = notebook(prose("# Title"), code("a = 1", outputs=1), minor=4)


class Place:
    """A folder with a notebook, and a session whose agent has read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = Workfiles()
        self.open()

    def open(self, *judges: Judge) -> None:
        settings = Settings(cwd=str(self.folder), mode=Mode.BYPASS, state_folder=self.folder.parent / "state")
        self.session = open_session(settings, tools=(NotebookEdit(self.files),), judges=judges)

    def put(self, content: str | bytes, name: str = "a.ipynb", *, seen: bool = True) -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if seen:
            self.see(path)
        return path

    def see(self, path: Path) -> None:
        see(self.files.ledgers.of("main"), path)

    def run(self, *calls: dict[str, Any], name: str = "NotebookEdit") -> list[ToolOutcome]:
        whole = [ToolCall(str(number), name, {"notebook_path": "a.ipynb", **call}) for number, call in enumerate(calls)]
        return asyncio.run(self.session.run(whole))

    def edit(self, name: str = "NotebookEdit", **arguments: Any) -> tuple[Status, str]:
        (outcome,) = self.run(arguments, name=name)
        said = plain_text(outcome.content).partition("\nIts schema: ")[0]  # which a tool nobody looked for adds
        return outcome.status, said.replace(f"{self.folder}/", "")

    @property
    def cells(self) -> list[Any]:
        return by_nbformat((self.folder / "a.ipynb").read_text(encoding="utf-8")).cells

    @property
    def sources(self) -> list[str]:
        return [cell.source for cell in self.cells]
