"""The last steps of a child on its way to become a shell: its descriptors, limits, rights and environment."""

from __future__ import annotations

import marshal
import os
import resource
import signal
import socket

from . import capabilities, landlock, seccomp
from .protocol import LONGEST_ARGUMENT, MARKER, REPORT_VARIABLE
from .syscalls import PR_SET_NO_NEW_PRIVS, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn, TypedDict

    from .protocol import Jail, Start

    class Job(TypedDict):
        """What a child is sent, besides the descriptors for output and report."""

        start: Start
        marker: str
        home: str
        """The spawner's folder."""
        scratch: str
        """The command's temporary folder; empty where it has none of its own."""


SHELL_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shell_start.bash")
FAILED = 127
HIGHEST_REPORT = 198
"""Of the descriptors that a shell reports on: beyond those that commands name by number."""
MOST_DESCRIPTORS = 5
"""Sent with a job: three channels, the report and a ruleset."""
LIMITS = {
    "memory": resource.RLIMIT_AS,
    "processes": resource.RLIMIT_NPROC,
    "file_size": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}
IGNORED_BY_THE_SPAWNER = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)


def report_number(start: Start) -> int:
    """The descriptor on which a shell reports its working directory as it exits: the second highest it can have."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(HIGHEST_REPORT, most - 2, start["limits"].get("open_files", most) - 2)


def files_to_start(program: str) -> tuple[str, ...]:
    """Files that must be readable for there to be a shell at all."""
    return (os.path.realpath(program), SHELL_START)


def shell_environment(job: Job) -> dict[str, str]:
    own = {MARKER: job["marker"], "BASH_ENV": SHELL_START, REPORT_VARIABLE: str(report_number(job["start"]))}
    temporary = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), job["scratch"]) if job["scratch"] else {}
    return job["start"]["env"] | own | temporary


def program_environment(job: Job) -> dict[str, str]:
    """Of a program with channels: all as it was given, and the marker that it is found by."""
    return job["start"]["env"] | {MARKER: job["marker"]}


def restore_signals() -> None:
    """What the spawner ignores, a shell would go on ignoring; what it handles, a fork would as well."""
    signal.set_wakeup_fd(-1)
    for number in (*IGNORED_BY_THE_SPAWNER, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def close_all_but(kept: Sequence[int]) -> None:
    """Input is empty from now on; what else was open, but for `kept` and output, is closed."""
    start = 3
    for descriptor in sorted(kept):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, 1 << 20)
    empty = os.open("/dev/null", os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)


def receive_job(own: socket.socket) -> tuple[Job | None, list[int]]:
    """To its end; the descriptors come with the first bytes. `None` where nothing is wanted any more."""
    data, descriptors, _, _ = socket.recv_fds(own, 1 << 16, MOST_DESCRIPTORS)
    parts = [data]
    while data := own.recv(1 << 20):
        parts.append(data)
    content = b"".join(parts)
    return (marshal.loads(content) if content else None), descriptors


def give_up_powers(jail: Jail, ruleset: int, kept: int) -> None:
    """The order matters: what was mounted stays, since Landlock forbids mounting; the filter forbids all of this."""
    prctl("PR_SET_NO_NEW_PRIVS", PR_SET_NO_NEW_PRIVS, 1)
    capabilities.drop(kept)
    landlock.restrict(ruleset)
    seccomp.install(
        metadata=jail["metadata"],
        network=jail["network"],
        unix_sockets=jail["unix_sockets"],
        signals=jail["landlock"] >= seccomp.SIGNALS_SINCE,
    )


def become_shell(job: Job, *, output: int, report: int) -> NoReturn:
    """Raises `OSError` where the folder or program does not exist."""
    start = job["start"]
    number = report_number(start)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    _move(report, number)
    os.chdir(start["cwd"])
    _limit(start["limits"])
    words = ["bash", "-c", _argument(start["command"], number - 1)]
    os.execve(start["program"], words, shell_environment(job))


def become_program(job: Job, *, channels: Sequence[int], unused: int) -> NoReturn:
    """With three channels as standard input, output and error. Raises `OSError`."""
    start = job["start"]
    for number, descriptor in enumerate(channels):
        os.dup2(descriptor, number)
    for descriptor in (*channels, unused):
        os.close(descriptor)
    os.chdir(start["cwd"])
    _limit(start["limits"])
    os.execve(start["program"], start["argv"], program_environment(job))


def _move(descriptor: int, number: int) -> None:
    """To a number that stays open in the shell."""
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.set_inheritable(number, True)


def _limit(limits: dict[str, int]) -> None:
    for name, most in limits.items():
        kind = LIMITS[name]
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _argument(command: str, script: int) -> str:
    """The command itself; one too long for an argument lies in a file of its own, and is read from there."""
    content = os.fsencode(command)
    if len(content) < LONGEST_ARGUMENT:
        return command
    descriptor = os.memfd_create("command", 0)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    _move(descriptor, script)
    os.lseek(script, 0, os.SEEK_SET)
    return f"builtin source /proc/self/fd/{script}"
