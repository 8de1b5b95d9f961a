"""The messages between Ferrule and the spawner: frames of a length and a marshalled dictionary.

Both ends run on the same interpreter, and the socket has no third party, so
the quickest form the language has will do. A `start` of a command carries one
descriptor: the writing end of the pipe that takes its output. That of a program
with channels carries three: its standard input, output and error.
"""

from __future__ import annotations

import marshal
import struct

TYPE_CHECKING = False  # `typing` takes longer to load than this whole package
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal, TypedDict

    class Jail(TypedDict):
        """What a sandboxed command may do. Paths are absolute and without links."""

        mounts: bool
        """Whether to cover paths in a mount namespace, besides what Landlock and seccomp do."""
        writable: list[str]
        hidden: list[str]
        protected: list[str]
        reopened: list[str]
        """Writable, though in something protected."""
        metadata: bool
        """Whether modes, owners, times and attributes may be changed where files may be written."""
        network: bool
        unix_sockets: bool
        landlock: int
        """The version of Landlock to use, at most what the kernel has."""
        readable: list[str] | None
        """All that may be read or executed, with what lies below; `None` leaves reading as it is."""
        declared: list[tuple[str, bool]] | None
        """The only names that may change, each with whether all below it may as well; `None` goes by `writable`."""
        keep: Literal["", "overlay", "supervisor"]
        """How declared names are held to; empty only where nothing is declared."""
        workspace: list[str]
        """The folders that a layer is laid over; declared names lie below them."""
        protected_names: list[str]
        """Relative paths that never change below a workspace folder, at whatever depth and in whatever case."""

    class Start(TypedDict):
        do: Literal["start"]
        id: int
        program: str
        command: str
        """The text that a shell is given; empty for a program with channels."""
        argv: list[str]
        """The words of a program with channels, its name first; empty for a shell."""
        cwd: str
        env: dict[str, str]
        limits: dict[str, int]
        jail: Jail | None

    class End(TypedDict):
        do: Literal["end"]
        id: int
        grace: float

    Request = Start | End

    class Started(TypedDict):
        event: Literal["started"]
        id: int
        pid: int

    class Changed(TypedDict):
        """Absolute paths, at most `MOST_CHANGES` of each kind; `totals` has the number of all by kind."""

        done: list[str]
        """Changed as declared."""
        dropped: list[str]
        """Not declared, or protected: thrown away."""
        failed: list[tuple[str, str]]
        """Declared but not carried over, and why."""
        refused: list[str]
        """Refused as the command tried."""
        totals: dict[str, int]

    class Ended(TypedDict):
        event: Literal["ended"]
        id: int
        status: int
        """As `waitpid` gives it."""
        cwd: bytes
        """The working directory that the shell itself reported as it exited; empty where it did not."""
        trouble: bytes
        """Why there was no shell; empty where there was one."""
        left: list[tuple[int, str]]
        """Processes that outlive the shell: their ids and names."""
        changes: Changed | None
        """What a command with declared names changed; `None` for any other."""

    class Gone(TypedDict):
        """Nothing of the command is left."""

        event: Literal["gone"]
        id: int

    class Refused(TypedDict):
        event: Literal["refused"]
        id: int
        why: str

    Reply = Started | Ended | Gone | Refused

    class Supervision(TypedDict):
        """What the spawner sends a supervisor: the limits of a command."""

        jail: Jail
        scratch: str
        """The command's temporary folder."""

    class ShellEnd(TypedDict):
        """What a supervisor reports to the spawner when the shell has ended."""

        shell: int
        status: int
        changes: Changed | None
        alone: bool
        """Whether nothing else of the command is left."""


REPORT_VARIABLE = "FERRULE_REPORT"
"""Tells the shell, and nobody it starts, on which descriptor to report its last working directory."""
MARKER = "FERRULE_COMMAND"
"""The variable that ties a process to its command, whatever became of its parents."""
MOST_CHANGES = 200
"""Paths of one kind that a reply names."""
LONGEST_ARGUMENT = 100_000
"""Bytes; Linux takes 131,072 in one argument."""

_LENGTH = struct.Struct("!I")


def pack(message: Request | Reply | Supervision | ShellEnd) -> bytes:
    body = marshal.dumps(message)  # pyright: ignore[reportArgumentType] - its stub knows no typed dictionaries
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Bytes in as they arrive, whole messages out."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        self._waiting += data
        while len(self._waiting) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._waiting)[0]
            if len(self._waiting) < end:
                return
            body = bytes(self._waiting[_LENGTH.size : end])
            del self._waiting[:end]
            yield marshal.loads(body)
