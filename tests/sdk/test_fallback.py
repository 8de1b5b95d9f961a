"""A second model where the first one's service cannot answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule.core.model import FailureKind, ModelError, TextDelta
from ferrule.providers.script import check_script
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.sdk.client import query
from ferrule.sdk.messages import AssistantMessage
from ferrule.sdk.opened_models import MOST_TRIES, FallbackModel
from ferrule.testing import ModelServer

from .scenes import of, options, read, texts

ANSWER = {"text": "Here.", "usage": {"input_tokens": 10, "output_tokens": 1}}
OVERLOADED: dict[str, Any] = {"fault": {"status": 529, "retry_after": "0"}}


async def test_the_second_model_answers_where_the_first_cannot(tmp_path: Path) -> None:
    async with ModelServer(check_script({"turns": [OVERLOADED] * MOST_TRIES + [ANSWER]}, "x")) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        chosen = options(tmp_path, model="claude-opus-5-5", fallback_model="claude-haiku-5-5", env=env)
        messages = await read(query(prompt="x", options=chosen))

    assert texts(messages) == ["Here."]
    assert of(AssistantMessage, messages)[0].model == "claude-haiku-5-5"
    ((name, usage),) = messages[-1].model_usage.items()
    assert (name, usage["contextWindow"]) == ("claude-haiku-5-5", 1_000_000)


class _Failing:
    facts = ScriptedModel.facts
    name = "failing"

    def __init__(self, kind: FailureKind, *, after: str = "") -> None:
        self._kind: FailureKind = kind
        self._after = after

    def stream(self, request: Any, /) -> Any:
        return self

    async def __aenter__(self) -> Any:
        return self._events()

    async def __aexit__(self, *_: object) -> None:
        pass

    async def _events(self) -> Any:
        if self._after:
            yield TextDelta(self._after)
        raise ModelError("no", self._kind)


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        (_Failing("overload"), ["Second."]),
        (_Failing("limit"), ["Second."]),
        (_Failing("network"), ["Second."]),
        (_Failing("request"), []),
        (_Failing("key"), []),
        (_Failing("overload", after="Fir"), []),
    ],
)
async def test_only_a_service_that_gave_nothing_is_replaced(tmp_path: Path, failing: Any, said: list[str]) -> None:
    model = FallbackModel(failing, ScriptedModel([says("Second.")]))

    messages = await read(query(prompt="x", options=options(tmp_path, model=model)))

    assert [text for text in texts(messages) if text != "Fir"] == said
    assert messages[-1].is_error is not bool(said)
