"""Asks a person to trust a folder's contents: in `ferrule trust`, or when a session starts at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from ..core.content import encodable
from ..settings.reload import LiveSettings
from ..settings.trust_items import Item, ItemKind, printable
from ..settings.trust_store import NotStored, Standing
from .exits import UsageError


def ask_for_trust(live: LiveSettings) -> None:
    """Asks at an interactive start, once for the same contents. A no changes nothing and is remembered."""
    standing = live.current().standing
    if not standing.question or live.is_declined:
        return
    for line in describe_folder(live.folder, standing):
        print(encodable(line), file=sys.stderr)
    try:
        if agrees():
            live.trust(standing.items)
        else:
            live.decline(standing)
            print(
                "You will not be asked again until something changes. Use `ferrule trust` to trust it later.",
                file=sys.stderr,
            )
    except NotStored as error:
        print(f"ferrule: {error}", file=sys.stderr)


def describe_folder(folder: str, standing: Standing) -> Iterator[str]:
    known = standing.trusted and not standing.new and not standing.gone
    waiting = "has changed since it was trusted" if standing.trusted else "is not trusted"
    yield f"{folder} {'is trusted' if known else waiting}."
    shown = [item for item in standing.items if item.kind.waits]
    if not shown and not standing.gone:
        yield "Nothing in it can run by itself, or allow more than you do."
    yield from _by_file((item, "" if standing.counts(item) else "new") for item in shown)
    yield from _by_file((item, "gone") for item in standing.gone)
    if standing.gone:
        yield "Something is missing that may have been a guard, so none of this applies."


def _by_file(marked: Iterable[tuple[Item, str]]) -> Iterator[str]:
    order = list(ItemKind)
    file = None
    for item, mark in sorted(marked, key=lambda pair: (pair[0].file, order.index(pair[0].kind))):
        if item.file != file:
            file = item.file
            yield f"  {printable(file)}"
        yield f"    {mark:4} {item.kind}: {item.words}"
        for part in item.uncovered:
            yield f"         it runs `{part}`, whose content is not covered: changes to it are not noticed"


def agrees() -> bool:
    """Only a person at a terminal can agree here."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("nobody can be asked. Review it with --show, then give --yes.")
    print("Do you trust this? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
