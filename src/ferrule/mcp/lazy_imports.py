"""What takes long to load, loaded in a thread when a server is first used, so that nothing blocks."""

from __future__ import annotations

from ..core.threads import in_a_thread


async def load_wire():
    """The module `wire`, with the protocol's package: over a second of work."""
    return await in_a_thread(_wire)


async def load_checking():
    """The module `argument_checks`, with the checks of JSON Schemas: some two hundred milliseconds."""
    return await in_a_thread(_checking)


def _wire():
    from . import wire

    return wire


def _checking():
    from . import argument_checks as checking

    return checking
