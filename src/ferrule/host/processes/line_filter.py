"""Lines that match a pattern somebody else wrote.

Found by ripgrep, whose time grows with the text alone: Python's own engine can
be kept busy for ever by a short pattern, and the whole program with it.
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE

from ..search.ripgrep import find_ripgrep

SECONDS = 10.0


class BadPattern(Exception):
    """The pattern cannot be used. The message is ripgrep's own, or says that ripgrep is missing."""


async def matching(pattern: str, text: str) -> list[str]:
    """Lines of `text` in which the regular expression, in ripgrep's syntax, is found. Raises `BadPattern`."""
    program = find_ripgrep(os.environ)
    if program is None:
        raise BadPattern("ripgrep is not installed, so lines cannot be filtered.")
    if "\0" in pattern:
        raise BadPattern("the pattern contains a NUL character.")
    process = await asyncio.create_subprocess_exec(
        program, "--no-config", "--color=never", "--text", "--no-line-number", "-e", pattern, "--", "-",
        env={}, stdin=PIPE, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(SECONDS):
            found, words = await process.communicate(text.encode("utf-8", "replace"))
    except TimeoutError:
        raise BadPattern(f"the pattern took more than {SECONDS:g} s to look for.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode not in (0, 1):
        raise BadPattern(words.decode("utf-8", "replace").strip())
    return found.decode("utf-8", "replace").splitlines()
