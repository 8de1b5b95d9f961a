"""Text as a file contains it: characters, their encoding, and the bytes themselves.

A decoding is accepted only where encoding the text again gives the same bytes, so
nothing can be lost by it; and a change replaces the bytes of its spans and no
others, so nothing outside of them can move.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from ...core.values import plain_value
from ...text.matching import TextEdit, splice_edits

SNIFF = 8192
"""Bytes to look at before a file is called binary."""

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: it begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
UTF7_MARKS = (b"+/v8", b"+/v9", b"+/v+", b"+/v/")
ISO_2022 = ("iso2022_jp", "iso2022_kr", "iso2022_jp_2", "iso2022_jp_ext", "iso2022_jp_2004")
STATEFUL = frozenset({"utf-7", *ISO_2022})
"""Where a byte's meaning depends on what came before it, no span can be changed on its own."""
PAIRING = frozenset({"big5hkscs"})
"""Encodings in which two characters may share one code."""
WIDER = {"gbk": "gb18030", "cp950": "big5hkscs"}

DECLARED = (  # compiled when first used, as few starts get that far
    rb"\A(?:[^\n]*\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)",
    rb"\A<\?xml[^>]*?encoding=[\"']([-\w.]+)",
    rb"(?i)<meta[^>]*?charset=[\"']?([-\w.]+)",
)
DECLARABLE = r"cp\d+|iso8859-\d+|koi8-[ru]|mac-\w+|gb\w+|big5\w*|euc_(jp|kr)|shift_jis"
PRINTABLE = "".join(map(chr, range(32, 127)))
CONTROLS = rb"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]"
WIDEST_CONTROL_SHARE = 0.01

WINDOW = 4 * SNIFF
"""Bytes on either side of what is not UTF-8 that tell a slip from another encoding."""


class NotText(Exception):
    """There is something here, but no text that can be read. The message says what."""


class NotEditable(Exception):
    """The text can be read, but this change of it cannot be made. The message says why and what to do."""


class Unencodable(NotEditable):
    """The file's encoding has no bytes for a character of the new text."""

    def __init__(self, character: str, encoding: str) -> None:
        self.character = character
        self.encoding = encoding
        sign = character if character.isprintable() else ascii(character)[1:-1]
        advice = (
            "It is half of a character, and no encoding has one; give the whole character."
            if "\ud800" <= character <= "\udfff"
            else "Use characters that it has, or convert the file to UTF-8 first."
        )
        super().__init__(
            f"the file's encoding, {encoding}, has no way to write {sign} ({_code_point(character)}). {advice}"
        )


@plain_value
class Endings:
    """How many lines end in what."""

    lf: int
    crlf: int
    cr: int

    @property
    def is_mixed(self) -> bool:
        return sum(map(bool, (self.lf, self.crlf, self.cr))) > 1


