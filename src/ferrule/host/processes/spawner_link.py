"""Ferrule's end of the conversation with the spawner: one process, one socket, many commands."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from ...core.waiting import wait_at_most
from .spawner import homes
from .spawner.cgroups import name_for
from .spawner.descendants import all_pids, has_variable, is_alive
from .spawner.protocol import MARKER, Frames, pack
from .spawner.temporaries import remove_left_behind

if TYPE_CHECKING:
    from .spawner.protocol import Reply, Request, Start

PACKAGE_HOME = str(Path(__file__).parent)
PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from spawner.serving import main; "
    "main(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], *map(int, sys.argv[5:]))"
)
KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH")
"""All that the spawner's own environment holds: what it starts can read it in /proc."""
CHUNK = 1 << 16
CLOSING_SECONDS = 10.0
ROUNDS_OF_KILLING = 100
MOST_NAMED = 10

OnReply: TypeAlias = "Callable[[Reply], None]"
OnLost: TypeAlias = Callable[[str], None]


class SpawnerFailed(Exception):
    """No command can be started, or a running one was lost. The message says why."""


def _equipment() -> tuple[socket.socket, socket.socket, IO[bytes], str, int]:
    """Both ends of the link, a file for what it says on stderr, its folder and that folder's lock.

    Raises `SpawnerFailed`.
    """
    with ExitStack() as undo:
        try:
            words = undo.enter_context(tempfile.TemporaryFile())
            own, other = socket.socketpair()
            undo.push(own.__exit__)
            undo.push(other.__exit__)
            home = tempfile.mkdtemp(prefix=homes.PREFIX)
            lock = homes.lock(home)
        except FileNotFoundError:
            raise SpawnerFailed(
                "No command can be started: no writable folder for temporary files was found. Set TMPDIR to one."
            ) from None
        except OSError as error:
            raise SpawnerFailed(f"No command can be started: {(error.strerror or str(error)).lower()}.") from None
        undo.pop_all()
    return own, other, words, home, lock


