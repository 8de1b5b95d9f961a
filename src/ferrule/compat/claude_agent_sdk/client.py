"""`query` and `ClaudeSDKClient` on top of our own client."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, Callable
from types import TracebackType
from typing import Any, Self

from ...sdk.client import FerruleClient, Messages, Responses
from ...sdk.controls import context_usage_line
from ...sdk.conversation import ServerStatus
from ...sdk.message_stream import ReadConversation
from ...sdk.messages import DeferredToolUse, Message, ResultMessage
from ...sdk.options import Options
from .errors import FilesLeft, NotBuilt, in_their_words
from .options import ClaudeAgentOptions
from .permissions import CallbackPerson, PermissionMode
from .translating import DEBUG_FLAGS, translate_options

_LOGGER = logging.getLogger("ferrule")


class _Stderr(logging.Handler):
    """What another process would have written to its standard error: our log, line by line."""

    def __init__(self, tell: Callable[[str], None], *, debug: bool) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell
        self._debug = debug

    def emit(self, record: logging.LogRecord) -> None:
        try:
            for line in f"[{record.levelname}] {record.getMessage()}".splitlines():
                self._tell(line)
        except Exception:  # the program's own code: whatever was worth a warning goes on without it
            self.handleError(record)

    def saw(self, message: Message) -> None:
        if self._debug:
            words = f"{type(message).__name__}"
            self.emit(logging.LogRecord(__name__, logging.DEBUG, "", 0, words, None, None))


class _Chosen:
    """Options in our own form, with the objects that need the conversation once it is open."""

    def __init__(self, options: ClaudeAgentOptions) -> None:
        self.person = CallbackPerson(options.can_use_tool) if options.can_use_tool is not None else None
        self._deferred: dict[str, DeferredToolUse] = {}
        self.options: Options = translate_options(options, self.person, self._defer)
        debug = not DEBUG_FLAGS.isdisjoint(options.extra_args)
        self.stderr = _Stderr(options.stderr, debug=debug) if options.stderr is not None else None

    def begin(self) -> None:
        if self.stderr is not None:
            _LOGGER.addHandler(self.stderr)

    def end(self) -> None:
        if self.stderr is not None:
            _LOGGER.removeHandler(self.stderr)

    def on_opened(self, conversation: ReadConversation) -> None:
        if self.person is not None:
            self.person.conversation = conversation

    def saw(self, message: Message) -> None:
        if self.stderr is not None:
            self.stderr.saw(message)
        if isinstance(message, ResultMessage):
            message.deferred_tool_use = self._put_off(message)
            self._deferred.clear()

    def _defer(self, call: DeferredToolUse) -> None:
        self._deferred[call.id] = call

    def _put_off(self, result: ResultMessage) -> DeferredToolUse | None:
        """The first deferred call, if nothing else was decided about it."""
        refused = (denial["tool_use_id"] for denial in result.permission_denials or ())
        return next((self._deferred[id] for id in refused if id in self._deferred), None)


class _Query(Messages):
    def __init__(self, prompt: str | AsyncIterable[dict[str, Any]], chosen: _Chosen) -> None:
        super().__init__(prompt, chosen.options)
        self._chosen = chosen

    async def __anext__(self) -> Message:
        with in_their_words():
            message = await super().__anext__()
        self._chosen.saw(message)
        return message

    def _begin(self) -> ReadConversation:
        self._chosen.begin()
        conversation = super()._begin()
        self._chosen.on_opened(conversation)
        return conversation

    async def aclose(self) -> None:
        with in_their_words():
            await super().aclose()

    def __del__(self) -> None:
        super().__del__()
        self._chosen.end()


def query(
    *,
    prompt: str | AsyncIterable[dict[str, Any]],
    options: ClaudeAgentOptions | None = None,
    transport: None = None,
) -> Messages:
    """The messages of a conversation, which ends when all prompts are answered. A transport is not used."""
    _no_transport(transport)
    return _Query(prompt, _Chosen(options or ClaudeAgentOptions()))


class _Received(Responses):
    def __init__(self, conversation: ReadConversation, chosen: _Chosen, *, one: bool) -> None:
        super().__init__(conversation, one=one)
        self._chosen = chosen

    async def __anext__(self) -> Message:
        with in_their_words():
            message = await super().__anext__()
        self._chosen.saw(message)
        return message


class ClaudeSDKClient:
    """An ongoing conversation. It can be used from any task of the event loop it was connected in."""

    def __init__(self, options: ClaudeAgentOptions | None = None, transport: None = None) -> None:
        _no_transport(transport)
        self.options = options or ClaudeAgentOptions()
        self._client = FerruleClient()
        self._chosen: _Chosen | None = None

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.disconnect()

    async def connect(self, prompt: str | AsyncIterable[dict[str, Any]] | None = None) -> None:
        await self.disconnect()
        chosen = _Chosen(self.options)
        client = FerruleClient(chosen.options)
        chosen.begin()
        try:
            with in_their_words():
                await client.connect(prompt)
            chosen.on_opened(client.conversation)
            self._client, self._chosen = client, chosen
        finally:
            if self._chosen is not chosen:
                chosen.end()

    async def disconnect(self) -> None:
        try:
            with in_their_words():
                await self._client.disconnect()
        finally:
            if self._chosen is not None:
                self._chosen.end()

    async def query(self, prompt: str | AsyncIterable[dict[str, Any]], session_id: str = "default") -> None:
        """`session_id` is ignored here: a client has one conversation.

        With checkpoints, an empty prompt is how programs there open a conversation that they only rewind.
        """
        with in_their_words():
            if prompt == "" and self.options.enable_file_checkpointing:
                self._client.conversation.say_nothing()
            else:
                await self._client.query(prompt)

    def receive_messages(self) -> Responses:
        return self._receive(one=False)

    def receive_response(self) -> Responses:
        return self._receive(one=True)

    async def interrupt(self) -> None:
        with in_their_words():
            await self._client.interrupt()

    async def set_permission_mode(self, mode: PermissionMode) -> None:
        with in_their_words():
            await self._client.set_permission_mode(mode)

    async def set_model(self, model: str | None = None) -> None:
        with in_their_words():
            await self._client.set_model(model)

    async def reconnect_mcp_server(self, server_name: str) -> None:
        with in_their_words():
            await self._client.reconnect_mcp_server(server_name)

    async def toggle_mcp_server(self, server_name: str, enabled: bool) -> None:
        with in_their_words():
            await self._client.toggle_mcp_server(server_name, enabled)

    async def stop_task(self, task_id: str) -> None:
        with in_their_words():
            await self._client.stop_task(task_id)

    async def rewind_files(self, user_message_id: str, *, force: bool = False) -> None:
        """Raises `FilesLeft` if others have changed a file since. `force` is our addition, and overwrites that too."""
        with in_their_words():
            rewound = await self._client.rewind_files(user_message_id, force=force)
        if rewound.left:
            raise FilesLeft(rewound.left)

    async def get_mcp_status(self) -> dict[str, Any]:
        with in_their_words():
            servers = await self._client.get_mcp_status()
        return {"mcpServers": [_status(server) for server in servers]}

    async def get_context_usage(self) -> dict[str, Any]:
        with in_their_words():
            return context_usage_line(self._client.conversation)

    async def get_server_info(self) -> dict[str, Any]:
        with in_their_words():
            return dict(await self._client.get_server_info())

    def _receive(self, *, one: bool) -> Responses:
        with in_their_words():
            conversation = self._client.conversation
        assert self._chosen is not None, "a conversation was opened with options"
        return _Received(conversation, self._chosen, one=one)


def _status(server: ServerStatus) -> dict[str, Any]:
    said: dict[str, Any] = {"name": server.name, "status": server.status}
    if server.error:
        said["error"] = server.error
    if server.status == "connected":
        said["tools"] = [{"name": name} for name in server.tools]
    return said


def _no_transport(transport: object) -> None:
    if transport is not None:
        raise NotBuilt("`transport`: not supported, because no other process is used. Leave it out.")
