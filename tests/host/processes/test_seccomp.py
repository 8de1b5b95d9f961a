"""The system call filter as a program: run step by step, for architectures that this machine need not have."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.processes.spawner import seccomp
from ferrule.host.processes.spawner.seccomp import MACHINES, METADATA, NEVER, OF_OTHERS, SHARED, SIGNALS, program
from tests.host.processes.bpf import filter_answer
from tests.requirement import requirement

ALLOWED = "allowed"
MACHINE = st.sampled_from(sorted(MACHINES))
SPECIAL = (
    seccomp.SOCKET, seccomp.SOCKETPAIR, seccomp.IOCTL, seccomp.FCNTL, seccomp.KILL,
    *(numbers for numbers, _ in OF_OTHERS.values()),
)  # fmt: skip


def _answer(machine: str, number: int, *arguments: int, architecture: int | None = None, **granted: bool) -> str:
    options = {"metadata": False, "network": False, "unix_sockets": False, **granted}
    known = MACHINES[machine][1] if architecture is None else architecture
    value = filter_answer(program(machine, **options), known, number, *arguments)
    return ALLOWED if value == seccomp.ALLOW else errno.errorcode[value & 0xFFFF]


@requirement("BOX-1")
@given(MACHINE, st.integers(0, 600), st.booleans(), st.booleans(), st.booleans())
def test_each_call_gets_the_answer_of_its_table(
    machine: str, number: int, metadata: bool, unix_sockets: bool, signals: bool
) -> None:
    column = MACHINES[machine][0]
    tables = [NEVER, *([] if metadata else [METADATA]), *([] if unix_sockets else [SHARED])]
    tables += [] if signals else [SIGNALS]
    refused = {numbers[column] for table in tables for numbers in table.values()} - {0}
    if number in {numbers[column] for numbers in SPECIAL}:
        return

    answer = _answer(machine, number, metadata=metadata, unix_sockets=unix_sockets, signals=signals)

    assert answer == ("EPERM" if number in refused else ALLOWED)


@requirement("BOX-1")
@given(MACHINE, st.integers(0, 50), st.booleans(), st.booleans())
def test_sockets_are_made_only_where_they_are_granted(
    machine: str, family: int, network: bool, unix_sockets: bool
) -> None:
    number = seccomp.SOCKET[MACHINES[machine][0]]
    granted = (family in (2, 10, 16) and network) or (family == 1 and unix_sockets)

    answer = _answer(machine, number, family, 1, network=network, unix_sockets=unix_sockets)

    assert answer == (ALLOWED if granted else "EPERM")


@requirement("BOX-1")
@given(MACHINE, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_calls_by_the_numbers_of_another_architecture_all_fail(machine: str, number: int, architecture: int) -> None:
    if architecture != MACHINES[machine][1]:
        assert _answer(machine, number, architecture=architecture) == "ENOSYS"


@requirement("BOX-1")
def test_the_second_set_of_numbers_of_x86_64_fails() -> None:
    assert _answer("x86_64", 0x40000000 + 90) == "ENOSYS"


@requirement("BOX-1")
@given(MACHINE)
def test_arguments_decide_where_a_call_is_not_bad_in_itself(machine: str) -> None:
    socketpair, ioctl, fcntl, kill = (numbers[MACHINES[machine][0]] for numbers in SPECIAL[1:5])

    assert _answer(machine, ioctl, 1, 0x5401) == ALLOWED
    assert _answer(machine, ioctl, 1, 0x5412, metadata=True) == "EPERM"
    for request in (0x40086602, 0x40087602, 0x401C5820, 0x800C6613, 0xC0045877):  # flags, version, policy, freezing
        assert _answer(machine, ioctl, 1, request) == "EPERM"
        assert _answer(machine, ioctl, 1, request, metadata=True) == ALLOWED
    assert _answer(machine, ioctl, 1, 0x80086601) == ALLOWED
    assert _answer(machine, fcntl, 1, 1024) == "EPERM"
    assert _answer(machine, fcntl, 1, 8) == ALLOWED
    assert _answer(machine, fcntl, 1, 8, signals=False) == "EPERM"
    assert _answer(machine, socketpair, 30, 1) == "EPERM"
    assert _answer(machine, kill, 1234, 9) == ALLOWED
    assert [_answer(machine, kill, *to, signals=False) for to in ((1234, 9), (2**32 - 1, 15), (0, 15), (1234, 0))] == [
        "EPERM", "EPERM", ALLOWED, ALLOWED,
    ]  # fmt: skip


@requirement("BOX-1")
@given(MACHINE, st.integers(0, 15), st.sampled_from([0, 0o2000000, 0o4000, 0o2004000]))
def test_only_pairs_of_sockets_that_stay_connected_can_be_made(machine: str, kind: int, flags: int) -> None:
    number = seccomp.SOCKETPAIR[MACHINES[machine][0]]

    assert _answer(machine, number, 1, kind | flags) == (ALLOWED if kind in (1, 5) else "EPERM")
    assert _answer(machine, number, 1, kind | flags, unix_sockets=True) == ALLOWED


@requirement("BOX-1")
@given(MACHINE, st.sampled_from(sorted(OF_OTHERS)), st.integers(0, 3), st.integers(0, 3))
def test_only_ones_own_priority_and_limits_can_be_changed(machine: str, name: str, first: int, second: int) -> None:
    numbers, own = OF_OTHERS[name]
    oneself = all((first, second)[argument] == value for argument, value in own.items())

    assert _answer(machine, numbers[MACHINES[machine][0]], first, second) == (ALLOWED if oneself else "EPERM")


def test_an_architecture_whose_numbers_are_not_known_gets_no_filter() -> None:
    with pytest.raises(OSError, match="no system call filter is known for riscv64") as caught:
        program("riscv64", metadata=False, network=False, unix_sockets=False)
    assert caught.value.errno == errno.ENOSYS


def test_the_numbers_are_those_of_this_machines_headers() -> None:
    """Where there are headers; they may be older than the newest calls."""
    path = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
    if os.uname().machine != "x86_64" or not os.path.exists(path):
        pytest.skip("no headers of x86_64 are installed")
    with open(path, encoding="ascii") as file:
        known = {words[1]: int(words[2]) for line in file if len(words := line.split()) == 3 and words[2].isdigit()}

    others = {name: numbers for name, (numbers, _) in OF_OTHERS.items()}
    wrong = {
        name: numbers[0]
        for name, numbers in {**METADATA, **NEVER, **SHARED, **SIGNALS, **others}.items()
        if known.get(f"__NR_{name}", numbers[0]) != numbers[0]
    }
    assert wrong == {}
