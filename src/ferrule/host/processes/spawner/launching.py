"""Shells that are started at once, and forks of the spawner that wait to become one."""

from __future__ import annotations

import marshal
import os
import signal
import socket

from . import capabilities, landlock, namespaces
from .becoming import (
    FAILED,
    IGNORED_BY_THE_SPAWNER,
    become_program,
    become_shell,
    close_all_but,
    files_to_start,
    give_up_powers,
    program_environment,
    receive_job,
    report_number,
    restore_signals,
    shell_environment,
)
from .protocol import LONGEST_ARGUMENT
from .syscalls import PR_SET_PDEATHSIG, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from .becoming import Job
    from .protocol import Jail, Start
    from .rulesets import Ruleset

LONGEST_TROUBLE = 2_000


def is_plain(start: Start) -> bool:
    """Whether nothing need be done between fork and shell, so that no fork of the spawner is needed."""
    return start["jail"] is None and not start["limits"] and len(os.fsencode(start["command"])) < LONGEST_ARGUMENT


def spawn(job: Job, *, channels: Sequence[int], report: int) -> int:
    """The process id of a plain shell, or of a program with channels. Raises `OSError`."""
    start = job["start"]
    if start["argv"]:
        words, environment = start["argv"], program_environment(job)
        actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(channels)]
    else:
        words, environment = ["bash", "-c", start["command"]], shell_environment(job)
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, channels[0], 1),
            (os.POSIX_SPAWN_DUP2, channels[0], 2),
            (os.POSIX_SPAWN_DUP2, report, report_number(start)),
        ]
    os.chdir(start["cwd"])  # the spawner does nothing else meanwhile, and needs no directory of its own
    try:
        return os.posix_spawn(
            start["program"],
            words,
            environment,
            file_actions=actions,
            setsid=True,
            setsigdef=IGNORED_BY_THE_SPAWNER,
        )
    finally:
        os.chdir("/")


class Forerunner:
    """A fork of the spawner, made ahead of need, that waits for the shell it is to become.

    A fork takes longer than everything else done for a confined command, so
    it is done while nobody waits for it, with all steps that most commands share.
    """

    def __init__(self, jail: Jail | None, ruleset: Ruleset | None) -> None:
        """With a jail, it goes in ahead of need, and can become nothing outside. Raises `OSError` for want of room."""
        self.jail = jail
        self.ruleset = ruleset
        self.scratch = ""
        """The command's temporary folder, where it was made ahead as well."""
        own, self._line = socket.socketpair()
        with own:
            self.pid = os.fork()
            if self.pid == 0:
                _wait_and_become(own, jail, ruleset)

    def launch(self, job: Job, *, channels: Sequence[int], report: int, ruleset: Ruleset | None) -> None:
        """It becomes the shell or the program, or says on its line why it could not. Raises `OSError` if it is dead."""
        content = marshal.dumps(job)  # pyright: ignore[reportArgumentType] - as in `protocol`
        rules = [ruleset.descriptor] if ruleset is not None and self.jail is None else []
        sent = socket.send_fds(self._line, [content], [*channels, report, *rules])
        self._line.sendall(content[sent:])
        self._line.shutdown(socket.SHUT_WR)

    def trouble(self) -> bytes:
        """Why there was no shell; to be asked when it ended. The line closes as a shell takes over."""
        with self._line:
            return last_words(self._line)

    def dismiss(self) -> None:
        """It is not wanted any more, and ends by itself."""
        self._line.close()


def last_words(line: socket.socket) -> bytes:
    """What a process that is gone said on its line; one that was killed before it took its job said nothing."""
    try:
        return line.recv(LONGEST_TROUBLE)
    except ConnectionError:
        return b""


def _wait_and_become(own: socket.socket, jail: Jail | None, ruleset: Ruleset | None) -> NoReturn:
    try:
        prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, signal.SIGKILL)
        close_all_but([own.fileno(), *([ruleset.descriptor] if ruleset else [])])
        restore_signals()
        os.setsid()
        kept = capabilities.to_keep()
        if jail is not None and ruleset is not None:
            give_up_powers(jail, ruleset.descriptor, kept)
        job, descriptors = receive_job(own)
        if job is not None:
            count = 3 if job["start"]["argv"] else 1
            channels, (report, *rules) = descriptors[:count], descriptors[count:]
            asked = job["start"]["jail"]
            own = _move_from(own, report_number(job["start"]))
            if jail is None and asked is not None:
                rules = rules or [_enter_mounts(asked, job)]
                give_up_powers(asked, rules[0], kept)
            if job["start"]["argv"]:
                become_program(job, channels=channels, unused=report)
            become_shell(job, output=channels[0], report=report)
    except (OSError, ValueError, UnicodeError) as error:
        own.send(str(error).encode("utf-8", "replace")[:LONGEST_TROUBLE])
    finally:
        os._exit(FAILED)  # whatever happened, the child never returns into the spawner's loop


def _enter_mounts(jail: Jail, job: Job) -> int:
    """The rules for a command behind covers, which exist only for its own processes."""
    more = namespaces.enter(jail, job["scratch"], job["home"])
    rights = landlock.Rights(reading=jail["readable"] is not None, tcp=jail["network"], version=jail["landlock"])
    readable = (*(jail["readable"] or ()), *files_to_start(job["start"]["program"]))
    return landlock.make_ruleset(rights, readable=readable, writable=(job["scratch"], *more, *jail["writable"]))


def _move_from(own: socket.socket, number: int) -> socket.socket:
    """The same line, not on the descriptor that the report will have."""
    return own.dup() if own.fileno() in (number, number - 1) else own
