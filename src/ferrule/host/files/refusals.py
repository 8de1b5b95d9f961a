"""What a program says when the kernel did not let it."""

from __future__ import annotations

import re

REFUSALS = re.compile(
    r"permission denied|operation not permitted|read-only file system|\bE(?:ACCES|PERM|ROFS)\b", re.IGNORECASE
)
MOST = 3


def refusals(output: str) -> tuple[str, ...]:
    """The last lines that speak of something that was not allowed.

    >>> refusals("one\\ntouch: cannot touch 'a': Permission denied\\n")
    ("touch: cannot touch 'a': Permission denied",)
    """
    return tuple([line.strip() for line in output.splitlines() if REFUSALS.search(line)][-MOST:])
