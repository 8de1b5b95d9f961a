"""Read a file: text by lines, pictures, PDF documents by pages, notebooks by cells."""

from __future__ import annotations

import errno
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, count, islice
from operator import add
from os.path import basename
from pathlib import Path
from typing import Self, TypeAlias

from pydantic import Field

from ..core.content import Block, Code, Document, Image, Line, Listing, Picture, Text, View
from ..core.context import ToolContext
from ..core.effects import Effects
from ..core.inputs import PathText, ToolInput
from ..core.model import ResultTurn, ToolResult, Turn
from ..core.threads import in_a_thread
from ..core.tool import Alias, ToolError, load_guide
from ..host.documents.contents import FileUnchanged, ImageRead, NotebookRead, PartsRead, PdfRead, ReadOutput, TextRead
from ..host.documents.file_reader import FileReader, NotPaged, ReadRequest
from ..host.documents.images import BadImage
from ..host.documents.images import FittedPicture as Shrunk
from ..host.documents.notebook_cells import ShownCell
from ..host.documents.pdfs import MOST_UNASKED, BadPages, BadPdf, TooManyPages, parse_pages
from ..host.documents.text_pages import REMINDER, TOKENS
from ..host.files.held_folders import ChangedMeanwhile
from ..host.files.ledger import Ledger, Ledgers
from ..host.files.text_files import NotText
from ..host.files.workfiles import if_moved, missing
from . import BuiltinTool, Services

LEAST_TOKENS = 1_000
PAGE_CHARS = 95_000
"""What a page may hold of the 100,000 characters of a result; the rest is for what is said about it."""


_Reminding: TypeAlias = TextRead | NotebookRead | PdfRead
"""What holds text, below which a reminder may be."""


class ReadInput(ToolInput):
    file_path: PathText = Field(description="The file to read.")
    offset: int = Field(default=1, ge=0, description="The first line (in a notebook: cell) to read, counted from 1.")
    limit: int | None = Field(
        default=None, ge=1, description="How many lines (in a notebook: cells) to read. Omit for as many as fit."
    )
    pages: str | None = Field(
        default=None, description='Pages of a PDF document, such as "3" or "1-5", at most 20 at once.'
    )


