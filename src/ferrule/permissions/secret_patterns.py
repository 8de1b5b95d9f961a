"""Whether a pattern in a command means a secret, or merely passes over one.

`cat .e*` and `head *.pem` mean it, so they are asked about as `cat .env` is.
`cat *` and `grep -r x .` pass over it: they run where it cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from .programs import shows_content

_WILD: Final = "*?["
_TELLING: Final = 3
"""As many characters at the front or at the end of a pattern say what it is after."""


def meant_secret(argv: Sequence[str], names: Iterable[str]) -> tuple[str, str] | None:
    """The first word of a command that means one of the names on a list of secrets, and that name.

    >>> meant_secret(("cat", ".e*"), [".env"]), meant_secret(("cat", "*"), [".env"])
    (('.e*', '.env'), None)
    """
    patterns = [word for word in argv[1:] if "*" in word or "?" in word or "[" in word]
    if not patterns or not shows_content(argv):
        return None
    for word in patterns:
        last = word.rpartition("/")[2].casefold()
        if not any(sign in last for sign in _WILD):
            continue
        for name in names:
            if _means(last, name.casefold().rpartition("/")[2]):
                return word, name
    return None


def _means(pattern: str, name: str) -> bool:
    if not fnmatchcase(name.replace("*", "x"), pattern) and not fnmatchcase(name.replace("*", ""), pattern):
        return False
    first = min(at for sign in _WILD if (at := pattern.find(sign)) >= 0)
    last = max(pattern.rfind(sign) for sign in "*?]")
    front, end = pattern[:first], pattern[last + 1 :]
    by_front = not name.startswith("*") and (front.startswith(".") or len(front) >= _TELLING)
    return by_front or (name.startswith("*") and len(end) >= _TELLING)
