"""Reading a file as what it is, and knowing what of it was seen."""

from __future__ import annotations

import os
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from ...core.values import named_value, plain_value
from ...text.notebooks import Notebook, NotNotebook, parse_notebook
from ..files.ledger import Ledger, Stamp, lines_of
from ..files.open_files import FileIdentity, OpenFile, open_file
from ..files.text_files import NotText, TextDocument
from .contents import ImageRead, NotebookRead, PartsRead, PdfRead, ReadOutput, TextRead
from .file_kinds import SHOWN, FileKind, binary_by_name, ending_of, kind_of_file
from .images import fit_picture, thumbnail
from .notebook_cells import CellPage, cell_page
from .part_files import PartFiles, split_into_parts
from .pdfs import PageRange, Pdf, PdfPage, read_pdf
from .text_pages import LongLine, PastEnd, TextPage, Wanted, line_pieces, read_page, weight

MOST_NOTEBOOK = 100_000_000
MOST_MEDIA = 256_000_000
"""Bytes of a picture or a document; they are loaded whole."""
IN_A_THREAD = 2 << 20
"""Bytes above which a file is read beside the event loop and not on it."""


@named_value
class ReadRequest:
    path: str
    judged: str | None = None
    """The real path for which permission was given."""
    offset: int = 1
    limit: int | None = None
    pages: PageRange | None = None
    reminder: str = ""
    interrupted: Callable[[], bool] = bool
    as_document: bool = False
    """Whether the reader takes PDF documents as they are."""
    sees: bool = True
    """Whether the reader can see pictures."""


@plain_value
class Taken:
    """What was read, and what the ledger has to know of it."""

    output: ReadOutput
    real_path: str
    form: str
    version: str
    seen: Callable[[Ledger], object]


class NotPaged(Exception):
    """The line or cell does not exist, or the file has no pages. The message says what it has."""


