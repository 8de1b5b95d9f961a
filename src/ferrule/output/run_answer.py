"""The result of a prompt, for scripts: the last line of a run, and its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from ..core.calls import ToolCall
from ..core.model import ModelFacts, Usage
from ..core.values import named_value, plain_value

DONE = 0
FAILED = 1
DENIED = 3
LIMITED = 4


class Ending(StrEnum):
    """How a prompt ended; the values are those of `subtype` in the result line."""

    SUCCESS = "success"
    MAX_TURNS = "error_max_turns"
    MAX_BUDGET = "error_max_budget_usd"
    MAX_STRUCTURED = "error_max_structured_output_retries"
    FAILED = "error_during_execution"


@named_value
class Spent:
    """What one model used and what that cost; `usd` is `None` if the price is unknown."""

    facts: ModelFacts
    usage: Usage
    usd: float | None


@plain_value
class Denial:
    call: ToolCall
    reason: str
    allowed_by: tuple[str, ...] = ()
    """Rules that would have allowed it."""


@named_value
class RunAnswer:
    """`spent` is the sum over the whole run, everything else is about this one prompt."""

    ending: Ending
    text: str = ""
    errors: tuple[str, ...] = ()
    stop_reason: str | None = None
    denials: tuple[Denial, ...] = ()
    turns: int = 0
    seconds: float = 0.0
    api_seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    spent: Mapping[str, Spent] = field(default_factory=dict[str, Spent])
    structured: Any = None
    terminal_reason: str = "completed"
    """Why it ended, in a word that consumers know."""
    api_error_status: int | None = None
    """The HTTP status of the model's service, if that ended it."""

    @property
    def usd(self) -> float | None:
        """Of the whole run; `None` if the price of one of its models is unknown."""
        costs = [spent.usd for spent in self.spent.values()]
        return None if None in costs else sum(cost or 0.0 for cost in costs)

    @property
    def exit_code(self) -> int:
        """For a run that no signal ended: any other failure takes precedence over refused calls."""
        match self.ending:
            case Ending.SUCCESS:
                return DENIED if self.denials else DONE
            case Ending.FAILED:
                return FAILED
            case Ending.MAX_TURNS | Ending.MAX_BUDGET | Ending.MAX_STRUCTURED:
                return LIMITED


def result_line(answer: RunAnswer, *, session_id: str, uuid: str) -> dict[str, Any]:
    """The line that ends a prompt, in the shape that consumers of such streams know."""
    line: dict[str, Any] = {
        "type": "result",
        "subtype": str(answer.ending),
        "is_error": answer.ending is not Ending.SUCCESS,
        "duration_ms": round(answer.seconds * 1000),
        "duration_api_ms": round(answer.api_seconds * 1000),
        "num_turns": answer.turns,
        "stop_reason": answer.stop_reason,
        "terminal_reason": answer.terminal_reason,
        "api_error_status": answer.api_error_status,
        "session_id": session_id,
        "total_cost_usd": _dollars(answer.usd),
        "usage": usage_object(answer.usage),
        "modelUsage": {name: _model_usage(spent) for name, spent in answer.spent.items()},
        "permission_denials": [
            {
                "tool_name": denial.call.name,
                "tool_use_id": denial.call.id,
                "tool_input": dict(denial.call.arguments),
                "reason": denial.reason,
            }
            for denial in answer.denials
        ],
        "uuid": uuid,
    }
    if answer.ending is Ending.SUCCESS:
        line["result"] = answer.text
    else:
        line["errors"] = list(answer.errors)
    if answer.structured is not None:
        line["structured_output"] = answer.structured
    return line


def usage_object(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
    }


def _model_usage(spent: Spent) -> dict[str, Any]:
    return {
        "inputTokens": spent.usage.input_tokens,
        "outputTokens": spent.usage.output_tokens,
        "cacheReadInputTokens": spent.usage.cache_read_tokens,
        "cacheCreationInputTokens": spent.usage.cache_write_tokens,
        "webSearchRequests": 0,
        "costUSD": _dollars(spent.usd),
        "contextWindow": spent.facts.window,
        "maxOutputTokens": spent.facts.most_output,
    }


def _dollars(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 8)
