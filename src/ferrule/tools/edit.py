"""Replace text in a file."""

from __future__ import annotations

import os
from typing import Self

from pydantic import Field

from ..core.content import Block, Code, Diff, Text, View
from ..core.context import ToolContext
from ..core.effects import Change, Effects, WritesPath
from ..core.inputs import PathText, ToolInput
from ..core.threads import in_a_thread
from ..core.tool import Alias, ToolError, load_guide
from ..core.values import plain_value
from ..host.files.atomic_writes import Written
from ..host.files.held_folders import ChangedMeanwhile
from ..host.files.ledger import Knowledge
from ..host.files.open_files import FileSnapshot
from ..host.files.text_files import NEW_FILE, NotEditable, TextDocument
from ..host.files.workfiles import Workfiles, if_moved, in_workspace, is_large, missing, unseen
from ..text.diffs import of_edits, preview
from ..text.edit_messages import (
    ambiguous,
    describe_created,
    describe_lines,
    describe_match,
    half_character,
    no_change,
    not_found,
    too_many,
)
from ..text.lines import shorten_path
from ..text.matching import Ambiguous, Edited, How, NoChange, NotFound, TooMany, apply, replaced_lines
from ..text.matching import TextEdit as TextEdit
from ..text.notebooks import NotNotebook, parse_notebook
from . import BuiltinTool, Services

DIFF_LINES = 200
MOST_EDITED = 64 << 20
"""Bytes of a file that is edited: several copies of it are held in memory."""


class EditInput(ToolInput):
    file_path: PathText = Field(description="The file to change.")
    old_string: str = Field(description="The text to replace, exactly as in the file. Empty for a new file.")
    new_string: str = Field(description="The replacement text.")
    replace_all: bool = Field(default=False, description="Whether to replace every occurrence.")


@plain_value
class FileEdited:
    path: str
    text: str
    """All of the file, as it is now."""
    created: bool
    count: int
    """How many occurrences were replaced."""
    how: How
    """What had to be looked past to find them."""
    patch: str
    old_string: str
    new_string: str
    replace_all: bool
    before: str | None
    """All of the file, as it was; `None` where there was none."""
    ranges: tuple[tuple[int, int], ...] = ()
    """The first and last line of each replacement, as the file is now; of the first few."""
    folder: str = ""
    """The folder from which the model reads the path; empty for an absolute one."""
    changed_before: str = ""
    """What somebody else had changed since the file was read: words, and a diff where there is one."""
    remarks: tuple[str, ...] = ()
    """What the caller may not expect."""


@plain_value
class _Plan:
    before: FileSnapshot | None
    edited: Edited
    after: TextDocument
    changed_before: str
    knew_everything: bool