class FileReader:
    def __init__(self, *, room: int, parts_folder: Path | None = None) -> None:
        """`room` is that of a page, in quarters of a token. Without a folder, parts go to a temporary one."""
        self._room = room
        self._parts_folder = parts_folder

    def take(self, asked: ReadRequest, *, at_once: bool) -> Taken | None:
        """What is in the file; with `at_once`, `None` for what might take long.

        Raises `NotText`, `NotPaged`, `BadImage`, `BadPdf`, `BadPages`, `TooManyPages`, `ChangedMeanwhile` or `OSError`.
        """
        with open_file(asked.path, judged=asked.judged, interrupted=asked.interrupted) as file:
            kind = kind_of_file(asked.path, file.head)
            if at_once and (kind is not FileKind.TEXT or file.status.st_size > IN_A_THREAD):
                return None
            if asked.pages and kind is not FileKind.PDF:
                raise NotPaged("it is not a PDF document, and only those have `pages`. Use `offset` and `limit`")
            match kind:
                case FileKind.IMAGE:
                    return _image(asked, file)
                case FileKind.PDF:
                    return self._pdf(asked, file)
                case FileKind.NOTEBOOK:
                    return self._notebook(asked, file)
                case FileKind.TEXT:
                    return self._text(asked, file)

    def _text(self, asked: ReadRequest, file: OpenFile, *notes: str) -> Taken:
        if file.head and (what := binary_by_name(asked.path)):
            raise NotText(f"it is {what}")
        try:
            page = read_page(file, Wanted(self._room, asked.offset, asked.limit))
        except PastEnd as past:
            raise NotPaged(
                f"it has {_number(past.total, 'line')}; it cannot be read from line {asked.offset}"
            ) from None
        form = f"lines {asked.offset} {asked.limit}"
        if isinstance(page, LongLine):
            parts = self._parts(asked, f"line {page.number}", page.version, line_pieces(file, page))
            output = _parts_read(asked, file, parts, "line", page.number, page.total)
            return Taken(output, file.real_path, form, page.version, partial(_note_looked_at, file, page.version))
        if ending_of(asked.path) in SHOWN and page.total:
            notes = (*notes, f"The file is named {ending_of(asked.path)} and holds text.")
        content, notes = "\n".join(page.lines), (*_more_lines(page, asked.limit), *notes)
        output = TextRead(asked.path, content, len(page.lines), page.first, page.total, notes, asked.reminder)
        return Taken(output, file.real_path, form, page.version, partial(_saw_page, file, page))

    def _notebook(self, asked: ReadRequest, file: OpenFile) -> Taken:
        if file.status.st_size > MOST_NOTEBOOK:
            return self._text(asked, file, "Shown as text, because it is too large to be read as a notebook.")
        data = file.content()
        try:
            notebook = parse_notebook(TextDocument.decode(data).text)
        except NotNotebook as reason:
            return self._text(asked, file, f"Shown as text, because it cannot be read as a notebook: {reason}.")
        total = len(notebook.cells)
        if asked.offset > max(total, 1):
            raise NotPaged(f"it has {_number(total, 'cell')}; it cannot be read from cell {asked.offset}")
        page = cell_page(
            notebook, first=asked.offset, count=asked.limit, room=self._room, interrupted=asked.interrupted
        )
        identity = FileIdentity.of(file.real_path, file.status, data)
        form = f"cells {asked.offset} {asked.limit}"
        if page.long and not page.cells:
            parts = self._parts(asked, f"cell {page.long.number}", identity.digest, [page.long.text()])
            output = _parts_read(asked, file, parts, "cell", page.long.number, total)
            # its outputs may fill a folder; that must not keep anybody from editing the notebook
            seen = partial(_saw_cells, identity, notebook, asked.offset, CellPage((page.long,), total, None))
            return Taken(output, file.real_path, form, identity.digest, seen)
        notes = tuple(_more_cells(page, asked))
        output = NotebookRead(asked.path, page.cells, asked.offset, total, notes, asked.reminder)
        seen = partial(_saw_cells, identity, notebook, asked.offset, page)
        return Taken(output, file.real_path, form, identity.digest, seen)

    def _pdf(self, asked: ReadRequest, file: OpenFile) -> Taken:
        data = file.content(MOST_MEDIA)
        pdf = read_pdf(data, asked.pages, as_document=asked.as_document, interrupted=asked.interrupted)
        identity = FileIdentity.of(file.real_path, file.status, data)
        form = f"pages {asked.pages}"
        sheets = _fitting(pdf.sheets, self._room)
        if pdf.sheets and not sheets:
            parts = self._parts(asked, f"page {pdf.pages.first}", identity.digest, [pdf.sheets[0].text])
            output = _parts_read(asked, file, parts, "page", pdf.pages.first, pdf.total)
            return Taken(output, file.real_path, form, identity.digest, partial(_note_looked_at, file, identity.digest))
        shown = PageRange(pdf.pages.first, sheets[-1].number) if sheets else pdf.pages
        encoded, notes = b64encode(pdf.data or b"").decode(), tuple(_more_pages(shown, pdf))
        output = PdfRead(asked.path, encoded, len(data), shown, pdf.total, sheets, notes, asked.reminder)
        whole = shown == PageRange(1, pdf.total)
        seen = partial(_saw_whole, identity) if whole else partial(_note_looked_at, file, identity.digest)
        return Taken(output, file.real_path, form, identity.digest, seen)

    def _parts(self, asked: ReadRequest, what: str, version: str, pieces: Iterable[str]) -> PartFiles:
        if self._parts_folder is None:
            self._parts_folder = Path(tempfile.mkdtemp(prefix="ferrule-parts-"))
        key = f"{asked.path}\0{what}\0{version}\0{self._room}"
        name = f"{os.path.basename(asked.path)}-{what}"
        return split_into_parts(pieces, folder=self._parts_folder, name=name, key=key, room=self._room)


def _image(asked: ReadRequest, file: OpenFile) -> Taken:
    data = file.content(MOST_MEDIA)
    picture = fit_picture(data)
    identity = FileIdentity.of(file.real_path, file.status, data)
    output = ImageRead(
        path=asked.path,
        data=picture.base64,
        media_type=picture.media_type,
        original_size=picture.original_size,
        original_width=picture.original_width,
        original_height=picture.original_height,
        width=picture.width,
        height=picture.height,
        preview=thumbnail(picture.data).base64,
        is_seen=asked.sees,
    )
    return Taken(output, file.real_path, "image", identity.digest, partial(_saw_whole, identity))


def _parts_read(
    asked: ReadRequest, file: OpenFile, parts: PartFiles, unit: str, number: int, total: int | None
) -> PartsRead:
    rest = "The parts hold only the beginning of it; the rest is too long to be split. A command can show more."
    notes = () if parts.complete else (rest,)
    if total is None or number < total:
        on = f'pages "{number + 1}"' if unit == "page" else f"offset {number + 1}"
        notes = (*notes, f"After this {unit}, go on with {on}.")
    return PartsRead(asked.path, file.status.st_size, parts.count, parts.folder, f"{unit} {number}", notes)


