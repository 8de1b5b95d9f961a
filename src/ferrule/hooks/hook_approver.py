"""PermissionRequest hooks: they may answer in place of the person who would be asked.

They answer what a person could answer, an ask rule included, and nothing else:
nobody is asked about a denied call. They also run if nobody can be
asked.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from ..core.ports import Approver, Proposal
from ..core.verdicts import Behavior, Verdict
from .hook_judge import quote_hook
from .payloads import SessionFacts, common, of_call, suggestions_of
from .runner import Runner

if TYPE_CHECKING:
    from .reply_parsing import HookAnswer

log = logging.getLogger(__name__)

WAITING: Final = "permission_prompt"
"""The type of notification for a pending permission."""

Keep: TypeAlias = Callable[[object], Awaitable[None]]
"""Applies the `updatedPermissions` of an answer. Raises `NotKept`."""


Suggest: TypeAlias = Callable[[Proposal], tuple[str, ...]]
"""The narrowest rules that would allow a call; empty if no rule helps."""


class NotKept(ValueError):
    """A hook's request cannot be applied. The message says why."""


async def keep_nothing(wanted: object) -> None:
    raise NotKept("permissions cannot be changed here")


class HookApprover:
    """Asks the hooks first, and then whoever would have been asked."""

    def __init__(
        self,
        runner: Runner,
        scene: SessionFacts,
        approver: Approver,
        *,
        is_somebody: bool = False,
        keep: Keep = keep_nothing,
        suggest: Suggest = lambda proposal: (),
    ) -> None:
        """`is_somebody` says whether the approver keeps a person waiting; hooks are then notified.

        `keep` applies permissions of hooks beyond the call; `suggest` offers rules for that.
        """
        self._runner = runner
        self._scene = scene
        self._approver = approver
        self._is_somebody = is_somebody
        self._keep = keep
        self._suggest = suggest

    def before(self, approver: Approver) -> HookApprover:
        """The same hooks before another approver, which sends its own notification."""
        return HookApprover(self._runner, self._scene, approver, keep=self._keep, suggest=self._suggest)

    async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
        hooks = self._runner.choose("PermissionRequest", proposal.tool.name, proposal)
        if hooks:
            payload = of_call(self._scene, "PermissionRequest", proposal)
            if suggestions := suggestions_of(self._suggest(proposal)):
                payload["permission_suggestions"] = suggestions
            answers = await self._runner.ask(hooks, payload)
            decided = _refusal_of(answers) or await self._consent(answers)
            if decided is not None:
                return decided
        if self._is_somebody:
            self._announce(proposal)
        return await self._approver.approve(proposal, verdict)

    async def _consent(self, answers: Sequence[HookAnswer]) -> Verdict | None:
        """The first that allows and can be applied in full."""
        for answer in answers:
            if answer.permission != "allow":
                continue
            changed = answer.changed_input
            if changed is not None and not answer.hook.may_change_input:
                continue  # it allows an input that it may not make
            try:
                if (wanted := _decision(answer).get("updatedPermissions")) is not None:
                    await self._keep(wanted)
            except NotKept as error:
                log.warning("%s decides nothing: %s", answer.hook.label, error)
                continue  # it allows together with something that cannot be
            return Verdict(
                behavior=Behavior.ALLOW,
                source="hook",
                reason=quote_hook(answer, "allowed"),
                origin=answer.hook.origin,
                updated_arguments=changed,
            )
        return None

    def _announce(self, proposal: Proposal) -> None:
        """In the background: the question does not wait for hooks."""
        if hooks := self._runner.choose("Notification", WAITING, proposal):
            ctx = proposal.ctx
            told = common(self._scene, "Notification", ctx.cwd, ctx.facts.agent)
            words = f"Ferrule needs your permission to use {proposal.tool.name}"
            self._runner.start(hooks, told | {"message": words, "notification_type": WAITING})


def _refusal_of(answers: Sequence[HookAnswer]) -> Verdict | None:
    for answer in answers:
        if answer.stops is not None or answer.permission == "deny":
            return _refusal(answer)
    return None


def _refusal(answer: HookAnswer) -> Verdict:
    reason = quote_hook(answer, answer.stops or "no")
    stops = answer.stops or (reason if _decision(answer).get("interrupt") is True else "")
    return Verdict(behavior=Behavior.DENY, source="hook", reason=reason, origin=answer.hook.origin, stops=stops)


def _decision(answer: HookAnswer) -> Mapping[str, Any]:
    decision = answer.special.get("decision")
    return cast(Mapping[str, Any], decision if isinstance(decision, Mapping) else {})
