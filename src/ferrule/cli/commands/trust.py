"""`ferrule trust`: what a folder brings that can run or widen, and a person's answer to it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator

from platformdirs import user_state_path

from ...app.layers import SettingsError, open_layers
from ...core.content import encodable
from ...settings.grants import Item, Kind, printable
from ...settings.reload import LiveSettings
from ...settings.trust import NotStored, Standing
from ..exits import CLOSED_PIPE, FAILED, OK, Failed, Usage


def run(chosen: argparse.Namespace) -> int:
    folder = os.path.abspath(chosen.path or os.getcwd())
    if not os.path.isdir(folder):
        raise Usage(f"{chosen.path} is not a directory.")
    try:
        live = open_layers(folder, user_state_path("ferrule"))
        if chosen.revoke:
            return _revoke(live)
        return _trust(live, chosen)
    except (NotStored, SettingsError) as error:
        raise Failed(str(error)) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return CLOSED_PIPE


def _trust(live: LiveSettings, chosen: argparse.Namespace) -> int:
    current = live.current()
    standing = current.standing
    for note in current.layered.skipped:
        print(f"ferrule: {note}", file=sys.stderr)
    _print(_described(live.folder, standing))
    if chosen.show:
        return OK
    if standing.trusted and not standing.new and not standing.gone:
        return OK
    if not chosen.yes and not _agrees():
        print("Nothing is trusted that was not before.", file=sys.stderr)
        return FAILED
    live.trust(standing.items)
    _print([f"Trusted, as it is now. A change of it will not count until you trust it again: {live.folder}"])
    return OK


def _revoke(live: LiveSettings) -> int:
    there = live.revoke()
    _print([f"{live.folder} is not trusted any more." if there else f"{live.folder} was not trusted."])
    return OK


def _described(folder: str, standing: Standing) -> Iterator[str]:
    known = standing.trusted and not standing.new and not standing.gone
    waiting = "has changed since it was trusted" if standing.trusted else "is not trusted"
    yield f"{folder} {'is trusted' if known else waiting}."
    shown = [item for item in standing.items if item.kind.waits]
    if not shown and not standing.gone:
        yield "Nothing in it can run by itself, or allow more than you do."
    yield from _by_file((item, "" if standing.counts(item) else "new") for item in shown)
    yield from _by_file((item, "gone") for item in standing.gone)
    if standing.gone:
        yield "As long as what is gone may have been a guard, nothing of all this counts."


def _by_file(marked: Iterable[tuple[Item, str]]) -> Iterator[str]:
    order = list(Kind)
    file = None
    for item, mark in sorted(marked, key=lambda pair: (pair[0].file, order.index(pair[0].kind))):
        if item.file != file:
            file = item.file
            yield f"  {printable(file)}"
        yield f"    {mark:4} {item.kind}: {item.words}"


def _agrees() -> bool:
    """Only a person at a terminal can agree here."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Usage("there is nobody to ask. Look at it with --show, then give --yes.")
    print("Do you trust this? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(encodable(line))
    sys.stdout.flush()
