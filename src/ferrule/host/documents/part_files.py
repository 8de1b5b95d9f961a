"""Text that lines cannot page, written to disk in files that each fit a page."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...core.values import plain_value
from ..files.open_files import digest_of
from ..storage.session_folder import make_private
from .text_pages import LINE_CHARS, NUMBER_WIDTH, weight

MOST_PARTS = 2_000
MOST_CHARS = 64 << 20
HEAVIEST = 8
"""No character weighs more than this, so a line of an eighth of the room always fits."""


@plain_value
class PartFiles:
    folder: str
    count: int
    complete: bool
    """Whether they hold all of the text, and not only as much as `MOST_PARTS` or `MOST_CHARS` allow."""


def split_into_parts(pieces: Iterable[str], *, folder: Path, name: str, key: str, room: int) -> PartFiles:
    """Write `part-0001.txt` and so on below `folder`; with the same `key`, parts written before are reused.

    The text is folded into lines that Read does not cut. Each part fits into `room`.
    """
    target = folder / f"{_plain(name)}-{digest_of(key.encode('utf-8', 'surrogatepass'))[:12]}"
    if not target.is_dir():
        make_private(folder)
        unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=folder))
        try:
            _write(pieces, unfinished, room)
            os.rename(unfinished, target)
        except OSError:
            if not target.is_dir():  # unless another call has just written the same
                raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    count = sum(path.name.startswith("part-") for path in target.iterdir())
    return PartFiles(str(target), count, not (target / "incomplete").exists())


def _write(pieces: Iterable[str], folder: Path, room: int) -> None:
    left = MOST_CHARS
    for number, part in enumerate(_parts(pieces, room), 1):
        left -= len(part)
        if number > MOST_PARTS or left < 0:
            (folder / "incomplete").touch(mode=0o600)
            return
        path = folder / f"part-{number:04}.txt"
        path.touch(mode=0o600)
        path.write_text(part, encoding="utf-8", errors="backslashreplace", newline="")


def _parts(pieces: Iterable[str], room: int) -> Iterator[str]:
    lines: list[str] = []
    used = 0
    for line in _fold(pieces, min(LINE_CHARS, room // HEAVIEST - NUMBER_WIDTH)):
        needed = weight(line) + NUMBER_WIDTH + len("\t\n")
        if used + needed > room and lines:
            yield "".join(lines)
            lines, used = [], 0
        lines.append(f"{line}\n")
        used += needed
    if lines:
        yield "".join(lines)


def _fold(pieces: Iterable[str], width: int) -> Iterator[str]:
    """Lines of at most `width` characters; those that the text has stay apart."""
    rest = ""
    for piece in pieces:
        *complete, rest = re.split(r"\r\n|\r|\n", rest + piece)
        for line in complete:
            yield from (line[at : at + width] for at in range(0, len(line) or 1, width))
        whole = len(rest) - len(rest) % width
        yield from (rest[at : at + width] for at in range(0, whole, width))
        rest = rest[whole:]
    if rest:
        yield rest


def _plain(name: str) -> str:
    """The file's name, as far as it is safe in a path and in a shell.

    >>> _plain("my bundle.min.js")
    'my-bundle.min.js'
    """
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:60] or "file"
