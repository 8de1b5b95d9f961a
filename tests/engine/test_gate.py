"""The gate: who waits for whom, and that nobody waits for ever."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ferrule.core.effects import Change, ChangesState, Effects, Opaque, ReadsPath, ReadsState, Touch, WritesPath
from ferrule.engine.footprint import Footprint
from ferrule.engine.gate import Deadlock, Gate, Ticket
from tests.drawing import examples
from tests.requirement import requirement


def of(*touches: Touch) -> Footprint:
    return Footprint.of(Effects.of(*touches))


READS_A, WRITES_A = of(ReadsPath("/a")), of(WritesPath("/a", Change.REPLACES))
READS_B, WRITES_B = of(ReadsPath("/b")), of(WritesPath("/b", Change.REPLACES))
UNKNOWN, NOTHING = of(Opaque()), of()


def may_run(ticket: Ticket) -> bool:
    """Whether `turn` would return at once."""
    turn = ticket.turn()
    try:
        turn.send(None)
    except StopIteration:
        return True
    finally:
        turn.close()
    return False


def admitted(gate: Gate, footprint: Footprint, parent: Ticket | None = None) -> Ticket:
    ticket = gate.enter(footprint, parent)
    assert gate.confirm(ticket, footprint)
    return ticket


# One after the other


@requirement("SCHED-1")
async def test_what_does_not_conflict_is_admitted_side_by_side() -> None:
    gate = Gate()

    tickets = [gate.enter(footprint) for footprint in (WRITES_A, WRITES_B, NOTHING)]

    assert all(may_run(ticket) for ticket in tickets)


@requirement("SCHED-1")
async def test_what_conflicts_waits_for_the_one_before_it() -> None:
    gate = Gate()
    first, second = gate.enter(WRITES_A), gate.enter(READS_A)
    waited = may_run(second)

    gate.leave(first)

    assert not waited
    assert may_run(second)


@requirement("SCHED-1")
async def test_a_write_waits_for_every_read_before_it_and_nothing_overtakes_it() -> None:
    gate = Gate()
    reads = [gate.enter(READS_A) for _ in range(2)]
    write, late = gate.enter(WRITES_A), gate.enter(READS_A)

    gate.leave(reads[0])
    after_one = may_run(write)
    gate.leave(reads[1])

    assert not after_one
    assert may_run(write)
    assert not may_run(late)


@requirement("SCHED-6")
async def test_an_unknown_call_runs_alone_but_for_those_that_touch_nothing() -> None:
    gate = Gate()

    before, unknown, empty, after = (gate.enter(each) for each in (READS_A, UNKNOWN, NOTHING, READS_B))

    assert [may_run(ticket) for ticket in (before, unknown, empty, after)] == [True, False, True, False]
    gate.leave(before)
    assert [may_run(ticket) for ticket in (unknown, after)] == [True, False]
    gate.leave(unknown)
    assert may_run(after)


@requirement("SCHED-1")
async def test_one_that_leaves_without_having_run_holds_nobody_up() -> None:
    gate = Gate()
    first, second, third = gate.enter(WRITES_A), gate.enter(WRITES_A), gate.enter(WRITES_A)

    gate.leave(second)
    gate.leave(second)
    gate.leave(first)

    assert may_run(third)


@requirement("SCHED-2")
async def test_a_free_lane_goes_to_the_one_that_asked_first() -> None:
    gate = Gate(limit=1)
    first, second, third = (gate.enter(NOTHING) for _ in range(3))

    gate.leave(first)

    assert [may_run(second), may_run(third)] == [True, False]


@requirement("SCHED-2")
async def test_one_that_waits_for_another_takes_no_lane() -> None:
    gate = Gate(limit=2)

    gate.enter(WRITES_A)
    blocked, free = gate.enter(WRITES_A), gate.enter(WRITES_B)

    assert [may_run(blocked), may_run(free)] == [False, True]


@requirement("SCHED-2")
async def test_calls_that_only_read_have_lanes_of_their_own() -> None:
    gate = Gate(limit=1, reading=2)

    writing = [gate.enter(WRITES_A), gate.enter(WRITES_B)]
    reading = [gate.enter(NOTHING) for _ in range(3)]

    assert list(map(may_run, writing)) == [True, False]
    assert list(map(may_run, reading)) == [True, True, False]
    gate.leave(writing[0])
    assert may_run(writing[1])
    assert not may_run(reading[2])


@requirement("SCHED-2", "SCHED-3")
async def test_one_that_turns_out_to_write_needs_the_other_kind_of_lane() -> None:
    gate = Gate(limit=1, reading=1)
    running, ticket, queued = admitted(gate, WRITES_B), gate.enter(NOTHING), gate.enter(NOTHING)

    confirmed = gate.confirm(ticket, WRITES_A)

    assert not confirmed
    assert may_run(queued)
    gate.leave(running)
    assert gate.confirm(ticket, WRITES_A)


# The second statement


@requirement("SCHED-3")
async def test_a_second_statement_that_conflicts_with_a_running_call_waits_again() -> None:
    gate = Gate()
    ticket, running = gate.enter(READS_A), admitted(gate, WRITES_B)

    confirmed = gate.confirm(ticket, READS_B)
    waited = may_run(ticket)
    gate.leave(running)

    assert not confirmed
    assert not waited
    assert may_run(ticket)
    assert gate.confirm(ticket, READS_B)


@requirement("SCHED-3", "SCHED-2")
async def test_one_that_waits_again_gives_its_lane_to_another() -> None:
    gate = Gate(limit=2)
    ticket, running, queued = gate.enter(READS_A), admitted(gate, WRITES_B), gate.enter(NOTHING)
    before = may_run(queued)

    gate.confirm(ticket, READS_B)

    assert not before
    assert may_run(queued)
    gate.leave(queued)
    gate.leave(running)
    assert may_run(ticket)


@requirement("SCHED-1", "SCHED-3")
async def test_a_second_statement_holds_back_later_calls_that_have_not_begun() -> None:
    gate = Gate()
    first, later = gate.enter(READS_A), gate.enter(READS_B)

    assert gate.confirm(first, WRITES_B)

    assert not may_run(later)
    gate.leave(first)
    assert may_run(later)


@requirement("SCHED-1", "PIPE-3")
async def test_two_admitted_calls_that_come_to_concern_each_other_do_not_wait_for_each_other() -> None:
    gate = Gate()
    first, second = admitted(gate, READS_A), admitted(gate, READS_B)

    first_goes_on = gate.confirm(first, WRITES_B)
    second_goes_on = gate.confirm(second, WRITES_B)

    assert not first_goes_on
    assert not second_goes_on
    assert may_run(first)
    assert gate.confirm(first, WRITES_B)
    gate.leave(first)
    assert may_run(second)


@requirement("SCHED-1", "SCHED-3")
async def test_nothing_overtakes_a_call_whose_paths_may_still_move() -> None:
    gate = Gate()
    moving = gate.enter(of(ChangesState("cwd")))
    relative = gate.enter(of(ReadsState("cwd"), WritesPath("/old/x", Change.REPLACES)))
    reading, harmless = gate.enter(of(ReadsPath("/new/x"))), gate.enter(NOTHING)
    early = may_run(reading)

    gate.leave(moving)
    gate.confirm(relative, of(ReadsState("cwd"), WritesPath("/new/x", Change.REPLACES)))

    assert not early
    assert may_run(harmless)
    assert not may_run(reading)
    gate.leave(relative)
    assert may_run(reading)


@requirement("SCHED-1", "SCHED-3")
async def test_a_call_whose_paths_may_have_moved_is_stated_anew_though_it_waits_for_another() -> None:
    gate = Gate()
    moving, slow = gate.enter(of(ChangesState("cwd"))), gate.enter(WRITES_A)
    relative = gate.enter(of(ReadsState("cwd"), ReadsPath("/a"), WritesPath("/old/x", Change.REPLACES)))
    before = may_run(relative)

    gate.leave(moving)

    assert not before
    assert may_run(relative)  # to be stated anew, not to run
    assert not gate.confirm(relative, relative.footprint)
    assert not may_run(relative)
    gate.leave(slow)
    assert may_run(relative)
    assert gate.confirm(relative, relative.footprint)


# Calls inside of calls


@requirement("CON-17")
async def test_a_nested_call_waits_for_no_ancestor() -> None:
    gate = Gate()
    outer = admitted(gate, UNKNOWN)

    inner = gate.enter(UNKNOWN, outer)
    innermost = gate.enter(WRITES_A, inner)

    assert may_run(inner)
    assert may_run(innermost)


@requirement("CON-17", "SCHED-2")
async def test_a_nested_call_needs_no_lane() -> None:
    gate = Gate(limit=1)
    outer = admitted(gate, NOTHING)

    inner = gate.enter(NOTHING, outer)

    assert may_run(inner)


@requirement("SCHED-7", "SCHED-2")
async def test_what_runs_inside_a_call_that_stands_aside_needs_lanes_of_its_own() -> None:
    gate = Gate(limit=1)
    first, second = admitted(gate, NOTHING), gate.enter(NOTHING)

    gate.stand_aside(first)
    gate.confirm(second, NOTHING)
    gate.stand_aside(second)
    inside = admitted(gate, READS_A, first)
    waiting = gate.enter(READS_A, second)

    assert not may_run(waiting)
    gate.leave(inside)
    assert may_run(waiting)


@requirement("CON-17", "SCHED-1", "SCHED-7")
async def test_a_nested_call_waits_for_other_running_calls_and_they_for_it() -> None:
    gate = Gate()
    running, outer = admitted(gate, WRITES_A), admitted(gate, NOTHING)

    inner = gate.enter(WRITES_A, outer)
    later = gate.enter(WRITES_A)
    waited = may_run(inner)
    gate.leave(running)

    assert not waited
    assert [may_run(inner), may_run(later)] == [True, False]


@requirement("CON-17", "SCHED-1", "SCHED-7")
async def test_a_nested_call_comes_before_what_was_submitted_after_its_parent_and_has_not_begun() -> None:
    gate = Gate()
    outer, later = admitted(gate, NOTHING), gate.enter(WRITES_A)

    inner = gate.enter(WRITES_A, outer)

    assert [may_run(inner), may_run(later)] == [True, False]
    gate.leave(inner)
    assert may_run(later)


@requirement("CON-17")
async def test_two_nesting_calls_that_would_wait_for_each_other_are_told() -> None:
    gate = Gate()
    one, other = admitted(gate, READS_A), admitted(gate, READS_B)
    inner = gate.enter(WRITES_B, one)

    with pytest.raises(Deadlock):
        gate.enter(WRITES_A, other)

    assert not may_run(inner)
    gate.leave(other)
    assert may_run(inner)


@requirement("CON-17", "SCHED-3")
async def test_a_nested_call_that_only_as_stated_anew_could_never_run_is_told() -> None:
    gate = Gate()
    one, other = admitted(gate, READS_A), admitted(gate, READS_B)
    inner = gate.enter(NOTHING, one)
    waiting = gate.enter(WRITES_A, other)

    with pytest.raises(Deadlock):
        gate.confirm(inner, WRITES_B)

    gate.leave(inner)
    gate.leave(one)
    assert may_run(waiting)


@requirement("CON-17", "SCHED-3")
async def test_a_nested_call_passes_one_that_has_come_to_wait_for_its_parent() -> None:
    gate = Gate()
    waiting, outer = gate.enter(WRITES_B), admitted(gate, READS_A)
    inner = gate.enter(READS_B, outer)
    before = may_run(inner)

    confirmed = gate.confirm(waiting, of(WritesPath("/a", Change.REPLACES), WritesPath("/b", Change.REPLACES)))

    assert not before
    assert not confirmed
    assert may_run(inner)
    gate.leave(inner)
    gate.leave(outer)
    assert may_run(waiting)


@requirement("CON-17", "SCHED-3")
async def test_a_nested_call_does_not_queue_behind_one_that_waits_for_its_parent() -> None:
    gate = Gate()
    waiting, outer = gate.enter(WRITES_B), admitted(gate, READS_A)
    gate.confirm(waiting, of(WritesPath("/a", Change.REPLACES), WritesPath("/b", Change.REPLACES)))

    inner = gate.enter(READS_B, outer)

    assert may_run(inner)
    assert not may_run(waiting)


# Any order of anything


@dataclass(eq=False)
class Caller:
    ticket: Ticket
    footprint: Footprint
    parent: Caller | None
    inner: list[Caller] = field(default_factory=list["Caller"])
    running: bool = False

    @property
    def ancestors(self) -> list[Caller]:
        return [self.parent, *self.parent.ancestors] if self.parent else []


drawn_paths = st.sampled_from(["/a", "/a/b", "/c", "/l"])
drawn_footprints = st.lists(
    st.one_of(
        drawn_paths.map(ReadsPath),
        st.builds(WritesPath, drawn_paths, st.sampled_from(Change)),
        st.just(ReadsState("cwd")),
        st.just(ChangesState("cwd")),
        st.just(Opaque()),
    ),
    max_size=2,
).map(lambda touches: of(*touches))


class AnyOrder(RuleBasedStateMachine):
    """Calls come, run, nest, change their minds, are cancelled and end, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.gate = Gate(limit=2)
        self.callers: list[Caller] = []

    def on_loop(self, ticket: Ticket) -> bool:
        async def asked() -> bool:
            return may_run(ticket)

        return self.loop.run_until_complete(asked())

    def pick(self, among: list[Caller], which: int) -> Caller:
        return among[which % len(among)]

    def running(self) -> list[Caller]:
        return [caller for caller in self.callers if caller.running]

    def waiting(self) -> list[Caller]:
        return [caller for caller in self.callers if not caller.running]

    @rule(footprint=drawn_footprints)
    def come(self, footprint: Footprint) -> None:
        self.callers.append(Caller(self.gate.enter(footprint), footprint, None))

    @precondition(lambda self: self.running())
    @rule(which=st.integers(0, 9), footprint=drawn_footprints)
    def nest(self, which: int, footprint: Footprint) -> None:
        parent = self.pick(self.running(), which)
        try:
            ticket = self.gate.enter(footprint, parent.ticket)
        except Deadlock:
            return
        caller = Caller(ticket, footprint, parent)
        parent.inner.append(caller)
        self.callers.append(caller)

    @precondition(lambda self: self.waiting())
    @rule(which=st.integers(0, 9), changed=st.none() | drawn_footprints)
    def state_again(self, which: int, changed: Footprint | None) -> None:
        caller = self.pick(self.waiting(), which)
        if self.on_loop(caller.ticket):
            self.confirm(caller, changed or caller.footprint)

    @precondition(lambda self: any(not caller.inner for caller in self.running()))
    @rule(which=st.integers(0, 9), changed=drawn_footprints)
    def change_the_input_before_it_begins(self, which: int, changed: Footprint) -> None:
        self.confirm(self.pick([caller for caller in self.running() if not caller.inner], which), changed)

    def confirm(self, caller: Caller, footprint: Footprint) -> None:
        caller.footprint = footprint
        try:
            caller.running = self.gate.confirm(caller.ticket, footprint)
        except Deadlock:
            self.leave(caller)

    @precondition(lambda self: self.callers)
    @rule(which=st.integers(0, 9))
    def end_or_be_cancelled(self, which: int) -> None:
        self.leave(self.pick(self.callers, which))

    def leave(self, caller: Caller) -> None:
        for inner in list(caller.inner):
            self.leave(inner)
        self.gate.leave(caller.ticket)
        self.callers.remove(caller)
        if caller.parent:
            caller.parent.inner.remove(caller)

    @invariant()
    def no_two_conflicting_calls_run(self) -> None:
        running = self.running()
        for index, one in enumerate(running):
            for other in running[index + 1 :]:
                related = one in other.ancestors or other in one.ancestors
                assert related or not one.footprint.conflicts(other.footprint)

    @invariant()
    def no_more_than_the_limit_run(self) -> None:
        assert sum(caller.parent is None for caller in self.running()) <= 2

    def teardown(self) -> None:
        """Whoever can go on goes on, a call ends once all inside of it have; nobody may be left over."""
        while self.callers:
            ended = [caller for caller in self.running() if not caller.inner]
            ready = [caller for caller in self.waiting() if self.on_loop(caller.ticket)]
            assert ended or ready, "everybody waits for somebody"
            if ready:
                self.confirm(ready[0], ready[0].footprint)
            else:
                self.leave(ended[0])
        self.loop.close()


AnyOrder.TestCase.settings = settings(examples(60), stateful_step_count=25)
TestAnyOrder = pytest.mark.requirement("SCHED-1", "SCHED-2", "PIPE-4")(AnyOrder.TestCase)


class AnyOrderWithLanesForReading(AnyOrder):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate(limit=2, reading=1)

    @invariant()
    def no_more_than_the_limit_run(self) -> None:
        """But for those that a nested call waits for, which run in any case."""
        counted = [one for one in self.running() if one.parent is None and not one.ticket.urgent]
        reading = sum(one.footprint.only_reads for one in counted)
        assert (reading <= 1, len(counted) - reading <= 2) == (True, True)


AnyOrderWithLanesForReading.TestCase.settings = settings(examples(60), stateful_step_count=25)
TestAnyOrderWithLanesForReading = pytest.mark.requirement("SCHED-2", "PIPE-4")(AnyOrderWithLanesForReading.TestCase)
