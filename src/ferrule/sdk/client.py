"""The way in for programs that want a whole conversation: `query` for one, `FerruleClient` for an ongoing one.

Everything happens in this process. Neither is a generator: leaving a loop
early tells the conversation to end, and its own task ends what runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Mapping
from types import TracebackType
from typing import Any, Self

from ..engine.session import Session
from ..host.files.checkpoints import Rewound
from . import controls
from .controls import ContextUsage
from .conversation import ServerStatus
from .conversation_opening import open_for_program
from .errors import CannotOpen, NotConnected
from .message_stream import ReadConversation
from .messages import Message, ResultMessage
from .mirroring import Mirror, fetch_transcript
from .options import Options
from .prompts import Prompt, Prompts, turn_of_prompt


class Messages:
    """An async iterator of messages. `async with` or `aclose` also waits for the end of what runs.

    >>> async def example() -> None:
    ...     async with query(prompt="What is 2 + 2?") as messages:
    ...         async for message in messages:
    ...             print(message)
    """

    def __init__(self, prompt: Prompt | Prompts, options: Options) -> None:
        self._prompt = prompt
        self._options = options
        self._mirror: Mirror | None = None
        self._conversation: ReadConversation | None = None
        self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        if self._is_closed:
            raise StopAsyncIteration
        if self._conversation is None:
            self._options, self._mirror = await fetch_transcript(self._options)
            if self._is_closed:  # meanwhile
                raise StopAsyncIteration
            self._conversation = self._begin()
        message = await self._conversation.next()
        if message is None:
            raise StopAsyncIteration
        return message

    async def aclose(self) -> None:
        self._is_closed = True
        if self._conversation is not None:
            await self._conversation.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _begin(self) -> ReadConversation:
        prompt = self._prompt
        many = prompt if isinstance(prompt, AsyncIterable) else None
        first = None if isinstance(prompt, AsyncIterable) else turn_of_prompt(prompt)
        conversation = _conversation(self._options, self._mirror)
        if first is not None:
            conversation.say(first)
            conversation.say_no_more()
        conversation.start(many, ends=True)
        return conversation

    def __del__(self) -> None:
        """A loop was left early: nobody can read further messages, so the conversation ends."""
        if self._conversation is not None:
            self._conversation.end()


def query(*, prompt: Prompt | Prompts, options: Options | None = None) -> Messages:
    """The messages of a conversation, which ends when all prompts are answered.

    Iterating raises `CannotOpen` if the conversation cannot be opened with these options.
    """
    return Messages(prompt, options or Options())


def _conversation(options: Options, mirror: Mirror | None) -> ReadConversation:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise CannotOpen("No asyncio event loop is running. Use `asyncio.run`, or anyio with that backend.") from None
    return ReadConversation(open_for_program(options, mirror), options)


class Responses:
    """An async iterator over a client's messages; of one prompt alone, or of all."""

    def __init__(self, conversation: ReadConversation, *, one: bool) -> None:
        self._conversation = conversation
        self._one = one
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        message = None if self._is_over else await self._conversation.next()
        if message is None:
            self._is_over = True
            raise StopAsyncIteration
        self._is_over = self._one and isinstance(message, ResultMessage)
        return message

    async def aclose(self) -> None:
        """Stop reading. The conversation continues, and unread messages stay for the next reader."""
        self._is_over = True


class FerruleClient:
    """An ongoing conversation with any number of prompts.

    >>> async def example() -> None:
    ...     async with FerruleClient(Options(mode="plan")) as client:
    ...         await client.query("What does this project do?")
    ...         async for message in client.receive_response():
    ...             print(message)
    """

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self._conversation: ReadConversation | None = None

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.disconnect()

    async def connect(self, prompt: Prompt | Prompts | None = None) -> None:
        """Raises `CannotOpen`. Connecting again ends the previous conversation."""
        await self.disconnect()
        many = prompt if isinstance(prompt, AsyncIterable) else None
        first = None if prompt is None or isinstance(prompt, AsyncIterable) else turn_of_prompt(prompt)
        conversation = _conversation(*await fetch_transcript(self.options))
        if first is not None:
            conversation.say(first)
        conversation.start(many)
        self._conversation = conversation

    async def disconnect(self) -> None:
        """End what runs and wait for it. The conversation leaves nothing behind in this process."""
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            await conversation.wait_closed()

    # Talking

    async def query(self, prompt: Prompt | Prompts) -> None:
        """Send a prompt; it is handled after the earlier ones. Raises `ValueError`."""
        conversation = self.conversation
        if isinstance(prompt, AsyncIterable):
            async for one in prompt:
                conversation.say(one)
        else:
            conversation.say(prompt)

    def receive_messages(self) -> Responses:
        """All messages, until the client is disconnected."""
        return Responses(self.conversation, one=False)

    def receive_response(self) -> Responses:
        """The messages up to and including the next result."""
        return Responses(self.conversation, one=True)

    async def interrupt(self) -> bool:
        """End the current turn; its result says so, and the conversation continues. False if no turn is running."""
        return await self.conversation.interrupt()

    # Changing and looking

    @property
    def conversation(self) -> ReadConversation:
        """Raises `NotConnected`."""
        if self._conversation is None:
            raise NotConnected("Not connected. Call connect() first, or use `async with`.")
        return self._conversation

    @property
    def session(self) -> Session:
        """The session of the conversation, with its history, its state and its events."""
        return self.conversation.session

    async def set_permission_mode(self, mode: str) -> None:
        """From the next call on. Raises `ValueError`."""
        self.conversation.set_mode(mode)

    async def set_model(self, name: str | None = None) -> None:
        """From the next message on; `None` for the one that it began with. Raises `CannotOpen`."""
        controls.set_model(self.conversation, name)

    async def get_mcp_status(self) -> tuple[ServerStatus, ...]:
        return self.conversation.servers()

    async def reconnect_mcp_server(self, name: str) -> None:
        """Wait until it is up. Raises `NotDone` if it cannot be connected."""
        await controls.reconnect_server(self.conversation, name)

    async def toggle_mcp_server(self, name: str, enabled: bool) -> None:
        """Whether its tools can be used. Raises `NotDone` for an unknown server."""
        await controls.toggle_server(self.conversation, name, enabled=enabled)

    async def stop_task(self, task_id: str) -> None:
        """End a command that runs in the background. Raises `NotDone`."""
        await controls.stop_task(self.conversation, task_id)

    async def rewind_files(self, user_message_id: str, *, force: bool = False) -> Rewound:
        """See `controls.rewind_files`. Raises `NotDone`."""
        return await controls.rewind_files(self.conversation, user_message_id, force=force)

    async def get_context_usage(self) -> ContextUsage:
        return controls.context_usage(self.conversation)

    async def get_server_info(self) -> Mapping[str, Any]:
        """The available models, commands and agents."""
        return controls.server_info(self.conversation)
