"""A conversation with a model on loopback, as the loop holds it: each answer is kept, each call has its result."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.core.calls import ToolCall
from ferrule.core.content import Block, Text
from ferrule.core.model import (
    ModelProvider,
    Request,
    ResultTurn,
    ToolResult,
    Turn,
    UserTurn,
)
from tests.providers.conversing import turn_of
from tests.providers.hearing import heard, tools


def results_for(calls: Sequence[ToolCall], *contents: tuple[Block, ...], notes: tuple[str, ...] = ()) -> ResultTurn:
    """In the order of the calls; the last content stands for those that have none."""
    shown = [contents[min(at, len(contents) - 1)] if contents else (Text("done"),) for at in range(len(calls))]
    return ResultTurn(
        tuple(ToolResult(call.id, content, is_error=False) for call, content in zip(calls, shown, strict=True)), notes
    )


async def converse(model: ModelProvider, history: list[Turn], *, rounds: int = 10) -> list[Turn]:
    """Goes on until the model calls nothing more."""
    for _ in range(rounds):
        turn = turn_of(await heard(model, Request(history, tools(3), system="Be brief.", thinking_tokens=2_000)))
        history.append(turn)
        if not turn.calls:
            return history
        history.append(results_for(turn.calls))
    raise AssertionError("the model never stopped calling")


def prompt(text: str = "go") -> list[Turn]:
    return [UserTurn.saying(text)]
