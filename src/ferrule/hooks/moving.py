"""CwdChanged hooks, after a call that leads to another working directory."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from ..core.calls import ToolOutcome
from ..core.ports import Amendment, Proposal
from ..core.state import MovedTo
from .hook import Hook
from .payloads import SessionFacts, common
from .runner import Runner


class HookMoved:
    """A step after the call. It changes nothing; the next call waits for it, as what hooks leave is for that."""

    def __init__(self, runner: Runner, scene: SessionFacts) -> None:
        self._runner = runner
        self._scene = scene

    def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> Awaitable[Amendment | None] | None:
        before = proposal.ctx.cwd
        now = next((change.path for change in outcome.changes if isinstance(change, MovedTo)), before)
        hooks = self._runner.choose("CwdChanged", "", proposal) if now != before else ()
        if not hooks:
            return None
        told = common(self._scene, "CwdChanged", now, proposal.ctx.facts.agent)
        return self._tell(hooks, told | {"old_cwd": before, "new_cwd": now})

    async def _tell(self, hooks: Sequence[Hook], payload: dict[str, Any]) -> None:
        await self._runner.ask(hooks, payload)
