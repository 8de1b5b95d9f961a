"""Admits a call as soon as no earlier, unfinished call conflicts with it.

Tickets are taken in the model's order, so what conflicts keeps that order and
what does not runs side by side: the outcome is that of running one by one.

A ticket states its footprint twice. The first statement, when the call is
submitted, decides what it waits for. The second, when its turn has come, is
made on the world the earlier calls left; if that one conflicts with a call
that runs, the ticket waits again. Where a call still to come may move another
one's paths (a new working directory, a link), the second statement is made as
soon as it has come, and nothing that might concern overtakes it until then.

A call made inside another call takes its parent's place in the order and
never waits for its ancestors, which are waiting for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from .footprint import Footprint

DEFAULT_LIMIT = 10
READING_LIMIT = 64
"""Calls that only read and run at once, where no limit was chosen: they mostly wait, and change nothing meanwhile."""


class Deadlock(Exception):
    """A nested call would wait for a call that waits for it."""


class Ticket:
    """One call's place in the order, from submission until it leaves the gate."""

    __slots__ = (
        "_wake",
        "dependents",
        "footprint",
        "lane",
        "movers",
        "order",
        "parent",
        "rides",
        "running",
        "stale",
        "urgent",
        "waits_for",
    )

    def __init__(self, order: tuple[int, ...], footprint: Footprint, parent: Ticket | None) -> None:
        self.order = order
        self.footprint = footprint
        self.parent = parent
        self.waits_for: set[Ticket] = set()
        self.dependents: list[Ticket] = []
        """Those that wait for this one."""
        self.movers: set[Ticket] | None = None
        """Those of `waits_for` after which this ticket's paths may lead elsewhere."""
        self.stale = False
        """The last mover is over: state the effects anew, even if there is still something to wait for."""
        self.running = False
        self.urgent = False
        """A nested call waits for this one while its ancestor holds a lane: it runs without one if it must."""
        self.rides = parent is not None and parent.has_lane
        """On the lane of an ancestor."""
        self.lane: _Lanes | None = None
        """Where its own lane came from."""
        self._wake: asyncio.Future[None] | None = None

    @property
    def has_lane(self) -> bool:
        return self.rides or self.lane is not None

    def ancestors(self) -> Iterator[Ticket]:
        ticket = self.parent
        while ticket is not None:
            yield ticket
            ticket = ticket.parent

    def is_ready(self) -> bool:
        """Nothing is in the way and one of the lanes is this ticket's, or it is to be stated anew."""
        return (self.has_lane and not self.waits_for) or self.stale

    async def turn(self) -> None:
        """Return when the ticket is ready."""
        while not self.is_ready():
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake

    def wake(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


@dataclass(slots=True, eq=False)
class _Lanes:
    """How many more calls of a kind may run at once, and who waits for it."""

    free: int
    queue: deque[Ticket] = field(default_factory=deque["Ticket"])


class Gate:
    """One per session: the calls of its subagents pass it too. Nested calls ride along with the one they are in.

    `limit` calls run at once, and `reading` of those that only read; without it they share the first.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT, *, reading: int | None = None) -> None:
        self._open: dict[Ticket, None] = {}
        self._writers: dict[Ticket, None] = {}
        """Those of the open ones that do more than read."""
        self._unsettled: dict[Ticket, None] = {}
        """Those of the open ones whose paths a mover may still move."""
        self._taken = 0
        self._lanes = _Lanes(limit if limit > 0 else DEFAULT_LIMIT)
        self._reading_lanes = self._lanes if reading is None else _Lanes(reading if reading > 0 else READING_LIMIT)

    def enter(self, footprint: Footprint, parent: Ticket | None = None) -> Ticket:
        """Take the next place in the order. Raises `Deadlock` for a nested call that could never run."""
        self._taken += 1
        ticket = Ticket((*parent.order, self._taken) if parent else (self._taken,), footprint, parent)
        if self._open:
            self._block(ticket)
        if parent:
            self._pass_those_behind(ticket)
            if self._would_deadlock(ticket):
                self._unblock(ticket)
                raise Deadlock
        self._open[ticket] = None
        if not footprint.only_reads:
            self._writers[ticket] = None
        if parent:
            self._hold_back_later_ones(ticket)
        self._seek_lane(ticket)
        return ticket

    def confirm(self, ticket: Ticket, footprint: Footprint) -> bool:
        """The second statement: whether the call may run right now. If not, wait for `turn` again.

        Raises `Deadlock` for a nested call that, stated like this, could never run.
        """
        ticket.stale = False
        if footprint is not ticket.footprint and footprint != ticket.footprint:
            ticket.footprint = footprint
            self._sort(ticket)
            self._step_back(ticket)
            self._block(ticket)
            self._hold_back_later_ones(ticket)
            if ticket.parent and self._would_deadlock(ticket):
                raise Deadlock
            if not ticket.rides and ticket.lane is not self._lanes_for(ticket):
                self._give_up_lane(ticket)
                self._seek_lane(ticket)
        ticket.running = ticket.has_lane and not ticket.waits_for
        if ticket.waits_for:
            self._give_up_lane(ticket)
        return ticket.running

    def stand_aside(self, ticket: Ticket) -> None:
        """Let others use the lane while the ticket waits for something that is not a call, or for a whole agent.

        What is called inside of it from then on needs a lane of its own.
        """
        self._give_up_lane(ticket)

    def stand_by(self, ticket: Ticket) -> None:
        self._seek_lane(ticket)

    def leave(self, ticket: Ticket) -> None:
        """The call is over, or never came to run."""
        if ticket not in self._open:
            return
        del self._open[ticket]
        self._writers.pop(ticket, None)
        ticket.running = False
        if ticket.waits_for:
            self._unblock(ticket)
        self._give_up_lane(ticket)
        if len(ticket.dependents) > 1:
            ticket.dependents.sort(key=_place)  # the first to wait for it is the first to be stated anew
        for dependent in ticket.dependents:
            dependent.waits_for.discard(ticket)
            if dependent.movers is not None:
                self._note_moved(dependent, ticket)
            if not dependent.waits_for:
                self._seek_lane(dependent)
        ticket.dependents.clear()

    def _sort(self, ticket: Ticket) -> None:
        """Keep those that write apart: a call that only reads need not be compared with the others."""
        if ticket.footprint.only_reads:
            self._writers.pop(ticket, None)
        else:
            self._writers[ticket] = None

    def _block(self, ticket: Ticket) -> None:
        """Wait for every call that conflicts and comes first, and for every one that already runs."""
        others = self._writers if ticket.footprint.only_reads else self._open
        if not others:
            return
        ancestors = frozenset(ticket.ancestors()) if ticket.parent else ()
        for other in others:
            if (
                other is not ticket
                and (other.order < ticket.order or other.running)
                and ticket.footprint.conflicts(other.footprint)
                and other not in ancestors
                and other not in ticket.waits_for
            ):
                self._wait(ticket, other)
        if self._unsettled:
            self._wait_for_movers(ticket, ancestors)

    def _wait(self, ticket: Ticket, ahead: Ticket) -> None:
        self._stand_behind(ticket, ahead)
        if ahead.footprint.moves(ticket.footprint):
            if ticket.movers is None:
                ticket.movers = set()
            ticket.movers.add(ahead)
            if not ahead.footprint.unknown:  # everybody waits for an unknown one anyway
                self._unsettled[ticket] = None

    def _stand_behind(self, ticket: Ticket, ahead: Ticket) -> None:
        ticket.waits_for.add(ahead)
        ahead.dependents.append(ticket)
        if ticket.parent or ticket.urgent:
            self._hurry(ahead)

    def _hurry(self, ticket: Ticket) -> None:
        """Nothing that a nested call waits for may itself wait for a lane: the one it needs may be the ancestor's."""
        ahead = [ticket]
        while ahead:
            other = ahead.pop()
            if not other.urgent:
                other.urgent = True
                ahead += other.waits_for
                if other in self._lanes_for(other).queue:
                    self._seek_lane(other)

    def _note_moved(self, ticket: Ticket, by: Ticket) -> None:
        """One that could move the ticket's paths is over; after the last one the ticket is to be stated anew."""
        if ticket.movers and by in ticket.movers:
            ticket.movers.discard(by)
            if not ticket.movers:
                self._unsettled.pop(ticket, None)
                ticket.stale = True
                ticket.wake()

    def _wait_for_movers(self, ticket: Ticket, ancestors: Collection[Ticket]) -> None:
        """It is unknown where an unsettled ticket's paths will lead: perhaps to those of this one."""
        for other in self._unsettled:
            if other.order < ticket.order and other is not ticket and other.footprint.may_concern(ticket.footprint):
                for mover in other.movers or ():
                    if mover is not ticket and mover not in ancestors and mover not in ticket.waits_for:
                        self._stand_behind(ticket, mover)

    def _hold_back_later_ones(self, ticket: Ticket) -> None:
        """A new or changed statement may concern calls after this one that had nothing to wait for before."""
        for other in self._writers if ticket.footprint.only_reads else self._open:
            if (
                other.order > ticket.order
                and not other.running
                and ticket not in other.waits_for
                and ticket not in other.ancestors()
                and ticket.footprint.conflicts(other.footprint)
            ):
                self._wait(other, ticket)
                self._give_up_lane(other)
        if self._unsettled:
            for other in self._open:
                if other.order > ticket.order and not other.running:
                    self._wait_for_movers(other, frozenset(other.ancestors()))
                    if other.waits_for:
                        self._give_up_lane(other)
        if ticket.waits_for or self._unsettled:
            for nested in [other for other in self._open if other.parent and other.waits_for]:
                self._pass_those_behind(nested)

    def _step_back(self, ticket: Ticket) -> None:
        """Admitted and not begun, with other effects now: tickets ahead of it no longer wait for it."""
        ticket.running = False
        for earlier in [other for other in ticket.dependents if other.order < ticket.order]:
            self._release(earlier, ticket)

    def _pass_those_behind(self, nested: Ticket) -> None:
        """A call that has not begun and waits for an ancestor comes after all that happens inside of the ancestor."""
        ancestors = frozenset(nested.ancestors())
        for other in [ahead for ahead in nested.waits_for if not ahead.running]:
            if self._waits_for_one_of(ancestors, [other]):
                self._release(nested, other)

    def _release(self, waiting: Ticket, ahead: Ticket) -> None:
        waiting.waits_for.discard(ahead)
        ahead.dependents.remove(waiting)
        if waiting.movers is not None:
            self._note_moved(waiting, ahead)
        self._seek_lane(waiting)

    def _unblock(self, ticket: Ticket) -> None:
        for other in ticket.waits_for:
            other.dependents.remove(ticket)
        ticket.waits_for.clear()
        ticket.movers = None
        self._unsettled.pop(ticket, None)

    def _would_deadlock(self, ticket: Ticket) -> bool:
        """Whether something `ticket` waits for waits, in the end, for one of its ancestors."""
        return self._waits_for_one_of(frozenset(ticket.ancestors()), list(ticket.waits_for))

    def _waits_for_one_of(self, awaited: frozenset[Ticket], ahead: list[Ticket]) -> bool:
        seen: set[Ticket] = set()
        while ahead:
            other = ahead.pop()
            if other in awaited:
                return True
            if other not in seen:
                seen.add(other)
                ahead += other.waits_for
                ahead += (nested for nested in self._open if nested.parent is other)
        return False

    def _lanes_for(self, ticket: Ticket) -> _Lanes:
        return self._reading_lanes if ticket.footprint.only_reads else self._lanes

    def _seek_lane(self, ticket: Ticket) -> None:
        if ticket.waits_for:
            return
        if not ticket.has_lane:
            lanes = self._lanes_for(ticket)
            if lanes.free <= 0 and not ticket.urgent:
                lanes.queue.append(ticket)
                return
            lanes.free -= 1
            ticket.lane = lanes
        ticket.wake()

    def _give_up_lane(self, ticket: Ticket) -> None:
        lanes, ticket.lane = ticket.lane, None
        if lanes is None:
            return
        lanes.free += 1
        while lanes.queue and lanes.free > 0:
            following = lanes.queue.popleft()
            if following in self._open and not following.has_lane:
                self._seek_lane(following)


def _place(ticket: Ticket) -> tuple[int, ...]:
    return ticket.order
