"""From a fork of the spawner to the shell: the steps of the child, which end in `execve` or in `_exit`."""

from __future__ import annotations

import marshal
import os
import resource
import signal
import socket

from . import capabilities, landlock, namespaces, seccomp
from .protocol import LONGEST_ARGUMENT, MARKER, REPORT_FD, SCRIPT_FD, TROUBLE
from .syscalls import PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, TypedDict

    from .protocol import Jail, Start

    Prepared = tuple[landlock.Prepared | None, int]

    class Job(TypedDict):
        """What a forerunner is sent, besides the pipes for output and report."""

        start: Start
        marker: str
        home: str
        """The spawner's folder."""


SHELL_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shell_start.bash")
FAILED = 127
LIMITS = {
    "memory": resource.RLIMIT_AS,
    "processes": resource.RLIMIT_NPROC,
    "file_size": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}
IGNORED_BY_THE_SPAWNER = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)


def is_plain(start: Start) -> bool:
    """Whether nothing need be done between fork and shell, so that no fork of the spawner is needed."""
    return start["jail"] is None and not start["limits"] and len(os.fsencode(start["command"])) < LONGEST_ARGUMENT


def spawned(job: Job, *, output: int, report: int) -> int:
    """The process id of a plain shell. Raises `OSError`."""
    start = job["start"]
    os.chdir(start["cwd"])  # the spawner does nothing else meanwhile, and needs no directory of its own
    try:
        return os.posix_spawn(
            start["program"],
            ["bash", "-c", start["command"]],
            _environment(job),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
                (os.POSIX_SPAWN_DUP2, report, REPORT_FD),
            ],
            setsid=True,
            setsigdef=IGNORED_BY_THE_SPAWNER,
        )
    finally:
        os.chdir("/")


class Forerunner:
    """A fork of the spawner, made ahead of need, that waits to be told which shell to become.

    A fork takes longer than all else that is done for a confined command, so
    it is done while nobody waits for it, and with it all that is alike for most.
    """

    def __init__(self, scratch: str, jail: Jail | None) -> None:
        """With a jail, it goes in ahead of need, and can become nothing outside. Raises `OSError` for want of room."""
        self.scratch = scratch
        self.jail = jail
        if jail is not None:
            os.mkdir(scratch, 0o700)
        own, self._sending = socket.socketpair()
        with own:
            self.pid = os.fork()
            if self.pid == 0:
                _wait_and_become(own, scratch, jail)

    def launch(self, job: Job, *, output: int, report: int) -> None:
        """It becomes the shell, or reports to `report` why it could not. Raises `OSError` if it is dead."""
        if self.jail is None and job["start"]["jail"] is not None:
            os.mkdir(self.scratch, 0o700)
        content = marshal.dumps(job)  # pyright: ignore[reportArgumentType] - as in `protocol`
        with self._sending:
            sent = socket.send_fds(self._sending, [content], [output, report])
            self._sending.sendall(content[sent:])


def _wait_and_become(own: socket.socket, scratch: str, jail: Jail | None) -> NoReturn:
    try:
        prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, signal.SIGKILL)
        os.closerange(3, own.fileno())
        os.closerange(own.fileno() + 1, 1 << 20)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        _restore_signals()
        os.setsid()
        prepared = landlock.prepared(), capabilities.to_keep()
        if jail is not None:
            _confine(jail, [scratch], prepared)
        content, descriptors = _received(own)
        if content:
            job: Job = marshal.loads(content)
            _arrange_descriptors(*descriptors)
            _become_shell(job, scratch, prepared, confined=jail is not None)
    except (OSError, ValueError, UnicodeError) as error:
        os.write(REPORT_FD, TROUBLE + str(error).encode("utf-8", "replace")[:2_000])
    finally:
        os._exit(FAILED)  # whatever happened, the child never returns into the spawner's loop


def _received(own: socket.socket) -> tuple[bytes, list[int]]:
    """To its end; the descriptors come with the first bytes."""
    data, descriptors, _, _ = socket.recv_fds(own, 1 << 16, 2)
    parts = [data]
    while data := own.recv(1 << 20):
        parts.append(data)
    return b"".join(parts), descriptors


def _arrange_descriptors(output: int, report: int) -> None:
    """Output and errors on one pipe, and of all else only the report; what remains closes with `execve`."""
    os.dup2(report, REPORT_FD)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(report)
    os.close(output)


def _become_shell(job: Job, scratch: str, prepared: Prepared, *, confined: bool) -> None:
    start = job["start"]
    jail = start["jail"]
    environment = _environment(job)
    if jail is not None:
        environment |= dict.fromkeys(("TMPDIR", "TMP", "TEMP"), scratch)
    writable = [scratch]
    if jail is not None and jail["mounts"]:
        writable += namespaces.enter(jail, scratch, job["home"])
    os.chdir(start["cwd"])
    _limit(start["limits"])
    if jail is not None and not confined:
        _confine(jail, writable + jail["writable"], prepared)
    os.execve(start["program"], ["bash", "-c", _argument(start["command"])], environment)


def _environment(job: Job) -> dict[str, str]:
    return job["start"]["env"] | {MARKER: job["marker"], "BASH_ENV": SHELL_START}


def _restore_signals() -> None:
    """What the spawner ignores, a shell would go on ignoring; what it handles, a forerunner would as well."""
    signal.set_wakeup_fd(-1)
    for number in (*IGNORED_BY_THE_SPAWNER, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _limit(limits: dict[str, int]) -> None:
    for name, most in limits.items():
        kind = LIMITS[name]
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _confine(jail: Jail, writable: list[str], prepared: Prepared) -> None:
    """The order matters: what was mounted stays, since Landlock forbids mounting; the filter forbids all of this."""
    ruleset, kept = prepared
    prctl("PR_SET_NO_NEW_PRIVS", PR_SET_NO_NEW_PRIVS, 1)
    capabilities.drop(kept)
    landlock.confine(writable, tcp=jail["network"], version=jail["landlock"], prepared=ruleset)
    seccomp.install(metadata=jail["metadata"], network=jail["network"], unix_sockets=jail["unix_sockets"])


def _argument(command: str) -> str:
    """The command itself; one too long for an argument lies in a file of its own, and is read from there."""
    content = os.fsencode(command)
    if len(content) < LONGEST_ARGUMENT:
        return command
    descriptor = os.memfd_create("command", 0)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.dup2(descriptor, SCRIPT_FD)
    os.close(descriptor)
    os.lseek(SCRIPT_FD, 0, os.SEEK_SET)
    return f"builtin source /proc/self/fd/{SCRIPT_FD}"
