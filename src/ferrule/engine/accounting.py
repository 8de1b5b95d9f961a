"""What the messages of one agent use: set aside before, added after, and compared with what was sent.

Where a service reports no usage, the sizes are used. Where it reports far less than was sent, and not more as the
conversation grows, it cuts the prompt without a word: then its window is what it reports.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..core.content import Block, Text
from ..core.model import AssistantTurn, LearnsWindow, ModelProvider, Request, ResultTurn, Turn, Usage, UserTurn
from .spending import NOTHING, Spending
from .window import estimate, estimate_text, estimate_tools

USUAL_ANSWER = 500
"""Tokens of a message that calls a tool or two."""
LEAST_CUT = 2_000
"""Tokens. Fewer are no window: such services report only what they had not cached."""
MOST_SHARE = 0.6
"""Of the estimate, which is never that far above what is read."""
STEADY_SHARE = 20
"""Reports that differ by less than this fraction are the same; an estimate that grew by more has grown."""
CUT_PROMPTS = (
    "{} reads only the last {:,} tokens of what it is sent, and does not say so. The conversation is kept that "
    "short from now on. For Ollama, set `num_ctx`, or start it with a larger OLLAMA_CONTEXT_LENGTH, such as 32768; "
    "then run `ferrule models probe {}`."
)


@dataclass(slots=True)
class Accounting:
    _sent: int = 0
    """The estimate of the request before, without pictures: models differ too much in what one takes."""
    _reported: int = 0
    _turns: int = 0
    _words: int = 0
    _has_warned: bool = False

    def set_aside(self, spending: Spending, agent: str, model: ModelProvider, prompt_tokens: int) -> None:
        spending.reserve(agent, model, Usage(prompt_tokens, USUAL_ANSWER))

    def settle(
        self,
        spending: Spending,
        agent: str,
        model: ModelProvider,
        turn: AssistantTurn | None,
        usage: Usage,
        *,
        prompt_tokens: int,
    ) -> None:
        """A message has ended. Without a word of its usage, it cost what its size says."""
        spending.release(agent)
        if usage != NOTHING:
            spending.add(model.name, usage, model.facts)
        elif turn is not None:
            spending.add(model.name, Usage(prompt_tokens, estimate([turn])), model.facts, is_estimate=True)

    def find_cut(self, request: Request, usage: Usage) -> int | None:
        """The window of a service that cuts prompts, once two reports in a row show it."""
        sent = self._measure(request)
        sent_before, self._sent = self._sent, sent
        reported_before, self._reported = self._reported, usage.prompt_tokens
        reported = self._reported
        if not LEAST_CUT <= reported < sent * MOST_SHARE:
            return None
        is_steady = abs(reported - reported_before) <= reported // STEADY_SHARE
        has_grown = sent - sent_before > reported // STEADY_SHARE
        return reported if is_steady and has_grown else None

    def learn_from(self, request: Request, usage: Usage, model: ModelProvider) -> str:
        """Correct the model's window if its service cuts prompts; with the words for a person, once."""
        window = self.find_cut(request, usage)
        if window is None or window >= model.facts.window or not isinstance(model, LearnsWindow):
            return ""
        model.learn_window(window)
        if self._has_warned:
            return ""
        self._has_warned = True
        return CUT_PROMPTS.format(model.name, window, model.name)

    def _measure(self, request: Request) -> int:
        """Each turn is looked at once, unless the conversation was replaced by a shorter one."""
        if len(request.history) < self._turns:
            self._turns, self._words = 0, 0
        new = request.history[self._turns :]
        self._words += estimate([_without_media(turn) for turn in new])
        self._turns = len(request.history)
        return self._words + estimate_text(request.system) + estimate_tools(request.tools)


def _without_media(turn: Turn) -> Turn:
    match turn:
        case UserTurn(content):
            return UserTurn(_texts(content))
        case ResultTurn(results, messages):
            return ResultTurn(tuple(replace(one, content=_texts(one.content)) for one in results), messages)
        case AssistantTurn():
            return turn


def _texts(blocks: Iterable[Block]) -> tuple[Block, ...]:
    return tuple(block for block in blocks if isinstance(block, Text))