class Edit(BuiltinTool[EditInput, FileEdited]):
    name = "Edit"
    description = load_guide(__file__)
    hint = "replace text in a file"
    input_model = EditInput
    aliases = (Alias("edit_file"), Alias("FileEdit"))

    def __init__(self, files: Workfiles | None = None, *, concise: bool = True) -> None:
        """`concise` where the model reads one line about an edit that was made as asked."""
        self._files = files or Workfiles()
        self._concise = concise

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.files, concise=services.concise)

    def effects(self, input: EditInput, ctx: ToolContext) -> Effects:
        change = Change.REPLACES if input.old_string or os.path.lexists(input.file_path) else Change.CREATES
        return Effects.of(WritesPath(input.file_path, change))

    def check(self, input: EditInput, ctx: ToolContext) -> None:
        if input.file_path == ctx.cwd:
            raise ToolError("`file_path` is empty, or names the working directory. Name the file to change.")
        for field, text in (("old_string", input.old_string), ("new_string", input.new_string)):
            if said := half_character(field, text):
                raise ToolError(said)
        if input.old_string == input.new_string:
            raise ToolError(no_change(input.file_path, NoChange(equal=True)))

    async def validate(self, input: EditInput, ctx: ToolContext) -> None:
        """Refuse before anybody is asked, and keep what was worked out."""
        self._check_was_seen(input, ctx)
        ctx.keep(await in_a_thread(self._plan, input, ctx) if is_large(input.file_path) else self._plan(input, ctx))

    async def call(self, input: EditInput, ctx: ToolContext) -> FileEdited:
        return await in_a_thread(self._carry_out, input, ctx)

    def _check_was_seen(self, input: EditInput, ctx: ToolContext) -> None:
        """What memory can refuse; the disk is looked at for the words only."""
        if not input.old_string or self._files.ledger(ctx).seen(ctx.real(input.file_path) or input.file_path):
            return
        raise ToolError(unseen(input.file_path) + if_moved(ctx))

    def _carry_out(self, input: EditInput, ctx: ToolContext) -> FileEdited:
        plan: _Plan = ctx.kept or self._plan(input, ctx)
        try:
            written = self._write(plan, input, ctx)
        except ChangedMeanwhile:  # while somebody was asked, or another process wrote: the edit may still fit
            plan = self._plan(input, ctx)
            try:
                written = self._write(plan, input, ctx)
            except ChangedMeanwhile as change:
                raise ToolError(str(change)) from None
        self._remember(plan, written, ctx)
        return FileEdited(
            input.file_path,
            plan.after.text,
            written.created,
            plan.edited.count,
            plan.edited.how,
            _patch(plan, input.file_path, ctx),
            input.old_string,
            input.new_string,
            input.replace_all,
            plan.before and plan.before.document.text,
            replaced_lines(plan.before.document.text if plan.before else "", plan.edited.edits),
            ctx.cwd if self._concise else "",
            plan.changed_before,
            written.remarks,
        )

    def show_plan(self, input: EditInput, ctx: ToolContext) -> View:
        plan: _Plan | None = ctx.kept
        return Diff(input.file_path, _patch(plan, input.file_path, ctx)) if plan else self.show_call(input)

    def _write(self, plan: _Plan, input: EditInput, ctx: ToolContext) -> Written:
        return self._files.write(input.file_path, ctx, plan.after.data, plan.before and plan.before.identity)

    def _remember(self, plan: _Plan, written: Written, ctx: ToolContext) -> None:
        ledger = self._files.ledger(ctx)
        if plan.before is None or plan.knew_everything:
            ledger.wrote(written.identity, plan.after.text)
        else:
            ledger.note_edit(plan.before, plan.edited.edits, FileSnapshot(plan.after, written.identity))

    def _plan(self, input: EditInput, ctx: ToolContext) -> _Plan:
        before = self._files.read(input.file_path, ctx, most=MOST_EDITED)
        if before is None and input.old_string:
            raise ToolError(missing(input.file_path) + if_moved(ctx))
        document = before.document if before else NEW_FILE
        if _is_notebook(input.file_path, document.text):
            raise ToolError(f"{input.file_path} is a notebook. Use NotebookEdit to change its cells.")
        if document.text or input.old_string:
            knowledge = self._knowledge(input, before, ctx)
            edited = self._find_place(input, before, knowledge, ctx)
        else:
            knowledge = Knowledge(everything=True, changed=False)
            edited = Edited(edits=(TextEdit(0, 0, input.new_string),), count=1, how=How.EXACT)
        after = _apply_edit(input, document, edited)
        self._files.check_change(input.file_path, before, after)
        changed = self._describe_changed_before(input.file_path, before, ctx) if before and knowledge.changed else ""
        return _Plan(before, edited, after, changed, knowledge.everything)

    def _knowledge(self, input: EditInput, before: FileSnapshot | None, ctx: ToolContext) -> Knowledge:
        knowledge = self._files.ledger(ctx).knows(before) if before else None
        if knowledge is None and input.old_string:
            raise ToolError(unseen(input.file_path) + if_moved(ctx))
        return knowledge or Knowledge(everything=False, changed=False)

    def _find_place(
        self, input: EditInput, before: FileSnapshot | None, knowledge: Knowledge, ctx: ToolContext
    ) -> Edited:
        """Where the text occurs; in a file that changed since it was read, it must occur once."""
        path, document = input.file_path, before.document if before else NEW_FILE
        text, old, new = document.text, *map(document.without_mark, (input.old_string, input.new_string))
        since = f"\n{path} {self._since(before, ctx)}." if before and knowledge.changed else ""
        match apply(text, old, new, replace_all=input.replace_all):
            case NotFound():
                raise ToolError(not_found(path, text, old) + since)
            case Ambiguous() as found:
                raise ToolError(ambiguous(path, found) + since)
            case TooMany() as found:
                raise ToolError(too_many(path, found) + since)
            case NoChange() as found:
                raise ToolError(no_change(path, found) + since)
            case Edited() as found if found.count > 1 and knowledge.changed:
                raise ToolError(
                    f"`old_string` occurs {found.count:,} times.{since} Read it again before you replace all of them."
                )
            case Edited() as found if found.count > 1 and not knowledge.everything:
                raise ToolError(
                    f"`old_string` occurs {found.count:,} times in {path}, which has been read only in part. "
                    "Read the rest of it before you replace all of them."
                )
            case Edited() as found:
                return found

    def _since(self, before: FileSnapshot, ctx: ToolContext) -> str:
        return self._files.ledger(ctx).since(before.identity)

    def _describe_changed_before(self, path: str, before: FileSnapshot, ctx: ToolContext) -> str:
        ledger = self._files.ledger(ctx)
        if ledger.was_reported(before.identity.real_path, before.identity.digest):
            return ""
        what = ledger.diff_since_seen(in_workspace(path, ctx), before)
        return f"{path} {self._since(before, ctx)}" + (f". What had changed:\n{what}" if what else ".")

    def to_model(self, output: FileEdited) -> tuple[Block, ...]:
        path = shorten_path(output.path, output.folder)
        if output.created:
            said = describe_created(path, output.text, with_preview=not self._concise)
        else:
            places = "" if output.count == 1 else f" in {output.count:,} places"
            said = f"Edited {path}{places}, {describe_lines(output.ranges, output.count)}."
            if not self._concise or output.how is How.QUOTES:
                said = f"{said}\n{output.patch}"
        said = said.removesuffix("\n")
        notes = (describe_match(output.how), *output.remarks, output.changed_before.removesuffix("\n"))
        return (Text("\n".join((said, *filter(None, notes)))),)

    def describe(self, input: EditInput) -> str:
        return f"Edit {input.file_path}"

    def show_result(self, input: EditInput, output: FileEdited) -> View:
        return Code(preview(output.text), output.path) if output.created else Diff(output.path, output.patch)


def _is_notebook(path: str, text: str) -> bool:
    """A notebook that is broken is text, and must be repaired as text."""
    if not path.lower().endswith(".ipynb") or not text:
        return False
    try:
        parse_notebook(text)
    except NotNotebook:
        return False
    return True


def _patch(plan: _Plan, path: str, ctx: ToolContext) -> str:
    text = plan.before.document.text if plan.before else ""
    return of_edits(text, plan.edited.edits, in_workspace(path, ctx), limit=DIFF_LINES, show_cr=True)


def _apply_edit(input: EditInput, document: TextDocument, edited: Edited) -> TextDocument:
    try:
        return document.edit(edited.edits)
    except NotEditable as reason:
        raise ToolError(f"{input.file_path} was not edited: {reason}") from None
