"""The messages of a conversation, for a program that reads them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from ..core.events import Envelope
from ..core.ids import new_uuid
from ..output.run_answer import RunAnswer, result_line
from .conversation import Conversation, Line, Lines
from .conversation_opening import OpenedConversation
from .messages import Message, message_of
from .options import Options

MOST_WAITING: Final = 256
"""The most unread messages; beyond that the model waits for its reader."""


class MessageStream:
    """One conversation's messages, in order, each for one reader. Satisfies `conversation.Listener`."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._waiting = deque[Message]()
        self._most = most
        self._changed = asyncio.Event()
        self._is_over = False

    async def tell(self, line: Line, /) -> None:
        """Waits while the reader is far behind. Messages after the end are dropped."""
        while len(self._waiting) >= self._most and not self._is_over:
            await self._change()
        self.tell_at_once(line)

    def tell_at_once(self, line: Line, /) -> None:
        if not self._is_over:
            self._waiting.append(message_of(line))
            self._changed.set()

    async def watch(self, envelope: Envelope, lines: Lines, /) -> None:
        for line in lines():
            await self.tell(line)

    def watch_last(self, envelope: Envelope, lines: Lines, /) -> None:
        for line in lines():
            self.tell_at_once(line)

    async def finish(self, answer: RunAnswer, session_id: str, /) -> None:
        await self.tell(result_line(answer, session_id=session_id, uuid=new_uuid()))

    async def next(self) -> Message | None:
        """`None` once everything was read and no more can arrive."""
        while not self._waiting:
            if self._is_over:
                return None
            await self._change()
        message = self._waiting.popleft()
        self._changed.set()
        return message

    def close(self) -> None:
        self._is_over = True
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class ReadConversation(Conversation):
    """A conversation whose messages a program reads one by one."""

    def __init__(self, opened: OpenedConversation, options: Options) -> None:
        self._messages = MessageStream()
        super().__init__(opened, self._messages, options)

    async def next(self) -> Message | None:
        """`None` when it has ended. Raises what ended it, if that was an error."""
        message = await self._messages.next()
        if message is None:
            await self.wait()
        return message
