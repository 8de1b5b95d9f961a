"""The filter that hands calls to a supervisor, run step by step for each architecture."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.processes.spawner.call_table import CALLS
from ferrule.host.processes.spawner.notification import (
    CANNOT_BE_CARRIED_OUT,
    NAMING,
    NOTIFY,
    OPENING,
    names_by_number,
    notification_program,
)
from ferrule.host.processes.spawner.seccomp import ALLOW, FAIL, IOCTL, MACHINES, METADATA
from tests.host.processes.bpf import filter_answer
from tests.requirement import requirement

MACHINE = st.sampled_from(sorted(MACHINES))
READING, WRITING = (
    os.O_RDONLY | os.O_CLOEXEC,
    (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_TMPFILE | os.O_RDWR, 3),
)


def _answer(machine: str, number: int, *arguments: int, reading: bool = False) -> int:
    return filter_answer(notification_program(machine, reading=reading), MACHINES[machine][1], number, *arguments)


@requirement("HELD-22")
@given(MACHINE, st.integers(0, 600))
def test_calls_that_change_names_are_handed_over_and_others_are_not(machine: str, number: int) -> None:
    column = MACHINES[machine][0]
    name = next((name for name, numbers in (METADATA | NAMING).items() if numbers[column] == number > 0), "")
    answer = _answer(machine, number)

    if number in {numbers[column] for numbers in (*OPENING.values(), IOCTL)}:
        return
    if number in {numbers[column] for numbers in CANNOT_BE_CARRIED_OUT.values()}:
        assert answer == FAIL | errno.ENOSYS
    elif "xattr" in name:
        assert answer == FAIL | errno.ENOTSUP
    else:
        assert answer == (NOTIFY if name else ALLOW)


@pytest.mark.parametrize("machine", sorted(MACHINES))
@pytest.mark.parametrize("name", OPENING)
def test_opening_is_handed_over_only_where_it_would_change_something(machine: str, name: str) -> None:
    if not (number := OPENING[name][MACHINES[machine][0]]):
        return
    before = (0,) if name == "open" else (0, 0)

    assert _answer(machine, number, *before, READING) == ALLOW
    assert _answer(machine, number, *before, READING, reading=True) == NOTIFY
    for flags in WRITING:
        assert _answer(machine, number, *before, flags | os.O_CLOEXEC) == NOTIFY


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_there_is_somebody_to_answer_every_call_that_is_handed_over(machine: str) -> None:
    assert set(names_by_number(machine).values()) <= set(CALLS)


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_calls_by_the_numbers_of_another_architecture_fail(machine: str) -> None:
    code = notification_program(machine, reading=False)

    assert filter_answer(code, 0x40000003, 2) == FAIL | errno.ENOSYS
    assert filter_answer(code, MACHINES["x86_64"][1], 0x40000000 | 2) == FAIL | errno.ENOSYS


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_attributes_of_files_are_told_and_not_changed(machine: str) -> None:
    number = IOCTL[MACHINES[machine][0]]

    assert _answer(machine, number, 3, 0x40086602) == FAIL | errno.EPERM
    assert _answer(machine, number, 3, 0x80086601) == ALLOW
    assert _answer(machine, number, 3, 0x5401) == ALLOW
