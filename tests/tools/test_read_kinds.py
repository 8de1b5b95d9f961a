"""Read: pictures, PDF documents, notebooks, and what lines cannot page."""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import Block, Code, Document, Image, Line, Listing, Picture, Text
from ferrule.host.documents.contents import ImageRead, NotebookRead, PartsRead, PdfRead, TextRead
from ferrule.host.documents.images import LONG_SIDE
from ferrule.testing import run_call, run_calls
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.read import REMINDER, Read
from tests.host.documents.making import pdf, png
from tests.requirement import requirement
from tests.tools.test_bash import A_FEW_STEPS

PLOT = png(30, 20)


def notebook(*cells: dict[str, Any], minor: int = 5) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": minor, "metadata": {}, "cells": cells}, indent=1)


def code(id: str, source: str, *outputs: dict[str, Any], count: int | None = None) -> dict[str, Any]:
    return {"cell_type": "code", "id": id, "source": source, "outputs": list(outputs), "execution_count": count}


class TestReadContractForOtherKinds(ToolContract):
    steps = A_FEW_STEPS
    samples = (
        {"file_path": "a.png"},
        {"file_path": "a.pdf", "pages": "1-2"},
        {"file_path": "a.ipynb", "offset": 1},
        {"file_path": "a.min.js"},
    )

    def make(self) -> Read:
        return Read()

    def arrange(self, folder: Path) -> None:
        (folder / "a.png").write_bytes(PLOT)
        (folder / "a.pdf").write_bytes(pdf(["one", "two"]))
        (folder / "a.ipynb").write_text(notebook(code("x", "1")))
        (folder / "a.min.js").write_text("x" * 120_000)


async def _outcome(folder: Path, name: str, tool: Read | None = None, **more: Any) -> ToolOutcome:
    outcome = await run_call(folder, tool or Read(), {"file_path": name, **more})
    assert outcome.status is Status.OK, outcome.content
    return outcome


async def _shown(folder: Path, name: str, tool: Read | None = None, **more: Any) -> list[Block]:
    return [block for block in (await _outcome(folder, name, tool, **more)).content if block != Text(REMINDER)]


async def _refused(folder: Path, name: str, **more: Any) -> tuple[Status, str]:
    outcome = await run_call(folder, Read(), {"file_path": name, **more})
    (block,) = outcome.content
    assert outcome.is_error
    assert isinstance(block, Text)
    return outcome.status, block.text.replace(str(folder), "")


def _text(block: Block) -> str:
    assert isinstance(block, Text)
    return block.text


# Pictures


@requirement("READ-2", "READ-4", "BUD-5")
@pytest.mark.parametrize("name", ["plot.png", "plot.txt", "plot.pdf", "plot.zip", "plot"])
async def test_a_picture_is_told_by_its_bytes_and_shown_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(PLOT)

    outcome = await _outcome(tmp_path, name)

    assert outcome.content == (Image("image/png", b64encode(PLOT).decode()),)
    output = outcome.output
    assert isinstance(output, ImageRead)
    assert (output.kind, output.original_size, output.original_width, output.height) == ("image", len(PLOT), 30, 20)


@requirement("READ-4", "BUD-5")
async def test_a_large_picture_is_shrunk_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(2 * LONG_SIDE, 100))

    words, image = await _shown(tmp_path, "a.png")

    assert _text(words) == f"[{tmp_path}/a.png is {2 * LONG_SIDE} by 100 pixels, shown as {LONG_SIDE} by 50.]"
    assert isinstance(image, Image)


@requirement("READ-4", "CON-12")
async def test_people_see_a_small_picture(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(1000, 500))

    view = (await _outcome(tmp_path, "a.png")).view

    assert isinstance(view, Picture)
    assert (view.media_type, view.width, view.height) == ("image/png", 1000, 500)
    assert b64decode(view.base64).startswith(b"\x89PNG")


@requirement("READ-4")
async def test_a_drawing_in_svg_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text("<svg/>")

    assert await _shown(tmp_path, "a.svg") == [Text("1\t<svg/>")]


@requirement("READ-4", "READ-8")
async def test_text_that_is_named_like_a_picture_is_shown_as_the_text_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("not found")

    assert await _shown(tmp_path, "a.png") == [Text("1\tnot found\n\n[The file is named .png and holds text.]")]


@requirement("READ-4")
async def test_a_broken_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PLOT[:40])

    assert await _refused(tmp_path, "a.png") == (
        Status.FAILED,
        "/a.png cannot be read: it is a picture that is broken or incomplete.",
    )


