"""Root's powers beyond files, given up for good. Nobody else has any."""

from __future__ import annotations

import os

from .syscalls import PR_CAPBSET_DROP, prctl

KEPT = frozenset({0, 1, 2, 3, 4, 5})
"""CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID and KILL: Landlock and the filter hold those too."""


def drop() -> None:
    """Root gets all that its bounding set allows with each program it starts, so that set is emptied."""
    if os.geteuid() != 0:
        return
    with open("/proc/sys/kernel/cap_last_cap", "rb", buffering=0) as file:
        last = int(file.read())
    for capability in range(last + 1):
        if capability not in KEPT:
            prctl("PR_CAPBSET_DROP", PR_CAPBSET_DROP, capability)
