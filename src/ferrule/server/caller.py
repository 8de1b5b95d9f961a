"""The client behind a call, for the tool that runs: what it may ask that client and report to it.

Up to revision 2025-11-25 a question goes out while the call waits. A client of
2026-07-28 is asked by the call's end: its next request contains the answers, and
the call runs again from its start. So a tool asks before it changes anything,
and asks the same each time.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final, Literal, TypeAlias, assert_never, get_args

from mcp import types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from ..core.context import ToolContext
from ..core.tool import ToolError

Context: TypeAlias = ServerRequestContext[Any, Any]
Ability: TypeAlias = Literal["elicitation", "sampling", "roots"]

_LEVELS: Final[tuple[types.LoggingLevel, ...]] = get_args(types.LoggingLevel)


class NotAnswered(ToolError):
    """The client cannot be asked, or does not answer."""


class Caller(ABC):
    waits: ClassVar[bool]
    """Whether a call that is under way can wait for an answer."""

    def __init__(self, ctx: Context) -> None:
        self.is_there = True
        self._ctx = ctx
        self._lacking: Ability | None = None

    def can(self, ability: Ability) -> bool:
        """The client's capabilities. One that supports elicitation without a mode means forms."""
        able = self._ctx.session.client_capabilities
        if able is None:
            return False
        if ability == "elicitation":
            return able.elicitation is not None and (able.elicitation.form is not None or able.elicitation.url is None)
        return (able.sampling if ability == "sampling" else able.roots) is not None

    async def ask(self, questions: Mapping[str, types.InputRequest]) -> dict[str, types.InputResponse]:
        """The answers by the questions' keys. Raises `NotAnswered`."""
        if not self.is_there:
            raise NotAnswered("The call has ended, so its client can no longer be asked.")
        for question in questions.values():
            if not self.can(ability := _ability_for(question)):
                self._lacking = ability
                raise NotAnswered(f"The client cannot be asked: it has no {ability}.")
        return await self._answers(questions)

    async def elicit(self, key: str, message: str, schema: Mapping[str, Any]) -> types.ElicitResult:
        """A form for the client's person. Raises `NotAnswered`."""
        params = types.ElicitRequestFormParams(message=message, requested_schema=dict(schema))
        answer = (await self.ask({key: types.ElicitRequest(params=params)}))[key]
        assert isinstance(answer, types.ElicitResult), "it is what a form is answered with"
        return answer

    async def log(self, level: types.LoggingLevel, data: Any, *, logger: str | None = None) -> None:
        """Does nothing if the client does not want notifications."""
        if self._wants(level):
            params = types.LoggingMessageNotificationParams(level=level, data=data, logger=logger)
            note = types.LoggingMessageNotification(params=params)
            await self._ctx.session.send_notification(note, self._ctx.request_id)

    async def hang_up(self) -> None:
        """End the stream that the client waits on, if it can reconnect for the result: for very long calls."""
        if self._ctx.close_sse_stream is not None:
            await self._ctx.close_sse_stream()

    @abstractmethod
    def _wants(self, level: types.LoggingLevel) -> bool: ...

    @abstractmethod
    async def _answers(self, questions: Mapping[str, types.InputRequest]) -> dict[str, types.InputResponse]: ...


class Connected(Caller):
    """Asked by requests of ours, for the revisions that have such requests."""

    waits = True

    def __init__(self, ctx: Context, *, level: types.LoggingLevel, answer_seconds: float) -> None:
        """`level` is the lowest log level that the client wants; an answer after the timeout is ignored."""
        super().__init__(ctx)
        self._least = _LEVELS.index(level)
        self._answer_seconds = answer_seconds

    def _wants(self, level: types.LoggingLevel) -> bool:
        return _LEVELS.index(level) >= self._least

    async def _answers(self, questions: Mapping[str, types.InputRequest]) -> dict[str, types.InputResponse]:
        return {key: await self._answer(question) for key, question in questions.items()}

    async def _answer(self, question: types.InputRequest) -> types.InputResponse:
        related = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        try:
            return await self._ctx.session.send_request(
                question, _response_type(question), self._answer_seconds, related
            )
        except MCPError as error:
            raise NotAnswered(f"The client did not answer: {error.message}.") from None
        except ValidationError:
            raise NotAnswered("The client's answer is invalid.") from None


