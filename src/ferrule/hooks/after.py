"""PostToolUse and PostToolUseFailure hooks, as a step after the call."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ..core.calls import Status, ToolOutcome
from ..core.content import Block, Text
from ..core.ports import Amendment, Note, Proposal
from .hook import Hook
from .hook_judge import CallMemory
from .payloads import Response, SessionFacts, of_outcome
from .runner import Runner

if TYPE_CHECKING:
    from .reply_parsing import HookAnswer

log = logging.getLogger(__name__)

Reshape: TypeAlias = Callable[[Proposal, ToolOutcome, object], Amendment | None]
"""A hook's replacement for an output; `None` if it does not have the shape of the tool's output."""

_FAILED = (Status.FAILED, Status.BROKEN, Status.CANCELLED)


class HookAfter:
    def __init__(
        self, runner: Runner, scene: SessionFacts, memory: CallMemory, *, response: Response, reshape: Reshape
    ) -> None:
        self._runner = runner
        self._scene = scene
        self._memory = memory
        self._response = response
        self._reshape = reshape

    def without_agents(self) -> HookAfter:
        """For the calls of an agent that is itself a hook."""
        runner = self._runner.without_agents()
        return HookAfter(runner, self._scene, self._memory, response=self._response, reshape=self._reshape)

    def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> Amendment | Awaitable[Amendment | None] | None:
        known = self._memory.take(proposal.call)
        before = tuple(known.context) if known is not None else ()
        event = "PostToolUse" if outcome.status is Status.OK else "PostToolUseFailure"
        told = outcome.status is Status.OK or outcome.status in _FAILED
        hooks = self._runner.choose(event, proposal.tool.name, proposal) if told else ()
        if not hooks:
            return Amendment(messages=tuple(map(_message, before))) if before else None
        payload = of_outcome(self._scene, proposal, outcome, self._response)
        answers = self._runner.at_once(hooks, payload)
        if answers is not None:
            return self._amendment(proposal, outcome, before, answers)
        return self._later(proposal, outcome, before, hooks, payload)

    async def _later(
        self,
        proposal: Proposal,
        outcome: ToolOutcome,
        before: tuple[str, ...],
        hooks: Sequence[Hook],
        payload: Mapping[str, Any],
    ) -> Amendment | None:
        return self._amendment(proposal, outcome, before, await self._runner.ask(hooks, payload))

    def _amendment(
        self, proposal: Proposal, outcome: ToolOutcome, before: tuple[str, ...], answers: Sequence[HookAnswer]
    ) -> Amendment | None:
        words = [*before]
        for answer in answers:
            words += (f"{answer.hook.label}: {word}" for word in _words(answer) if word)
        stops = next((answer.stops for answer in answers if answer.stops is not None), "")
        changed = self._replace_output(proposal, outcome, answers) if outcome.status is Status.OK else None
        if not words and not stops and changed is None:
            return None
        return replace(changed or Amendment(), messages=tuple(map(_message, words)), stops=stops)

    def _replace_output(
        self, proposal: Proposal, outcome: ToolOutcome, answers: Sequence[HookAnswer]
    ) -> Amendment | None:
        """The last hook that replaces the output wins.

        One whose replacement does not fit wanted the output not to be read as
        it is, so the model reads what is wrong with it instead.
        """
        changed = None
        for answer in answers:
            given = _replacement(proposal, answer.special)
            if given is None:
                continue
            made = _from_server(proposal, given) or self._reshape(proposal, outcome, given)
            if made is None:
                log.warning("%s returned an output of the wrong shape for %s", answer.hook.label, proposal.tool.name)
                return _withheld(proposal, answer.hook)
            changed = made
        return changed


def _withheld(proposal: Proposal, hook: Hook) -> Amendment:
    words = (
        f"{proposal.tool.name} ran, and its output is not shown: {hook.label} replaced it with something that does not "
        "have the shape of this tool's output. A person has to correct the hook."
    )
    return Amendment(content=(Text(words),))


def _replacement(proposal: Proposal, special: Mapping[str, Any]) -> object:
    given = special.get("updatedMCPToolOutput") if _is_of_server(proposal) else None
    return special.get("updatedToolOutput") if given is None else given


def _from_server(proposal: Proposal, given: object) -> Amendment | None:
    blocks = blocks_of(given) if _is_of_server(proposal) else None
    return Amendment(content=blocks) if blocks else None


def _is_of_server(proposal: Proposal) -> bool:
    return proposal.tool.name.startswith("mcp__")


def blocks_of(value: object) -> tuple[Block, ...] | None:
    """What a server's tool gives: a text, or a list of blocks with texts."""
    if isinstance(value, str):
        return (Text(value),)
    if isinstance(value, Mapping):
        value = cast(Mapping[str, object], value).get("content")
    if not isinstance(value, list):
        return None
    texts = [_text_of(block) for block in cast(list[object], value)]
    return None if not texts or None in texts else tuple(Text(text) for text in texts if text is not None)


def _text_of(block: object) -> str | None:
    text = cast(Mapping[str, object], block).get("text") if isinstance(block, Mapping) else None
    return text if isinstance(text, str) else None


def _words(answer: HookAnswer) -> tuple[str, str]:
    return (answer.reason if answer.blocks else "", answer.context)


def _message(text: str) -> str:
    return str(Note("hook", text))
