"""The process that holds a command to the names it declared: it answers the calls that would change a name.

It is the parent and subreaper of all that the command starts, which also gives
it the right to read their memory. It ends when nothing of the command is left.
If it is killed, its listener closes and every such call fails.
"""

from __future__ import annotations

import errno
import os
import select
import signal
from functools import cached_property

from .call_execution import LEFT_TO_KERNEL, CallExecution, Opened
from .call_table import CALLS
from .change_log import ChangeLog
from .declared_names import DeclaredNames
from .handed_call import HandedCall
from .name_rights import NameRights
from .notification import Listener, names_by_number
from .temporaries import TemporaryNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Changed, Jail

    Report = Callable[[int, Changed, bool], None]

CHUNK = 1 << 12


class Supervisor:
    """Answers calls until nothing of the command is left."""

    def __init__(self, listener: int, shell: int, jail: Jail, *, scratch: str, home: str, report: Report) -> None:
        """`report` is called once, as the shell has ended: its status, what was changed, whether that is all."""
        self._listener = Listener(listener)
        self._shell = shell
        self._report = report
        self._status: int | None = None
        self._reported = False
        self._jail = jail
        self._scratch = scratch
        self._log = ChangeLog()
        self._temporaries = TemporaryNames(home, os.getpid())
        self._calls = names_by_number(os.uname().machine)

    @cached_property
    def _execution(self) -> CallExecution:
        """Made for the first call: many commands end without one, and all start while somebody waits."""
        rights = NameRights(DeclaredNames(self._jail, self._scratch), self._temporaries, self._log)
        return CallExecution(rights, self._confirm)

    def serve(self) -> None:
        woken = _wake_for_children()
        poll = select.poll()
        poll.register(woken, select.POLLIN)
        poll.register(self._listener.fileno(), select.POLLIN)
        while self._has_children():
            if self._status is not None:
                self._tell(is_over=False)
            for descriptor, events in poll.poll():
                if descriptor == woken:
                    os.read(woken, CHUNK)
                elif events & select.POLLIN:
                    self._answer_one()
                else:
                    poll.unregister(descriptor)
        for path in self._temporaries.remove_all():
            self._log.note_failed(path, "a temporary name that could not be removed")
        self._tell(is_over=True)

    def _has_children(self) -> bool:
        """Takes up those that ended. Whatever the command left running is among them."""
        try:
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == self._shell:
                    self._status = reaped[1]
        except ChildProcessError:
            return False
        return True

    def _tell(self, *, is_over: bool) -> None:
        if not self._reported:
            self._reported = True
            self._report(self._status or 0, self._log.as_changed(), is_over)

    def _confirm(self, call: HandedCall) -> None:
        if not self._listener.is_valid(call.notification):
            raise OSError(errno.EINTR, "the caller is gone")

    def _answer_one(self) -> None:
        """Whatever happens, the call is answered: one without an answer would wait for ever."""
        if (notification := self._listener.receive()) is None:
            return
        call = HandedCall(notification)
        try:
            result = CALLS[self._calls[notification.number]](self._execution, call)
            if result is LEFT_TO_KERNEL:
                self._listener.let_kernel_decide(notification)
            elif isinstance(result, Opened):
                self._listener.hand_over(notification, result.descriptor, closes_on_exec=result.closes_on_exec)
            else:
                self._listener.answer(notification, 0)
        except OSError as error:
            self._listener.answer(notification, error.errno or errno.EIO)
        except Exception:  # the boundary: a fault of ours costs this call, not the command
            self._listener.answer(notification, errno.EIO)
        finally:
            call.close()


def _wake_for_children() -> int:
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _only_wake)
    return woken


def _only_wake(*_: object) -> None:
    """The wake-up pipe is written where a signal has a function."""
