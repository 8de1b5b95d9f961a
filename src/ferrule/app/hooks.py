"""The hooks of a session, plugged in where the engine lets them speak."""

from __future__ import annotations

from ..core.events import Emit
from ..core.ports import Approver, SpillStore
from ..core.values import plain_value
from ..hooks.after import HookAfter
from ..hooks.answers import Save
from ..hooks.asking import HookApprover
from ..hooks.hook import NO_HOOKS, Hook, HookBook
from ..hooks.judge import HookJudge
from ..hooks.lifecycle import Lifecycle
from ..hooks.memory import CallMemory
from ..hooks.payloads import Scene
from ..hooks.runner import Runner
from .live_rules import LiveRules
from .tool_responses import reshaped, response


@plain_value
class HookParts:
    """One for each place where hooks speak."""

    runner: Runner
    judge: HookJudge
    approver: HookApprover
    after: HookAfter
    lifecycle: Lifecycle


def hook_parts(
    rules: LiveRules, own: tuple[Hook, ...], scene: Scene, *, emit: Emit, approver: Approver, spill: SpillStore
) -> HookParts:
    """The hooks of the settings as `rules` last saw them, with those of the session itself before them."""
    rules.look()
    runner = Runner(_SessionHooks(rules, own), emit, project=scene.project, save=_saving(spill))
    memory = CallMemory()
    return HookParts(
        runner,
        HookJudge(runner, scene, memory),
        HookApprover(runner, scene, approver),
        HookAfter(runner, scene, memory, response=response, reshape=reshaped),
        Lifecycle(runner, scene, rules.look),
    )


class _SessionHooks:
    def __init__(self, rules: LiveRules, own: tuple[Hook, ...]) -> None:
        self._rules = rules
        self._own = own
        self._seen = NO_HOOKS
        self._joined = HookBook(own)

    def __call__(self) -> HookBook:
        found = self._rules.hooks
        if found is not self._seen:
            self._seen, self._joined = found, found.joined(self._own)
        return self._joined


def _saving(spill: SpillStore) -> Save:
    def save(text: str) -> str | None:
        try:
            return spill.save("hook", text)
        except OSError:
            return None

    return save