@plain_value
class TextDocument:
    """A file's text, with its line endings as they are."""

    text: str
    encoding: str
    bom: bytes
    data: bytes

    @classmethod
    def decode(cls, data: bytes) -> TextDocument:
        """Find the encoding that gives these very bytes back. Raises `NotText`.

        >>> TextDocument.decode(b"\\xef\\xbb\\xbfa\\r\\n")
        TextDocument(text='a\\r\\n', encoding='utf-8', bom=b'\\xef\\xbb\\xbf', data=b'\\xef\\xbb\\xbfa\\r\\n')
        """
        for candidate in _candidates(data):
            if candidate is not None:
                return candidate
        raise NotText(_why_not(data))

    @property
    def endings(self) -> Endings:
        crlf = self.text.count("\r\n")
        return Endings(self.text.count("\n") - crlf, crlf, self.text.count("\r") - crlf)

    @property
    def is_editable(self) -> bool:
        return self.encoding not in STATEFUL

    def without_mark(self, text: str) -> str:
        """A given text as it is kept here: the mark at the file's beginning is separate from its text."""
        return text.removeprefix("\ufeff") if self.bom else text

    def splice(self, edits: Sequence[TextEdit]) -> bytes:
        """The file's bytes with these spans replaced, and all others as they were.

        Spans are in order and do not overlap. Raises `Unencodable` or another `NotEditable`.
        """
        _check_order(edits, len(self.text))
        if not self.is_editable:
            raise NotEditable(
                f"the file is in {self.encoding}, where what a byte means depends on those before it. "
                "Convert it to UTF-8 first, then edit."
            )
        new = [_encode(edit.new, self.encoding) for edit in edits]
        places = self._places(cut for edit in edits for cut in (edit.start, edit.end))
        whole = memoryview(self.data)
        pieces: list[bytes | memoryview] = []
        done = 0
        for replacement in new:
            start, end = next(places), next(places)
            pieces += (whole[done:start], replacement)
            done = end
        return b"".join((*pieces, whole[done:]))

    def edit(self, edits: Sequence[TextEdit]) -> TextDocument:
        """The document as it is after `splice`, still in its encoding."""
        data = self.splice(edits)
        return TextDocument(splice_edits(self.text, edits), self.encoding, self.bom, data)

    def _places(self, cuts: Iterable[int]) -> Iterator[int]:
        """Where in the bytes each of these characters begins; the cuts are in order."""
        first = len(self.bom)
        if len(self.text) == len(self.data) - first and self.encoding not in PAIRING:
            yield from (first + cut for cut in cuts)  # one byte each
            return
        done, place = 0, first
        for cut in cuts:
            piece = self.text[done:cut].encode(self.encoding)
            if not self.data.startswith(piece, place):
                raise NotEditable(
                    f"in {self.encoding} characters {cut - 1} and {cut} of the file share one code. "
                    "Replace both, or neither."
                )
            done, place = cut, place + len(piece)
            yield place


NEW_FILE = TextDocument("", "utf-8", b"", b"")
"""What a file that is to be made begins as."""


def _candidates(data: bytes) -> Iterator[TextDocument | None]:
    yield from (_decode_marked(data, encoding, mark) for mark, encoding in MARKS if data.startswith(mark))
    if b"\0" in data[:SNIFF]:
        yield _wide(data)
    elif data.isascii():
        yield from _stateful(data)
        yield _faithful(data, _declared_encoding(data))
        yield _faithful(data, "utf-8")
    else:
        yield _faithful(data, "utf-8")
        yield from _legacy(data)


def _decode_marked(data: bytes, encoding: str, mark: bytes) -> TextDocument | None:
    document = _faithful(data, encoding, mark)
    return document if document and "\0" not in document.text[:SNIFF] else None


def _faithful(data: bytes, encoding: str, bom: bytes = b"") -> TextDocument | None:
    """The document, if this encoding gives the same bytes back."""
    body = data[len(bom) :] if bom else data
    try:
        text = body.decode(encoding)
        # strict UTF-8 has one way to write each text, so it needs no second look
        same = encoding == "utf-8" or text.encode(encoding) == body
    except UnicodeError:
        return None
    return TextDocument(text, codecs.lookup(encoding).name, bom, data) if same else None


def _stateful(data: bytes) -> Iterator[TextDocument | None]:
    """Seven-bit encodings that say so themselves, by an escape or by their mark."""
    if b"\x1b" in data and b"\x1b$" in data:  # one byte is found much faster than two
        yield from (_faithful(data, encoding) for encoding in ISO_2022)
    if data.startswith(UTF7_MARKS):
        yield _faithful(data, "utf-7")


def _declared_encoding(data: bytes) -> str:
    """The encoding that an ASCII text says it is in: what is added to it must be in that one.

    >>> _declared_encoding(b"# -*- coding: latin-1 -*-"), _declared_encoding(b"x = 1")
    ('iso8859-1', 'utf-8')
    """
    for pattern in DECLARED:
        if found := re.search(pattern, data[:1024]):
            return _declarable(found[1].decode()) or "utf-8"
    return "utf-8"


