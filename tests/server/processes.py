"""`ferrule serve` as a real process."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..cli.running import FERRULE, HANG, environment

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Served:
    """The process, line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def greet(self) -> None:
        self.send(INITIALIZE)
        assert self.receive()["id"] == 0
        self.send(INITIALIZED)

    def call(self, number: int, name: str, arguments: dict[str, Any]) -> None:
        self.send(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        )

    def end_of_input(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(HANG)


@contextmanager
def served(folder: Path, *flags: str, **variables: str) -> Generator[Served]:
    process = subprocess.Popen(
        [*FERRULE, "serve", *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(folder, **variables),
    )
    try:
        yield Served(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        process.wait(HANG)


class Sleeper:
    """A command that says its process id and then sleeps; one can wait for its end."""

    def __init__(self, folder: Path) -> None:
        self._fifo = folder / "pid"
        os.mkfifo(self._fifo)
        self.command = f"echo $$ > {self._fifo}; exec sleep 600"
        self._descriptor = -1

    def started(self) -> None:
        self._descriptor = os.pidfd_open(int(self._fifo.read_text()))

    def has_ended(self) -> bool:
        try:
            return bool(select.select([self._descriptor], [], [], HANG)[0])
        finally:
            os.close(self._descriptor)
