"""Which encoding from before Unicode a text is in: the likely ones, best first.

Only a guess, and nothing depends on it but what a reader sees and how new
text is encoded; the caller that decodes makes sure that no byte is lost.
Two-byte encodings are distinguished by the rows of their tables that people
write in, all others by charset-normalizer within a family of scripts.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator

from charset_normalizer import CharsetMatch, from_bytes

from ...core.values import plain_value

SAMPLE = 16_384
"""Bytes to look at, of lines that are not plain ASCII."""
SHORT = 24
"""Non-ASCII bytes up to which statistics say little and the commonest encoding is preferred."""
COMMON_SHARE = 0.8
RARE = math.log(1e-6)

LATIN = ("cp1252", "iso8859_15", "cp1250", "iso8859_2", "cp1254", "cp1257", "mac_roman", "cp850", "cp437", "cp852",
         "cp1258")  # fmt: skip
OTHER_SCRIPTS = ("cp1251", "koi8_r", "koi8_u", "cp866", "iso8859_5", "mac_cyrillic", "cp1253", "iso8859_7", "cp1255",
                 "cp1256", "iso8859_6", "cp874")  # fmt: skip

JOINING = "\u2019\u00b7\u00ad\u00b0\u2013\u2014\u2026\u00d7"
"""Signs that may occur between two letters in good text: apostrophe, dot, hyphen, degree, dashes, ellipsis, times."""
RARE_IN_THE_WEST = re.compile("[ýþðÝÞÐõû]")
"""Where cp1252 shows these, another Latin alphabet is as likely: Turkish, Hungarian."""


@plain_value
class Rows:
    """Lead bytes of one part of a table, and how much of a usual text comes from it."""

    first: int
    last: int
    share: float
    common: bool = True


@plain_value
class TwoByte:
    codecs: tuple[str, ...]
    """The narrow one first: what it cannot hold, its readers could not read."""
    cells: int
    lowest_trail: int
    prior: float
    rows: tuple[Rows, ...]

    def likelihood(self, code: bytes) -> tuple[float, bool]:
        if len(code) == 2 and code[1] >= self.lowest_trail:
            for rows in self.rows:
                if rows.first <= code[0] <= rows.last:
                    return math.log(rows.share / ((rows.last - rows.first + 1) * self.cells)), rows.common
        return RARE, False


TWO_BYTE = (
    TwoByte(("gbk", "gb18030"), 94, 0xA1, 1.5,
            (Rows(0xB0, 0xD7, 0.8), Rows(0xA1, 0xA3, 0.12), Rows(0xD8, 0xF7, 0.07, common=False))),
    TwoByte(("cp949",), 94, 0xA1, 0.0,
            (Rows(0xB0, 0xC8, 0.9), Rows(0xA1, 0xA3, 0.05), Rows(0xCA, 0xFD, 0.04, common=False))),
    TwoByte(("euc_jp",), 94, 0xA1, 0.0,
            (Rows(0xA4, 0xA5, 0.5), Rows(0xA1, 0xA3, 0.12), Rows(0xB0, 0xCF, 0.35),
             Rows(0xD0, 0xF4, 0.02, common=False))),
    TwoByte(("cp932",), 188, 0x40, 0.0,
            (Rows(0x82, 0x83, 0.5), Rows(0x81, 0x81, 0.12), Rows(0x88, 0x97, 0.35),
             Rows(0x98, 0x9F, 0.01, common=False), Rows(0xE0, 0xEA, 0.01, common=False))),
    TwoByte(("cp950", "big5hkscs"), 157, 0x40, 0.0,
            (Rows(0xA4, 0xC6, 0.8), Rows(0xA1, 0xA3, 0.12), Rows(0xC9, 0xF9, 0.07, common=False))),
)  # fmt: skip


def likely_encodings(data: bytes) -> Iterator[str]:
    """Names of codecs, the likeliest first; Latin-1, which takes anything, is not among them."""
    sample = _telling_lines(data)
    yield from _two_byte(sample)
    yield from _one_byte(sample)


def _telling_lines(data: bytes) -> bytes:
    """Lines with non-ASCII bytes: in source code the other lines only dilute the statistics.

    >>> _telling_lines(b"a\\nb\\xe9\\nc\\n")
    b'b\\xe9'
    """
    if len(data) <= SAMPLE // 4:
        lines = data.split(b"\n")
    else:
        lines = (match[0] for match in re.finditer(rb"[^\n]*[\x80-\xff][^\n]*", data))
    taken: list[bytes] = []
    room = SAMPLE
    for line in lines:
        if line.isascii():
            continue
        taken.append(line[:SAMPLE])
        room -= len(line)
        if room <= 0:
            break
    return b"\n".join(taken)


def _two_byte(sample: bytes) -> list[str]:
    ranked: list[tuple[float, str]] = []
    for table in TWO_BYTE:
        for codec in table.codecs:
            text = _leniently_at_the_end(sample, codec)
            if text is not None and (score := _score(text, codec, table)) is not None:
                ranked.append((score, codec))
    return [codec for _, codec in sorted(ranked, key=lambda pair: -pair[0])]


def _score(text: str, codec: str, table: TwoByte) -> float | None:
    """How likely the text is, or `None` for one nobody writes: rare signs, or isolated ones."""
    signs = re.findall(r"[^\x00-\x7f]", text)
    runs = re.findall(r"[^\x00-\x7f]+", text)
    # Text in these scripts comes in runs; single signs between ASCII are letters of a one-byte encoding, misread.
    if len(signs) < 2 * len(runs):
        return None
    judged = [table.likelihood(sign.encode(codec)) for sign in signs]
    if sum(common for _, common in judged) < COMMON_SHARE * len(judged):
        return None
    return table.prior + sum(likelihood for likelihood, _ in judged)


def _leniently_at_the_end(sample: bytes, codec: str) -> str | None:
    """Decoded, where need be without a last character that the end of the sample cut in two."""
    for end in range(len(sample), max(len(sample) - 4, 0), -1):
        try:
            return sample[:end].decode(codec)
        except UnicodeDecodeError as error:
            if error.end < end or len(sample) < SAMPLE:
                return None
    return None


def _one_byte(sample: bytes) -> Iterator[str]:
    words = re.findall(rb"[A-Za-z\x80-\xff]*[\x80-\xff][A-Za-z\x80-\xff]*", sample)
    foreign = sum(len(re.findall(rb"[\x80-\xff]", word)) for word in words)
    family = LATIN if foreign < 0.7 * sum(map(len, words)) or foreign <= 3 else OTHER_SCRIPTS
    if family is LATIN and foreign <= SHORT and _is_western(sample.decode("cp1252", "replace")):
        yield "cp1252"
    yield from _rank(sample, family, foreign)
    yield from family


def _is_western(text: str) -> bool:
    return not _oddities(text) and not RARE_IN_THE_WEST.search(text)


def _rank(sample: bytes, family: tuple[str, ...], foreign: int) -> list[str]:
    matches = from_bytes(sample, cp_isolation=list(family), preemptive_behaviour=False, threshold=0.5)
    ranked = [
        (_key(match, foreign), family.index(codec), codec)
        for match in matches
        for codec in match.could_be_from_charset
        if codec in family
    ]
    return [codec for *_, codec in sorted(ranked)]


def _key(match: CharsetMatch, foreign: int) -> tuple[float, float]:
    return round(_oddities(str(match)) / max(foreign, 1) + match.chaos, 1), -round(match.coherence, 1)


def _oddities(text: str) -> int:
    """Places where the text looks like a wrong guess.

    >>> [_oddities(text) for text in ("naïve", "25 °C", "5 µm", "na•ve", "Größe", "GrĂ¶ĂŸe")]
    [0, 0, 0, 1, 0, 2]
    """
    places = zip(" " + text, text, text[1:] + " ", strict=False)
    return sum(_is_odd(before, sign, after) for before, sign, after in places if sign > "\x7f")


def _is_odd(before: str, sign: str, after: str) -> bool:
    if sign in "µªº":
        return False
    if sign.isalpha():
        shouting = (before.islower() and sign.isupper()) or (sign.islower() and after.isupper())
        return shouting or (before.isalpha() and before not in "µªº" and _script(before) != _script(sign))
    match unicodedata.category(sign):
        case "Cc" | "Cn" | "Co" | "So" if sign not in "©®°":
            return True
        case "Ps" | "Pi" if before.isalpha():
            return True
        case "Sc" | "Sm" | "Sk" if after > "\x7f" and after.isalpha():
            return True
        case _:
            return before.isalpha() and after.isalpha() and sign not in JOINING


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]