class Read(BuiltinTool[ReadInput, ReadOutput]):
    name = "Read"
    description = load_guide(__file__)
    hint = "show the content of a file"
    input_model = ReadInput
    aliases = (Alias("read_file"), Alias("FileRead"))
    result_limit = 100_000
    only_reads = True

    def __init__(
        self,
        ledgers: Ledgers | None = None,
        *,
        parts_folder: Path | None = None,
        token_budget: int = TOKENS,
        documents: bool | None = None,
        reminder: str | None = REMINDER,
        reminder_off_for: Collection[str] = (),
    ) -> None:
        """`documents` says whether PDF documents are given as they are, `None` if that depends on the model.

        `reminder_off_for` names models.
        """
        if token_budget < LEAST_TOKENS:
            raise ValueError(f"A page of {token_budget} tokens is too small. Give it {LEAST_TOKENS:,} or more.")
        room = min(4 * token_budget, PAGE_CHARS)
        self._ledgers = ledgers or Ledgers()
        self._reader = FileReader(room=room, parts_folder=parts_folder)
        self._documents = documents
        self._reminder = reminder or ""
        self._reminder_off_for = frozenset(reminder_off_for)

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(
            services.files.ledgers,
            parts_folder=services.parts_folder,
            token_budget=services.read_tokens,
            reminder=services.reminder,
            reminder_off_for=services.reminder_off_for,
        )

    def effects(self, input: ReadInput, ctx: ToolContext) -> Effects:
        return Effects.reading(input.file_path)

    def check(self, input: ReadInput, ctx: ToolContext) -> None:
        if input.pages is not None:
            try:
                parse_pages(input.pages)
            except BadPages as reason:
                raise ToolError(f"{reason}.") from None

    async def call(self, input: ReadInput, ctx: ToolContext) -> ReadOutput:
        take = partial(self._reader.take, self._read_request(input, ctx))
        with _as_tool_errors(input.file_path, if_moved(ctx)):
            taken = take(at_once=True) or await in_a_thread(take, at_once=False)
        assert taken is not None, "only what has to be quick is declined"
        ledger = self._ledgers.of(ctx.facts.agent)
        earlier = ledger.call_that_showed(taken.real_path, taken.form, taken.version)
        taken.seen(ledger)
        if earlier and self._is_shown(earlier, taken.output, ledger, ctx):
            return FileUnchanged(input.file_path)
        ledger.note_form(taken.real_path, taken.form, taken.version, ctx.call_id, ctx.facts)
        has_reminder = isinstance(taken.output, _Reminding) and taken.output.reminder and taken.output.total != 0
        return _bare(taken.output) if has_reminder and not ledger.take_reminder(ctx.call_id) else taken.output

    def _is_shown(self, earlier: str, output: ReadOutput, ledger: Ledger, ctx: ToolContext) -> bool:
        """Whether the result of an earlier call says the same, in the conversation or in the same message."""
        if ctx.facts.conversation and ledger.is_of_message(earlier, ctx.facts):
            return True
        result = _result_of(earlier, ctx.facts.conversation)
        return result is not None and all(block in result.content for block in self.to_model(_bare(output)))

    def _read_request(self, input: ReadInput, ctx: ToolContext) -> ReadRequest:
        return ReadRequest(
            path=input.file_path,
            judged=ctx.real(input.file_path),
            offset=max(1, input.offset),
            limit=input.limit,
            pages=None if input.pages is None else parse_pages(input.pages),
            interrupted=lambda: ctx.cancelled,
            as_document=ctx.facts.takes_documents if self._documents is None else self._documents,
            sees=ctx.facts.takes_images,
            reminder="" if ctx.facts.model in self._reminder_off_for else self._reminder,
        )

    def to_model(self, output: ReadOutput) -> tuple[Block, ...]:
        match output:
            case TextRead():
                blocks = [Text(_number_lines(output))]
            case ImageRead(is_seen=False):
                size = f"{output.original_width}x{output.original_height}"
                blocks = [Text(f"[{output.path}: an image of {size} pixels, which this model cannot see]")]
            case ImageRead():
                blocks = [*_size(output), Image(output.media_type, output.data)]
            case NotebookRead():
                blocks = _merge_texts(_notebook(output))
            case PdfRead():
                blocks = _merge_texts(_pdf(output))
            case PartsRead():
                blocks = [Text(_parts(output))]
            case FileUnchanged(path=path):
                blocks = [Text(f"{path} has not changed: what an earlier result shows of it is still current.")]
        if isinstance(output, _Reminding) and output.reminder and output.total != 0:
            blocks.append(Text(output.reminder))
        return tuple(blocks)

    def describe(self, input: ReadInput) -> str:
        return f"Read {input.file_path}"

    def show_result(self, input: ReadInput, output: ReadOutput) -> View:
        match output:
            case TextRead():
                return Code(output.content, output.path, output.start)
            case ImageRead():
                return Picture("image/png", output.preview, output.original_width, output.original_height)
            case NotebookRead():
                return Listing(tuple(_headline(cell) for cell in output.cells), output.total)
            case PdfRead():
                return Line(f"pages {output.pages} of {output.total}")
            case PartsRead():
                return Line(f"{output.what} in {output.count} parts in {output.folder}")
            case FileUnchanged():
                return Line("unchanged")


def _result_of(call_id: str, conversation: Sequence[Turn]) -> ToolResult | None:
    """The result of that call, if it is still in the conversation and was not an error."""
    for turn in reversed(conversation):
        for result in turn.results if isinstance(turn, ResultTurn) else ():
            if result.call_id == call_id:
                return None if result.is_error else result
    return None


def _bare(output: ReadOutput) -> ReadOutput:
    """Without the reminder, which one result of a conversation has."""
    return replace(output, reminder="") if isinstance(output, _Reminding) else output


# What the model reads


def _number_lines(output: TextRead) -> str:
    if output.total == 0:
        return f"{output.path} is empty."
    lines = map(add, _numbers(output.start), output.content.split("\n"))
    return "\n".join((*lines, *_render_notes(output.notes)))


