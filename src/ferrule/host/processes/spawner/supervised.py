"""A shell under a supervisor, made ahead of need: two processes, the second to become the shell.

The first one is the supervisor (see `supervisor`). It gets from the spawner what
the command declared, and tells it how the shell ended and what was changed.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket

from . import capabilities
from .becoming import FAILED, become_shell, close_all_but, give_up_powers, receive_job, report_number, restore_signals
from .declared_names import holds_reading
from .notification import install_listener
from .protocol import MOST_CHANGES, Frames, pack
from .supervisor import Supervisor
from .syscalls import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .becoming import Job
    from .protocol import Changed, Jail, ShellEnd, Supervision
    from .rulesets import Ruleset

CHUNK = 1 << 16
LONGEST_TROUBLE = 2_000
CUT_SHORT = "the supervisor was killed, so this name may be unchanged"


class SupervisedShell:
    """The spawner's side of both processes."""

    def __init__(self, jail: Jail, ruleset: Ruleset, home: str) -> None:
        """Only what the jail grants for all commands alike is used. Raises `OSError` for want of room."""
        self.jail = jail
        self.ruleset = ruleset
        self._reading = holds_reading(jail)
        self._declared: list[tuple[str, bool]] = []
        self._frames = Frames()
        self._line, line = socket.socketpair()
        self._words, words = socket.socketpair()
        self._words.setblocking(False)
        with line, words:
            self.pid = os.fork()
            if self.pid == 0:
                _split(line, words, jail, ruleset.descriptor, home)

    def fits(self, jail: Jail) -> bool:
        """Whether a command with this jail can be given to it, whatever it declared."""
        alike = ("readable", "hidden", "writable", "metadata", "network", "unix_sockets", "landlock")
        same = all(self.jail[key] == jail[key] for key in alike) and self._reading == holds_reading(jail)
        return same and self.ruleset.grants.is_current()

    def launch(self, job: Job, jail: Jail, *, output: int, report: int) -> None:
        """The second process becomes the shell. Raises `OSError` where one of them is dead."""
        self._declared = jail["declared"] or []
        task: Supervision = {"jail": jail, "scratch": job["scratch"]}
        content = marshal.dumps(job)  # pyright: ignore[reportArgumentType] - as in `protocol`
        sent = socket.send_fds(self._line, [content], [output, report])
        self._line.sendall(content[sent:])
        self._line.shutdown(socket.SHUT_WR)
        self._words.setblocking(True)
        self._words.sendall(pack(task))
        self._words.setblocking(False)

    def fileno(self) -> int:
        """Ready when there is something to `listen` to."""
        return self._words.fileno()

    def listen(self) -> ShellEnd | None:
        """How the shell ended, once that is known."""
        try:
            while data := self._words.recv(CHUNK):
                for said in self._frames.feed(data):
                    return said
        except OSError:  # nothing more for now, or for good
            pass
        return None

    def trouble(self) -> bytes:
        """Why there was no shell; to be asked when it ended. The line closes as a shell takes over."""
        try:
            return self._line.recv(LONGEST_TROUBLE)
        except ConnectionError:  # it was killed before it read what to become
            return b""

    def cut_short(self) -> Changed:
        """What to say of a command whose supervisor was killed."""
        failed = [(path, CUT_SHORT) for path, _ in self._declared[:MOST_CHANGES]]
        return {"done": [], "dropped": [], "failed": failed, "refused": [], "totals": {"failed": len(self._declared)}}

    def close(self) -> None:
        """When the supervisor has ended, or is not wanted any more and ends by itself."""
        self._line.close()
        self._words.close()


def _split(line: socket.socket, words: socket.socket, jail: Jail, ruleset: int, home: str) -> NoReturn:
    try:
        prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl("PR_SET_CHILD_SUBREAPER", PR_SET_CHILD_SUBREAPER, 1)
        close_all_but([line.fileno(), words.fileno(), ruleset])
        restore_signals()
        os.setsid()
        kept = capabilities.to_keep()
        own, other = socket.socketpair()
        shell = os.fork()
        if shell == 0:
            own.close()
            words.close()
            _wait_and_become(line, other, jail, ruleset, kept)
        line.close()
        other.close()
        os.close(ruleset)
        _supervise(words, own, shell, kept, home)
    finally:
        os._exit(FAILED)  # whatever happened, it never returns into the spawner's loop


def _wait_and_become(line: socket.socket, other: socket.socket, jail: Jail, ruleset: int, kept: int) -> NoReturn:
    try:
        prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        give_up_powers(jail, ruleset, kept)
        listener = install_listener(reading=holds_reading(jail))
        socket.send_fds(other, [b"l"], [listener])
        os.close(listener)
        other.close()
        job, descriptors = receive_job(line)
        if job is not None:
            output, report = descriptors
            number = report_number(job["start"])
            line = line.dup() if line.fileno() in (number, number - 1) else line
            become_shell(job, output=output, report=report)
    except (OSError, ValueError, UnicodeError) as error:
        line.send(str(error).encode("utf-8", "replace")[:LONGEST_TROUBLE])
    finally:
        os._exit(FAILED)


def _supervise(words: socket.socket, own: socket.socket, shell: int, kept: int, home: str) -> None:
    """It survives signals meant for the command, and has no more power over files than the command would have."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    capabilities.drop(kept)
    os.chdir("/")
    with own:
        listener = socket.recv_fds(own, 1, 1)[1]
    task = _receive_task(words)
    if task is None or not listener:
        if task is not None:
            end: ShellEnd = {"shell": shell, "status": os.waitpid(shell, 0)[1], "changes": None, "alone": True}
            _say_end(words, end)
        return

    def report(status: int, changes: Changed, is_over: bool) -> None:
        _say_end(words, {"shell": shell, "status": status, "changes": changes, "alone": is_over})

    os.set_inheritable(listener[0], False)
    Supervisor(listener[0], shell, task["jail"], scratch=task["scratch"], home=home, report=report).serve()


def _receive_task(words: socket.socket) -> Supervision | None:
    """`None` where nothing is wanted any more."""
    frames = Frames()
    while data := words.recv(CHUNK):
        for task in frames.feed(data):
            return task
    return None


def _say_end(words: socket.socket, end: ShellEnd) -> None:
    try:
        words.sendall(pack(end))
    except OSError:
        os._exit(FAILED)  # the spawner is gone