class SpawnerLink:
    """Owns the process: closing the link ends it, and it ends all that it started."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, words: IO[bytes], home: str) -> None:
        self._process = process
        self._control = control
        self._words = words
        self._home = home
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._sending = asyncio.Lock()
        self._listeners: dict[int, tuple[OnReply, OnLost]] = {}
        self._loop.add_reader(control, self._receive)

    @classmethod
    def open(cls, environment: Mapping[str, str], *, processes: int, memory: int) -> SpawnerLink:
        """Takes some milliseconds: the process is started, not waited for. Raises `SpawnerFailed`."""
        if sys.platform != "linux":
            raise SpawnerFailed("Commands run on Linux only: ending one with all its processes needs Linux.")
        own, other, words, home, lock = _equipment()
        arguments = (PACKAGE_HOME, str(other.fileno()), str(lock), home, str(processes), str(memory))
        try:
            process = subprocess.Popen(
                [_python(), "-I", "-S", "-X", "utf8", "-c", PROGRAM, *arguments],
                env={name: environment[name] for name in KEPT_VARIABLES if name in environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
                pass_fds=(other.fileno(), lock),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            own.close()
            words.close()
            shutil.rmtree(home, ignore_errors=True)
            raise SpawnerFailed(f"The process that runs commands could not be started: {error}.") from None
        finally:
            other.close()
            os.close(lock)
        own.setblocking(False)
        return cls(process, own, words, home)

    @property
    def alive(self) -> bool:
        return self._control.fileno() >= 0

    def make_folder(self) -> str:
        """A new folder that goes away with the process, or with what is left of it."""
        return tempfile.mkdtemp(prefix="try-", dir=self._home)

    @property
    def pid(self) -> int:
        return self._process.pid

    def control_groups(self) -> tuple[str, ...]:
        """Those made for it, as the kernel names them; none where the system allows none."""
        name = name_for(self.pid)
        with open(f"/proc/{self.pid}/cgroup", encoding="utf-8", errors="replace") as file:
            return tuple(line for line in file.read().splitlines() if line.endswith(f"/{name}"))

    async def start(self, start: Start, channels: tuple[int, ...], on_reply: OnReply, on_lost: OnLost) -> None:
        """Replies about what was started go to `on_reply`, until it is gone; `on_lost` says why there will be none."""
        self._listeners[start["id"]] = (on_reply, on_lost)
        await self.send(start, channels)

    async def send(self, request: Request, descriptors: tuple[int, ...] = ()) -> None:
        """A cancellation does not cut a message in two: what was begun is sent to its end."""
        data = pack(request)
        sent = 0 if self._sending.locked() else self._send_at_once(data, descriptors)
        if sent < len(data):
            await asyncio.shield(asyncio.ensure_future(self._send_rest(data, sent, descriptors)))

    def _send_at_once(self, data: bytes, descriptors: tuple[int, ...]) -> int:
        """The descriptors travel with the first bytes."""
        try:
            return socket.send_fds(self._control, [data], descriptors)
        except BlockingIOError:
            return 0
        except OSError:
            self._lose()
            return len(data)

    async def _send_rest(self, data: bytes, sent: int, descriptors: tuple[int, ...]) -> None:
        copies = tuple(map(os.dup, descriptors)) if not sent else ()
        try:
            async with self._sending:
                while not sent:
                    await _writable(self._loop, self._control)
                    sent = self._send_at_once(data, copies)
                with suppress(OSError):
                    await self._loop.sock_sendall(self._control, memoryview(data)[sent:])
        finally:
            for descriptor in copies:
                os.close(descriptor)

    def _receive(self) -> None:
        try:
            data = self._control.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        for reply in self._frames.feed(data):
            if (listener := self._listeners.get(reply["id"])) is None:
                continue
            if reply["event"] in ("gone", "refused"):
                del self._listeners[reply["id"]]
            listener[0](reply)

    def _lose(self) -> None:
        """The process is gone: everything it was to report on is lost."""
        if self.alive:
            self._close_socket()
            homes.end_groups(self._home)
            _kill_those_left(f"{MARKER}={self.pid}.".encode())
            changed = homes.cut_short(self._home)
            names = (
                f" It was changing {', '.join(changed[:MOST_NAMED])}: check which of them changed." if changed else ""
            )
            self._tell_all(f"The process that runs commands ended{self._last_words()}.{names}")

    def _tell_all(self, why: str) -> None:
        listeners, self._listeners = self._listeners, {}
        for _, on_lost in listeners.values():
            on_lost(why)

    def _last_words(self) -> str:
        self._words.seek(0)
        lines = self._words.read().decode("utf-8", "replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def _close_socket(self) -> None:
        self._loop.remove_reader(self._control)
        self._control.close()

    async def close(self) -> None:
        """The process kills what it started, removes its files and ends; this waits for that."""
        if self.alive:
            self._close_socket()
        try:
            await _exit_of(self._process, CLOSING_SECONDS)
        finally:
            if self._process.poll() is not None:
                remove_left_behind(self._home)
                with suppress(OSError):
                    shutil.rmtree(self._home)
            else:  # something below it cannot be killed yet; it stays to try, and its end is still waited for
                threading.Thread(target=self._process.wait, name="spawner-end", daemon=True).start()
            self._tell_all("The session was closed.")
            self._words.close()


def _kill_those_left(variable: bytes) -> None:
    """The shells die with their parent; what they started is found by its environment. Until none is left."""
    for _ in range(ROUNDS_OF_KILLING):
        left = [pid for pid in all_pids() if has_variable(pid, variable) and is_alive(pid)]
        if not left:
            return
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _python() -> str:
    if not sys.executable:
        raise SpawnerFailed("Commands cannot run: this program does not know its Python interpreter.")
    return sys.executable


async def _writable(loop: asyncio.AbstractEventLoop, control: socket.socket) -> None:
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(control, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_writer(control)


async def _exit_of(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for it, but not longer."""
    loop = asyncio.get_running_loop()
    descriptor = os.pidfd_open(process.pid)
    ended: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _settle, ended)
    try:
        await wait_at_most(ended, seconds)
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
