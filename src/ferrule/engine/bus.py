"""Fan-out of the event stream. Emitting is synchronous, total and never waits.

A subscriber has a buffer of its own and reads it in its own time. One that
falls behind loses events, is told how many, and holds nothing up.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from ..core.events import Emit, Envelope, Event, Missed

log = logging.getLogger(__name__)

DEFAULT_BUFFER = 10_000


class Subscription:
    """An async iterator of envelopes that ends when the bus or the subscription is closed."""

    def __init__(self, buffer: int) -> None:
        self._waiting: deque[Envelope] = deque()
        self._buffer = buffer
        self._missed = 0
        self._last_missed: Envelope | None = None
        self._closed = False
        self._wake: asyncio.Future[None] | None = None

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Envelope:
        while not self._waiting:
            if self._missed and self._last_missed is not None:
                return self._tell_of_missed(self._last_missed)
            if self._closed:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return self._waiting.popleft()

    def put(self, envelope: Envelope) -> None:
        if len(self._waiting) >= self._buffer:
            self._missed += 1
            self._last_missed = envelope
            return
        if self._missed and self._last_missed is not None:
            self._waiting.append(self._tell_of_missed(self._last_missed))
        self._waiting.append(envelope)
        self._alert()

    def _tell_of_missed(self, last: Envelope) -> Envelope:
        missed, self._missed = self._missed, 0
        return Envelope(last.seq, last.time, last.agent, Missed(missed))

    def close(self) -> None:
        self._closed = True
        self._alert()

    def _alert(self) -> None:
        if self._wake is not None and not self._wake.done():
            with suppress(RuntimeError):  # its reader's event loop is closed: nobody waits there any more
                self._wake.set_result(None)


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
            envelope = Envelope(self._seq, time.monotonic(), agent, event)
            for receiver in self._receivers:
                receiver.put(envelope)

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


class _Listener:
    def __init__(self, callback: Callable[[Envelope], None], buffer: int) -> None:
        self._callback = callback
        self._buffer = buffer
        self._waiting: deque[Envelope] = deque()
        self._missed = 0
        self._last_missed: Envelope | None = None
        self._ready = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._work, name="ferrule-listener", daemon=True)
        self._thread.start()

    def put(self, envelope: Envelope) -> None:
        if len(self._waiting) >= self._buffer:
            self._missed += 1
            self._last_missed = envelope
            return
        self._tell_of_missed()
        self._waiting.append(envelope)
        self._ready.release()

    def _tell_of_missed(self) -> None:
        last = self._last_missed
        if self._missed and last is not None:
            self._waiting.append(Envelope(last.seq, last.time, last.agent, Missed(self._missed)))
            self._missed = 0
            self._ready.release()

    def finish(self, patience: float = 5.0) -> None:
        self._tell_of_missed()
        self._ready.release()
        self._thread.join(patience)

    def _work(self) -> None:
        while True:
            self._ready.acquire()
            if not self._waiting:
                return
            envelope = self._waiting.popleft()
            try:
                self._callback(envelope)
            except Exception:  # a listener is somebody else's code: its fault ends at this line
                log.exception("a listener failed on %s", type(envelope.event).__name__)
