"""Processes to be killed, as forks of one that has imported all it needs: a start costs a millisecond, no second."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

_SERVING = """
import json, os, sys
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        print(os.getpid(), flush=True)
        run(*json.loads(line))
        os._exit(0)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


class Forks:
    """Runs `run` of a program, which prints a line for each thing done, and kills it."""

    def __init__(self, asking: IO[bytes], told: IO[bytes]) -> None:
        self._asking = asking
        self._told = told
        self._pid = 0

    def start(self, *arguments: str) -> None:
        self._asking.write(json.dumps(arguments).encode() + b"\n")
        self._asking.flush()
        self._pid = int(self._told.readline())

    def wait_for(self, lines: int) -> None:
        for _ in range(lines):
            assert self._told.readline() not in (b"", b"gone\n")

    def kill(self) -> int:
        """How many lines it had printed that nobody waited for."""
        os.kill(self._pid, signal.SIGKILL)
        rest = 0
        while self._told.readline() != b"gone\n":
            rest += 1
        return rest


@contextmanager
def forks(program: str) -> Generator[Forks]:
    command = [sys.executable, "-c", program + _SERVING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        yield Forks(process.stdin, process.stdout)
        process.stdin.close()
