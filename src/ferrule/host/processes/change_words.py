"""What became of a command's output, its processes and, if it was held, its changes, in words for the model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from ...core.verdicts import Verdict
from .command import Changes, Command, LeftBehind, Ran

MOST_NAMED: Final = 3
"""Paths that one sentence names."""


def describe_changes(changes: Changes | None) -> Iterator[str]:
    """What the kernel did not let happen, or did not keep. Nothing for a command that did what it declared."""
    if changes is None:
        return
    undeclared = tuple(dict.fromkeys((*changes.refused, *changes.dropped)))
    if undeclared:
        total = max(len(undeclared), changes.totals.get("refused", 0) + changes.totals.get("dropped", 0))
        named = name_some(undeclared, total)
        yield f"It tried to write {named}, which it had not declared; that was not kept."
    for path, why in changes.failed[:MOST_NAMED]:
        yield f"{shorten_home(path)} stays as it was: {why.rstrip('.')}."


def name_some(paths: tuple[str, ...], total: int | None = None) -> str:
    """
    >>> name_some(("a", "b", "c", "d", "e"))
    'a, b, c and 2 more'
    """
    more = (len(paths) if total is None else total) - min(len(paths), MOST_NAMED)
    return ", ".join(map(shorten_home, paths[:MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")


def shorten_home(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def describe_output(ran: Ran) -> Iterator[str]:
    output = ran.output
    if output.saved and output.capped:
        yield f"The first part of its {output.total:,} bytes is in {output.saved}."
    elif output.saved:
        yield f"All of its {output.total:,} bytes are in {output.saved}."


def describe_left_behind(left: tuple[LeftBehind, ...]) -> Iterator[str]:
    if left:
        names = ", ".join(f"{one.name} ({one.pid})" for one in left[:5])
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        yield f"Still running: {names}{more}. What it prints now is lost; it ends with the session."


def without_refusals(lines: str, hidden: tuple[str, ...]) -> str:
    """The output without what programs say of files that were hidden from them: they are named below it."""
    names = tuple(os.path.basename(path) for path in hidden)
    kept = [line for line in lines.split("\n") if not ("Permission denied" in line and any(n in line for n in names))]
    return "\n".join(kept)


def explain_blocked(command: Command, ran: Ran, verdict: Verdict | None) -> Iterator[str]:
    """What may have refused it, and what to do; nothing where it said of nothing that it was refused."""
    if not ran.blocked or command.jail is None:
        return
    needed = verdict.needs_confinement if verdict else None
    if command.jail["declared"]:
        held_to = "the workspace" if needed is not None and needed.writable is not None else "what it declared"
        yield (
            f"It ran where only {held_to} can be changed, and nothing reached. "
            "If it has to do more, set `dangerouslyDisableSandbox` and a person is asked."
        )
    elif command.jail["writable"]:
        yield "It ran in a sandbox that keeps from it what rules deny. Do without that, or ask for another rule."
    elif needed is not None and needed.read_only:
        yield "It ran where nothing can be written and nothing reached, as in this mode nothing changes."
    else:
        reading = "" if command.jail["readable"] is None else " and of the home and secrets nothing read"
        yield (
            f"It ran where nothing can be written, nothing reached{reading}, "
            "since it was taken for one that only reads. "
            "If it has to do more, set `dangerouslyDisableSandbox` and a person is asked."
        )
