"""A command as a value: what to run and within which limits, and how it ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING

from ...core.values import named_value, plain_value
from .output_ring import MODEL_CHARACTERS, CommandOutput

if TYPE_CHECKING:
    from .spawner.protocol import Jail


class CommandFailed(Exception):
    """The command could not be started, or was lost. What happened, then what to do."""


@named_value
class ProcessLimits:
    """The most each process of a command may take; `None` leaves it as it is for Ferrule."""

    memory: int | None = None
    """Bytes of address space."""
    processes: int | None = None
    """Of this user altogether, as the kernel counts them; it does not count root's."""
    file_size: int | None = None
    open_files: int | None = None

    def as_numbers(self) -> dict[str, int]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@named_value
class Bounds:
    """The most that all commands of a session take together, where the system lets its user make a control group."""

    processes: int | None = 16_384
    """Threads included."""
    memory: int | None = None
    """Bytes really used; by default nine tenths of what the machine has."""

    def numbers(self) -> dict[str, int]:
        usual = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10 * 9
        return {"processes": self.processes or 0, "memory": usual if self.memory is None else self.memory}


@named_value
class Command:
    text: str
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """All the variables it gets: see `host/processes/child_environment.py`."""
    limits: ProcessLimits = ProcessLimits()
    jail: Jail | None = None
    """What a sandbox allows it: see `host/processes/sandbox.py`."""
    notes: tuple[str, ...] = ()
    """Notes to show with its output, on what it was kept from."""
    kept_if_over: int = MODEL_CHARACTERS
    """Bytes of output above which all of it is kept in a file."""


@plain_value
class LeftBehind:
    pid: int
    name: str


@named_value
class Changes:
    """What a command that was held to declared names did to files: absolute paths, of many only the first."""

    done: tuple[str, ...] = ()
    """Changed as declared."""
    dropped: tuple[str, ...] = ()
    """Not declared, or protected: thrown away."""
    failed: tuple[tuple[str, str], ...] = ()
    """Declared but not carried over, and why."""
    refused: tuple[str, ...] = ()
    """Refused as the command tried."""
    totals: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many there are of each kind, by the names above."""


@named_value
class Ran:
    """How a command ended."""

    exit_code: int | None
    """`None` where a signal ended the shell itself."""
    signal: str | None
    """The signal's name; also where the shell reports, as an exit code over 128, that one ended its program."""
    output: CommandOutput
    cwd: str | None
    """The shell's working directory as it ended; `None` where it did not say."""
    seconds: float
    timed_out: bool = False
    left: tuple[LeftBehind, ...] = ()
    blocked: tuple[str, ...] = ()
    """For one that failed in a sandbox: the last lines of its output that speak of something not allowed."""
    changes: Changes | None = None
    """Known only for a command that was held to declared names."""

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0


def signal_name(code: int) -> str | None:
    """
    >>> signal_name(-9), signal_name(143), signal_name(1)
    ('SIGKILL', 'SIGTERM', None)
    """
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number).name if number > 0 else None
    except ValueError:
        return f"signal {number}" if code < 0 else None
