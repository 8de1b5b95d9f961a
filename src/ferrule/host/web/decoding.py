"""Bytes of a page as text: by its byte order mark, its header, its own declaration, or a guess."""

from __future__ import annotations

import codecs
import re
from typing import Final

from ..files.text_files import CONTROLS, MARKS, SNIFF, WIDEST_CONTROL_SHARE, NotText, TextDocument

LOOKED_AT: Final = 4_096
_META: Final = re.compile(
    rb"<(?:meta|\?xml)[^>]{0,500}?(?:charset|encoding)\s*=\s*[\"']?\s*([-\w.:]{2,40})", re.IGNORECASE
)
_DECLARED: Final = re.compile(r"charset\s*=\s*[\"']?([-\w.:]{2,40})", re.IGNORECASE)
_CHARSETS: Final = re.compile(
    r"utf[-_]?8|utf[-_]?(16|32)([-_]?[lb]e)?|(us-)?ascii|latin-?1|iso[-_]?8859[-_]?\d{1,2}|(windows|cp)[-_]?\d{3,4}"
    r"|koi8[-_][rut]|mac\w*|gb(k|2312|18030)|hz(-gb-2312)?|big5(-?hkscs)?|euc[-_](jp|kr|cn|tw)|(x-)?s(hift)?[-_]?jis"
    r"|iso-2022-(jp|kr)|ks_c_5601-1987|tis-?620",
    re.IGNORECASE,
)
"""Names that pages give; Python knows other codecs that are not charsets, or are not safe to use."""
_MEANT: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "tis_620": "cp874",
}
"""What browsers read under these names."""


def decode_page(data: bytes, content_type: str, *, is_cut: bool = False) -> str:
    """Raises `NotText`. A declaration that does not fit the bytes is not believed.

    >>> decode_page(b"na\\xefve \\x93quoted\\x94", "text/html; charset=ISO-8859-1")
    'naïve “quoted”'
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    for name in _declarations(data, content_type):
        text = _strictly(data, name, is_cut=is_cut)
        if text is not None:
            return text
    text = _strictly(data, "utf-8", is_cut=is_cut)
    return _guess(data) if text is None else text


def _guess(data: bytes) -> str:
    try:
        return TextDocument.decode(data).text
    except NotText:
        sample = data[:SNIFF]
        if b"\0" in sample or len(re.findall(CONTROLS, sample)) > WIDEST_CONTROL_SHARE * len(sample):
            raise
        return data.decode("utf-8", "replace")


def _declarations(data: bytes, content_type: str) -> list[str]:
    found = [match[1] for match in (_DECLARED.search(content_type),) if match]
    found += [match[1].decode("ascii") for match in (_META.search(data[:LOOKED_AT]),) if match]
    return [name for name in found if _CHARSETS.fullmatch(name)]


def _strictly(data: bytes, name: str, *, is_cut: bool) -> str | None:
    try:
        codec = codecs.lookup(name)
        meant = codecs.lookup(_MEANT.get(codec.name, codec.name))
        text = meant.incrementaldecoder("strict").decode(data, not is_cut)
    except (LookupError, UnicodeError):
        return None
    return None if "\0" in text else text
