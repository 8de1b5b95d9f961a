"""Change a cell of a Jupyter notebook."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AliasChoices, BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from ..core.content import Block, Diff, Text, View
from ..core.context import ToolContext
from ..core.effects import Change, Effects, ReadsPath, WritesPath
from ..core.inputs import PathText, ToolInput
from ..core.threads import in_a_thread
from ..core.tool import Alias, Exposure, ToolError, load_guide
from ..core.values import plain_value
from ..host.files.held_folders import ChangedMeanwhile
from ..host.files.ledger import NotSeen
from ..host.files.open_files import FileSnapshot
from ..host.files.text_files import NotEditable, TextDocument
from ..host.files.workfiles import Workfiles, if_moved, in_workspace, is_large, missing
from ..text.diffs import unified_diff
from ..text.edit_messages import half_character
from ..text.lines import LF
from ..text.matching import TextEdit
from ..text.notebook_edits import delete_cell, insert_cell, replace_cell
from ..text.notebooks import Cell, CellType, Notebook, NotNotebook, parse_notebook
from . import BuiltinTool, Services

DIFF_LINES = 200
NEAR_IDS = 3
LONGEST_NAME = 80

Mode: TypeAlias = Literal["replace", "insert", "delete"]


def _index_as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class NotebookEditInput(ToolInput):
    notebook_path: PathText = Field(description="The notebook to change, an .ipynb file.")
    cell_id: Annotated[str | None, BeforeValidator(_index_as_text)] = Field(
        default=None,
        description="The cell's id, or its index from 0. To insert: the cell to insert after; omit it for the start.",
    )
    new_source: str | None = Field(
        default=None, description="The whole content of the cell. Required unless you delete."
    )
    cell_type: CellType | None = Field(
        default=None, description="The type of the cell. Required to insert; otherwise omit it to keep the type."
    )
    edit_mode: Mode = Field(default="replace", description="What to do.")
    cell_number: SkipJsonSchema[int | None] = Field(
        default=None,
        ge=0,
        validation_alias=AliasChoices("cell_number", "cell_index"),
        description="Older form: the index of the cell, or of the new one.",
    )


@plain_value
class NotebookEdited:
    path: str
    mode: Mode
    index: int
    name: str
    """The id of the cell, or its index as in `cell-3`."""
    type: str
    was_type: str
    """Another one where a replaced cell changed its type."""
    cells: int
    """How many the notebook has now."""
    patch: str
    """What changed of the cell's source; empty where nothing of it did."""
    lost: tuple[str, ...] = ()
    """What the cell had before, besides its source."""
    remarks: tuple[str, ...] = ()
    """What the caller may not expect."""


@plain_value
class _Plan:
    before: FileSnapshot
    after: TextDocument
    output: NotebookEdited


