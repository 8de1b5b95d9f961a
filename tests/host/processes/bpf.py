"""A small interpreter of the few instructions that the system call filters use."""

from __future__ import annotations

import struct

from ferrule.host.processes.spawner import seccomp
from ferrule.host.processes.spawner.notification import JUMP_IF_ANY_BIT


def filter_answer(code: bytes, architecture: int, number: int, *arguments: int) -> int:
    """What the kernel would do with the call: the filter's return value."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *(*arguments, *(0,) * (6 - len(arguments))))
    position = held = 0
    for _ in range(len(code)):
        kind, then, otherwise, value = struct.unpack_from("=HBBI", code, position * 8)
        position += 1
        match kind:
            case seccomp.LOAD_WORD:
                held = struct.unpack_from("=I", data, value)[0]
            case seccomp.AND:
                held &= value
            case seccomp.SHIFT_RIGHT:
                held >>= value
            case seccomp.RETURN:
                return value
            case seccomp.JUMP_IF_EQUAL:
                position += then if held == value else otherwise
            case seccomp.JUMP_IF_ABOVE:
                position += then if held > value else otherwise
            case seccomp.JUMP_IF_AT_LEAST:
                position += then if held >= value else otherwise
            case _ if kind == JUMP_IF_ANY_BIT:
                position += then if held & value else otherwise
            case _:
                raise AssertionError(f"instruction {kind:#x} is not known")
    raise AssertionError("the program has no end")
