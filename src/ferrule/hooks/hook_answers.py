"""Who answers hooks that are questions: a model, a read-only agent, a tool of a server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import count
from typing import Any, Final, assert_never, cast

from ..agents.launcher import ModelSource
from ..core.content import plain_text
from ..core.model import ModelError, ModelProvider
from ..core.threads import in_a_thread
from ..engine.session import Session
from ..mcp.results import answer_of
from ..mcp.server_context import ServerTrouble
from ..mcp.servers import McpServers
from ..providers.small_model import SmallModel, frame_text
from .hook import AgentPrompt, Asked, ModelPrompt, Payload, ServerTool, ServiceFailed
from .hook_agent import ANSWERING, CHECKING, ask_agent
from .payloads import encode_payload

ARGUMENTS: Final = "$ARGUMENTS"
_PART: Final = re.compile(r"\$\{([\w-]+(?:\.[\w-]+)*)\}")


def fill_prompt(prompt: str, event: str) -> str:
    """The prompt with the event, which is appended if the prompt has no placeholder for it.

    >>> fill_prompt("Is $ARGUMENTS safe?", "{}"), fill_prompt("Is it safe?", "{}")
    ('Is {} safe?', 'Is it safe?\\n\\n{}')
    """
    return prompt.replace(ARGUMENTS, event) if ARGUMENTS in prompt else f"{prompt}\n\n{event}"


def arguments_for(tool: ServerTool, payload: Payload) -> Mapping[str, Any]:
    """
    >>> arguments_for(ServerTool("s", "t", '{"path": "${tool_input.file_path}"}'), {"tool_input": {"file_path": "/a"}})
    {'path': '/a'}
    """
    return cast(Mapping[str, Any], _fill(json.loads(tool.input), payload))


def _fill(value: Any, payload: Payload) -> Any:
    match value:
        case str():
            return _PART.sub(lambda found: _as_text(_part(payload, found[1].split("."))), value)
        case dict():
            return {key: _fill(inner, payload) for key, inner in cast(dict[str, Any], value).items()}
        case list():
            return [_fill(inner, payload) for inner in cast(list[Any], value)]
        case _:
            return value


def _part(payload: Any, keys: list[str]) -> Any:
    for key in keys:
        if not isinstance(payload, Mapping):
            return None
        payload = cast(Mapping[str, Any], payload).get(key)
    return payload


def _as_text(value: Any) -> str:
    """A missing part of the event becomes an empty string."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


MOST_TOKENS: Final = 1_000


class HookAnswers:
    """Those of one session. Satisfies `hooks.hook.Answering`."""

    def __init__(
        self, session: Session, small: SmallModel, servers: McpServers | None, models: ModelSource | None
    ) -> None:
        """`models` returns models other than the session's, by name."""
        self._session = session
        self._small = small
        self._servers = servers
        self._models = models
        self._numbers = count(1)

    async def __call__(self, asked: Asked, payload: Payload, /) -> str:
        match asked:
            case ModelPrompt():
                return await self._of_model(asked, payload)
            case AgentPrompt():
                return await self._of_agent(asked, payload)
            case ServerTool():
                return await self._of_server(asked, payload)
            case _:
                assert_never(asked)

    async def _of_model(self, asked: ModelPrompt, payload: Payload) -> str:
        small = self._small
        if asked.model:
            small = small.of(self._model_named(asked.model))
        elif not small.is_there:
            raise ServiceFailed("no model is available to ask")
        try:
            system = f"{CHECKING}\n\n{ANSWERING}"
            return await small.answer(system, _about(asked.prompt, payload), MOST_TOKENS, seconds=None)
        except ModelError as error:
            raise ServiceFailed(f"the model did not answer: {error}") from None

    async def _of_agent(self, asked: AgentPrompt, payload: Payload) -> str:
        session = self._session
        model = self._model_named(asked.model) if asked.model else session.provider
        if model is None:
            raise ServiceFailed("no model is available for an agent")
        return await ask_agent(session, model, _about(asked.prompt, payload), payload, next(self._numbers))

    async def _of_server(self, asked: ServerTool, payload: Payload) -> str:
        if self._servers is None:
            raise ServiceFailed(f"the server `{asked.server}` was not found: no servers are configured")
        try:
            connection = self._servers.get(asked.server)
            result = await connection.call(asked.tool, arguments_for(asked, payload), _unheard)
        except ServerTrouble as trouble:
            raise ServiceFailed(str(trouble)) from None
        answer = await in_a_thread(answer_of, result, self._servers.files)
        text = plain_text(answer.blocks)
        if answer.is_error:
            raise ServiceFailed(f"`{asked.tool}` of the server `{asked.server}` failed: {text}")
        return text

    def _model_named(self, name: str) -> ModelProvider:
        if self._models is None:
            raise ServiceFailed(f"the model {name} cannot be chosen here. Leave `model` out of the hook")
        try:
            return self._models(name)
        except ValueError as error:
            raise ServiceFailed(str(error)) from None


def _about(prompt: str, payload: Payload) -> str:
    readable = json.dumps(json.loads(encode_payload(payload)), ensure_ascii=False, indent=1)
    return fill_prompt(prompt, frame_text(readable))


async def _unheard(progress: float, total: float | None, message: str | None) -> None:
    """The progress of a hook is not shown."""
