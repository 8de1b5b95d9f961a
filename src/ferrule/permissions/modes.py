"""What a mode says about a call, from its effects alone."""

from __future__ import annotations

from enum import StrEnum

from ..core.effects import GRANTS, ChangesState, Effects, ReadsPath, ReadsState, RunsCommand, Touch
from ..core.verdicts import Behavior, Verdict


class Mode(StrEnum):
    DEFAULT = "default"
    BYPASS = "bypassPermissions"


_READS_INSIDE = Verdict(behavior=Behavior.ALLOW, source="mode", reason="it only reads inside the workspace")
_BYPASSED = Verdict(behavior=Behavior.ALLOW, source="mode", reason="permissions are bypassed")


def mode_verdict(mode: Mode, effects: Effects, roots: tuple[str, ...]) -> Verdict | None:
    """The mode's answer where no rule has one; `None` leaves the question open, so it is asked."""
    if mode is Mode.BYPASS:
        return _BYPASSED
    return _READS_INSIDE if all(_harmless(touch, roots) for touch in effects.touches) else None


def _harmless(touch: Touch, roots: tuple[str, ...]) -> bool:
    """Session state is the conversation's own, but for its grants; a file must be inside as written and as resolved."""
    if isinstance(touch, ReadsPath):
        return _inside(touch.path, roots) and _inside(touch.real or touch.path, roots)
    if isinstance(touch, RunsCommand):
        return touch.accounted  # the other touches say all that it does
    return isinstance(touch, ReadsState) or (isinstance(touch, ChangesState) and touch.key != GRANTS)


def _inside(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root if root.endswith("/") else f"{root}/") for root in roots)
