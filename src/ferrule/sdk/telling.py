"""Messages on their way from a conversation to whoever reads it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from .messages import Message

MOST_WAITING: Final = 256
"""Messages that nobody has read yet; beyond that the model waits for its reader."""


class MessageStream:
    """One conversation's messages, in order, each for one reader."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._waiting = deque[Message]()
        self._most = most
        self._changed = asyncio.Event()
        self._is_over = False

    async def tell(self, message: Message) -> None:
        """Waits while the reader is far behind. What is told after the end is dropped."""
        while len(self._waiting) >= self._most and not self._is_over:
            await self._change()
        self.tell_at_once(message)

    def tell_at_once(self, message: Message) -> None:
        if not self._is_over:
            self._waiting.append(message)
            self._changed.set()

    async def next(self) -> Message | None:
        """`None` once all was read and nothing more can come."""
        while not self._waiting:
            if self._is_over:
                return None
            await self._change()
        message = self._waiting.popleft()
        self._changed.set()
        return message

    def end(self) -> None:
        self._is_over = True
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
