"""One running command: the process that represents it, what it reports at its end, and what is to be cleared away."""

from __future__ import annotations

import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .carriers import Carrier
    from .enclosure import Enclosure
    from .launching import Forerunner
    from .rulesets import Ruleset
    from .supervised import SupervisedShell

CREDENTIALS = struct.Struct("3i")
LONGEST_PATH = 1 << 16


class StartedCommand:
    __slots__ = (
        "asked", "carrier", "enclosure", "ended", "forerunner", "id", "kill_at", "leader", "marker", "report",
        "rounds", "ruleset", "scratch", "shell", "shell_end", "supervised",
    )  # fmt: skip

    def __init__(self, id: int, marker: str, report: ShellReport) -> None:
        self.id = id
        self.marker = marker
        self.report = report
        self.leader = 0
        """The process whose end is the command's."""
        self.shell = 0
        self.scratch = ""
        self.ruleset: Ruleset | None = None
        self.forerunner: Forerunner | None = None
        self.enclosure: Enclosure | None = None
        self.carrier: Carrier | None = None
        """At work on what it changed."""
        self.supervised: SupervisedShell | None = None
        self.shell_end: tuple[int, bytes] = 0, b""
        """How the shell ended, and why there was none."""
        self.ended = False
        self.kill_at: float | None = None
        self.rounds = 0
        """How often it was killed while nothing of it was left but its supervisor."""
        self.asked: set[tuple[int, str]] = set()
        """Processes that were asked to end, and what they were called then."""


class ShellReport:
    """A socket on which the shell reports its working directory as it exits.

    The kernel identifies the writer, so that what the shell started cannot report for it.
    """

    def __init__(self) -> None:
        """Raises `OSError` for want of room."""
        self._reading, self.writing = socket.socketpair()
        self._reading.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.writing.setblocking(False)  # nobody waits for room that others took

    def last_words_of(self, shell: int) -> bytes:
        """The last words of this process; empty where it had none."""
        self._reading.setblocking(False)
        said = b""
        try:
            while True:
                words, parts, _, _ = self._reading.recvmsg(LONGEST_PATH, socket.CMSG_SPACE(CREDENTIALS.size))
                if not words:
                    return said
                for _, kind, data in parts:
                    if kind == socket.SCM_CREDENTIALS and CREDENTIALS.unpack(data)[0] == shell:
                        said = words
        except (BlockingIOError, ConnectionError):
            return said

    def close(self) -> None:
        self._reading.close()