def _numbers(first: int) -> Iterator[str]:
    """Numbers with a tab, from `first` on."""
    return islice(chain.from_iterable(map(_thousand, count(first // 1_000))), first % 1_000, None)


@lru_cache(maxsize=32)
def _thousand(block: int) -> tuple[str, ...]:
    """Most files begin alike, and making a number takes longer than putting it before a line."""
    return tuple(f"{number}\t" for number in range(1_000 * block, 1_000 * (block + 1)))


def _size(output: ImageRead) -> Iterator[Text]:
    """Only where the picture is not as it was: what the model measures in it must be scaled."""
    if (output.width, output.height) != (output.original_width, output.original_height):
        yield Text(
            f"[{output.path} is {output.original_width} by {output.original_height} pixels, "
            f"shown as {output.width} by {output.height}.]"
        )


def _notebook(output: NotebookRead) -> Iterator[str | Block]:
    if not output.cells:
        yield f"{output.path} is a notebook without cells."
    for cell in output.cells:
        for block in cell.blocks():
            yield _image(block) if isinstance(block, Shrunk) else block
        yield ""
    yield from (f"[{note}]" for note in output.notes)


def _pdf(output: PdfRead) -> Iterator[str | Block]:
    if not output.sheets:
        yield Document("application/pdf", output.data, basename(output.path))
    for sheet in output.sheets:
        yield f"[Page {sheet.number} of {output.total}]"
        yield _image(sheet.picture) if sheet.picture else f"{sheet.text}\n"
    yield from (f"[{note}]" for note in output.notes)


def _parts(output: PartsRead) -> str:
    told = (
        f"{output.path}: {output.what} alone is more than a page ({output.original_size:,} bytes in the file). "
        f"It was split into {output.count} parts in {output.folder}, from part-0001.txt on. Read them one by one, "
        "or search them with Grep. Line breaks in a part are not in the file: they fold what would be too long."
    )
    return "\n".join((told, *_render_notes(output.notes)))


def _render_notes(notes: Iterable[str]) -> Iterator[str]:
    for index, note in enumerate(notes):
        yield f"[{note}]" if index else f"\n[{note}]"


def _merge_texts(pieces: Iterable[str | Block]) -> list[Block]:
    """Texts that follow each other as one block."""
    blocks: list[Block] = []
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        if texts:
            blocks.append(Text("\n".join(texts)))
        texts = []
        blocks.append(piece)
    text = "\n".join(texts).rstrip("\n")
    return [*blocks, Text(text)] if text else blocks


def _image(picture: Shrunk) -> Image:
    return Image(picture.media_type, picture.base64)


def _headline(cell: ShownCell) -> str:
    return f"{cell.type} {cell.id}: {cell.source.partition(chr(10))[0]}"


# Refusals


@contextmanager
def _as_tool_errors(path: str, moved: str) -> Generator[None]:
    try:
        yield
    except FileNotFoundError:
        raise ToolError(missing(path) + moved) from None
    except NotText as reason:
        raise ToolError(f"{path} cannot be read: {reason}. {_advice(str(reason))}.") from None
    except (BadImage, BadPdf, NotPaged, BadPages) as reason:
        raise ToolError(f"{path} cannot be read: {reason}.") from None
    except TooManyPages as many:
        raise ToolError(
            f"{path} has {many.total} pages, and without `pages` only up to {MOST_UNASKED} are shown. "
            f'Name those to read, at most 20 at once, such as pages "1-{MOST_UNASKED}".'
        ) from None
    except ChangedMeanwhile as change:
        raise ToolError(str(change)) from None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {_in_words(error)}.") from None
    except UnicodeEncodeError:
        shown = path.encode("utf-8", "replace").decode()
        raise ToolError(f"{shown} holds a character that no path can. Use Glob to find the file.") from None


def _in_words(error: OSError) -> str:
    """What happened, and what to do."""
    match error.errno:
        case errno.ENOTDIR:
            return "a part of this path is a file, not a directory. Use Glob to find the file"
        case errno.EACCES | errno.EPERM:
            return "this user may not read it. Ask for permission to read it, or continue without"
        case errno.ELOOP:
            return "it is a link that leads back to itself. Use Glob to find the file"
        case errno.ENAMETOOLONG:
            return "its name is longer than any file's. Use Glob to find the file"
        case errno.EINVAL:
            return "the system gives nothing to read here. Look at it with a command"
        case _:
            return f"{error.strerror or error}. Look at it with a command"


def _advice(reason: str) -> str:
    if reason == "it is a directory":
        return "Use Glob to list what is in it"
    if reason.startswith("it is UTF-8 but"):
        return "A command can show it, such as cat -v; once those bytes are gone it can be read"
    return "Text, pictures (PNG, JPEG, GIF, WebP), PDF documents and notebooks can be read"
