"""Runs one benchmark in a process of its own, with a peer or alone, and prints its figures as JSON.

    python -m benchmarks.peer_worker one_call --peer pydantic_ai --runs 12

A fresh process for each keeps the heap and the caches of one measurement out of the next.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict

from . import batch, loop, one_call
from .peers import load

MEASURES = {"one_call": one_call.measure, "loop": loop.measure, "batch": batch.measure}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("benchmark", choices=MEASURES)
    parser.add_argument("--peer")
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args(arguments)
    peer = load(options.peer) if options.peer else None
    figures = asyncio.run(MEASURES[options.benchmark](peer, runs=options.runs))
    print(json.dumps([asdict(figure) for figure in figures]))


if __name__ == "__main__":
    main()
