"""PDF documents: pages as text, scanned ones as pictures."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import count

import pypdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ferrule.host.documents.file_kinds import is_pdf
from ferrule.host.documents.images import LONG_SIDE
from ferrule.host.documents.pdfs import LIMITS, BadPages, BadPdf, PageRange, TooManyPages, parse_pages, read_pdf
from ferrule.host.processes.worker_process import WorkLimits
from tests.host.documents.making import encoded, nested_pdf, pdf
from tests.requirement import requirement

BOOK = pdf([f"This is page {number}." for number in range(1, 41)])


@requirement("READ-5")
@pytest.mark.parametrize(
    ("text", "first", "last"), [("3", 3, 3), ("1-5", 1, 5), ("10-20", 10, 20), (" 2 - 4 ", 2, 4), ("21-40", 21, 40)]
)
def test_a_page_or_a_range_of_pages(text: str, first: int, last: int) -> None:
    assert parse_pages(text) == PageRange(first, last)


@requirement("READ-5")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("abc", "must be a page or a range"),
        ("", "must be a page or a range"),
        ("1-", "must be a page or a range"),
        ("-3", "must be a page or a range"),
        ("1,3", "must be a page or a range"),
        ("٣", "must be a page or a range"),
        ("5-3", "ends before it begins"),
        ("0", "starts from 1"),
        ("0-4", "starts from 1"),
        ("1-21", "asks for 21 pages, and 20 is the most"),
        ("1-40", "asks for 40 pages, and 20 is the most"),
    ],
)
def test_what_are_no_pages_is_told(text: str, words: str) -> None:
    with pytest.raises(BadPages, match=words):
        parse_pages(text)


@requirement("READ-5")
def test_some_pages_of_a_long_document() -> None:
    read = read_pdf(BOOK, PageRange(38, 57))

    assert (read.total, read.pages) == (40, PageRange(38, 40))
    assert [(sheet.number, sheet.text, sheet.picture) for sheet in read.sheets] == [
        (number, f"This is page {number}.", None) for number in (38, 39, 40)
    ]


@requirement("READ-5")
def test_the_document_is_cut_to_the_pages_asked_for() -> None:
    cut = pypdf.PdfReader(BytesIO(read_pdf(BOOK, PageRange(3, 4)).data or b""))

    assert [page.extract_text().strip() for page in cut.pages] == ["This is page 3.", "This is page 4."]
    assert read_pdf(short := pdf(["a", "b"]), None).data == short


@requirement("READ-5")
def test_a_long_document_needs_pages_and_says_how_many_there_are() -> None:
    with pytest.raises(TooManyPages) as caught:
        read_pdf(BOOK, None)

    assert caught.value.total == 40
    with pytest.raises(BadPages, match="page 41 does not exist; the last one is 40"):
        read_pdf(BOOK, PageRange(41, 42))


@requirement("READ-5")
def test_a_scanned_page_comes_as_a_picture() -> None:
    scan = encoded(Image.new("RGB", (850, 1100), "ivory"), "PDF")

    (sheet,) = read_pdf(scan, None).sheets

    assert sheet.text == ""
    assert sheet.picture is not None
    assert max(sheet.picture.width, sheet.picture.height) == LONG_SIDE
    assert Image.open(BytesIO(sheet.picture.data)).size == (sheet.picture.width, sheet.picture.height)


@requirement("READ-5")
def test_only_pages_without_text_are_drawn() -> None:
    sheets = read_pdf(pdf(["one", "", "three"]), None).sheets

    assert [(sheet.text, sheet.picture is None) for sheet in sheets] == [("one", True), ("", False), ("three", True)]


@requirement("READ-5")
def test_a_document_behind_a_password_is_told_so() -> None:
    writer = pypdf.PdfWriter(clone_from=BytesIO(pdf(["secret"])))
    writer.encrypt("hunter2", algorithm="RC4-128")
    buffer = BytesIO()
    writer.write(buffer)

    with pytest.raises(BadPdf, match="needs a password"):
        read_pdf(buffer.getvalue(), None)


@requirement("READ-5")
@pytest.mark.parametrize("data", [b"%PDF-", b"%PDF-1.7\nnonsense", BOOK[:300], pdf([])])
def test_a_broken_document_is_told_so(data: bytes) -> None:
    with pytest.raises(BadPdf, match="it is a PDF"):
        read_pdf(data, None)


@requirement("READ-5")
@settings(max_examples=8, deadline=None)  # each starts a process
@given(st.lists(st.tuples(st.integers(5, 2000), st.integers(0, 255)), max_size=8))
def test_damage_is_told_or_harmless(damage: list[tuple[int, int]]) -> None:
    data = bytearray(pdf(["one", "", "three"]))
    for place, byte in damage:
        data[place % len(data)] = byte

    try:
        read = read_pdf(bytes(data), None)
    except (BadPdf, TooManyPages):
        return

    assert len(read.sheets) == read.total


@requirement("READ-5")
def test_many_threads_read_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        reads = list(pool.map(partial(read_pdf, BOOK), [PageRange(page, page) for page in range(1, 13)]))

    assert [read.sheets[0].text for read in reads] == [f"This is page {number}." for number in range(1, 13)]


@requirement("READ-5")
@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (replace(LIMITS, seconds=1.0), "longer than 1 seconds"),
        (replace(LIMITS, memory=384 << 20), "needs more than 384 MB of memory"),
    ],
    ids=["time", "memory"],
)
def test_a_document_that_would_never_end_is_given_up(limits: WorkLimits, words: str) -> None:
    with pytest.raises(BadPdf, match=f"cannot be taken apart: .*{words}"):
        read_pdf(nested_pdf(12, 10), None, limits=limits)


@requirement("READ-5")
def test_a_document_that_says_too_much_is_given_up() -> None:
    with pytest.raises(BadPdf, match="more than 0 MB"):
        read_pdf(pdf(["word " * 100]), None, limits=replace(LIMITS, answer=100))


@requirement("READ-5")
def test_a_document_that_nobody_waits_for_any_more_is_left() -> None:
    looks = count()

    with pytest.raises(InterruptedError):
        read_pdf(nested_pdf(12, 10), None, interrupted=lambda: next(looks) > 5)


@requirement("READ-5")
def test_a_document_is_told_by_its_first_bytes() -> None:
    assert is_pdf(b"%PDF-1.4", named_so=False)
    assert is_pdf(b"\n\njunk\n%PDF-1.4", named_so=True)
    assert not is_pdf(b"about %PDF-1.4", named_so=False)
