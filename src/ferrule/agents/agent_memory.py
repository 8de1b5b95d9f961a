"""What a kind of agent has noted for itself, in a folder that lasts from one of its agents to the next.

The folder is the user's, the project's, or the project's without being shared.
Its first lines are read with each start; to note something, an agent changes
files there with the tools it has, under the rules of the session.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from ..host.files.open_files import open_for_reading
from ..host.files.text_files import NotText
from ..settings.levels import SettingsContext
from .agent_kinds import AgentKind

MOST_LINES: Final = 200
MOST_BYTES: Final = 25_000
INDEX: Final = "MEMORY.md"

Scope: TypeAlias = Literal["user", "project", "local"]

_TOLD: Final = """\
You have a memory that lasts from one task to the next: the folder {folder}. Its index is {index}, of which the \
beginning is below. Before you end, note there what you learned and will need again: short, by subject, without what \
the code says itself, and without secrets. Keep details in other files of the folder and name them in the index."""


class AgentMemory:
    """Satisfies `launcher.MemoryText`."""

    def __init__(self, around: SettingsContext, objection: Callable[[str], str | None]) -> None:
        """`objection` says why a file may not be shown to the model, if it may not."""
        self._around = around
        self._objection = objection

    def __call__(self, kind: AgentKind, /) -> str:
        """What an agent of the kind is told of it; empty without a memory."""
        folder = memory_folder(kind, self._around)
        if folder is None:
            return ""
        index = os.path.join(folder, INDEX)
        told = _TOLD.format(folder=folder, index=INDEX)
        return f"{told}\n\n<memory>\n{self._beginning(index)}\n</memory>"

    def _beginning(self, index: str) -> str:
        if not os.path.lexists(index):
            return "(It is empty.)"
        if objection := self._objection(index):
            return f"[left out: {objection}]"
        try:
            with open_for_reading(index) as descriptor:
                content = os.read(descriptor, MOST_BYTES + 1)
        except (OSError, NotText, ValueError) as error:
            return f"[left out: {error}]"
        lines = content[:MOST_BYTES].decode("utf-8", "replace").splitlines()
        cut = len(content) > MOST_BYTES or len(lines) > MOST_LINES
        note = "\n[There is more; read the file.]" if cut else ""
        return "\n".join(lines[:MOST_LINES]).replace("</memory", "<\\/memory") + note


def memory_folder(kind: AgentKind, around: SettingsContext) -> str | None:
    """`None` for a kind without one."""
    root = around.checkout.root if around.checkout else around.cwd
    folders = {
        "user": os.path.join(around.config_folder, "agent-memory"),
        "project": os.path.join(root, ".claude", "agent-memory"),
        "local": os.path.join(root, ".claude", "agent-memory-local"),
    }
    folder = folders.get(kind.memory)
    return os.path.join(folder, kind.name.replace(" ", "-")) if folder else None
