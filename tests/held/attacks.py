"""Harmful commands, read from the tables in `attacks/`: what to run, and which canary must notice it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parent / "attacks"


@dataclass(frozen=True)
class Attack:
    id: str
    command: str
    hits: str
    """What is reported where it does its harm, or how that begins: `changed outside`, `reached tcp`."""
    late: bool = False
    """Whether the harm comes after the shell has ended."""
    beside: bool = False
    """Whether it is another attack's way once more, at a neighbour of the declared file."""
    untried: str = ""
    """Why it is never run without the sandbox."""


@cache
def attacks() -> tuple[Attack, ...]:
    return (*_single(), *_writing(), *_reading())


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((TABLES / f"{name}.toml").read_text(encoding="utf-8"))


def _single() -> Iterator[Attack]:
    number = count()
    for group in _table("single")["group"]:
        slug = re.sub(r"\W+", "-", group["hits"])
        for run in group["runs"]:
            late, untried = group.get("late", False), group.get("untried", "")
            yield Attack(f"{slug}-{next(number)}", run, group["hits"], late=late, untried=untried)


def _writing() -> Iterator[Attack]:
    """Every technique on the next of the targets that it works on, so that all of them get their turn.

    And on a neighbour of the declared file, where the kernel has least to go by.
    """
    targets, techniques = _table("targets"), _table("writing")
    both: dict[str, str] = {**targets["existing"], **targets["missing"]}
    for kind, aims in (("any", both), ("existing", targets["existing"]), ("missing", targets["missing"])):
        for name, run, label, path in _paired(techniques[kind], aims):
            yield Attack(f"write-{name}-{label}", aimed(run, path), f"changed {label}")
            beside = "ws/src/made.py" if kind == "missing" else "ws/src/sibling.py"
            if label != beside:
                yield Attack(f"write-{name}-{beside}", aimed(run, both[beside]), f"changed {beside}", beside=True)


def _reading() -> Iterator[Attack]:
    for name, run, label, path in _paired(_table("reading")["techniques"], _table("targets")["secret"]):
        yield Attack(f"read-{name}-{label}", aimed(run, path), f"read {label}")


def _paired(techniques: Mapping[str, str], targets: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    labels = list(targets)
    for index, (name, run) in enumerate(techniques.items()):
        label = labels[index % len(labels)]
        yield name, run, label, targets[label]


def aimed(run: str, path: str) -> str:
    """
    >>> aimed("(cd @D && cat @B; cat @T)", "$OUT/a.txt")
    '(cd $OUT && cat a.txt; cat $OUT/a.txt)'
    """
    folder, _, name = path.rpartition("/")
    return run.replace("@T", path).replace("@B", name).replace("@D", folder)
