"""A running conversation. One task owns it from start to end, whoever reads its messages.

The task enters the session, takes prompts in turn, reports what happens and
leaves the session again. Whoever holds the conversation may tell it to end and
wait for that, or tell it and not wait: the task cleans up by itself either way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, Literal, Protocol, cast

from ..app.headless_run import Headless, init_line, lines_of
from ..core.content import wire
from ..core.events import AgentStarted, Envelope, HookRan, ToolFinished, ToolRequested
from ..core.state import ModeChanged
from ..engine.error_outcomes import end
from ..mcp.naming import PREFIX
from ..mcp.server_connection import ServerConnection
from ..mcp.server_context import Phase
from ..output.agent_streams import AgentStreams
from ..output.run_answer import Ending, RunAnswer, result_line
from ..output.stream_json import StreamJson
from ..permissions.modes import Mode
from .conversation_opening import OpenedConversation
from .messages import Message, ServerStatus, message_of
from .prompts import Prompt, Prompts, Said, turn_of_prompt

MOST_WAITING: Final = 256
"""The most unread messages; beyond that the model waits for its reader."""


class MessageStream:
    """One conversation's messages, in order, each for one reader."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._waiting = deque[Message]()
        self._most = most
        self._changed = asyncio.Event()
        self._is_over = False

    async def tell(self, message: Message) -> None:
        """Waits while the reader is far behind. Messages after the end are dropped."""
        while len(self._waiting) >= self._most and not self._is_over:
            await self._change()
        self.tell_at_once(message)

    def tell_at_once(self, message: Message) -> None:
        if not self._is_over:
            self._waiting.append(message)
            self._changed.set()

    async def next(self) -> Message | None:
        """`None` once everything was read and no more can arrive."""
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


SERVERS_WITHIN: Final = 10.0
"""Seconds that the first prompt waits for servers whose tools are not known yet."""
_GRACE: Final = 10.0


class _Closing(Protocol):
    async def aclose(self) -> None: ...


