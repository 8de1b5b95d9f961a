"""Fan-out of the event stream. Emitting is synchronous, total and never waits.

A subscriber has a buffer of its own and reads it in its own time. One that
falls behind loses events, is told how many, and holds nothing up.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TypeAlias

from ..core.events import Emit, Envelope, Event, Missed

log = logging.getLogger(__name__)

DEFAULT_BUFFER = 10_000


Stamped: TypeAlias = tuple[int, float, str, Event]
"""An event with its place, as it waits: an `Envelope` is made only for whoever reads it."""


class _Backlog:
    """What one receiver has not read yet, up to a limit, and how much it missed beyond that."""

    def __init__(self, limit: int) -> None:
        self._waiting: deque[Stamped] = deque()
        self._limit = limit
        self._missed = 0
        self._last_missed: Stamped | None = None

    def _keep(self, stamped: Stamped) -> bool:
        """False if there is no room; what is missed is told before the next event that is kept."""
        if len(self._waiting) >= self._limit:
            self._missed += 1
            self._last_missed = stamped
            return False
        if self._last_missed is not None:
            self._waiting.append(self._note_of_missed(self._last_missed))
        self._waiting.append(stamped)
        return True

    def _take(self) -> Envelope | None:
        if self._waiting:
            return Envelope(*self._waiting.popleft())
        return None if self._last_missed is None else Envelope(*self._note_of_missed(self._last_missed))

    def _note_of_missed(self, last: Stamped) -> Stamped:
        missed, self._missed, self._last_missed = self._missed, 0, None
        seq, time, agent, _ = last
        return seq, time, agent, Missed(missed)


class Subscription(_Backlog):
    """An async iterator of envelopes that ends when the bus or the subscription is closed."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._closed = False
        self._wake: asyncio.Future[None] | None = None

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Envelope:
        while (envelope := self._take()) is None:
            if self._closed:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return envelope

    def put(self, stamped: Stamped) -> None:
        if self._keep(stamped) and self._wake is not None:
            self._alert()

    def close(self) -> None:
        self._closed = True
        self._alert()

    def _alert(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            with suppress(RuntimeError):  # its reader's event loop is closed: nobody waits there any more
                wake.set_result(None)


class Bus:
    """Stamps events and hands them to every subscriber. Lives on one event loop."""

    def __init__(self) -> None:
        self._receivers: list[Subscription | _Listener] = []
        self._seq = 0

    def emitter(self, agent: str = "main") -> Emit:
        """What the engine calls: satisfies `Emit`, never waits, never raises."""

        def emit(event: Event, /) -> None:
            if not self._receivers:
                return
            self._seq += 1
            stamped = (self._seq, monotonic(), agent, event)
            for receiver in self._receivers:
                receiver.put(stamped)

        return emit

    @contextmanager
    def subscribe(self, buffer: int = DEFAULT_BUFFER) -> Generator[Subscription]:
        subscription = Subscription(buffer)
        self._receivers.append(subscription)
        try:
            yield subscription
        finally:
            self._receivers.remove(subscription)
            subscription.close()

    @contextmanager
    def listen(self, callback: Callable[[Envelope], None], buffer: int = DEFAULT_BUFFER) -> Generator[None]:
        """Call back in a thread of its own, so that a slow callback slows nothing.

        Leaving the block waits for the events that were already emitted.
        """
        listener = _Listener(callback, buffer)
        self._receivers.append(listener)
        try:
            yield
        finally:
            self._receivers.remove(listener)
            listener.finish()

    def close(self) -> None:
        for receiver in self._receivers:
            if isinstance(receiver, Subscription):
                receiver.close()


class _Listener(_Backlog):
    def __init__(self, callback: Callable[[Envelope], None], limit: int) -> None:
        super().__init__(limit)
        self._callback = callback
        self._lock = threading.Lock()
        self._ended = False
        self._ready = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._work, name="ferrule-listener", daemon=True)
        self._thread.start()

    def put(self, stamped: Stamped) -> None:
        with self._lock:
            kept = self._keep(stamped)
        if kept:
            self._ready.release()

    def finish(self, patience: float = 5.0) -> None:
        self._ended = True
        self._ready.release()
        self._thread.join(patience)

    def _work(self) -> None:
        while True:
            self._ready.acquire()
            ended = self._ended
            while (envelope := self._take_locked()) is not None:
                self._call_back(envelope)
            if ended:
                return

    def _take_locked(self) -> Envelope | None:
        with self._lock:
            return self._take()

    def _call_back(self, envelope: Envelope) -> None:
        try:
            self._callback(envelope)
        except Exception:  # a listener is somebody else's code: its fault ends at this line
            log.exception("a listener failed on %s", type(envelope.event).__name__)