class Returning(Caller):
    """Asked by the end of the call. What it answered before comes back with the state that it was given."""

    waits = False

    def __init__(self, ctx: Context, responses: types.InputResponses | None, state: str | None) -> None:
        super().__init__(ctx)
        self._known: dict[str, Any] = json.loads(state) if state else {}
        for key, response in (responses or {}).items():
            self._known[key] = response.model_dump(mode="json", by_alias=True, exclude_none=True)
        self._open: dict[str, types.InputRequest] = {}

    def outstanding(self, *, failed: bool) -> types.InputRequiredResult | None:
        """What the call returns instead of its result; `None` to keep the result.

        Raises `MCPError` if it `failed` because the client cannot answer.
        """
        if failed and self._lacking is not None:
            needed: dict[str, Any] = {"requiredCapabilities": {self._lacking: {}}}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"The client has no {self._lacking}.", needed)
        if not self._open:
            return None
        return types.InputRequiredResult(input_requests=self._open, request_state=json.dumps(self._known))

    def _wants(self, level: types.LoggingLevel) -> bool:
        return level in allowed_log_levels(self._ctx.protocol_version, self._ctx.meta)

    async def _answers(self, questions: Mapping[str, types.InputRequest]) -> dict[str, types.InputResponse]:
        found = {key: self._answer(key, question) for key, question in questions.items()}
        answers = {key: answer for key, answer in found.items() if answer is not None}
        if len(answers) < len(questions):
            self._open.update((key, question) for key, question in questions.items() if key not in answers)
            raise NotAnswered("Waiting for the client's answer.")
        return answers

    def _answer(self, key: str, question: types.InputRequest) -> types.InputResponse | None:
        """`None` too for an answer to another kind of question, which is asked again."""
        try:
            return (
                _response_type(question).model_validate(self._known[key], by_name=False) if key in self._known else None
            )
        except ValidationError:
            return None


class Callers:
    """Who made each of the calls that run. Given to custom tools, to ask and notify their callers."""

    def __init__(self) -> None:
        self._callers: dict[tuple[str, str], Caller] = {}

    def of(self, ctx: ToolContext) -> Caller:
        """The caller of this call, or of the enclosing one. Raises `NotAnswered` without an MCP client."""
        caller = self.find(ctx)
        if caller is None:
            raise NotAnswered("This needs an MCP client that can be asked, and the call has none.")
        return caller

    def find(self, ctx: ToolContext) -> Caller | None:
        chain = ctx.facts.chain
        return self._callers.get((ctx.facts.session_id, chain[0] if chain else ctx.call_id))

    @contextmanager
    def making(self, caller: Caller, session_id: str, call_id: str) -> Generator[None]:
        """While the block runs, the call is that caller's."""
        self._callers[session_id, call_id] = caller
        try:
            yield
        finally:
            del self._callers[session_id, call_id]
            caller.is_there = False


def _ability_for(question: types.InputRequest) -> Ability:
    match question:
        case types.ElicitRequest():
            return "elicitation"
        case types.CreateMessageRequest():
            return "sampling"
        case types.ListRootsRequest():
            return "roots"
        case _:
            assert_never(question)


def _response_type(question: types.InputRequest) -> type[types.InputResponse]:
    match question:
        case types.ElicitRequest():
            return types.ElicitResult
        case types.CreateMessageRequest(params=params):
            return types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
        case types.ListRootsRequest():
            return types.ListRootsResult
        case _:
            assert_never(question)
