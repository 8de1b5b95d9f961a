"""A conversation with the program that started this one: lines in, lines out, as long as there are messages.

It is opened with the first line, since that may be `initialize`, which says
how it is to be opened.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..output.stream_json import StreamJson, encode_json_line
from ..sdk.conversation import Conversation
from .control import CannotDo, Channel
from .conversing import NoModel, RunListener, open_run, wait_or_stop
from .exits import UsageError
from .host_callbacks import HostHooks, HostPerson, HostServers, ToolPerson
from .printers import StreamPrinter

if TYPE_CHECKING:
    from ..output.stream_input import BadLine, ControlRequest, InputMessage
    from ..sdk.options import Options
    from .signals import Interruptible
    from .stdio import InputLines, StdoutWriter


class HostedRun:
    """Satisfies `control.Receiver`."""

    def __init__(
        self,
        chosen: argparse.Namespace,
        options: Options,
        incoming: InputLines,
        out: StdoutWriter,
        signals: Interruptible,
    ) -> None:
        self._out = out
        self._signals = signals
        self._channel = Channel(incoming, self._say)
        self._hooks = HostHooks(self._channel)
        self._servers = HostServers(self._channel)
        self._person = _person(chosen.permission_prompt_tool, self._channel)
        if self._person is not None:
            options = replace(options, person=self._person, approver_answers=True)
        if isinstance(self._person, ToolPerson):
            options = replace(options, deny=(*options.deny, chosen.permission_prompt_tool))
        if options.mcp_configs:
            from .initializing import split_host_servers, with_host_servers

            options = with_host_servers(*split_host_servers(options), self._servers)
        self._options = options
        self._listener = RunListener(StreamPrinter(out), signals, host_answers=True)
        self._conversation: Conversation | None = None
        self._refusal = ""
        """Why the last `initialize` was refused."""
        self._is_open = asyncio.Event()

    async def run(self) -> int:
        """Every message in turn. The exit code is that of the last one."""
        reading = asyncio.create_task(self._channel.read(self))
        opening = asyncio.create_task(self._is_open.wait())
        try:
            await asyncio.wait((reading, opening), return_when=asyncio.FIRST_COMPLETED)
            if self._conversation is None:
                reading.result()
            else:
                await wait_or_stop(self._conversation, self._signals)
        finally:
            for task in (reading, opening):
                task.cancel()
            with suppress(asyncio.CancelledError, BrokenPipeError):
                await reading
            await self._channel.close()
        return self._listener.exit_code if self._signals.exit_code is None else self._signals.exit_code

    async def take_message(self, message: InputMessage, /) -> None:
        self._opened().say(message.content, uuid=message.uuid)

    async def carry_out(self, request: ControlRequest, /) -> Mapping[str, Any]:
        if request.subtype == "initialize":
            return self._initialize(request.request)
        if request.subtype == "mcp_message":
            return self._servers.deliver(request.request)
        from .control_requests import carry_out

        try:
            conversation = self._opened()
        except (UsageError, NoModel) as error:
            raise CannotDo(str(error)) from None
        return await carry_out(conversation, request.subtype, request.request)

    async def take_bad_line(self, bad: BadLine, /) -> None:
        id = self._conversation.session.id if self._conversation is not None else ""
        words = f"Line {bad.number} was ignored: {bad.reason}"
        stream = StreamJson(id, model=str)
        await self._say(stream.line("system", subtype="input_error", line=bad.number, error=words))

    async def end_input(self) -> None:
        if self._conversation is not None or not self._refusal:
            self._opened().say_no_more()

    def _initialize(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        from .control_requests import describe_conversation
        from .initializing import options_with

        if self._conversation is not None:
            raise CannotDo("The conversation has begun already. Send `initialize` once, before anything else.")
        try:
            opened = self._open(options_with(request, self._options, self._hooks, self._servers))
        except (CannotDo, UsageError, NoModel) as error:
            self._refusal = str(error)
            raise CannotDo(self._refusal) from None
        answer = describe_conversation(opened)
        if request.get("hooks"):
            answer["hooks_applied"] = True
        if request.get("plugins"):
            answer["plugins_applied"] = True
        return answer

    def _opened(self) -> Conversation:
        """Never without what an `initialize` asked for, which may be what guards the calls. Raises `UsageError`."""
        if self._conversation is None and self._refusal:
            raise UsageError(f"`initialize` was refused, so the conversation was not opened: {self._refusal}")
        return self._conversation or self._open(self._options)

    def _open(self, options: Options) -> Conversation:
        """Raises `UsageError` and `NoModel`."""
        conversation = Conversation(open_run(options), self._listener, options)
        if self._person is not None:
            self._person.conversation = conversation
        conversation.start()
        self._conversation = conversation
        self._is_open.set()
        return conversation

    async def _say(self, line: Mapping[str, Any]) -> None:
        await self._out.write(encode_json_line(line))


def _person(tool: str | None, channel: Channel) -> HostPerson | ToolPerson | None:
    """Who is asked for permission; `None` for nobody."""
    if tool is None:
        return None
    return HostPerson(channel) if tool == "stdio" else ToolPerson(tool)
