"""Begin to plan."""

from __future__ import annotations

from typing import Self

from ..core.content import Block, Line, Text, View
from ..core.context import ToolContext
from ..core.effects import MODE, ChangesState, Effects
from ..core.inputs import ToolInput
from ..core.ports import Modes
from ..core.state import ModeChanged
from ..core.tool import Alias, Exposure, Result, ToolError, load_guide
from ..core.values import plain_value
from . import NO_MODES, NOBODY_APPROVES, BuiltinTool, Services

PLAN = "plan"


class EnterPlanModeInput(ToolInput):
    pass


@plain_value
class PlanModeEntered:
    pass


class EnterPlanMode(BuiltinTool[EnterPlanModeInput, PlanModeEntered]):
    name = "EnterPlanMode"
    description = load_guide(__file__)
    hint = "plan before changing anything"
    input_model = EnterPlanModeInput
    needs = "planning"
    aliases = (Alias("enter_plan_mode"),)
    exposure = Exposure.DEFERRED

    def __init__(self, modes: Modes | None = None, *, has_approver: bool = False) -> None:
        """`has_approver` says whether somebody can approve a plan: without, nobody would ever end the planning."""
        self._modes = modes
        self._has_approver = has_approver

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.modes, has_approver=services.has_person)

    def unavailable(self) -> str | None:
        if self._modes is None:
            return NO_MODES
        return None if self._has_approver else NOBODY_APPROVES

    def effects(self, input: EnterPlanModeInput, ctx: ToolContext) -> Effects:
        return Effects.of(ChangesState(MODE))

    async def call(self, input: EnterPlanModeInput, ctx: ToolContext) -> Result[PlanModeEntered]:
        if self._modes is not None and self._modes.current() == PLAN:
            raise ToolError("Plan mode is already on. Look around, then call ExitPlanMode with your plan.")
        return Result(PlanModeEntered(), changes=(ModeChanged(PLAN),))

    def to_model(self, output: PlanModeEntered) -> tuple[Block, ...]:
        return (
            Text(
                "Plan mode is on: nothing is changed until a person approves your plan. Look around, ask what is "
                "open, then call ExitPlanMode with the plan."
            ),
        )

    def describe(self, input: EnterPlanModeInput) -> str:
        return self.name

    def show_result(self, input: EnterPlanModeInput, output: PlanModeEntered) -> View:
        return Line("plan mode is on")
