"""Ask for the approval of a plan."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Self

from pydantic import Field

from ..core.content import Block, Line, Markdown, Text, View
from ..core.context import ToolContext
from ..core.effects import MODE, ChangesState, Effects
from ..core.inputs import ToolInput
from ..core.ports import Answer, Choice, Modes, Question, Questioner, Unanswered
from ..core.state import ModeChanged, StateChange, StateSet, TurnStopped
from ..core.tool import Alias, Exposure, Result, ToolError, load_guide
from ..core.values import plain_value
from ..core.verdicts import Behavior, Verdict
from . import NO_MODES, NOBODY_APPROVES, BuiltinTool, Services

PLAN = "plan"
"""The name of the mode, and the state key of the plan that was approved."""
APPROVE = Choice("Yes", "Carry out the plan.")
REJECT = Choice("No", "Stop here. Nothing is changed.")
QUESTION = "Carry out this plan? Any other answer is taken as changes to it."
NOBODY = (
    "Nobody is there to approve the plan, so plan mode stays on and nothing may be changed. "
    "Give the plan as your answer and end."
)


class ExitPlanModeInput(ToolInput):
    plan: str = Field(min_length=1, description="The plan, in Markdown.")


class Answered(StrEnum):
    APPROVED = "approved"
    CHANGED = "changed"
    REJECTED = "rejected"


@plain_value
class PlanAnswer:
    answered: Answered
    words: str = ""
    """What the person wants changed in the plan, or had to add to their approval."""
    mode: str = ""
    """The mode that is active now, if the plan was approved."""


class ExitPlanMode(BuiltinTool[ExitPlanModeInput, PlanAnswer]):
    name = "ExitPlanMode"
    description = load_guide(__file__)
    hint = "show the plan for approval"
    input_model = ExitPlanModeInput
    needs = "planning"
    aliases = (Alias("exit_plan_mode"),)
    exposure = Exposure.DEFERRED

    _UNSEEN: ClassVar = Verdict(behavior=Behavior.ASK, source="tool", reason="the person has to approve the plan")

    def __init__(
        self, modes: Modes | None = None, questioner: Questioner | None = None, *, by_approver: bool = False
    ) -> None:
        """Without a questioner nobody approves a plan, unless approving the call approves the plan."""
        self._modes = modes
        self._questioner = questioner
        self._by_approver = by_approver and questioner is None

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.modes, services.questioner, by_approver=services.approver_answers)

    def unavailable(self) -> str | None:
        if self._modes is None:
            return NO_MODES
        return None if self._questioner or self._by_approver else NOBODY_APPROVES

    def effects(self, input: ExitPlanModeInput, ctx: ToolContext) -> Effects:
        return Effects.of(ChangesState(MODE), ChangesState(PLAN), ChangesState("turn"))

    async def opinion(self, input: ExitPlanModeInput, ctx: ToolContext) -> Verdict | None:
        return self._UNSEEN if self._by_approver and self._is_planning else None

    @property
    def _is_planning(self) -> bool:
        return self._modes is not None and self._modes.current() == PLAN

    async def call(self, input: ExitPlanModeInput, ctx: ToolContext) -> Result[PlanAnswer]:
        assert self._modes is not None, "a tool without modes is off"
        if not self._is_planning:
            raise ToolError("Plan mode is not on, so there is nothing to leave. Continue with the work.")
        if self._by_approver:
            return self._apply_answer(Answer((APPROVE.label,)), input.plan, self._modes.before())
        if self._questioner is None:
            raise ToolError(NOBODY)
        question = Question(QUESTION, "Plan", (APPROVE, REJECT), about=Markdown(input.plan))
        answers = await self._questioner.ask((question,), asker=ctx.facts.agent)
        match answers:
            case Unanswered("nobody"):
                raise ToolError(NOBODY)
            case Unanswered():
                return _rejection()
            case _:
                return self._apply_answer(answers[0], input.plan, self._modes.before())

    def _apply_answer(self, answer: Answer, plan: str, before: str) -> Result[PlanAnswer]:
        words = answer.text.strip()
        if APPROVE.label in answer.chosen:
            changes: tuple[StateChange, ...] = (ModeChanged(before), StateSet(PLAN, plan))
            return Result(PlanAnswer(Answered.APPROVED, words, before), changes=changes)
        if words and REJECT.label not in answer.chosen:
            return Result(PlanAnswer(Answered.CHANGED, words))
        return _rejection(words)

    def to_model(self, output: PlanAnswer) -> tuple[Block, ...]:
        match output.answered:
            case Answered.APPROVED:
                said = f" The person adds: {output.words}" if output.words else ""
                text = f"The plan is approved and the mode is `{output.mode}` again. Carry it out.{said}"
            case Answered.CHANGED:
                text = f"The plan is not approved as it is, and plan mode stays on. The person says: {output.words}"
            case Answered.REJECTED:
                said = f" The person says: {output.words}" if output.words else ""
                text = f"The plan is rejected and plan mode stays on. The turn ends here.{said}"
        return (Text(text),)

    def describe(self, input: ExitPlanModeInput) -> str:
        return self.name

    def show_call(self, input: ExitPlanModeInput) -> View:
        return Markdown(input.plan)

    def show_result(self, input: ExitPlanModeInput, output: PlanAnswer) -> View:
        return Line(f"the plan is {output.answered}")


def _rejection(words: str = "") -> Result[PlanAnswer]:
    return Result(PlanAnswer(Answered.REJECTED, words), changes=(TurnStopped(),))
