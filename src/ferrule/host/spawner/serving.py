"""The spawner's loop: starts what Ferrule asks for, reaps all that ends, kills what must end.

It is the subreaper of everything below it, so whatever a command leaves
behind becomes its child. As the socket from Ferrule closes, for whatever
reason, it kills until it has no children, and ends.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import socket
import time
from contextlib import suppress

from . import cgroups, seccomp
from .crew import Crew
from .descendants import children_of, descendants_of, has_variable, is_alive, name_of, session_of
from .launching import is_plain, spawned
from .namespaces import make_covers
from .protocol import MARKER, Frames, packed
from .syscalls import PR_SET_CHILD_SUBREAPER, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .launching import Job
    from .protocol import End, Reply, Request, Start

KILL_AGAIN = 0.01
"""Seconds between two rounds of killing; what forks meanwhile is met by the next one."""
ASK_AGAIN = 0.05
MOST_NAMED = 20
DROPPED = -1
"""Stands for a descriptor that the kernel did not bring, for want of room."""
CHUNK = 1 << 16


class Command:
    """One command on its way: its shell, and when it is to be killed if it must end."""

    __slots__ = ("asked", "ended", "id", "kill_at", "marker", "pid", "report", "scratch")

    def __init__(self, id: int, pid: int, marker: str, report: int, scratch: str) -> None:
        self.id = id
        self.pid = pid
        self.marker = marker
        self.report = report
        self.scratch = scratch
        self.ended = False
        self.kill_at: float | None = None
        self.asked: set[tuple[int, str]] = set()
        """Processes that were asked to end, and what they were called then."""


class Spawner:
    def __init__(self, control: socket.socket, home: str, crew: Crew) -> None:
        self._control = control
        self._home = home
        self._crew = crew
        self._frames = Frames()
        self._descriptors: list[int] = []
        self._commands: dict[int, Command] = {}
        self._open = True

    def serve(self) -> None:
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _only_wake)
        signal.signal(signal.SIGTERM, self._close)
        owner = os.pidfd_open(os.getppid())  # a fork of it may hold the socket open for longer than it lives
        poll = select.poll()
        for descriptor in (self._control.fileno(), woken, owner):
            poll.register(descriptor, select.POLLIN)
        while self._open:
            ready = [descriptor for descriptor, _ in poll.poll(0) or self._idle(poll)]
            if owner in ready:
                self._open = False
            if woken in ready:
                os.read(woken, CHUNK)
            if self._control.fileno() in ready:
                self._listen()
            self._reap()
            self._end_what_must()
        self._control.close()
        self._end_everything()

    def _idle(self, poll: select.poll) -> list[tuple[int, int]]:
        """With nothing to do, make the next start quick; then wait."""
        with suppress(OSError):  # no room now; there may be when it is needed
            self._crew.replenish()
        return poll.poll(self._patience())

    def _close(self, *_: object) -> None:
        self._open = False

    def _patience(self) -> float | None:
        due = [command.kill_at for command in self._commands.values() if command.kill_at is not None]
        return min(max(0.0, min(due) - time.monotonic()), ASK_AGAIN) * 1_000 + 1 if due else None

    # What Ferrule says

    def _listen(self) -> None:
        try:
            data, descriptors, flags, _ = socket.recv_fds(self._control, CHUNK, 16)
        except ConnectionError:
            data, descriptors, flags = b"", list[int](), 0
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self._descriptors += descriptors if not flags & socket.MSG_CTRUNC else [DROPPED]
        if not data:
            self._open = False
        for request in self._frames.feed(data):
            self._obey(request)

    def _obey(self, request: Request) -> None:
        if request["do"] == "end":
            self._begin_end(request)
            return
        output = self._descriptors.pop(0)
        if output == DROPPED:
            self._tell({"event": "refused", "id": request["id"], "why": "too many files are open"})
            return
        try:
            self._start(request, output)
        except (OSError, ValueError) as error:  # the second for what no variable or argument can hold
            self._tell({"event": "refused", "id": request["id"], "why": str(error)})
        finally:
            os.close(output)

    def _start(self, start: Start, output: int) -> None:
        job: Job = {"start": start, "marker": f"{os.getpid()}.{start['id']}", "home": self._home}
        reading, writing = os.pipe()
        try:
            pid, scratch = self._launched(job, output, writing)
        except (OSError, ValueError):
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._commands[start["id"]] = Command(start["id"], pid, job["marker"], reading, scratch)
        self._tell({"event": "started", "id": start["id"], "pid": pid})

    def _launched(self, job: Job, output: int, report: int) -> tuple[int, str]:
        """The shell's process id, and the temporary folder to remove after it."""
        jail = job["start"]["jail"]
        if is_plain(job["start"]):
            return spawned(job, output=output, report=report), ""
        if jail is not None and jail["mounts"]:
            make_covers(self._home)
        forerunner = self._crew.take(jail)
        try:
            forerunner.launch(job, output=output, report=report)
        except BrokenPipeError:  # it was killed while it waited; the next is made now
            forerunner = self._crew.take(None)
            forerunner.launch(job, output=output, report=report)
        return forerunner.pid, forerunner.scratch if jail is not None else ""

    def _tell(self, reply: Reply) -> None:
        try:
            self._control.sendall(packed(reply))
        except OSError:
            self._open = False

    # What ends

    def _reap(self) -> None:
        while reaped := _reaped():
            pid, status = reaped
            command = next((one for one in self._commands.values() if one.pid == pid and not one.ended), None)
            if command is not None:
                self._shell_ended(command, status)
            else:
                self._crew.lost(pid)
        for command in [one for one in self._commands.values() if one.ended]:
            self._forget_if_gone(command)

    def _shell_ended(self, command: Command, status: int) -> None:
        command.ended = True
        os.set_blocking(command.report, False)
        try:
            report = os.read(command.report, CHUNK)
        except BlockingIOError:
            report = b""
        os.close(command.report)
        left = [(pid, name_of(pid)) for pid in self._members(command)[:MOST_NAMED]]
        self._tell(
            {"event": "ended", "id": command.id, "status": status, "report": report, "left": left, "changes": None}
        )

    def _forget_if_gone(self, command: Command) -> None:
        if not self._members(command):
            del self._commands[command.id]
            self._remove(command.scratch)
            self._tell({"event": "gone", "id": command.id})

    def _members(self, command: Command) -> list[int]:
        """The command's processes: below its shell, or adopted here and in its session or with its marker."""
        shells = {one.pid for one in self._commands.values() if not one.ended} | self._crew.pids
        roots = [] if command.ended else [command.pid]
        variable = f"{MARKER}={command.marker}\0".encode()
        roots += [
            child
            for child in children_of(os.getpid())
            if child not in shells and (session_of(child) == command.pid or has_variable(child, variable))
        ]
        return [pid for pid in descendants_of(roots) if is_alive(pid)]

    # What must end

    def _begin_end(self, end: End) -> None:
        if (command := self._commands.get(end["id"])) is None:
            return
        command.kill_at = time.monotonic() + end["grace"]

    def _end_what_must(self) -> None:
        for command in [*self._commands.values()]:
            if command.kill_at is None:
                continue
            if command.kill_at <= time.monotonic():
                for pid in self._members(command):
                    _signal(pid, signal.SIGKILL)
                command.kill_at = time.monotonic() + KILL_AGAIN
            else:
                self._ask_to_end(command)

    def _ask_to_end(self, command: Command) -> None:
        """Each process once, and again when it became another program: between fork and exec a signal is easily lost.

        What was made while the others were asked has its turn a moment later.
        """
        for pid in self._members(command):
            process = pid, name_of(pid)
            if process not in command.asked:
                command.asked.add(process)
                _signal(pid, signal.SIGTERM)
                _signal(pid, signal.SIGCONT)

    def _end_everything(self) -> None:
        """Kills until the kernel says that there are no children; a parent's death brings its own here."""
        pause = 0.0005
        while True:
            for pid in descendants_of([os.getpid()])[1:]:
                _signal(pid, signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                break
            time.sleep(pause)
            pause = min(pause * 2, 0.1)
        self._remove(self._home)
        while _reaped(wait=True):
            pass

    def _remove(self, folder: str) -> None:
        """At once where it is empty, else by a process of its own: a command may leave millions of files."""
        if not folder:
            return
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return
        except OSError:
            with suppress(OSError):  # no room for a process; it goes with all the rest at the end
                _spawn_removal(folder)


def _spawn_removal(folder: str) -> None:
    words = 'rm -rf -- "$1" || { chmod -R u+rwX -- "$1"; rm -rf -- "$1"; }'
    nowhere = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in (0, 1, 2)]
    arguments = ["sh", "-c", words, "sh", folder]
    os.posix_spawn("/bin/sh", arguments, {"PATH": "/usr/bin:/bin"}, file_actions=nowhere)


def _reaped(*, wait: bool = False) -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, 0 if wait else os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _only_wake(*_: object) -> None:
    """The wake-up pipe is written where a signal has a function."""


def _signal(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def main(control: int, home: str, processes: int, memory: int) -> None:
    """Serve the socket `control`, with `home` for temporary folders, and bounds for all commands together."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(control, False)
    prctl("PR_SET_CHILD_SUBREAPER", PR_SET_CHILD_SUBREAPER, 1)
    groups = cgroups.join(processes, memory)
    seccomp.prepare()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()
    Spawner(socket.socket(fileno=control), home, Crew(home)).serve()
    cgroups.leave(groups)
