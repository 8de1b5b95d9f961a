"""A program with three pipes, started by the spawner: spoken to while it runs, and ended with all that it started."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import field
from typing import TYPE_CHECKING

from ...core.values import named_value
from .command import CommandFailed
from .spawner_link import SpawnerLink

if TYPE_CHECKING:
    from .spawner.protocol import Jail, Reply, Start

PATIENCE = 3_600.0
"""Seconds until the spawner kills what was only asked to end: whoever asked kills it earlier."""
GONE_WITHIN = 5.0


@named_value
class Program:
    path: str
    """Absolute."""
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    jail: Jail | None = None


class PipedProcess:
    """Made by `Commands.start_program`. Whoever made it kills and releases it."""

    def __init__(self, id: int, link: SpawnerLink) -> None:
        self.id = id
        self.pid: int | None = None
        self.returncode: int | None = None
        """As `subprocess` has it; `None` as long as it runs."""
        self.trouble = ""
        """Why it never was the program it was to be, or was lost."""
        self._link = link
        loop = asyncio.get_running_loop()
        self._started: asyncio.Future[bool] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        self.stdout = asyncio.StreamReader()
        self.stderr = asyncio.StreamReader()
        self._is_asked_for = False
        self._outgoing: list[asyncio.WriteTransport] = []
        self._incoming: list[asyncio.ReadTransport] = []

    async def open(self, start: Start) -> None:
        """Ask the spawner for it. Raises `OSError` for want of descriptors."""
        loop = asyncio.get_running_loop()
        with ExitStack() as others:
            inner = list[int]()
            for stream in (None, self.stdout, self.stderr):
                reading, writing = os.pipe()
                given, kept = (reading, writing) if stream is None else (writing, reading)
                others.callback(os.close, given)
                inner.append(given)
                protocol = asyncio.StreamReaderProtocol(stream or asyncio.StreamReader())
                pipe = os.fdopen(kept, "rb" if stream else "wb", buffering=0)
                if stream is None:
                    transport, _ = await loop.connect_write_pipe(lambda protocol=protocol: protocol, pipe)
                    self._outgoing.append(transport)
                    self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
                else:
                    incoming, _ = await loop.connect_read_pipe(lambda protocol=protocol: protocol, pipe)
                    self._incoming.append(incoming)
            self._is_asked_for = True
            await self._link.start(start, tuple(inner), self._on_reply, self._on_lost)

    async def started(self) -> bool:
        """Whether there is a process; `False` where the spawner was lost before. Raises `CommandFailed`."""
        return await asyncio.shield(self._started)

    async def ask_to_end(self) -> None:
        """It, and all that it started."""
        if not self._gone.done():
            await self._link.send({"do": "end", "id": self.id, "grace": PATIENCE})

    async def kill(self) -> None:
        """It, and all that it started; and wait until nothing of it is left."""
        if self._is_asked_for and not self._gone.done():
            await self._link.send({"do": "end", "id": self.id, "grace": 0.0})
            with suppress(TimeoutError):
                async with asyncio.timeout(GONE_WITHIN):
                    await asyncio.shield(self._gone)

    def release(self) -> None:
        """Let go of the pipes, which others may hold open."""
        for transport in self._outgoing:
            if transport.get_write_buffer_size() or not transport.is_closing():  # one that is closed cannot be aborted
                transport.abort()
        for transport in self._incoming:
            transport.close()

    # What the spawner says

    def _on_reply(self, reply: Reply) -> None:
        match reply["event"]:
            case "started":
                self.pid = reply["pid"]
                self._started.set_result(True)
            case "ended":
                self.trouble = reply["trouble"].decode("utf-8", "replace")
                self.returncode = os.waitstatus_to_exitcode(reply["status"])
            case "gone":
                self._gone.set_result(None)
            case "refused":
                self._started.set_exception(CommandFailed(reply["why"]))
                self._started.exception()  # nobody need wait for it
                self._gone.set_result(None)

    def _on_lost(self, why: str) -> None:
        self.trouble = self.trouble or why.rstrip(".")
        self.returncode = -9 if self.returncode is None else self.returncode
        if not self._started.done():
            self._started.set_result(False)
        if not self._gone.done():
            self._gone.set_result(None)
