"""Models behind OpenAI's Responses API: OpenAI's own and Azure's."""

from __future__ import annotations

import re
from typing import Final

from ..core.model import ModelFacts, Request
from ..host.http.http_client import HttpClient
from .openai_address import OpenAiAccess
from .responses_reader import ResponsesReader
from .responses_wire import ResponsesBodies, is_short_answer
from .retry import Retries
from .service_errors import Trouble
from .service_model import ServiceModel

LADDER: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_USUAL: Final = ("low", "medium", "high")
_EFFORTS: Final = (
    (r"o\d", _USUAL),
    (r"gpt-5-pro", ("high",)),
    (r"gpt-5\.1-codex-max", (*_USUAL, "xhigh")),
    (r"gpt-5(\.1)?-codex", _USUAL),
    (r"gpt-5(-mini|-nano)?(?![.\w-])", ("minimal", *_USUAL)),
    (r"gpt-5\.1(?!\d)", ("none", *_USUAL)),
    (r"gpt-5\.\d+-pro", ("medium", "high", "xhigh")),
    (r"gpt-5\.[2-5](?!\d)", ("none", *_USUAL, "xhigh")),
    (r"gpt-6-astra", (*_USUAL, "xhigh", "max")),
    (r"gpt-5\.\d|gpt-[6-9]", ("none", *_USUAL, "xhigh", "max")),
)
"""What models take, by how their names begin; the first that fits."""
_UNKNOWN: Final = (*_USUAL, "xhigh")
_NOT_REASONING: Final = r"(?<![a-z0-9])(gpt-3|gpt-4|chatgpt-|gpt-5(\.\d+)?-chat)"
BUDGETS: Final = ((4_096, "low"), (16_384, "medium"))
"""The effort for less than so many tokens of reasoning; for more it is `high`."""


class OpenAiResponsesModel(ServiceModel):
    def __init__(
        self, access: OpenAiAccess, *, client: HttpClient, facts: ModelFacts, retries: Retries | None = None
    ) -> None:
        service = access.service
        model = service.model
        origin = f"{service.origin}/{model}"  # one model's reasoning is not for another
        self._bodies = bodies = ResponsesBodies(
            model, origin=origin, effort=lambda request: choose_effort(model, request), reasons=is_reasoning(model)
        )
        super().__init__(
            service,
            facts=facts,
            client=client,
            retries=retries,
            body=bodies.body,
            reader=lambda: ResponsesReader(service, origin),
            key_source=access.key_source,
        )

    def adapt(self, trouble: Trouble) -> bool:
        return trouble.kind == "request" and self._bodies.leave_out(trouble.said or str(trouble))


def is_reasoning(model: str) -> bool:
    """Whether it may reason: only of older models it is known that they do not.

    >>> is_reasoning("gpt-4o"), is_reasoning("gpt-6.1-sol"), is_reasoning("our-deployment")
    (False, True, True)
    """
    return not re.search(_NOT_REASONING, model.lower())


def choose_effort(model: str, request: Request) -> str:
    """The effort that is asked for, or that a budget for reasoning stands for, as the model takes it.

    For a short answer it is the lowest, since the limit of an answer is one of its reasoning, too.
    """
    if request.effort:
        return fit_effort(model, request.effort)
    if request.thinking_tokens:
        return fit_effort(model, next((name for most, name in BUDGETS if request.thinking_tokens < most), "high"))
    return _taken_by(model)[0] if is_short_answer(request) else ""


def fit_effort(model: str, wanted: str) -> str:
    """The nearest effort that the model takes, rather a lower one; but reasoning is not turned off.

    >>> fit_effort("gpt-5", "xhigh"), fit_effort("gpt-6-astra", "none"), fit_effort("gpt-5.2", "minimal")
    ('high', 'low', 'low')
    """
    taken = _taken_by(model)
    if wanted in taken:
        return wanted
    place = LADDER.index(wanted)
    lower = [one for one in taken if one != "none" and LADDER.index(one) < place]
    return lower[-1] if lower else next(one for one in taken if one != "none")


def _taken_by(model: str) -> tuple[str, ...]:
    name = re.sub(r"-\d{4}-\d\d-\d\d$", "", model.lower())
    return next((names for pattern, names in _EFFORTS if re.match(pattern, name)), _UNKNOWN)