class NotebookEdit(BuiltinTool[NotebookEditInput, NotebookEdited]):
    name = "NotebookEdit"
    description = load_guide(__file__)
    hint = "replace, insert or delete Jupyter notebook cells"
    input_model = NotebookEditInput
    aliases = (Alias("NotebookEditCell"), Alias("notebook_edit"))
    exposure = Exposure.DEFERRED

    def __init__(self, files: Workfiles | None = None) -> None:
        self._files = files or Workfiles()

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.files)

    def effects(self, input: NotebookEditInput, ctx: ToolContext) -> Effects:
        return Effects.of(ReadsPath(input.notebook_path), WritesPath(input.notebook_path, Change.REPLACES))

    def check(self, input: NotebookEditInput, ctx: ToolContext) -> None:
        if input.notebook_path == ctx.cwd:
            raise ToolError("`notebook_path` is empty, or names the working directory. Name the notebook to change.")
        if said := half_character("new_source", input.new_source or ""):
            raise ToolError(said)
        if input.cell_id == "":
            raise ToolError("`cell_id` is empty. Name the cell by its id or index.")
        if not input.notebook_path.lower().endswith(".ipynb"):
            raise ToolError(f"{input.notebook_path} is not a notebook (.ipynb). Use Edit to change it.")
        if input.cell_id is not None and input.cell_number is not None:
            raise ToolError("`cell_id` and `cell_number` both name a cell. Give only `cell_id`.")
        if input.new_source is None and input.edit_mode != "delete":
            raise ToolError(f"`new_source` is missing. Give the whole content of the cell to {input.edit_mode} it.")
        if input.cell_type is None and input.edit_mode == "insert":
            raise ToolError("`cell_type` is missing. Say whether to insert code, markdown or raw.")
        if input.cell_id is None and input.cell_number is None and input.edit_mode != "insert":
            raise ToolError(f"`cell_id` is missing. Name the cell to {input.edit_mode} by its id or index.")

    async def validate(self, input: NotebookEditInput, ctx: ToolContext) -> None:
        """Refuse before anybody is asked, and keep what was worked out."""
        large = is_large(input.notebook_path)
        ctx.keep(await in_a_thread(self._plan, input, ctx) if large else self._plan(input, ctx))

    async def call(self, input: NotebookEditInput, ctx: ToolContext) -> NotebookEdited:
        return await in_a_thread(self._carry_out, input, ctx)

    def _plan(self, input: NotebookEditInput, ctx: ToolContext) -> _Plan:
        path = input.notebook_path
        before = self._files.read(path, ctx)
        if before is None:
            raise ToolError(missing(path) + if_moved(ctx))
        notebook = self._known_notebook(path, before, ctx)
        cell = _find_cell(notebook, input)
        edits = _edits(notebook, cell, input)
        if not edits and cell:
            raise ToolError(f"Cell {cell.name} of {path} already has this source and type. Nothing was written.")
        try:
            after = before.document.edit(edits)
        except NotEditable as reason:
            raise ToolError(f"{path} was not changed: {reason}") from None
        return _Plan(before, after, _output(input, cell, parse_notebook(after.text), ctx))

    def _known_notebook(self, path: str, before: FileSnapshot, ctx: ToolContext) -> Notebook:
        """The notebook, if the agent has seen all of it: a refusal reveals nothing that it has not seen."""
        try:
            self._files.ledger(ctx).check_whole(path, before)
            return parse_notebook(before.document.text)
        except NotSeen as reason:
            raise ToolError(str(reason)) from None
        except NotNotebook as reason:
            raise ToolError(
                f"{path} cannot be changed as a notebook: {reason}. Until it is one, change its text with Edit."
            ) from None

    def _carry_out(self, input: NotebookEditInput, ctx: ToolContext) -> NotebookEdited:
        plan: _Plan = ctx.kept or self._plan(input, ctx)
        try:
            written = self._files.write(input.notebook_path, ctx, plan.after.data, plan.before.identity)
        except ChangedMeanwhile as change:
            raise ToolError(str(change)) from None
        self._files.ledger(ctx).wrote(written.identity, plan.after.text)
        return replace(plan.output, remarks=written.remarks)

    def to_model(self, output: NotebookEdited) -> tuple[Block, ...]:
        lines = (" ".join(_describe_result(output)), output.patch.removesuffix("\n"), *output.remarks)
        return (Text("\n".join(filter(None, lines))),)

    def describe(self, input: NotebookEditInput) -> str:
        after = "after " if input.edit_mode == "insert" and input.cell_id is not None else ""
        cell = input.cell_id if input.cell_number is None else str(input.cell_number)
        named = f"{after}cell {_short(cell)} of" if cell is not None else "at the start of"
        return " ".join(f"NotebookEdit {input.edit_mode} {named} {input.notebook_path}".split())

    def show_plan(self, input: NotebookEditInput, ctx: ToolContext) -> View:
        plan: _Plan | None = ctx.kept
        return Diff(input.notebook_path, plan.output.patch) if plan else self.show_call(input)

    def show_result(self, input: NotebookEditInput, output: NotebookEdited) -> View:
        return Diff(output.path, output.patch)


