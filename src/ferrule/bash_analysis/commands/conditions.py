"""`test`, `[` and `[[`."""

from __future__ import annotations

import re

from ..account import Account
from ..shell_words import Word

_FILE_TESTS = frozenset(f"-{letter}" for letter in "abcdefghkprstuwxGLNOS")
_NUMERIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_FILE_PAIRS = frozenset({"-nt", "-ot", "-ef"})
_JOINING = frozenset({"-a", "-o", "!", "(", ")"})
_INTEGER = re.compile(r"\s*-?[0-9]{1,18}\s*")


def read(name: str, words: list[Word], account: Account) -> None:
    if name in ("[", "[["):
        if not words or words[-1].text != {"[": "]", "[[": "]]"}[name]:
            account.doubt(f"`{name}` is not closed")
            return
        words = words[:-1]
    if name != "[[":
        _check_shape(words, account)
    for index, word in enumerate(words):
        text = word.text
        if text in ("-v", "-R"):
            account.doubt(f"{text} may evaluate what it is given")
        elif text in _FILE_TESTS and index + 1 < len(words) and text != "-a":
            account.reads(words[index + 1])
        elif text in _FILE_PAIRS:
            for other in (*words[max(index - 1, 0) : index], *words[index + 1 : index + 2]):
                account.reads(other)
        elif text in _NUMERIC and name == "[[":
            _check_numbers(words, index, account)


def _check_shape(words: list[Word], account: Account) -> None:
    """Operators of `test` are ordinary words: unknown words are not allowed where one may be."""
    part: list[Word] = []
    for word in (*words, Word.of_text("-a")):
        if word.text not in _JOINING:
            part.append(word)
            continue
        operator = {2: 0, 3: 1}.get(len(part))
        if len(part) > 3 or any(one.many for one in part) or (operator is not None and part[operator].text is None):
            account.doubt("an operator of the test is not known")
        part = []


def _check_numbers(words: list[Word], index: int, account: Account) -> None:
    """`[[` evaluates both sides of a comparison as arithmetic, which can run commands."""
    for other in (words[index - 1 : index] or [Word(None)]) + (words[index + 1 : index + 2] or [Word(None)]):
        if other.text is None or not _INTEGER.fullmatch(other.text):
            account.doubt(f"{other.shown} is evaluated as arithmetic")
