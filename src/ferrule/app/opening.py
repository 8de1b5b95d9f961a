"""A session with everything the model is told: instructions, environment, and notes on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..core.ports import Approver
from ..core.tool import AnyTool
from ..engine.session import Session
from ..engine.spending import Limits
from .build import Settings, open_session


@dataclass(frozen=True, slots=True)
class Opened:
    session: Session
    warnings: tuple[str, ...] = ()
    """For a person: instructions that were left out, and why."""


def open_conversation(
    settings: Settings,
    *,
    system_prompt: str | None = None,
    append: str | None = None,
    tools: Iterable[AnyTool] = (),
    approver: Approver | None = None,
    limits: Limits | None = None,
) -> Opened:
    session = open_session(settings, tools=tools, approver=approver)
    session.system = "\n\n".join(part for part in (system_prompt, append) if part)
    session.limits = limits or Limits()
    return Opened(session)