def _find_cell(notebook: Notebook, input: NotebookEditInput) -> Cell | None:
    """The cell to change, or the one to insert after; `None` to insert at the start."""
    if input.cell_number is not None:
        return _find_cell_by_index(notebook, input, input.cell_number)
    if input.cell_id is None:
        return None
    found = notebook.find_cells(input.cell_id)
    if len(found) > 1:
        indices = ", ".join(str(cell.index) for cell in found)
        raise ToolError(
            f'{len(found)} cells of {input.notebook_path} have the id "{_short(input.cell_id)}". '
            f"Name the one you mean by its index: {indices}."
        )
    if not found:
        raise ToolError(_unknown(notebook, input.notebook_path, f'cell "{_short(input.cell_id)}"', input.cell_id))
    return found[0]


def _find_cell_by_index(notebook: Notebook, input: NotebookEditInput, number: int) -> Cell | None:
    """By index, as the tool once took it: an inserted cell then gets this very index."""
    inserts = input.edit_mode == "insert"
    if number >= len(notebook.cells) + inserts:
        raise ToolError(_unknown(notebook, input.notebook_path, f"place {number}" if inserts else f"cell {number}"))
    if inserts:
        return notebook.cells[number - 1] if number else None
    return notebook.cells[number]


def _unknown(notebook: Notebook, path: str, what: str, name: str = "") -> str:
    if not notebook.cells:
        return f"{path} has no {what}: it has no cells. Insert one at the start, without `cell_id`."
    ids = [cell.name for cell in notebook.cells if cell.name == cell.id]
    near = difflib.get_close_matches(name, ids, n=NEAR_IDS)
    last = len(notebook.cells) - 1
    indices = f"Its cells have the indices 0 to {last}." if last else "Its only cell has the index 0."
    if near:
        return f"{path} has no {what}. The nearest ids are {', '.join(near)}. {indices}"
    return f"{path} has no {what}. {indices}" + ("" if ids else " None of them has an id.")


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1]}…"


def _edits(notebook: Notebook, cell: Cell | None, input: NotebookEditInput) -> tuple[TextEdit, ...]:
    source = input.new_source or ""
    if input.edit_mode == "insert":
        assert input.cell_type is not None, "`check` lets no insert pass without a type"
        return insert_cell(notebook, cell, source, input.cell_type)
    assert cell is not None, "`check` lets no other mode pass without a cell"
    return (
        delete_cell(notebook, cell)
        if input.edit_mode == "delete"
        else replace_cell(notebook, cell, source, input.cell_type)
    )


def _output(input: NotebookEditInput, cell: Cell | None, after: Notebook, ctx: ToolContext) -> NotebookEdited:
    old = cell if input.edit_mode != "insert" else None
    index = old.index if old else cell.index + 1 if cell else 0
    new = after.cells[index] if input.edit_mode != "delete" else None
    shown = new or old
    assert shown is not None, "a cell was there before or is there now"
    label = f"{in_workspace(input.notebook_path, ctx)}#{shown.name}"
    before, now = (_as_lines(one.source) if one else "" for one in (old, new))
    return NotebookEdited(
        path=input.notebook_path,
        mode=input.edit_mode,
        index=index,
        name=shown.name,
        type=shown.type,
        was_type=(old or shown).type,
        cells=len(after.cells),
        patch=unified_diff(before, now, label, limit=DIFF_LINES, show_cr=True),
        lost=tuple(_describe_lost(old, new)) if old and new else (),
    )


def _as_lines(source: str) -> str:
    """With an end to the last line, which few sources have and no reader misses."""
    return source + LF if source else ""


def _describe_lost(old: Cell, new: Cell) -> Iterator[str]:
    if old.outputs and not new.outputs:
        yield "outputs"
    if "attachments" in old.members and "attachments" not in new.members:
        yield "attachments"


def _describe_result(output: NotebookEdited) -> Iterator[str]:
    which = f"{output.name} (index {output.index}, {output.type})"
    match output.mode:
        case "replace":
            yield f"Replaced cell {which} of {output.path}."
            if output.was_type != output.type:
                yield f"It was {output.was_type} before."
            if output.lost:
                yield f"Its {' and '.join(output.lost)} are gone."
            return
        case "insert":
            yield f"Inserted cell {which} in {output.path}."
        case "delete":
            yield f"Deleted cell {which} from {output.path}."
    yield f"It has {output.cells} cells now." if output.cells != 1 else "It has 1 cell now."
