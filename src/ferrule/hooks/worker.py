"""Runs one hook: whatever it does, it has an answer, and the answer is recorded."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Final, assert_never, cast

from ..core.events import Emit, HookRan, HookStarted
from ..core.ids import new_uuid
from ..engine.error_outcomes import contain_exit, end, from_outside, in_own_task, in_short
from .env_file import EVENTS as KEEPING
from .env_file import VARIABLE as ENV_FILE
from .env_file import EnvFile
from .hook import (
    AgentPrompt,
    Answering,
    Asked,
    Function,
    Hook,
    ModelPrompt,
    Payload,
    Program,
    ServerTool,
    Service,
    ServiceFailed,
)
from .judgements import judgement
from .payloads import encode_payload
from .program_process import HookEnvironment, run_program
from .reply_parsing import HookAnswer, Reply, Save, parse_reply

log = logging.getLogger(__name__)

PROJECT_VARIABLES: Final = ("CLAUDE_PROJECT_DIR", "FERRULE_PROJECT_DIR")


async def nobody(asked: Asked, payload: Payload) -> str:
    """Used without a session that could ask somebody."""
    raise ServiceFailed("nobody can answer it here")


class Worker:
    def __init__(
        self,
        emit: Emit,
        *,
        project: str,
        environment: Mapping[str, str] = os.environ,
        save: Save = lambda _: None,
        answering: Answering = nobody,
        env_file: EnvFile | None = None,
    ) -> None:
        self._emit = emit
        self._project = project
        self._env = {**environment, **dict.fromkeys(PROJECT_VARIABLES, project)}
        self._save = save
        self._answering = answering
        self._env_file = env_file

    async def ask(self, hook: Hook, payload: Payload) -> HookAnswer:
        """Never raises."""
        work = hook.work
        if isinstance(work, Function) and not work.waits:
            return self.call(hook, work, payload)
        began, id = perf_counter(), self._announce(hook)
        match work:
            case Program():
                reply = await self._run(hook, work, payload)
            case Function():
                reply = await self._wait(hook, payload, work.call, _from_function)
            case Service():
                reply = await self._wait(hook, payload, work.ask, _from_text)
            case ServerTool():
                reply = await self._wait(hook, payload, partial(self._answering, work), _from_text)
            case ModelPrompt() | AgentPrompt():
                reply = await self._wait(
                    hook, payload, partial(self._answering, work), partial(_from_model, hook.event, work)
                )
            case _:
                assert_never(work)
        return self._record_answer(hook, reply, began, id)

    async def _run(self, hook: Hook, program: Program, payload: Payload) -> Reply:
        around = HookEnvironment(cwd=self._folder(payload), env=self._env)
        if self._env_file is None or hook.event not in KEEPING:
            return await run_program(program, encode_payload(payload), around, hook.seconds)
        try:
            around = replace(around, env={**self._env, ENV_FILE: self._env_file.create()})
        except OSError as error:
            return Reply(failure=f"the file for its variables cannot be created: {error.strerror}")
        reply = await run_program(program, encode_payload(payload), around, hook.seconds)
        await self._env_file.read(around)
        return reply

    def call(self, hook: Hook, function: Function, payload: Payload) -> HookAnswer:
        """The reply of a function that does not have to be awaited."""
        began, id = perf_counter(), self._announce(hook)
        try:
            reply = _from_function(function.call(_own(payload)))
        except BaseException as error:  # a function that is a hook is somebody else's code
            if from_outside(error):
                raise
            reply = Reply(failure=f"it raised {in_short(error)}")
        return self._record_answer(hook, reply, began, id)

    async def _wait(
        self, hook: Hook, payload: Payload, work: Callable[[Any], Awaitable[Any]], read: Callable[[Any], Reply]
    ) -> Reply:
        """In a separate task, which is ended when its time is up."""
        try:
            task = in_own_task(work(_own(payload)), contain_exit)
            try:
                finished, _ = await asyncio.wait((task,), timeout=hook.seconds)
            except asyncio.CancelledError:
                await end(task)
                raise
            if not finished:
                await end(task)
                return Reply(failure=f"it took longer than {hook.seconds:g} s and was ended")
            return read(task.result())
        except ServiceFailed as error:
            return Reply(failure=str(error))
        except BaseException as error:  # a function that is a hook is somebody else's code
            if from_outside(error):
                raise
            return Reply(failure=f"it raised {in_short(error)}")

    def _announce(self, hook: Hook) -> str:
        """The id of this run."""
        id = new_uuid()
        self._emit(HookStarted(hook.event, hook.name, id))
        return id

    def _record_answer(self, hook: Hook, reply: Reply, began: float, id: str) -> HookAnswer:
        answer = parse_reply(hook, reply, self._save)
        if answer.fault:
            log.warning("%s", answer.fault)
        seconds = perf_counter() - began
        self._emit(HookRan(hook.event, hook.name, answer.outcome, seconds, answer.message or answer.fault, id))
        return answer

    def _folder(self, payload: Payload) -> str:
        cwd = payload.get("cwd")
        return cwd if isinstance(cwd, str) and os.path.isdir(cwd) else self._project


def _from_function(value: object) -> Reply:
    if isinstance(value, Awaitable):
        if isinstance(value, Coroutine):
            value.close()  # so that nothing warns of it
        return Reply(failure="it returned an awaitable; declare it with `async def`")
    return Reply() if value is None else Reply(json=value)


def _from_text(text: str) -> Reply:
    return Reply(stdout=text)


def _from_model(event: str, work: ModelPrompt | AgentPrompt, text: str) -> Reply:
    return Reply(json=judgement(event, text, goes_on=isinstance(work, ModelPrompt) and work.goes_on))


def _own(value: Any) -> Any:
    """A copy that its receiver may change without side effects."""
    match value:
        case dict():
            return {key: _own(one) for key, one in cast(dict[Any, Any], value).items()}
        case list() | tuple():
            return [_own(one) for one in cast(Sequence[Any], value)]
        case _:
            return value
