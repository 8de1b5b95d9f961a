"""A shell on a layer, in a process namespace of its own, made ahead of need.

Two processes: the first one of a process namespace, which makes the mounts and
with which all others in it end; and the shell to be. The first one ends as soon
as the shell has, or the spawner: nothing outlives either.
"""

from __future__ import annotations

import errno
import marshal
import os
import select
import signal
import socket
import struct
import time

from . import capabilities, landlock
from . import overlay_layers as layers
from .becoming import (
    FAILED,
    become_shell,
    close_all_but,
    files_to_start,
    give_up_powers,
    receive_job,
    restore_signals,
)
from .carrying import Layer
from .launching import last_words
from .read_grants import ReadGrants
from .syscalls import PR_SET_PDEATHSIG, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .becoming import Job
    from .protocol import Jail

CREDENTIALS = struct.Struct("3i")
MOST_ROOTS = 60
"""Descriptors that one message takes."""
FIRST, SHELL, STATUS, TROUBLE = b"first", b"shell", b"status", b"!"
LONGEST = 2_000
SECONDS_TO_PREPARE = 10.0


class Enclosure:
    """A held command from before it is known which one it is until its layers are read."""

    def __init__(self, jail: Jail, program: str, place: layers.LayerPlace, home: str) -> None:
        """Raises `OSError` for want of room; what goes wrong in the kernel shows when it is launched."""
        self.jail = jail
        self.program = program
        self.place = place
        self.since = 0
        self.is_fresh = True
        """Not made ahead."""
        self.shell = 0
        """The process that becomes a shell, once it is launched."""
        self._in_memory: dict[int, int] = {}
        self._mounts = -1
        if "/" in place.roots:
            raise OSError(errno.EINVAL, "no layer can be laid over the whole file system")
        if len(place.roots) > MOST_ROOTS:
            raise OSError(errno.E2BIG, f"no layers can be laid over more than {MOST_ROOTS} folders at once")
        place.make()
        self._seen = ReadGrants(place.roots, jail["hidden"])
        self._roots = [_identity(os.stat(root)) for root in place.roots]
        self._line, line = socket.socketpair()
        self._states, states = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._states.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._states.settimeout(SECONDS_TO_PREPARE)
        with line, states:
            self.pid, who = layers.fork_inside()
            """The first process of the namespace."""
            if self.pid == 0:
                _be_first(line, states, self, home, who)

    def suits(self, jail: Jail, program: str) -> bool:
        """Whether it is as that jail would be; which names are declared matters only when it ended."""
        return self.program == program and {**self.jail, "declared": None} == {**jail, "declared": None}

    def is_current(self) -> bool:
        """Whether the workspace is still the folder it was, and nothing that is hidden in it has moved."""
        return self._seen.is_current()

    def launch(self, job: Job, *, output: int, report: int) -> None:
        """The shell to be becomes one. Raises `OSError` where this machine cannot do it; nothing ran then."""
        job["scratch"] = self.place.own
        while not self.shell or self._mounts < 0:
            self._listen()
        self.since = time.time_ns()
        content = marshal.dumps(job)  # pyright: ignore[reportArgumentType] - as in `protocol`
        sent = socket.send_fds(self._line, [content], [output, report])
        self._line.sendall(content[sent:])
        self._line.shutdown(socket.SHUT_WR)

    def _listen(self) -> None:
        word, pid, descriptors = _receive(self._states)
        if word.startswith(FIRST):
            self._mounts, *uppers = descriptors
            self._in_memory = dict(zip(word.removeprefix(FIRST), uppers, strict=True))
        elif word == SHELL:
            self.shell = pid
        else:
            raise OSError(
                word.removeprefix(TROUBLE).decode("utf-8", "replace") or "the process that was made ahead died"
            )

    def end_of_shell(self) -> tuple[int, bytes]:
        """How the shell ended, as `waitpid` says it, and why there was none. For when the first process ended."""
        self._states.setblocking(False)
        status = int(signal.SIGKILL)
        try:
            while (received := _receive(self._states))[0]:
                if received[1] == self.pid and received[0].startswith(STATUS):
                    status = int(received[0].removeprefix(STATUS))
        except (BlockingIOError, ConnectionError):
            pass
        return status, last_words(self._line)

    def layers(self) -> list[Layer]:
        """What it changed, to be read when all its processes are gone. Raises `OSError`."""
        found: list[Layer] = []
        for number, root in enumerate(self.place.roots):
            descriptor = self._in_memory.pop(number, -1)
            in_memory = descriptor >= 0
            if not in_memory:  # by this process's own mount, so that it can be moved from
                upper = os.path.join(self.place.layer(number), layers.UPPER)
                descriptor = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            layer = Layer(root, descriptor, in_memory=in_memory)
            found.append(layer)
            if _identity(os.fstat(layer.lower)) != self._roots[number]:
                raise OSError(errno.ESTALE, f"{root} was moved or replaced meanwhile")
        return found

    def close(self) -> None:
        """Takes the mounts down, which takes a moment; also ends one that was never launched."""
        self._line.close()
        self._states.close()
        for descriptor in (self._mounts, *self._in_memory.values()):
            if descriptor >= 0:
                os.close(descriptor)
        self._mounts, self._in_memory = -1, {}


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _receive(states: socket.socket) -> tuple[bytes, int, list[int]]:
    """A message, the process that sent it, and the descriptors that came with it."""
    room = socket.CMSG_SPACE(CREDENTIALS.size) + socket.CMSG_SPACE(MOST_ROOTS * 4)
    word, parts, _, _ = states.recvmsg(LONGEST, room)
    sender, descriptors = 0, list[int]()
    for _, kind, data in parts:
        if kind == socket.SCM_CREDENTIALS:
            sender = CREDENTIALS.unpack(data)[0]
        elif kind == socket.SCM_RIGHTS:
            descriptors = [*struct.unpack(f"{len(data) // 4}i", data)]
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
    return word, sender, descriptors


