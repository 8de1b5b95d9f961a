"""Folders that are not needed any more: removed at once where that is quick, otherwise by a process of its own."""

from __future__ import annotations

import os
from contextlib import suppress

from .overlay_layers import UPPER, WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .overlay_layers import LayerPlace

NOTES_OF_THE_KERNEL = ("work", "incompat/volatile", "incompat", "index")


def remove(folder: str) -> bool:
    """Whether it is gone already: a command may leave millions of files, and nobody waits for those."""
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        with suppress(OSError):  # no room for a process; it goes with all the rest at the end
            spawn_removal(folder)
        return False
    return True


def remove_place(place: LayerPlace) -> None:
    """The layers of a command, which are mounted nowhere any more."""
    for number in range(len(place.roots)):
        layer = place.layer(number)
        folders = [UPPER, *(f"{WORK}/{name}" for name in NOTES_OF_THE_KERNEL), WORK, ""]
        for path in [os.path.join(layer, name) for name in folders]:
            with suppress(OSError):
                os.rmdir(path)
    for path in (place.own, place.memory):
        with suppress(OSError):
            os.rmdir(path)
    remove(place.folder)


def spawn_removal(folder: str) -> None:
    """Raises `OSError` for want of room."""
    words = 'rm -rf -- "$1" || { chmod -R u+rwX -- "$1"; rm -rf -- "$1"; }'
    nowhere = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in (0, 1, 2)]
    arguments = ["sh", "-c", words, "sh", folder]
    os.posix_spawn("/bin/sh", arguments, {"PATH": "/usr/bin:/bin"}, file_actions=nowhere)