# What more there is


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _more_lines(page: TextPage, limit: int | None) -> Iterator[str]:
    """Nothing where the page has what was asked for."""
    if len(page.lines) == limit or (page.total is not None and page.last >= page.total):
        return
    counted = f"Lines {page.first} to {page.last}"
    counted += f" of {page.total}" if page.total is not None else ", and more than can be counted quickly"
    if page.before_long:
        yield f"{counted}. Line {page.last + 1} alone is more than a page; offset {page.last + 1} splits it into parts."
    else:
        yield f"{counted}. Read on with offset {page.last + 1}."


def _more_cells(page: CellPage, asked: ReadRequest) -> Iterator[str]:
    first, last = asked.offset, asked.offset + len(page.cells) - 1
    if len(page.cells) == asked.limit:
        return
    if page.long:
        yield (
            f"Cells {_indices(first, last)} of {page.total}. Cell {last} alone is more than a page; "
            f"offset {last + 1} splits it into parts."
        )
    elif last < page.total:
        yield f"Cells {_indices(first, last)} of {page.total}. Read on with offset {last + 1}."


def _indices(first: int, last: int) -> str:
    """As NotebookEdit counts them, from 0."""
    return f"{first - 1} to {last - 1} (counted from 0)"


def _more_pages(shown: PageRange, pdf: Pdf) -> Iterator[str]:
    if shown.last < pdf.pages.last:
        yield f'Only pages {shown} fit. Go on with pages "{PageRange(shown.last + 1, pdf.pages.last)}".'
    elif shown != PageRange(1, pdf.total):
        yield f"Pages {shown} of {pdf.total}."


def _fitting(sheets: tuple[PdfPage, ...], room: int) -> tuple[PdfPage, ...]:
    """As many as there is room for; pictures have a budget of their own."""
    for index, sheet in enumerate(sheets):
        room -= weight(sheet.text) + len("[Page 10,000 of 10,000]\n\n")
        if room < 0:
            return sheets[:index]
    return sheets


# What was seen


def _saw_page(file: OpenFile, page: TextPage, ledger: Ledger) -> None:
    if page.document and (page.is_whole or not page.total):
        identity = FileIdentity.of(file.real_path, file.status, page.document.data, page.version)
        ledger.saw_whole(identity, page.document.text)
        return
    if page.cut:
        _note_looked_at(file, page.version, ledger)
    for first, lines in page.whole_runs():
        ledger.saw_lines(file.real_path, Stamp.of(file.status), first=first, lines=lines)


def _saw_cells(identity: FileIdentity, notebook: Notebook, first: int, page: CellPage, ledger: Ledger) -> None:
    """The lines that hold the cells shown; with the first and the last cell, also what surrounds the cells.

    A notebook may be a single line. So each cell is noted separately, too, and who saw all of them saw it whole.
    """
    path, version = identity.real_path, identity.digest
    for cell in page.cells:
        ledger.note_form(path, f"cell {cell.number}", version, "a cell")
    if all(ledger.call_that_showed(path, f"cell {number}", version) for number in range(1, page.total + 1)):
        ledger.saw_whole(identity, notebook.text)
    elif page.cells:
        cells, text = notebook.cells[first - 1 : first - 1 + len(page.cells)], notebook.text
        between = " \t\r\n,"
        start = len(text[: cells[0].span.start].rstrip(between)) if first > 1 else 0
        end = cells[-1].span.end if cells[-1].index + 1 < page.total else len(text)
        end += len(text[end:]) - len(text[end:].lstrip(between))
        top = text.count("\n", 0, start) + (start > 0)
        bottom = text.count("\n", 0, end) if end < len(text) else None
        stamp = Stamp(identity.size, identity.mtime_ns, identity.inode)
        ledger.saw_lines(identity.real_path, stamp, first=top + 1, lines=lines_of(text)[top:bottom])


def _saw_whole(identity: FileIdentity, ledger: Ledger) -> None:
    ledger.saw_whole(identity, None)


def _note_looked_at(file: OpenFile, version: str, ledger: Ledger) -> None:
    """No whole lines were seen: the file is known, but none of its lines."""
    stamp, known = Stamp.of(file.status), ledger.seen(file.real_path)
    if known and known.whole and known.whole.digest != version and known.stamp != stamp:
        ledger.forget(file.real_path)  # otherwise its old content would stay known, whatever is read of it now
    ledger.saw_lines(file.real_path, stamp, first=1, lines=())