def _declarable(name: str) -> str | None:
    try:
        known = codecs.lookup(name).name
    except LookupError:
        return None
    return known if re.fullmatch(DECLARABLE, known) and PRINTABLE.encode().decode(known) == PRINTABLE else None


def _wide(data: bytes) -> TextDocument | None:
    """UTF-16 without a mark: the order of bytes in which it reads as text."""
    readings = [reading for encoding in ("utf-16-le", "utf-16-be") if (reading := _wide_reading(data, encoding))]
    return max(readings, key=lambda reading: sum(map(str.isascii, reading.text[:SNIFF])), default=None)


def _wide_reading(data: bytes, encoding: str) -> TextDocument | None:
    document = _faithful(data, encoding)
    if document is None or not _reads_as_text(document.text[:SNIFF]):
        return None
    high = data[encoding == "utf-16-le" : SNIFF : 2]
    return document if _few_scripts(high) or not _is_utf8(data) else None


def _reads_as_text(sample: str) -> bool:
    kinds = [unicodedata.category(sign) for sign in sample if sign not in "\t\n\v\f\r\x1b"]
    return "Cc" not in kinds and sum(kind in ("Cn", "Co") for kind in kinds) <= len(kinds) // 50


def _few_scripts(high: bytes) -> bool:
    """Whether the high bytes are as alike as a script makes them; in a list of names divided by NULs they are not."""
    commonest = sorted((high.count(byte) for byte in set(high)), reverse=True)[:2]
    return 0 in high and sum(commonest) >= 0.9 * len(high)


def _is_utf8(data: bytes) -> bool:
    return _faithful(data, "utf-8") is not None


def _legacy(data: bytes) -> Iterator[TextDocument | None]:
    if _is_binary(data) or _stray_byte(data) is not None:
        return
    yield _faithful(data, _declared_encoding(data))
    from .charsets import likely_encodings  # few files need it, and its statistics take long to load

    for encoding in likely_encodings(data):
        yield _faithful(data, encoding)
        if _decodes(data, encoding):  # and would change bytes: to read it as something else would only hide that
            yield _faithful(data, WIDER.get(encoding, encoding))
            return
    if not re.search(rb"[\x80-\x9f]", data):
        yield _faithful(data, "iso8859-1")


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _is_binary(data: bytes) -> bool:
    sample = data[: 8 * SNIFF]
    return len(re.findall(CONTROLS, sample)) > WIDEST_CONTROL_SHARE * len(sample)


def _stray_byte(data: bytes) -> int | None:
    """The place of the first byte that spoils what is UTF-8 otherwise."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        around = data[max(0, error.start - WINDOW) : error.start + WINDOW].decode("utf-8", "surrogateescape")
        foreign = re.findall(r"[^\x00-\x7f]", around)
        stray = sum("\udc80" <= sign <= "\udcff" for sign in foreign)
        return error.start if len(foreign) > 4 * stray else None
    return None


def _why_not(data: bytes) -> str:
    if b"\0" in data[:SNIFF] or _is_binary(data):
        return "it is binary"
    place = _stray_byte(data)
    if place is not None:
        line = data.count(b"\n", 0, place) + 1
        return f"it is UTF-8 but for stray bytes, the first in line {line:,} (byte {place:,} is {data[place]:#04x})"
    return "no encoding gives its bytes back unchanged"


def _check_order(edits: Sequence[TextEdit], length: int) -> None:
    done = 0
    for edit in edits:
        if not done <= edit.start <= edit.end <= length:
            raise ValueError(f"{edit} is out of order or outside of a text of {length} characters")
        done = edit.end


def _encode(text: str, encoding: str) -> bytes:
    """Raises `Unencodable` also for what would be read back as something else, as ¥ is in Shift-JIS."""
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError as error:
        raise Unencodable(text[error.start], encoding) from None
    if encoding != "utf-8" and (back := data.decode(encoding)) != text:
        raise Unencodable(next((a for a, b in zip(text, back, strict=False) if a != b), text[-1]), encoding)
    return data


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
