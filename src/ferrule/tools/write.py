"""Write a whole file."""

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
from ..host.files.held_folders import ChangedMeanwhile
from ..host.files.ledger import NotSeen
from ..host.files.open_files import FileSnapshot
from ..host.files.text_files import NEW_FILE, NotEditable, TextDocument
from ..host.files.workfiles import IN_A_THREAD, Workfiles, in_workspace, is_large
from ..text.diffs import preview, unified_diff
from ..text.edit_messages import describe_created, half_character, phrase_line_count
from ..text.lines import CR, LF, shorten_path
from ..text.matching import TextEdit
from ..text.styles import keep_endings
from . import BuiltinTool, Services

DIFF_LINES = 200


class WriteInput(ToolInput):
    file_path: PathText = Field(description="The file to write.")
    content: str = Field(description="The whole content of the file.")


@plain_value
class FileWritten:
    path: str
    text: str
    """All of the file."""
    created: bool
    patch: str
    """What changed; empty for a new file, and where nothing did."""
    before: str | None
    """All of the file, as it was; `None` where there was none."""
    remarks: tuple[str, ...] = ()
    """What the caller may not expect."""
    folder: str = ""
    """The folder from which the model reads the path; empty for an absolute one."""


@plain_value
class _Plan:
    before: FileSnapshot | None
    after: TextDocument


class Write(BuiltinTool[WriteInput, FileWritten]):
    name = "Write"
    description = load_guide(__file__)
    hint = "create a file or replace all of it"
    input_model = WriteInput
    aliases = (Alias("write_file"), Alias("FileWrite"))

    def __init__(self, files: Workfiles | None = None, *, concise: bool = True) -> None:
        """`concise` where the model reads one line about a file that was written as asked."""
        self._files = files or Workfiles()
        self._concise = concise

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.files, concise=services.concise)

    def effects(self, input: WriteInput, ctx: ToolContext) -> Effects:
        change = Change.REPLACES if os.path.lexists(input.file_path) else Change.CREATES
        return Effects.of(WritesPath(input.file_path, change))

    def check(self, input: WriteInput, ctx: ToolContext) -> None:
        if input.file_path == ctx.cwd:
            raise ToolError("`file_path` is empty, or names the working directory. Name the file to write.")
        if said := half_character("content", input.content):
            raise ToolError(said)

    async def validate(self, input: WriteInput, ctx: ToolContext) -> None:
        """Refuse before anybody is asked, and keep what was worked out."""
        large = is_large(input.file_path) or len(input.content) > IN_A_THREAD
        ctx.keep(await in_a_thread(self._plan, input, ctx) if large else self._plan(input, ctx))

    async def call(self, input: WriteInput, ctx: ToolContext) -> FileWritten:
        return await in_a_thread(self._carry_out, input, ctx)

    def _carry_out(self, input: WriteInput, ctx: ToolContext) -> FileWritten:
        plan: _Plan = ctx.kept or self._plan(input, ctx)
        path, before, text = input.file_path, plan.before, plan.after.text
        folder = ctx.cwd if self._concise else ""
        if before is not None and before.document.data == plan.after.data:
            self._files.ledger(ctx).wrote(before.identity, text)
            return FileWritten(path, text, created=False, patch="", before=text, folder=folder)
        try:
            written = self._files.write(path, ctx, plan.after.data, before and before.identity)
        except ChangedMeanwhile as change:
            raise ToolError(str(change)) from None
        self._files.ledger(ctx).wrote(written.identity, text)
        old = before and before.document.text
        return FileWritten(path, text, written.created, _patch(plan, path, ctx), old, written.remarks, folder)

    def show_plan(self, input: WriteInput, ctx: ToolContext) -> View:
        plan: _Plan | None = ctx.kept
        if plan is None or plan.before is None:
            return Code(preview(input.content), input.file_path)
        return Diff(input.file_path, _patch(plan, input.file_path, ctx))

    def _plan(self, input: WriteInput, ctx: ToolContext) -> _Plan:
        before = self._files.read(input.file_path, ctx)
        if before is not None and before.document.text:
            try:
                self._files.ledger(ctx).check_whole(input.file_path, before)
            except NotSeen as reason:
                raise ToolError(str(reason)) from None
        after = _write_over(before, input)
        self._files.check_change(input.file_path, before, after)
        return _Plan(before, after)

    def to_model(self, output: FileWritten) -> tuple[Block, ...]:
        path = shorten_path(output.path, output.folder)
        if output.created:
            said = describe_created(path, output.text, with_preview=not self._concise)
        elif output.patch:
            said = f"Wrote {path}, {phrase_line_count(output.text)}."
            said = said if self._concise else f"{said}\n{output.patch}".removesuffix("\n")
        else:
            said = f"{path} already contains exactly this. Nothing was written."
        return (Text("\n".join((said, *output.remarks))),)

    def describe(self, input: WriteInput) -> str:
        return f"Write {input.file_path} ({phrase_line_count(input.content)})"

    def show_result(self, input: WriteInput, output: FileWritten) -> View:
        return Code(preview(output.text), output.path) if output.created else Diff(output.path, output.patch)


def _patch(plan: _Plan, path: str, ctx: ToolContext) -> str:
    text = plan.after.text
    old = plan.before.document.text if plan.before else text
    return unified_diff(old, text, in_workspace(path, ctx), limit=DIFF_LINES, show_cr=True)


def _write_over(before: FileSnapshot | None, input: WriteInput) -> TextDocument:
    """The file as it is to be: in its own encoding and line endings, in UTF-8 where it is new."""
    document = before.document if before else NEW_FILE
    content = document.without_mark(input.content)
    if CR not in content:
        content = keep_endings(document.text, content, fallback=None, lone_cr=LF not in document.text)
    try:
        return document.edit([TextEdit(0, len(document.text), content)])
    except NotEditable as reason:
        raise ToolError(f"{input.file_path} was not written: {reason}") from None
