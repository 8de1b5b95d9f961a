"""Measure, print one table, write JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import agent, analysis, edit, hooks, mcp_client, read, rules, sdk_call, search, serve, shell, startup
from .environments import HERE, ROOT, Unavailable, interpreter
from .figures import Figure
from .peers import DISTRIBUTIONS, WITH_A_LOOP
from .table import rendered

PEERS_OF = {"one_call": tuple(DISTRIBUTIONS), "loop": WITH_A_LOOP, "batch": WITH_A_LOOP}
HERE_ALONE = {
    "startup": startup,
    "search": search,
    "edit": edit,
    "read": read,
    "shell": shell,
    "analysis": analysis,
    "rules": rules,
    "hooks": hooks,
    "serve": serve,
    "agent": agent,
    "mcp_client": mcp_client,
    "sdk_call": sdk_call,
}
"""Measured in this process, beside something of the machine's own."""
CANNOT = (startup.NotInstalled, search.NotEnough, shell.NotHere)
NAMES = (*PEERS_OF, *HERE_ALONE)
RUNS = 30
QUICK_RUNS = 3
"""Enough to see that it works; a ratio needs ten or more."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", type=Path, default=HERE / "out" / "results.json", help="where the figures go")
    parser.add_argument("--no-peers", action="store_true", help="measure Ferrule alone and install nothing")
    parser.add_argument("--only", choices=NAMES, help="one benchmark of them")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs in place of {RUNS}")
    options = parser.parse_args(arguments)
    runs = QUICK_RUNS if options.quick else RUNS
    skipped: dict[str, str] = {}
    figures: list[Figure] = []
    for name in (options.only,) if options.only else NAMES:
        figures += _measured(name, runs=runs, with_peers=not options.no_peers, skipped=skipped)
    print(rendered(figures, skipped))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(_report(figures, skipped, runs), indent=2, ensure_ascii=False) + "\n")


def _measured(name: str, *, runs: int, with_peers: bool, skipped: dict[str, str]) -> Iterator[Figure]:
    if name in HERE_ALONE:
        try:
            yield from asyncio.run(HERE_ALONE[name].measure(runs=runs))
        except CANNOT as reason:
            skipped[name] = str(reason)
        return
    yield from _worker(Path(sys.executable), name, runs)
    for peer in PEERS_OF[name] if with_peers else ():
        if peer in skipped:
            continue
        print(f"{name} beside {peer} …", file=sys.stderr)
        try:
            yield from _worker(interpreter(peer), name, runs, "--peer", peer)
        except Unavailable as reason:
            skipped[peer] = str(reason)


def _worker(python: Path, name: str, runs: int, *more: str) -> Iterator[Figure]:
    command = (str(python), "-m", "benchmarks.peer_worker", name, "--runs", str(runs), *more)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return (Figure(**figure) for figure in json.loads(done.stdout.splitlines()[-1]))


def _report(figures: Sequence[Figure], skipped: dict[str, str], runs: int) -> dict[str, Any]:
    return {
        "machine": {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()},
        "runs": runs,
        "figures": [{**asdict(figure), "ratio": figure.ratio, "met": figure.met} for figure in figures],
        "skipped": skipped,
    }


if __name__ == "__main__":
    main()
