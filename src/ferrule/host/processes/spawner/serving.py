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
from functools import partial

from . import cgroups, homes, notification, seccomp
from .carriers import Carrier
from .clearing import remove, remove_place
from .crew import Crew
from .descendants import children_of, descendants_of, has_variable, is_alive, name_of, session_of
from .launching import Forerunner, is_plain, spawn
from .namespaces import make_covers
from .protocol import MARKER, Frames, pack
from .started import ShellReport, StartedCommand
from .syscalls import PR_SET_CHILD_SUBREAPER, prctl
from .temporaries import remove_left_behind, remove_listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .becoming import Job
    from .enclosure import Enclosure
    from .protocol import Changed, End, Ended, Jail, Reply, Request, Start
    from .rulesets import Ruleset
    from .supervised import SupervisedShell

KILL_AGAIN = 0.01
"""Seconds between two rounds of killing; what forks meanwhile is met by the next one."""
ASK_AGAIN = 0.05
MOST_NAMED = 20
MOST_ROUNDS = 500
"""Of killing, after which a supervisor that has nothing left to supervise is killed as well."""
CHUNK = 1 << 16


class Spawner:
    def __init__(self, control: socket.socket, home: str, crew: Crew) -> None:
        self._control = control
        self._home = home
        self._crew = crew
        self._frames = Frames()
        self._descriptors: list[list[int]] = []
        """Those of each start that was not read yet; none where the kernel did not pass them on, for want of room."""
        self._commands: dict[int, StartedCommand] = {}
        self._open = True
        self._poll = select.poll()
        self._later: list[Callable[[], None]] = [partial(homes.clear_dead, home)]
        """What is left to clear away, for when nobody waits."""

    def serve(self) -> None:
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _only_wake)
        signal.signal(signal.SIGTERM, self._close)
        owner = os.pidfd_open(os.getppid())  # a fork of it may hold the socket open for longer than it lives
        for descriptor in (self._control.fileno(), woken, owner):
            self._poll.register(descriptor, select.POLLIN)
        while self._open:
            ready = [descriptor for descriptor, _ in self._poll.poll(0) or self._idle(self._poll)]
            if owner in ready:
                self._open = False
            if woken in ready:
                os.read(woken, CHUNK)
            if self._control.fileno() in ready:
                self._listen()
            for command in [one for one in self._commands.values() if one.supervised is not None]:
                self._listen_to_supervisor(command)
            self._reap()
            self._end_what_must()
        self._control.close()
        self._end_everything()

    def _idle(self, poll: select.poll) -> list[tuple[int, int]]:
        """With nothing to do, clear away and make the next start quick; then wait."""
        self._later += [partial(_clear_enclosure, self._crew.unwanted.pop()) for _ in [*self._crew.unwanted]]
        while self._later:
            with suppress(OSError):  # what cannot be removed now goes with all the rest at the end
                self._later.pop()()
            if ready := poll.poll(0):
                return ready
        with suppress(OSError):  # no room now; there may be when it is needed
            while self._crew.replenish():
                if ready := poll.poll(0):
                    return ready
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
        if flags & socket.MSG_CTRUNC:
            _close_all(descriptors)
            descriptors = []
        if descriptors or flags & socket.MSG_CTRUNC:
            self._descriptors.append(descriptors)
        if not data:
            self._open = False
        for request in self._frames.feed(data):
            self._obey(request)

    def _obey(self, request: Request) -> None:
        if request["do"] == "end":
            self._begin_end(request)
            return
        channels = self._descriptors.pop(0)
        if not channels:
            self._tell({"event": "refused", "id": request["id"], "why": "too many files are open"})
            return
        try:
            self._start(request, channels)
        except (OSError, ValueError) as error:  # the second for what no variable or argument can hold
            self._tell({"event": "refused", "id": request["id"], "why": str(error)})
        finally:
            _close_all(channels)

    def _start(self, start: Start, channels: list[int]) -> None:
        job: Job = {"start": start, "marker": f"{os.getpid()}.{start['id']}", "home": self._home, "scratch": ""}
        command = StartedCommand(start["id"], job["marker"], ShellReport())
        try:
            self._launch(command, job, channels)
        except (OSError, ValueError):
            command.report.close()
            raise
        finally:
            command.report.writing.close()
        self._commands[start["id"]] = command
        self._tell({"event": "started", "id": start["id"], "pid": command.shell})

    def _launch(self, command: StartedCommand, job: Job, channels: list[int]) -> None:
        jail = job["start"]["jail"]
        report = command.report.writing.fileno()
        if is_plain(job["start"]):
            command.leader = command.shell = spawn(job, channels=channels, report=report)
        elif jail is not None and jail["keep"] == "overlay":
            self._launch_enclosed(command, job, jail, channels[-1])
        elif jail is not None and jail["keep"] == "supervisor":
            self._launch_supervised(command, job, jail, channels[-1])
        else:
            self._launch_forerunner(command, job, channels)

    def _launch_forerunner(self, command: StartedCommand, job: Job, channels: list[int]) -> None:
        jail = job["start"]["jail"]
        if jail is not None and jail["mounts"]:
            make_covers(self._home)
        forerunner, ruleset = self._crew.take(job["start"])
        if jail is not None:
            folder = ruleset.folder if ruleset else self._home
            job["scratch"] = forerunner.scratch or self._crew.make_folder(folder)
        report = command.report.writing.fileno()
        try:
            forerunner.launch(job, channels=channels, report=report, ruleset=ruleset)
        except BrokenPipeError:  # it was killed while it waited; the next is made now
            forerunner = Forerunner(None, None)
            forerunner.launch(job, channels=channels, report=report, ruleset=ruleset)
        command.forerunner, command.ruleset, command.scratch = forerunner, ruleset, job["scratch"]
        command.leader = command.shell = forerunner.pid

    def _launch_enclosed(self, command: StartedCommand, job: Job, jail: Jail, output: int) -> None:
        make_covers(self._home)
        enclosure = self._crew.take_enclosure(jail, job["start"]["program"])
        try:
            enclosure.launch(job, output=output, report=command.report.writing.fileno())
        except OSError:  # one that was made ahead may be dead; a fresh one that fails shows what cannot be done here
            self._crew.forget_enclosures()
            self._later.append(partial(_clear_enclosure, enclosure))
            if enclosure.is_fresh:
                raise
            self._launch_enclosed(command, job, jail, output)
            return
        command.enclosure = enclosure
        command.leader, command.shell = enclosure.pid, enclosure.shell

    def _launch_supervised(self, command: StartedCommand, job: Job, jail: Jail, output: int) -> None:
        report = command.report.writing.fileno()
        for is_last in (False, True):
            supervised = self._crew.take_supervised(jail, job["start"]["program"])
            job["scratch"] = self._crew.make_folder(supervised.ruleset.folder)
            try:
                supervised.launch(job, jail, output=output, report=report)
                command.supervised, command.leader, command.shell = supervised, supervised.pid, supervised.pid
                command.ruleset, command.scratch = supervised.ruleset, job["scratch"]
                break
            except ConnectionError:  # it was killed while it waited; the next is made now
                supervised.close()
                self._later.append(partial(self._clear_scratch, job["scratch"], supervised.ruleset))
                if is_last:
                    raise
        self._poll.register(supervised.fileno(), select.POLLIN)

    def _tell(self, reply: Reply) -> None:
        try:
            self._control.sendall(pack(reply))
        except OSError:
            self._open = False

    # What ends

    def _reap(self) -> None:
        while reaped := _reap_one():
            pid, status = reaped
            for command in self._commands.values():
                if command.carrier is not None and command.carrier.pid == pid:
                    self._tell_end(command, command.carrier.finish())
                    break
                if command.leader == pid and command.supervised is not None:
                    self._supervisor_ended(command, command.supervised)
                    break
                if command.leader == pid and not command.ended:
                    self._leader_ended(command, status)
                    break
            else:
                self._crew.note_lost(pid)
        for command in [one for one in self._commands.values() if one.ended]:
            self._forget_if_gone(command)

    def _leader_ended(self, command: StartedCommand, status: int) -> None:
        if (enclosure := command.enclosure) is not None:
            command.leader = 0
            command.shell_end = enclosure.end_of_shell()
            command.carrier = carrier = Carrier(enclosure)
            if carrier.changed is not None:
                self._tell_end(command, carrier.changed)
        else:
            command.shell_end = status, command.forerunner.trouble() if command.forerunner is not None else b""
            self._tell_end(command, None)

    def _listen_to_supervisor(self, command: StartedCommand) -> None:
        if command.supervised is None or (end := command.supervised.listen()) is None:
            return
        command.shell = end["shell"]
        command.shell_end = end["status"], command.supervised.trouble()
        self._tell_end(command, end["changes"], is_alone=end["alone"])

    def _supervisor_ended(self, command: StartedCommand, supervised: SupervisedShell) -> None:
        """It ends when nothing of the command is left. Without a word it was killed, and so is what it held."""
        self._listen_to_supervisor(command)
        self._poll.unregister(supervised.fileno())
        command.leader = 0
        if not command.ended:
            command.kill_at = time.monotonic()
            command.shell_end = int(signal.SIGKILL), b""
            self._tell_end(command, supervised.cut_short())
        remove_listed(self._home, supervised.pid)
        supervised.close()
        command.supervised = None

    def _tell_end(self, command: StartedCommand, changes: Changed | None, *, is_alone: bool = False) -> None:
        """`is_alone` where it is known already that the shell left nothing running."""
        command.ended = True
        status, trouble = command.shell_end
        said = command.report.last_words_of(command.shell)
        command.report.close()
        left = [(pid, name_of(pid)) for pid in ([] if is_alone else self._members(command)[:MOST_NAMED])]
        ended: Ended = {
            "event": "ended",
            "id": command.id,
            "status": status,
            "cwd": said,
            "trouble": trouble,
            "left": left,
            "changes": changes,
        }
        self._tell(ended)

    def _forget_if_gone(self, command: StartedCommand) -> None:
        if command.supervised is not None or self._members(command):
            return
        del self._commands[command.id]
        self._tell({"event": "gone", "id": command.id})
        if command.enclosure is not None:
            self._later.append(partial(_clear_enclosure, command.enclosure))
        elif command.scratch:
            self._later.append(partial(self._clear_scratch, command.scratch, command.ruleset))

    def _clear_scratch(self, scratch: str, ruleset: Ruleset | None) -> None:
        """The rules are used again where the command left nothing in the folder that they let be written."""
        if ruleset is None:
            remove(scratch)
        elif _is_removed(scratch) and not os.listdir(ruleset.folder):
            self._crew.give_back(ruleset)
        else:
            os.close(ruleset.descriptor)
            remove(ruleset.folder)

    def _members(self, command: StartedCommand) -> list[int]:
        """The command's processes: below its shell, or adopted here and in its session or with its marker."""
        if command.enclosure is not None:  # with its first process all are gone
            return [pid for pid in descendants_of([command.leader])[1:] if is_alive(pid)] if command.leader else []
        if command.supervised is not None:  # all are below their supervisor
            return [pid for pid in descendants_of([command.leader])[1:] if is_alive(pid)]
        shells = {one.leader for one in self._commands.values() if not one.ended} | self._crew.pids
        roots = [] if command.ended else [command.leader]
        variable = f"{MARKER}={command.marker}\0".encode()
        roots += [
            child
            for child in children_of(os.getpid())
            if child not in shells and (session_of(child) == command.shell or has_variable(child, variable))
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
                for pid in self._to_kill(command):
                    _signal(pid, signal.SIGKILL)
                command.kill_at = time.monotonic() + KILL_AGAIN
            else:
                self._ask_to_end(command)

    def _to_kill(self, command: StartedCommand) -> list[int]:
        """With the first process of a namespace all others end. A supervisor ends by itself, or has hung."""
        if command.enclosure is not None:
            return [command.leader] if command.leader else []
        members = self._members(command)
        if command.supervised is not None and not members:
            command.rounds += 1
            return [command.leader] if command.rounds > MOST_ROUNDS else []
        return members

    def _ask_to_end(self, command: StartedCommand) -> None:
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
        """Kills until the kernel reports no children; when a parent dies, its children are adopted here.

        Who carries over what a command declared comes to its end by itself.
        """
        carriers = {one.carrier.pid for one in self._commands.values() if one.carrier is not None}
        pause = 0.0005
        while True:
            for pid in descendants_of([os.getpid()])[1:]:
                if pid not in carriers:
                    _signal(pid, signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                break
            time.sleep(pause)
            pause = min(pause * 2, 0.1)
        remove_left_behind(self._home)
        remove(self._home)
        while _reap_one(wait=True):
            pass


def _clear_enclosure(enclosure: Enclosure) -> None:
    enclosure.close()
    remove_place(enclosure.place)


def _close_all(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _is_removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _reap_one(*, wait: bool = False) -> tuple[int, int] | None:
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


def main(control: int, lock: int, home: str, processes: int, memory: int) -> None:
    """Serve the socket `control`, with `home` for temporary folders, and bounds for all commands together.

    `lock` says that the folder is in use, until this process ends.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(control, False)
    os.set_inheritable(lock, False)
    prctl("PR_SET_CHILD_SUBREAPER", PR_SET_CHILD_SUBREAPER, 1)
    groups = cgroups.join(processes, memory)
    homes.note_groups(home, groups)
    seccomp.prepare()
    notification.prepare()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()
    Spawner(socket.socket(fileno=control), home, Crew(home)).serve()
    cgroups.leave(groups)