# PDF documents


@requirement("READ-2", "READ-5")
async def test_a_short_document_is_shown_whole(tmp_path: Path) -> None:
    data = pdf(["first page", "second page"])
    (tmp_path / "a.pdf").write_bytes(data)

    outcome = await _outcome(tmp_path, "a.pdf")

    assert _text(outcome.content[0]) == "[Page 1 of 2]\nfirst page\n\n[Page 2 of 2]\nsecond page"
    output = outcome.output
    assert isinstance(output, PdfRead)
    assert (output.kind, b64decode(output.data), output.original_size) == ("pdf", data, len(data))
    assert outcome.view == Line("pages 1-2 of 2")


@requirement("READ-5")
async def test_pages_of_a_long_document_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf([f"words {number}" for number in range(1, 41)]))

    (text,) = await _shown(tmp_path, "a.pdf", pages="10-29")

    assert re.findall(r"words (\d+)", _text(text)) == [str(number) for number in range(10, 30)]
    assert _text(text).endswith("[Pages 10-29 of 40.]")
    assert await _refused(tmp_path, "a.pdf") == (
        Status.FAILED,
        "/a.pdf has 40 pages, and without `pages` only up to 10 are shown. "
        'Name those to read, at most 20 at once, such as pages "1-10".',
    )
    assert await _refused(tmp_path, "a.pdf", pages="41") == (
        Status.FAILED,
        "/a.pdf cannot be read: page 41 does not exist; the last one is 40.",
    )


@requirement("READ-5")
@pytest.mark.parametrize("pages", ["abc", "5-3", "0", "1-40", ""])
async def test_wrong_pages_are_refused_before_the_file_is_looked_at(tmp_path: Path, pages: str) -> None:
    status, words = await _refused(tmp_path, "there-is-no-such.pdf", pages=pages)

    assert status is Status.INVALID
    assert words.startswith("`pages` ")


@requirement("READ-5")
async def test_scanned_pages_come_as_pictures_between_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["one", "", "three"]))

    before, image, after = await _shown(tmp_path, "a.pdf")

    assert _text(before) == "[Page 1 of 3]\none\n\n[Page 2 of 3]"
    assert isinstance(image, Image)
    assert _text(after) == "[Page 3 of 3]\nthree"


@requirement("READ-2", "READ-5")
async def test_a_model_that_takes_documents_gets_one(tmp_path: Path) -> None:
    data = pdf(["one", "two"])
    (tmp_path / "a.pdf").write_bytes(data)

    assert await _shown(tmp_path, "a.pdf", Read(documents=True)) == [
        Document("application/pdf", b64encode(data).decode(), "a.pdf")
    ]
    document, words = await _shown(tmp_path, "a.pdf", Read(documents=True), pages="2")
    assert isinstance(document, Document)
    assert words == Text("[Pages 2 of 2.]")


@requirement("READ-5", "READ-7")
async def test_pages_that_do_not_fit_are_announced(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["\n".join(["word " * 10] * 50)] * 4))

    (text,) = await _shown(tmp_path, "a.pdf", Read(token_budget=1_500))

    assert _text(text).endswith('\n[Only pages 1-2 fit. Go on with pages "3-4".]')


@requirement("CON-15", "READ-5")
@pytest.mark.parametrize("name", ["read_file", "FileRead"])
async def test_the_old_names_take_pages_too(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["one", "two"]))

    (outcome,) = await run_calls(tmp_path, [ToolCall("1", name, {"file_path": "a.pdf", "pages": "2"})])

    assert _text(outcome.content[0]) == "[Page 2 of 2]\ntwo\n\n[Pages 2 of 2.]"


@requirement("READ-5")
async def test_pages_are_for_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")

    assert await _refused(tmp_path, "a.txt", pages="1") == (
        Status.FAILED,
        "/a.txt cannot be read: it is not a PDF document, and only those have `pages`. Use `offset` and `limit`.",
    )


# Notebooks


