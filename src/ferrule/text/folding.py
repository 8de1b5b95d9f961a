"""Text as it looks: without whitespace, case, and characters that cannot be told apart.

Only for finding what was perhaps meant; no edit is ever based on it.
"""

from __future__ import annotations

from unicodedata import normalize

from .styles import straight

_BLANKS = " \t\r\f\v"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"


def fold_key(text: str) -> str:
    r"""What remains; LF stays.

    >>> fold_key("Caf\u00e9 \u201cX\u201d\n") == fold_key("cafe\u0301\t'x'\n".replace("'", '"'))
    True
    """
    if not text.isascii():
        text = normalize("NFKC", straight(text))
        for char in _INVISIBLE:
            text = text.replace(char, "")
    for char in _BLANKS:
        text = text.replace(char, "")
    return text.lower()
