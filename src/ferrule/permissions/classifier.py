"""Support for a classifier: one more judge besides the rules and the hooks, which runs along with them.

It is asked only about what the rules left open. It never allows what somebody
asks about or denies. If it is unsure, a person is asked; if it fails, the call is
refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal, Protocol, TypeAlias

from ..core.effects import describe_touch
from ..core.model import ModelError
from ..core.ports import Opinion, Proposal
from ..core.values import plain_value
from ..core.verdicts import Behavior, Risk, Verdict
from .modes import Mode

log = logging.getLogger(__name__)

SECONDS: Final = 20.0
MOST_TOUCHES: Final = 40
LONGEST: Final = 4_000
"""Characters of a call's description that are shown."""


@plain_value
class ToolStatement:
    """A tool's description of a call."""

    tool: str
    summary: str
    touches: tuple[str, ...]
    """What the call would do, in words; empty if it touches nothing."""
    cwd: str
    agent: str


@plain_value
class Assessment:
    verdict: Literal["safe", "unsafe", "unsure"]
    reason: str = ""


class Classifier(Protocol):
    async def classify(self, account: ToolStatement, /) -> Assessment: ...


Hold: TypeAlias = Callable[[Proposal, Verdict], Awaitable[Opinion]]
"""The verdict with what has to be enforced for it, or a question if that is impossible."""


class ClassifierJudge:
    """Satisfies `core.ports.Judge`."""

    def __init__(
        self,
        classifier: Classifier,
        *,
        rules: Callable[[Proposal], Opinion | Awaitable[Opinion]],
        mode: Callable[[], Mode],
        hold: Hold | None = None,
        always: bool = True,
        seconds: float = SECONDS,
    ) -> None:
        """Unless `always` is set, only the mode `auto` asks it. In that mode it also answers.

        Its yes approves nothing: `hold` then decides how the call is confined, or that a person must be asked.
        """
        self._classifier = classifier
        self._rules = rules
        self._mode = mode
        self._hold = hold
        self._always = always
        self._seconds = seconds

    def judge(self, proposal: Proposal, /) -> Opinion | Awaitable[Opinion]:
        answers = self._mode() is Mode.AUTO
        if not (answers or self._always):
            return None
        said = self._rules(proposal)
        if said is None:
            return self._ask(proposal, answers=answers)
        return None if isinstance(said, Verdict) else self._after(said, proposal, answers=answers)

    async def _after(self, said: Awaitable[Opinion], proposal: Proposal, *, answers: bool) -> Opinion:
        return await self._ask(proposal, answers=answers) if await said is None else None

    async def _ask(self, proposal: Proposal, *, answers: bool) -> Opinion:
        try:
            async with asyncio.timeout(self._seconds):
                found = await self._classifier.classify(account_of(proposal))
        except (ModelError, TimeoutError) as error:
            log.warning("the classifier could not judge %s: %s", proposal.tool.name, error)
            return None
        match found.verdict:
            case "safe" if answers:
                words = f"a classifier considers it safe{_because(found)}"
                verdict = Verdict(behavior=Behavior.ALLOW, source="classifier", reason=words)
                return await self._hold(proposal, verdict) if self._hold else verdict
            case "unsafe":
                words = f"a classifier considers it unsafe{_because(found)}"
                risk = Risk("classifier", "high", denies=False, message=words.capitalize())
                behavior = Behavior.DENY if answers else Behavior.ASK
                return Verdict(behavior=behavior, source="classifier", reason=words, risks=(risk,))
            case "safe" | "unsure":
                return None


def account_of(proposal: Proposal) -> ToolStatement:
    touches = proposal.effects.touches
    said = [describe_touch(touch)[:LONGEST] for touch in touches[:MOST_TOUCHES]]
    more = [f"and {len(touches) - MOST_TOUCHES} more things"] if len(touches) > MOST_TOUCHES else []
    return ToolStatement(
        tool=proposal.tool.name,
        summary=proposal.tool.describe(proposal.input)[:LONGEST],
        touches=(*said, *more),
        cwd=proposal.ctx.cwd,
        agent=proposal.ctx.facts.agent,
    )


def _because(found: Assessment) -> str:
    return f": {found.reason}" if found.reason else ""