@requirement("READ-2", "READ-6")
async def test_a_notebook_is_shown_as_cells_with_what_they_put_out(tmp_path: Path) -> None:
    plot: dict[str, Any] = {"image/png": b64encode(PLOT).decode(), "text/plain": "<Figure>"}
    (tmp_path / "a.ipynb").write_text(
        notebook(
            {"cell_type": "markdown", "id": "intro", "source": ["# Title\n", "text"]},
            code(
                "sum",
                "print(1)\n2",
                {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "2", "text/html": "<b>2</b>"}, "metadata": {}},
                count=7,
            ),
            code("plot", "draw()", {"output_type": "display_data", "data": plot, "metadata": {}}),
            code(
                "bad",
                "1/0",
                {
                    "output_type": "error",
                    "ename": "ZeroDivisionError",
                    "evalue": "by zero",
                    "traceback": ["\x1b[0;31mZeroDivisionError\x1b[0m: by zero"],
                },
            ),
        )
    )

    outcome = await _outcome(tmp_path, "a.ipynb")

    before, image, after, reminder = outcome.content
    assert _text(before) == (
        "[Cell index 0, id intro: markdown]\n# Title\ntext\n\n"
        "[Cell index 1, id sum: code, run 7]\nprint(1)\n2\n[Output of sum]\n1\n[Output of sum]\n2\n\n"
        "[Cell index 2, id plot: code]\ndraw()"
    )
    assert image == Image("image/png", b64encode(PLOT).decode())
    assert _text(after) == "\n[Cell index 3, id bad: code]\n1/0\n[Output of bad]\nZeroDivisionError: by zero"
    assert reminder == Text(REMINDER)
    assert isinstance(outcome.output, NotebookRead)
    assert outcome.view == Listing(
        ("markdown intro: # Title", "code sum: print(1)", "code plot: draw()", "code bad: 1/0"), 4
    )


@requirement("READ-6")
async def test_cells_of_an_old_notebook_go_by_their_place(tmp_path: Path) -> None:
    cells = [{"cell_type": "raw", "source": "a"}, {"cell_type": "raw", "source": "b"}]
    (tmp_path / "a.ipynb").write_text(notebook(*cells, minor=4))

    (text,) = await _shown(tmp_path, "a.ipynb", offset=2)

    assert _text(text) == "[Cell index 1, id cell-1: raw]\nb"


@requirement("READ-6", "READ-7")
async def test_a_long_notebook_is_read_by_cells(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook(*(code(f"c{number}", "x" * 1500) for number in range(9))))

    (text,) = await _shown(tmp_path, "a.ipynb", Read(token_budget=1_000), offset=3)

    assert re.findall(r"id (c\d)", _text(text)) == ["c2", "c3"]
    assert _text(text).endswith("[Cells 2 to 3 (counted from 0) of 9. Read on with offset 5.]")
    assert await _refused(tmp_path, "a.ipynb", offset=10) == (
        Status.FAILED,
        "/a.ipynb cannot be read: it has 9 cells; it cannot be read from cell 10.",
    )


@requirement("READ-6", "READ-7")
async def test_many_plots_are_read_page_by_page(tmp_path: Path) -> None:
    plot = {"output_type": "display_data", "data": {"image/png": b64encode(png(1500, 1500)).decode()}}
    (tmp_path / "a.ipynb").write_text(notebook(code("many", "1", *[plot] * 22), *[code("one", "2", plot)] * 12))

    first, second = await _shown(tmp_path, "a.ipynb"), await _shown(tmp_path, "a.ipynb", offset=2)

    assert sum(isinstance(block, Image) for block in first) == 20
    assert _text(first[-1]).count("(one more picture; a cell shows 20)") == 2
    assert _text(first[-1]).endswith("[Cells 0 to 0 (counted from 0) of 13. Read on with offset 2.]")
    assert sum(isinstance(block, Image) for block in second) == 7
    assert _text(second[-1]).endswith("[Cells 1 to 7 (counted from 0) of 13. Read on with offset 9.]")


