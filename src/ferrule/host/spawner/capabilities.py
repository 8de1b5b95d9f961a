"""Root's powers beyond files, given up for good. Nobody else has any."""

from __future__ import annotations

import os
import struct

from .syscalls import PR_CAP_AMBIENT, PR_SET_SECUREBITS, prctl, syscall

CAPSET = {"x86_64": 126, "aarch64": 91}
VERSION_3 = 0x20080522
KEPT = (0, 1, 2, 3, 4, 5)
"""CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID and KILL: Landlock and the filter hold those too."""
NO_ROOT_LOCKED = 0b11
"""Being user 0 brings no powers with a new program, and no program can undo that."""
RAISE_AMBIENT = 2


def drop() -> None:
    """Keeps for itself and hands on, from program to program, only `KEPT`."""
    if os.geteuid() != 0:
        return
    prctl("PR_SET_SECUREBITS", PR_SET_SECUREBITS, NO_ROOT_LOCKED)
    kept = sum(1 << number for number in KEPT) & _permitted()
    header = struct.pack("=Ii", VERSION_3, 0)
    syscall("capset", CAPSET[os.uname().machine], header, struct.pack("=6I", kept, kept, kept, 0, 0, 0))
    for number in KEPT:
        if kept >> number & 1:
            prctl("PR_CAP_AMBIENT", PR_CAP_AMBIENT, RAISE_AMBIENT, number)


def _permitted() -> int:
    with open("/proc/self/status", "rb", buffering=0) as file:
        return int(file.read(1 << 16).partition(b"CapPrm:")[2].split(None, 1)[0], 16)
