"""`ferrule`: finds the command and leaves the rest to it."""

from __future__ import annotations

import gc
import sys

from .._version import __version__

OBJECTS_UNTIL_COLLECTION = 10_000
"""Nearly everything allocated while a command loads stays: collecting garbage costs a twentieth of that time."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code. `--version` answers before anything else is loaded."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] in (["--version"], ["-V"]):
        print(f"ferrule {__version__}")
        return 0
    gc.set_threshold(OBJECTS_UNTIL_COLLECTION)
    if argv is None:
        from .own_arguments import hide_arguments

        hide_arguments()
    from .early_signals import EndsAtOnce

    with EndsAtOnce():
        from .standard_streams import settle_streams

        settle_streams()
        from .parser import run
    return run(arguments)
