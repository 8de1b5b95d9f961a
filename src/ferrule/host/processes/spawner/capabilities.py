"""Root's powers beyond files, given up for good. Nobody else has any."""

from __future__ import annotations

import ctypes
import os
import struct
from contextlib import suppress

from .syscalls import PR_CAP_AMBIENT, PR_SET_SECUREBITS, prctl, syscall

CAPGET, CAPSET = {"x86_64": 125, "aarch64": 90}, {"x86_64": 126, "aarch64": 91}
VERSION_3 = 0x20080522
KEPT = (0, 1, 2, 3, 4, 5)
"""CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID and KILL: Landlock and the filter hold those too."""
NO_ROOT_LOCKED = 0b11
"""User 0 gains no powers by executing a new program, and no program can undo that."""
RAISE_AMBIENT = 2


def to_keep() -> int:
    """Those of `KEPT` that this process has; 0 for anybody but root. To be asked while nobody waits."""
    if os.geteuid() != 0:
        return 0
    held = ctypes.create_string_buffer(24)
    syscall("capget", CAPGET[os.uname().machine], struct.pack("=Ii", VERSION_3, 0), held)
    return sum(1 << number for number in KEPT) & struct.unpack_from("=6I", held)[1]


def drop(kept: int) -> None:
    """Keeps for itself and hands on, from program to program, only these."""
    if os.geteuid() != 0:
        return
    with suppress(PermissionError):  # root without that power; what it may not gain, it has not to give up
        prctl("PR_SET_SECUREBITS", PR_SET_SECUREBITS, NO_ROOT_LOCKED)
    header = struct.pack("=Ii", VERSION_3, 0)
    syscall("capset", CAPSET[os.uname().machine], header, struct.pack("=6I", kept, kept, kept, 0, 0, 0))
    for number in KEPT:
        if kept >> number & 1:
            prctl("PR_CAP_AMBIENT", PR_CAP_AMBIENT, RAISE_AMBIENT, number)