@requirement("READ-6")
@pytest.mark.parametrize("text", ["{", "[]", '{"cells": 1}', '{"nbformat": 3, "worksheets": [1]}'])
async def test_what_is_no_notebook_is_shown_as_text_with_a_note(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.ipynb").write_text(text)

    (shown,) = await _shown(tmp_path, "a.ipynb")

    assert _text(shown).startswith(f"1\t{text}\n\n[Shown as text, because it cannot be read as a notebook: ")


@requirement("READ-6")
async def test_outputs_that_are_not_as_they_should_be_are_shown_all_the_same(tmp_path: Path) -> None:
    odd: list[Any] = [7, {"output_type": "stream", "text": 3}, {"output_type": "display_data", "data": {"x/y": 1}}]
    broken = {"output_type": "display_data", "data": {"image/png": "AAAA"}}
    failed = {"output_type": "error", "ename": None, "traceback": [{"a": None}]}
    (tmp_path / "a.ipynb").write_text(notebook(code("c", "1", *odd, broken, failed)))

    (text,) = await _shown(tmp_path, "a.ipynb")

    assert [line for line in _text(text).splitlines() if not line.startswith("[")] == [
        "1",
        "7",
        "(a stream is neither a string nor a list of strings)",
        "(x/y)",
        "(a picture that cannot be shown: it is not a PNG, JPEG, GIF or WebP picture)",
        '{"a": null}',
    ]


# Parts


@requirement("READ-2", "READ-7")
async def test_one_line_that_is_more_than_a_page_is_split_into_parts_that_can_be_read(tmp_path: Path) -> None:
    line = "".join(f"var v{number}={number};" for number in range(180_000))
    (tmp_path / "a.min.js").write_text(line)
    tool = Read(parts_folder=tmp_path / "parts")

    outcome = await _outcome(tmp_path, "a.min.js", tool)

    output = outcome.output
    assert isinstance(output, PartsRead)
    assert (output.kind, output.original_size, output.what) == ("parts", len(line), "line 1")
    assert f"split into {output.count} parts in {output.folder}" in _text(outcome.content[0])
    parts = sorted(Path(output.folder).iterdir())
    assert len(parts) == output.count > 30
    read = [await _outcome(tmp_path, str(part), tool) for part in parts]
    assert all(isinstance(part.output, TextRead) and not part.output.notes for part in read)
    assert "".join(part.output.content.replace("\n", "") for part in read) == line
    assert all(path.stat().st_mode & 0o077 == 0 for path in (*parts, Path(output.folder)))


@requirement("READ-7")
async def test_the_lines_around_a_split_one_are_still_read_by_lines(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("// licence\n" + "x" * 120_000 + "\nlast\n")
    tool = Read(parts_folder=tmp_path / "parts")

    first = await _shown(tmp_path, "a.js", tool)
    second = await _shown(tmp_path, "a.js", tool, offset=2)
    again = await _shown(tmp_path, "a.js", tool, offset=2)

    assert first == [
        Text("1\t// licence\n\n[Lines 1 to 1 of 3. Line 2 alone is more than a page; offset 2 splits it into parts.]")
    ]
    assert _text(second[0]).endswith("\n[After this line, go on with offset 3.]")
    assert (second, len(list((tmp_path / "parts").iterdir()))) == (again, 1)
    assert await _shown(tmp_path, "a.js", tool, offset=3) == [Text("3\tlast")]


@requirement("READ-3", "READ-7")
async def test_parts_of_a_file_that_changed_are_written_anew(tmp_path: Path) -> None:
    path, tool = tmp_path / "a.js", Read(parts_folder=tmp_path / "parts")
    path.write_text("x" * 200_000)
    before = path.stat()
    await _shown(tmp_path, "a.js", tool)

    with path.open("r+") as file:
        file.seek(150_000)
        file.write("y")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    output = (await _outcome(tmp_path, "a.js", tool)).output

    assert isinstance(output, PartsRead)
    assert sum(part.read_text().count("y") for part in Path(output.folder).iterdir()) == 1


@requirement("READ-6", "READ-7")
async def test_one_cell_that_is_more_than_a_page_is_split_into_parts(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook(code("a", "1"), code("b", "y = 1\n" * 2_000), code("c", "3")))
    tool = Read(parts_folder=tmp_path / "parts", token_budget=1_000)

    (before,) = await _shown(tmp_path, "a.ipynb", tool)
    outcome = await _outcome(tmp_path, "a.ipynb", tool, offset=2)

    assert _text(before).endswith(
        "[Cells 0 to 0 (counted from 0) of 3. Cell 1 alone is more than a page; offset 2 splits it into parts.]"
    )
    assert isinstance(outcome.output, PartsRead)
    joined = "".join(part.read_text() for part in sorted(Path(outcome.output.folder).iterdir()))
    assert joined == "[Cell index 1, id b: code]\n" + "y = 1\n" * 2_000


@requirement("READ-2")
async def test_people_see_text_as_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")

    outcome = await _outcome(tmp_path, "a.py")

    assert outcome.output == TextRead(str(tmp_path / "a.py"), "x = 1\ny = 2", 2, 1, 2, (), REMINDER)
    assert outcome.view == Code("x = 1\ny = 2", str(tmp_path / "a.py"), 1)
