"""A running conversation. One task owns it from start to end, whoever listens to it.

The task enters the session, takes prompts in turn, reports what happens and
leaves the session again. Whoever holds the conversation may tell it to end and
wait for that, or tell it and not wait: the task cleans up by itself either way.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast

from ..app.headless_run import Headless, init_line, lines_of, shape_if_known
from ..core.content import wire
from ..core.events import AgentStarted, Envelope, HookRan, HookStarted, ToolFinished, ToolRequested
from ..core.state import ModeChanged
from ..core.values import named_value, plain_value
from ..engine.error_outcomes import end
from ..mcp.naming import PREFIX
from ..mcp.server_context import Phase, first_wait
from ..output.agent_streams import AgentStreams, TaskLines
from ..output.run_answer import Ending, RunAnswer
from ..output.stream_json import StreamJson
from ..permissions.modes import Mode
from .conversation_opening import OpenedConversation
from .options import Options
from .prompts import Prompt, Prompts, Said, join_prompts, turn_of_prompt

if TYPE_CHECKING:
    from ..mcp.server_connection import ServerConnection

Line: TypeAlias = Mapping[str, Any]
"""What is told, in the form of `stream-json`."""
Lines: TypeAlias = Callable[[], list[dict[str, Any]]]
"""Makes the lines of an event. Called at most once for each."""


class Listener(Protocol):
    """Whoever is told what happens. What it waits for, the model waits for."""

    async def tell(self, line: Line, /) -> None:
        """A line that does not belong to an event: what begins a prompt, and what is wrong."""
        ...

    def tell_at_once(self, line: Line, /) -> None: ...

    async def watch(self, envelope: Envelope, lines: Lines, /) -> None: ...

    def watch_last(self, envelope: Envelope, lines: Lines, /) -> None:
        """After an interrupt: nothing may be awaited."""
        ...

    async def finish(self, answer: RunAnswer, session_id: str, /) -> None:
        """How a prompt ended."""
        ...

    def close(self) -> None:
        """Nothing more follows."""
        ...


@named_value
class ServerStatus:
    """The status of an MCP server."""

    name: str
    status: str
    """`connected`, `pending`, `failed` or `disabled`."""
    error: str = ""
    tools: tuple[str, ...] = ()


@plain_value
class _Queued:
    content: Said
    """Empty for one that asks nothing."""
    uuid: str = ""


_GRACE: Final = 10.0


class _Closing(Protocol):
    async def aclose(self) -> None: ...


class Conversation:
    def __init__(self, opened: OpenedConversation, listener: Listener, options: Options | None = None) -> None:
        """Of the options those count that say what is told."""
        chosen = options or Options()
        self.opened = opened
        self.session = opened.session
        self._listener = listener
        self._hook_messages = chosen.hook_messages
        self._prompt_messages = chosen.prompt_messages
        self._agent_messages: Literal["all", "calls"] = chosen.agent_messages
        partial = chosen.partial_messages
        self._stream = lines_of(opened.session.id, lambda: opened.model.name, partial=partial)
        tasks = TaskLines(self._stream, shape_if_known) if chosen.task_messages else None
        self._streams = AgentStreams(self._stream, lambda started: self._of_agent(started, partial=partial), tasks)
        self._headless = Headless(
            opened.session,
            opened.model,
            watch=self._watch,
            watch_last=self._watch_last,
            structured=opened.structured,
            prepare=opened.commands.prepare,
        )
        self._prompts: asyncio.Queue[_Queued | None] = asyncio.Queue()
        self._initial_prompt = opened.initial_prompt
        self._unstarted = 0
        self._under_way = asyncio.Event()
        self._known_calls: dict[str, asyncio.Event] = {}
        self._owner: asyncio.Task[None] | None = None
        self._turn: asyncio.Task[RunAnswer] | None = None
        if opened.mirror is not None:
            opened.mirror.failed = self._tell_of_mirror
        self.disabled = set[str]()
        """Servers whose tools were switched off."""
        self._has_begun = False
        self._is_ending = False
        self._is_stopping = False

    def start(self, prompts: Prompts | None = None, *, ends: bool = False) -> None:
        """With further prompts that arrive over time, if any; `ends` when all given ones are answered."""
        if self._owner is None:
            self._owner = asyncio.create_task(self._own(prompts, ends=ends))

    def say(self, prompt: Prompt, *, uuid: str = "") -> None:
        """Handled after the earlier prompts. Raises `ValueError`. `uuid` is the sender's own id of it, if any."""
        content = join_prompts(self._initial_prompt, turn_of_prompt(prompt))
        self._initial_prompt = ""
        self._prompts.put_nowait(_Queued(content, uuid))
        self._unstarted += 1

    def say_nothing(self) -> None:
        """Like a prompt, but without asking a model."""
        self._prompts.put_nowait(_Queued(()))
        self._unstarted += 1

    def say_no_more(self) -> None:
        self._prompts.put_nowait(None)

    async def interrupt(self) -> bool:
        """End the current or the next pending turn. False if there are none."""
        if self._unstarted:
            await self._under_way.wait()
        return self.session.interrupt()

    def check_mode(self, mode: str) -> Mode:
        """The mode of this name. Raises `ValueError` if it cannot be chosen now."""
        try:
            chosen = Mode(mode)
        except ValueError:
            raise ValueError(f"{mode!r} is not a mode. Available: {', '.join(Mode)}.") from None
        if chosen is Mode.BYPASS and not self.opened.may_bypass:
            raise ValueError("bypassPermissions must be chosen when the conversation is opened.")
        if chosen in self.opened.rules().disabled_modes:
            raise ValueError(f"A settings file switches the mode {chosen} off.")
        return chosen

    def set_mode(self, mode: str) -> None:
        """Raises `ValueError`."""
        self.session.state.apply(ModeChanged(str(self.check_mode(mode))))

    @property
    def mode(self) -> str:
        return str(self.opened.rules().mode_for(self.session.state.mode))

    async def has_told_of(self, call_id: str) -> None:
        """Return when the message with this call was sent, so that a question about it comes after it."""
        await self._known_calls.setdefault(call_id, asyncio.Event()).wait()

    def finish(self) -> None:
        """Answer the current prompt to its end, and no further one."""
        self._is_stopping = True
        self.say_no_more()

    def stop(self) -> None:
        """End the current turn, with its result; no further prompt is answered."""
        self.finish()
        if self._turn is None or self._turn.done():
            self.end()
        else:
            self._turn.cancel()

    def end(self) -> None:
        """Tell the owner to end what runs, and do not wait for it."""
        self._listener.close()
        self._is_ending = True
        if self._owner is not None and self._has_begun and not self._owner.done():
            with suppress(RuntimeError):  # its event loop is closed, and all that ran there has ended
                self._owner.cancel()

    async def wait(self) -> None:
        """Until it has ended. Raises what ended it, if that was an error."""
        if self._owner is not None:
            await asyncio.wait((self._owner,))
            self._raise_what_ended_it()

    async def wait_closed(self) -> None:
        """End it and wait. Raises what ended it before, if that was an error."""
        self.end()
        await self.wait()

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
            await self.opened.found.wait_for_servers(first_wait(os.environ))
            feeding: asyncio.Task[None] | None = None
            if prompts is not None:
                feeding = asyncio.create_task(self._feed(prompts, ends=ends))
                last.push_async_callback(end, feeding, grace=_GRACE)
            while (prompt := await self._prompts.get()) is not None and not self._is_stopping:
                await (self._answer(prompt) if prompt.content else self._drop_pending())
            if feeding is not None:
                await feeding

    def _be_over(self) -> None:
        self._listener.close()
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
        await self._listener.tell(self._init())
        await self._tell_result(RunAnswer(ending=Ending.SUCCESS))

    async def _answer(self, prompt: _Queued) -> None:
        """In a separate task: there a cancellation is an interrupt, and here it is the end."""
        await self._listener.tell(self._init())
        prompted = self._describe_prompt(prompt)
        self._mark(prompted)
        if self._prompt_messages:
            await self._listener.tell(prompted)
        turn = self._turn = asyncio.create_task(self._headless.ask(prompt.content))
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
        await self._listener.finish(answer, self.session.id)

    def _tell_of_mirror(self, words: str) -> None:
        key = dict(self.opened.mirror.key) if self.opened.mirror else {}
        self._listener.tell_at_once(self._stream.line("system", subtype="mirror_error", key=key, error=words))

    def _describe_prompt(self, prompt: _Queued) -> dict[str, Any]:
        said = prompt.content
        content = said if isinstance(said, str) else [wire(block) for block in said]
        message = {"role": "user", "content": content}
        line = self._stream.line("user", message=message, parent_tool_use_id=None, isReplay=True)
        return {**line, "uuid": prompt.uuid} if prompt.uuid else line

    def _mark(self, line: Mapping[str, Any]) -> None:
        """Files can be restored to their state at a message of the user or at a result."""
        if self.opened.checkpoints and line["type"] == "user" and line["parent_tool_use_id"] is None:
            self.opened.checkpoints.mark(line["uuid"])

    # What is told

    async def _watch(self, envelope: Envelope) -> None:
        await self._listener.watch(envelope, lambda: self._lines(envelope))
        match envelope.event:
            case ToolRequested(call):
                self._known_calls.setdefault(call.id, asyncio.Event()).set()
            case ToolFinished(outcome):
                self._known_calls.pop(outcome.call.id, None)
            case _:
                pass

    def _watch_last(self, envelope: Envelope) -> None:
        self._listener.watch_last(envelope, lambda: self._lines(envelope))

    def _lines(self, envelope: Envelope) -> list[dict[str, Any]]:
        if isinstance(envelope.event, HookRan | HookStarted) and not self._hook_messages:
            return []
        lines = self._streams.lines(envelope)
        for line in lines:
            self._mark(line)
        if envelope.agent == "main" or self._agent_messages == "all":
            return lines
        return [line for line in lines if line["type"] == "system" or _is_about_calls(line)]

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
            output_style=self.opened.found.style,
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
        others = (_status(one, there) for one in self.opened.found.connections)
        return (*own, *(replace(one, status="disabled") if one.name in self.disabled else one for one in others))


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
