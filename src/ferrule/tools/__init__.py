"""The table of contents: every built-in tool, one line each."""

from __future__ import annotations

from pathlib import Path

from ..core.tool import AnyTool
from ..host.search import Search
from ..host.workfiles import Workfiles
from .edit import Edit
from .glob import Glob
from .grep import Grep
from .notebook_edit import NotebookEdit
from .read import Read
from .tool_search import ToolSearch
from .write import Write


def builtin_tools(
    files: Workfiles | None = None, parts_folder: Path | None = None, search: Search | None = None
) -> tuple[AnyTool, ...]:
    files = files or Workfiles()
    search = search or Search()
    return (
        Edit(files),
        Glob(search),
        Grep(search, files.ledgers),
        NotebookEdit(files),
        Read(files.ledgers, parts_folder=parts_folder),
        ToolSearch(),
        Write(files),
    )
