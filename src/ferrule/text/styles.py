"""New text in the line endings and quotes of the place it is written to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .changes import Same, common, pair_lines
from .lines import BREAK

SINGLE, DOUBLE = "'", '"'
STYLES = {
    SINGLE: {"straight": "'", "curly": "\u2018\u2019", "prime": "\u2032"},
    DOUBLE: {"straight": '"', "curly": "\u201c\u201d", "prime": "\u2033"},
}
KIND = {char: kind for kind, styles in STYLES.items() for chars in styles.values() for char in chars}
STYLE = {char: style for styles in STYLES.values() for style, chars in styles.items() for char in chars}
FANCY = [(char, kind) for char, kind in KIND.items() if char != kind]

_TOKEN = re.compile(r"\r\n|\w+|[^\S\r\n]+|[^\w]")
_CRLF_OR_LF = re.compile(r"\r\n|\n")
_OPENS_AFTER = "([{<\u2018\u201c\u2013\u2014"


def straight(text: str) -> str:
    """Curly quotes and primes as straight quotes, one character for one."""
    if text.isascii():
        return text
    for char, kind in FANCY:
        text = text.replace(char, kind)
    return text


def keep_endings(region: str, new: str, *, fallback: str | None, lone_cr: bool) -> str:
    r"""`new` with the line endings of the region it replaces, or those of `fallback` where it has none.

    Where the region mixes its endings, a line that is in both keeps its
    own. `lone_cr` says whether a CR alone is a line ending here; the region
    cannot tell, as a CR does not end a line if the text has an LF anywhere.

    >>> keep_endings("a\r\nb\nc\n", "a\nb2\nmore\nc\n", fallback=None, lone_cr=False)
    'a\r\nb2\nmore\nc\n'
    """
    breaks = BREAK if lone_cr else _CRLF_OR_LF
    endings = breaks.findall(region)
    if len(set(endings)) > 1:
        return _line_by_line(region, new, breaks)
    ending = endings[0] if endings else fallback
    return new if ending is None else breaks.sub(lambda _: ending, new)


def keep_quotes(region: str, new: str, *, before: str) -> str:
    """`new` with the quotes of the region it replaces: those that are in both as they are there, others in its style.

    >>> keep_quotes("said “yes” to", 'said "no" to', before="")
    'said “no” to'
    """
    there, tokens = _TOKEN.findall(region), _TOKEN.findall(new)
    kept = dict(pair_lines(common([_key(token) for token in tokens], [_key(token) for token in there])))
    styles = {kind: {STYLE[char] for char in there if KIND.get(char) == kind} for kind in STYLES}
    for index, token in enumerate(tokens):
        if kind := KIND.get(token):
            before = tokens[index - 1] if index else before
            tokens[index] = there[kept[index]] if index in kept else _style_quote(token, kind, styles[kind], before)
    return "".join(tokens)


def _key(token: str) -> str:
    return "\n" if BREAK.fullmatch(token) else KIND.get(token, token)


def _style_quote(char: str, kind: str, styles: set[str], before: str) -> str:
    """A quote that the region does not have, written as the region writes its kind, if it does so in one way."""
    if styles == {"straight"}:
        return kind
    if STYLE[char] != "straight" or len(styles) != 1:
        return char
    chars = STYLES[kind][next(iter(styles))]
    return chars[0] if _opens(before) else chars[-1]


def _opens(before: str) -> bool:
    return not before or before[-1].isspace() or before[-1] in _OPENS_AFTER


def _line_by_line(region: str, new: str, breaks: re.Pattern[str]) -> str:
    there, lines = list(_pieces(region, breaks)), list(_pieces(new, breaks))
    same = common([line for line, _ in lines], [line for line, _ in there])
    end = Same(len(lines), len(there), 0)
    own = {index: there[at][1] for index, at in pair_lines([*same, end], changed=True)}
    ending = there[0][1]
    written = list[str]()
    for index, (line, broken) in enumerate(lines):
        ending = own.get(index) or ending
        written.append(line + (ending if broken else ""))
    return "".join(written)


def _pieces(text: str, breaks: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Each line with its ending, and what follows the last one."""
    done = 0
    for found in breaks.finditer(text):
        yield text[done : found.start()], found[0]
        done = found.end()
    yield text[done:], ""