def _be_first(
    line: socket.socket, states: socket.socket, enclosure: Enclosure, home: str, who: tuple[int, int] | None
) -> NoReturn:
    """Makes the mounts; then waits for the shell, and for whoever else is left without a parent."""
    try:
        prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, signal.SIGKILL)
        close_all_but([line.fileno(), states.fileno()])
        restore_signals()
        layers.settle(who)
        place = enclosure.place
        in_memory, writable = layers.enter(enclosure.jail, place, home, as_root=who is None)
        layers.show_own_processes()
        shell = os.fork()
        if shell == 0:
            _wait_and_become(line, states, enclosure.jail, enclosure.program, [place.own, *writable])
        line.close()
        mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        socket.send_fds(states, [FIRST + bytes(in_memory)], [mounts, *in_memory.values()])
        close_all_but([states.fileno()])
        status = _wait_for(shell, states)
        states.send(STATUS + b"%d" % status)
    except (OSError, ValueError, UnicodeError) as error:
        states.send(TROUBLE + str(error).encode("utf-8", "replace")[:LONGEST])
    finally:
        os._exit(0)  # whatever happened, it never returns into the spawner's loop


def _wait_for(shell: int, states: socket.socket) -> int:
    """How the shell ended. Ends everything if the spawner is gone."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _only_wake)
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(states, 0)
    while True:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == shell:
                return ended[1]
        if states.fileno() in dict(poll.poll()):
            os._exit(FAILED)
        os.read(woken, 1 << 12)


def _only_wake(*_: object) -> None:
    """The wake-up pipe is written where a signal has a function."""


def _wait_and_become(
    line: socket.socket, states: socket.socket, jail: Jail, program: str, writable: list[str]
) -> NoReturn:
    try:
        os.setsid()
        rights = landlock.Rights(reading=jail["readable"] is not None, tcp=jail["network"], version=jail["landlock"])
        readable = (*(jail["readable"] or ()), *files_to_start(program))
        ruleset = landlock.make_ruleset(rights, readable=readable, writable=writable, changeable=jail["workspace"])
        give_up_powers(jail, ruleset, capabilities.to_keep())
        states.send(SHELL)
        job, descriptors = receive_job(line)
        if job is not None:
            output, report = descriptors
            become_shell(job, output=output, report=report)
    except (OSError, ValueError, UnicodeError) as error:
        words = str(error).encode("utf-8", "replace")[:LONGEST]
        line.send(words)
        states.send(TROUBLE + words)
    finally:
        os._exit(FAILED)