class Conversation:
    def __init__(
        self,
        opened: OpenedConversation,
        *,
        partial: bool = False,
        hook_messages: bool = False,
        prompt_messages: bool = False,
        agent_messages: Literal["all", "calls"] = "all",
    ) -> None:
        self.opened = opened
        self.session = opened.session
        self.told = MessageStream()
        self._hook_messages = hook_messages
        self._prompt_messages = prompt_messages
        self._agent_messages = agent_messages
        self._stream = lines_of(opened.session.id, lambda: opened.model.name, partial=partial)
        self._streams = AgentStreams(self._stream, lambda started: self._of_agent(started, partial=partial))
        self._headless = Headless(
            opened.session,
            opened.model,
            watch=self._watch,
            watch_last=self._watch_last,
            structured=opened.structured,
            prepare=opened.commands.prepare,
        )
        self._prompts: asyncio.Queue[Said | None] = asyncio.Queue()
        self._unstarted = 0
        self._under_way = asyncio.Event()
        self._known_calls: dict[str, asyncio.Event] = {}
        self._owner: asyncio.Task[None] | None = None
        if opened.mirror is not None:
            opened.mirror.failed = self._tell_of_mirror
        self._has_begun = False
        self._is_ending = False

    def start(self, prompts: Prompts | None = None, *, ends: bool = False) -> None:
        """With further prompts that arrive over time, if any; `ends` when all given ones are answered."""
        if self._owner is None:
            self._owner = asyncio.create_task(self._own(prompts, ends=ends))

    def say(self, prompt: Prompt) -> None:
        """Handled after the earlier prompts. Raises `ValueError`."""
        self._prompts.put_nowait(turn_of_prompt(prompt))
        self._unstarted += 1

    def say_nothing(self) -> None:
        """Like a prompt, but without asking a model."""
        self._prompts.put_nowait(())
        self._unstarted += 1

    def say_no_more(self) -> None:
        self._prompts.put_nowait(None)

    async def next(self) -> Message | None:
        """`None` when it has ended. Raises what ended it, if that was an error."""
        message = await self.told.next()
        if message is None and self._owner is not None:
            await asyncio.wait((self._owner,))
            self._raise_what_ended_it()
        return message

    async def interrupt(self) -> bool:
        """End the current or the next pending turn. False if there are none."""
        if self._unstarted:
            await self._under_way.wait()
        return self.session.interrupt()

    def set_mode(self, mode: str) -> None:
        """Raises `ValueError`."""
        try:
            chosen = Mode(mode)
        except ValueError:
            raise ValueError(f"{mode!r} is not a mode. Available: {', '.join(Mode)}.") from None
        if chosen is Mode.BYPASS and not self.opened.may_bypass:
            raise ValueError("bypassPermissions must be chosen when the conversation is opened.")
        self.session.state.apply(ModeChanged(str(chosen)))

    @property
    def mode(self) -> str:
        return self.session.state.mode or str(self.opened.rules().mode)

    async def has_told_of(self, call_id: str) -> None:
        """Return when the message with this call was sent, so that a question about it comes after it."""
        await self._known_calls.setdefault(call_id, asyncio.Event()).wait()

    def end(self) -> None:
        """Tell the owner to end what runs, and do not wait for it."""
        self.told.end()
        self._is_ending = True
        if self._owner is not None and self._has_begun and not self._owner.done():
            with suppress(RuntimeError):  # its event loop is closed, and all that ran there has ended
                self._owner.cancel()

    async def wait_closed(self) -> None:
        """The same, and wait. Raises what ended it before, if that was an error."""
        self.end()
        if self._owner is not None:
            await asyncio.wait((self._owner,))
            self._raise_what_ended_it()

    def _raise_what_ended_it(self) -> None:
        owner = self._owner
        if owner is not None and not owner.cancelled() and (error := owner.exception()) is not None:
            raise error

    # The owner

    async def _own(self, prompts: Prompts | None, *, ends: bool) -> None:
        self._has_begun = True
        async with AsyncExitStack() as last:
            last.callback(self._be_over)
            last.push_async_callback(self.opened.models.close)
            if self.opened.mirror is not None:
                last.push_async_callback(self.opened.mirror.close)
            for server in self.opened.own_servers.values():
                last.callback(server.leave)
            await last.enter_async_context(self.session)
            if self._is_ending:
                return
            await self.opened.found.wait_for_servers(SERVERS_WITHIN)
            feeding: asyncio.Task[None] | None = None
            if prompts is not None:
                feeding = asyncio.create_task(self._feed(prompts, ends=ends))
                last.push_async_callback(end, feeding, grace=_GRACE)
            while (prompt := await self._prompts.get()) is not None:
                await (self._answer(prompt) if prompt else self._drop_pending())
            if feeding is not None:
                await feeding

    def _be_over(self) -> None:
        self.told.end()
        self._under_way.set()  # nobody is to wait for a turn that never comes

    async def _feed(self, prompts: Prompts, *, ends: bool) -> None:
        failed = True
        iterator = aiter(prompts)
        try:
            async for prompt in iterator:
                self.say(prompt)
            failed = False
        finally:
            if ends or failed:
                self.say_no_more()
            if hasattr(iterator, "aclose"):
                await cast(_Closing, iterator).aclose()

    async def _drop_pending(self) -> None:
        self._unstarted -= 1
        self.told.tell_at_once(message_of(self._init()))
        await self._tell_result(RunAnswer(ending=Ending.SUCCESS))

    async def _answer(self, prompt: Said) -> None:
        """In a separate task: there a cancellation is an interrupt, and here it is the end."""
        self.told.tell_at_once(message_of(self._init()))
        prompted = self._describe_prompt(prompt)
        self._mark(prompted)
        if self._prompt_messages:
            self.told.tell_at_once(message_of(prompted))
        turn = asyncio.create_task(self._headless.ask(prompt))
        try:
            await asyncio.sleep(0)  # so that it has begun, and can be interrupted
            self._unstarted -= 1
            self._under_way.set()
            await asyncio.wait((turn,))
        except asyncio.CancelledError:
            await end(turn, grace=_GRACE)
            raise
        await self._tell_result(turn.result())
        self._under_way.clear()

    async def _tell_result(self, answer: RunAnswer) -> None:
        if self.opened.mirror is not None:
            await self.opened.mirror.flush()
        line = result_line(answer, session_id=self.session.id, uuid=self._stream.new_id())
        await self.told.tell(message_of(line))

    def _tell_of_mirror(self, words: str) -> None:
        key = dict(self.opened.mirror.key) if self.opened.mirror else {}
        self.told.tell_at_once(message_of(self._stream.line("system", subtype="mirror_error", key=key, error=words)))

    def _describe_prompt(self, prompt: Said) -> dict[str, Any]:
        content = prompt if isinstance(prompt, str) else [wire(block) for block in prompt]
        message = {"role": "user", "content": content}
        return self._stream.line("user", message=message, parent_tool_use_id=None, isReplay=True)

    def _mark(self, line: Mapping[str, Any]) -> None:
        """Files can be restored to their state at a message of the user or at a result."""
        if self.opened.checkpoints and line["type"] == "user" and line["parent_tool_use_id"] is None:
            self.opened.checkpoints.mark(line["uuid"])

    # What is told

    async def _watch(self, envelope: Envelope) -> None:
        for line in self._lines(envelope):
            await self.told.tell(message_of(line))
        match envelope.event:
            case ToolRequested(call):
                self._known_calls.setdefault(call.id, asyncio.Event()).set()
            case ToolFinished(outcome):
                self._known_calls.pop(outcome.call.id, None)
            case _:
                pass

    def _watch_last(self, envelope: Envelope) -> None:
        for line in self._lines(envelope):
            self.told.tell_at_once(message_of(line))

    def _lines(self, envelope: Envelope) -> list[dict[str, Any]]:
        if isinstance(envelope.event, HookRan) and not self._hook_messages:
            return []
        lines = self._streams.lines(envelope)
        for line in lines:
            self._mark(line)
        if envelope.agent == "main" or self._agent_messages == "all":
            return lines
        return [line for line in lines if _is_about_calls(line)]

    def _of_agent(self, started: AgentStarted, *, partial: bool) -> StreamJson:
        return lines_of(self.session.id, lambda: started.model, partial=partial, parent=started.call_id)

    def _init(self) -> dict[str, Any]:
        servers = [{"name": one.name, "status": one.status} for one in self.servers()]
        commands = self.opened.commands
        return init_line(
            self._stream,
            self.session,
            model=self.opened.model.name,
            key_source=self.opened.model.key_source,
            mode=self.mode,
            servers=servers,
            commands=commands.names(),
            skills=[skill.name for skill in commands.skills()],
            plugins=[plugin.line for plugin in self.opened.plugins],
        )

    def servers(self) -> tuple[ServerStatus, ...]:
        """Those of this process first."""
        pool = self.session.registry.pool
        there = frozenset(tool.name for tool in pool)
        own = (
            ServerStatus(
                name=name,
                status="connected" if there.intersection(server.names) or not server.names else "disabled",
                tools=tuple(tool for tool in server.names if tool in there),
            )
            for name, server in self.opened.own_servers.items()
        )
        return (*own, *(_status(one, there) for one in self.opened.servers.connections))


def _is_about_calls(line: Mapping[str, Any]) -> bool:
    match line:
        case {"message": {"content": [{"type": "tool_use" | "tool_result"}, *_]}}:
            return True
        case _:
            return False


_STATUS: Final = {
    Phase.IDLE: "pending",
    Phase.CONNECTING: "pending",
    Phase.UP: "connected",
    Phase.DOWN: "failed",
    Phase.CLOSED: "disabled",
}


def _status(connection: ServerConnection, there: frozenset[str]) -> ServerStatus:
    prefix = f"{PREFIX}{connection.config.part}__"
    return ServerStatus(
        name=connection.config.name,
        status=_STATUS[connection.phase],
        error=connection.trouble if connection.phase is Phase.DOWN else "",
        tools=tuple(sorted(name for name in there if name.startswith(prefix))),
    )
