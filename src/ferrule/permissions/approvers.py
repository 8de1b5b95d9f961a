"""Who answers an ASK."""

from __future__ import annotations

from ..core.effects import describe_touch
from ..core.ports import Proposal
from ..core.verdicts import Behavior, Verdict


class NobodyToAsk:
    """Headless: an ASK is a refusal that says what the call would have done and what would allow it."""

    async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
        does = "; ".join(describe_touch(touch) for touch in proposal.effects.touches) or "touches nothing"
        explains = verdict.source in ("rule", "safety", "mode", "classifier") or verdict.needs_confinement is not None
        why = f"{verdict.reason}; " if explains else ""
        reason = f"{why}it needs a person's approval ({does}) and nobody is there to give it"
        return Verdict(
            behavior=Behavior.DENY, source=verdict.source, reason=reason, rule=verdict.rule, origin=verdict.origin
        )
