"""A headless conversation from its first line to its exit code."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..app.headless_run import Headless, init_line, lines_of
from ..app.session_opening import ModelBriefing, OpenedSession, Which, open_conversation
from ..core.state import ModeChanged
from ..engine.spending import TurnLimits
from ..mcp.server_context import Phase, first_wait
from ..output.agent_streams import AgentStreams
from ..output.run_answer import Ending, RunAnswer
from ..output.stream_json import StreamJson, encode_json_line
from ..providers.agent_models import AgentModels
from .control import AsksTheOtherSide, CannotDo, Channel
from .exits import OK, UsageError
from .printers import JsonPrinter, Printer, StreamPrinter, TextPrinter
from .prompt_checks import thinking_tokens
from .session_flags import parse_levels

if TYPE_CHECKING:
    from ..app.build import Settings
    from ..app.headless_run import StructuredOutput
    from ..app.slash_commands import SlashCommands
    from ..core.content import Block
    from ..core.events import AgentStarted
    from ..core.model import ModelProvider
    from ..core.ports import Approver
    from ..engine.session import Session
    from ..mcp.server_connection import ServerConnection
    from ..output.stream_input import ControlRequest
    from ..providers.asked_model import AskedModel
    from .signals import Interruptible
    from .stdio import InputLines, StdoutWriter


_STANDINGS: Mapping[Phase, str] = {Phase.UP: "connected", Phase.DOWN: "failed", Phase.CLOSED: "failed"}


class Conversing:
    """What belongs to one run of `ferrule -p`."""

    def __init__(
        self,
        chosen: argparse.Namespace,
        settings: Settings,
        model: AskedModel,
        structured: StructuredOutput | None,
        out: StdoutWriter,
        signals: Interruptible,
        small: ModelProvider | None = None,
    ) -> None:
        """`small` is for small questions, instead of the model."""
        self._chosen = chosen
        self._settings = settings
        self._model = model
        self._structured = structured
        self._out = out
        self._signals = signals
        self._small = small
        self._of_agents = AgentModels({**os.environ, **settings.environment}, settings.model, own=model)
        self._session: Session | None = None
        self._commands: SlashCommands | None = None
        self._opened: OpenedSession | None = None

    async def close(self) -> None:
        await self._of_agents.close()

    async def once(self, prompt: str) -> int:
        opened = self._open(None)
        session = opened.session
        async with session:
            printer = self._printer(session)
            await opened.wait_for_servers(first_wait(os.environ))
            await printer.begin(self._init(opened))
            code = await self._ask(prompt, self._headless(opened, printer), printer)
        self._say_if_not_kept(session)
        return code

    async def over(self, incoming: InputLines) -> int:
        """Every message of stdin in turn. The exit code is that of the last one."""
        channel = Channel(incoming, self._say)
        approver = (
            AsksTheOtherSide(channel, self._interrupt) if self._chosen.permission_prompt_tool == "stdio" else None
        )
        opened = self._open(approver)
        session = opened.session
        async with session:
            streams = self._streams(session)
            printer = StreamPrinter(self._out, streams, session.id)
            if approver is not None:
                approver.told_of = printer.has_told_of
            channel.answer_request = self._carry_out
            channel.malformed = lambda bad: streams.main.line(
                "system", subtype="input_error", line=bad.number, error=f"Line {bad.number} was ignored: {bad.reason}"
            )
            await opened.wait_for_servers(first_wait(os.environ))
            await printer.begin(self._init(opened))
            reading = asyncio.create_task(channel.read())
            try:
                return await self._converse(channel, self._headless(opened, printer), printer)
            finally:
                reading.cancel()
                with suppress(asyncio.CancelledError, BrokenPipeError):
                    await reading
                self._say_if_not_kept(session)

    async def _converse(self, channel: Channel, headless: Headless, printer: Printer) -> int:
        code = OK
        while self._signals.exit_code is None and (content := await channel.next_message()) is not None:
            code = await self._ask(content, headless, printer)
        return code

    async def _ask(self, prompt: str | tuple[Block, ...], headless: Headless, printer: Printer) -> int:
        answer = await headless.ask(prompt)
        if self._signals.exit_code is not None:
            printer.end_last(self._mark_signalled(answer))
            return self._signals.exit_code
        await printer.end(answer)
        return answer.exit_code

    def _mark_signalled(self, answer: RunAnswer) -> RunAnswer:
        """Regardless of the turn's result: the run was ended, and the exit code says so."""
        number = (self._signals.exit_code or 128) - 128
        return replace(answer, ending=Ending.FAILED, errors=(f"Interrupted by signal {number}.",), structured=None)

    def _interrupt(self) -> None:
        """End the current turn, if any; the conversation continues."""
        if self._session is not None:
            self._session.interrupt()

    def _open(self, approver: Approver | None) -> OpenedSession:
        chosen = self._chosen
        which = Which(
            resume=chosen.resume,
            latest=chosen.latest,
            fork=chosen.fork_session,
            fork_at=chosen.resume_session_at,
            session_id=chosen.session_id,
        )
        settings = self._settings
        opened = open_conversation(
            settings,
            ModelBriefing(
                base=chosen.system_prompt,
                append=chosen.append_system_prompt,
                levels=frozenset() if chosen.bare else parse_levels(chosen.setting_sources),
                trusting=chosen.trust,
            ),
            which,
            tools=(self._structured,) if self._structured else (),
            approver=approver,
            approver_answers=approver is not None,
            small_model=self._small,
            models=self._of_agents,
            limits=TurnLimits(max_turns=chosen.max_turns, max_budget=chosen.max_budget_usd),
        )
        for warning in opened.warnings:
            print(f"ferrule: {warning}", file=sys.stderr)
        environ = {**os.environ, **settings.environment}
        opened.session.thinking_tokens = thinking_tokens(chosen, settings.model.thinking(environ))
        opened.session.effort = chosen.effort
        self._session, self._commands, self._opened = opened.session, opened.commands, opened
        return opened

    def _say_if_not_kept(self, session: Session) -> None:
        if session.transcript is not None and (problem := session.transcript.problem):
            print(f"ferrule: this conversation cannot be resumed as it was: {problem}", file=sys.stderr)

    def _headless(self, opened: OpenedSession, printer: Printer) -> Headless:
        return Headless(
            opened.session,
            self._model,
            watch=printer.watch,
            watch_last=printer.watch_last,
            structured=self._structured,
            prepare=opened.commands.prepare,
        )

    def _printer(self, session: Session) -> Printer:
        chosen = self._chosen
        if chosen.output_format == "text":
            return TextPrinter(self._out, verbose=chosen.verbose)
        if chosen.output_format == "json":
            return JsonPrinter(self._out, self._streams(session), session.id, verbose=chosen.verbose)
        return StreamPrinter(self._out, self._streams(session), session.id)

    def _streams(self, session: Session) -> AgentStreams:
        partial = self._chosen.include_partial_messages

        def of_agent(started: AgentStarted) -> StreamJson:
            return lines_of(session.id, lambda: started.model, partial=partial, parent=started.call_id)

        return AgentStreams(lines_of(session.id, lambda: self._model.name, partial=partial), of_agent)

    def _init(self, opened: OpenedSession) -> dict[str, Any]:
        session = opened.session
        stream = StreamJson(session.id, model=lambda: self._model.name)
        return init_line(
            stream,
            session,
            model=self._model.name,
            key_source=self._model.key_source,
            mode=str(self._settings.mode),
            servers=[_standing(server) for server in opened.connections],
            commands=opened.commands.names(),
            skills=[skill.name for skill in opened.commands.skills()],
            plugins=[plugin.line for plugin in self._settings.plugins],
            output_style=opened.style,
        )

    async def _say(self, line: dict[str, Any]) -> None:
        await self._out.write(encode_json_line(line))

    async def _carry_out(self, request: ControlRequest) -> Mapping[str, Any]:
        known: Mapping[str, Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]] = {
            "initialize": self._initialize,
            "interrupt": self._answer_interrupt,
            "set_permission_mode": self._set_mode,
            "set_model": self._set_model,
        }
        if request.subtype not in known:
            raise CannotDo(f"`{request.subtype}` is not supported by this version.")
        return await known[request.subtype](request.request)

    async def _initialize(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Callbacks that cannot be made are refused: a hook that does not run could allow too much."""
        for part in ("hooks", "sdkMcpServers", "agents"):
            if request.get(part):
                raise CannotDo(f"`{part}` over the control protocol are not supported by this version.")
        commands = self._commands.describe_all() if self._commands else ()
        return {
            "commands": [{"name": name, "description": words, "argumentHint": hint} for name, words, hint in commands],
            "output_style": self._opened.style if self._opened else "default",
            "available_output_styles": list(self._opened.styles) if self._opened else ["default"],
            "models": [],
        }

    async def _answer_interrupt(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._interrupt()
        return {}

    async def _set_mode(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        from ..permissions.modes import Mode

        try:
            mode = Mode(str(request.get("mode")))
        except ValueError:
            raise CannotDo(f"`mode` must be one of {', '.join(Mode)}.") from None
        may_bypass = self._chosen.allow_dangerously_skip_permissions or self._settings.mode is Mode.BYPASS
        if mode is Mode.BYPASS and not may_bypass:
            raise CannotDo("bypassPermissions must be chosen when the run is started.")
        if self._session is not None:
            self._session.state.apply(ModeChanged(str(mode)))
        return {"mode": str(mode)}

    async def _set_model(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        from .commands.headless import open_model

        name = request.get("model") or self._chosen.model
        if not isinstance(name, str | None):
            raise CannotDo("`model` must be the name of a model, or null for the one that the run began with.")
        try:
            self._model.model = open_model(self._settings.model, name, {**os.environ, **self._settings.environment})
        except UsageError as error:
            raise CannotDo(str(error)) from None
        return {"model": self._model.name}


def _standing(server: ServerConnection) -> dict[str, str]:
    """The status names that consumers know; a server that is connecting is pending."""
    return {"name": server.config.name, "status": _STANDINGS.get(server.phase, "pending")}
