"""Ask the person something."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from ..core.content import Block, Table, Text, View
from ..core.context import ToolContext
from ..core.effects import Effects
from ..core.inputs import ToolInput
from ..core.ports import Answer, Choice, Question, Questioner, Unanswered
from ..core.tool import ToolError, load_guide
from ..core.values import plain_value
from ..core.verdicts import Behavior, Verdict
from . import NOBODY_ANSWERS, BuiltinTool, Services

NOBODY = (
    "Nobody is there to answer. Decide yourself based on what is known, say in your answer what you assumed, "
    "and do not ask again."
)
DECLINED = "The person did not want to answer. Continue without it, or stop here and say what you need to know."


class OptionInput(ToolInput):
    label: str = Field(min_length=1, max_length=200, description="The answer, in one to five words.")
    description: str = Field(default="", max_length=2000, description="What it means, and what follows from it.")
    preview: str = Field(default="", max_length=10_000, description="What it would look like, in Markdown.")


class QuestionInput(ToolInput):
    question: str = Field(min_length=1, max_length=2000, description="The question, whole and with its question mark.")
    header: str = Field(default="", max_length=40, description="A label of one or two words.")
    options: list[OptionInput] = Field(min_length=2, max_length=4, description="The answers to choose from.")
    multi_select: bool = Field(default=False, alias="multiSelect", description="Whether several may be chosen.")


class AskUserQuestionInput(ToolInput):
    questions: list[QuestionInput] = Field(min_length=1, max_length=4, description="What to ask, all at once.")
    answers: SkipJsonSchema[dict[str, str] | None] = Field(default=None)
    """By question, filled in by the approver of the call; applies only where `by_approver` says so."""


@plain_value
class QuestionsAnswered:
    answers: tuple[tuple[str, str], ...]
    """Each question with its answer; several choices are separated by commas."""


class AskUserQuestion(BuiltinTool[AskUserQuestionInput, QuestionsAnswered]):
    name = "AskUserQuestion"
    description = load_guide(__file__)
    hint = "ask the person a question"
    input_model = AskUserQuestionInput
    needs = "answers"

    _UNSEEN: ClassVar = Verdict(behavior=Behavior.ASK, source="tool", reason="the person has to answer it")

    def __init__(self, questioner: Questioner | None = None, *, by_approver: bool = False) -> None:
        """Without a questioner nobody answers, unless the approver of calls fills in `answers`."""
        self._questioner = questioner
        self._by_approver = by_approver and questioner is None

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.questioner, by_approver=services.approver_answers)

    def unavailable(self) -> str | None:
        return None if self._questioner or self._by_approver else NOBODY_ANSWERS

    def effects(self, input: AskUserQuestionInput, ctx: ToolContext) -> Effects:
        return Effects.of()

    def check(self, input: AskUserQuestionInput, ctx: ToolContext) -> None:
        texts = [question.question for question in input.questions]
        if len(set(texts)) < len(texts):
            raise ToolError("Two of the questions are the same. Ask each of them once.")
        for question in input.questions:
            labels = [option.label for option in question.options]
            if len(set(labels)) < len(labels):
                raise ToolError(f"`{question.question}` has the same answer twice. Give answers that differ.")

    async def opinion(self, input: AskUserQuestionInput, ctx: ToolContext) -> Verdict | None:
        return self._UNSEEN if self._by_approver else None

    async def call(self, input: AskUserQuestionInput, ctx: ToolContext) -> QuestionsAnswered:
        if self._by_approver and input.answers:
            return QuestionsAnswered(tuple((one.question, _answer_to(input.answers, one)) for one in input.questions))
        if self._questioner is None:
            raise ToolError(NOBODY)
        answers = await self._questioner.ask(tuple(map(_question, input.questions)), asker=ctx.facts.agent)
        match answers:
            case Unanswered(why):
                raise ToolError(NOBODY if why == "nobody" else DECLINED)
            case _:
                texts = (one.question for one in input.questions)
                return QuestionsAnswered(tuple(zip(texts, map(_words, answers), strict=True)))

    def to_model(self, output: QuestionsAnswered) -> tuple[Block, ...]:
        return (Text("\n\n".join(f"Question: {question}\nAnswer: {answer}" for question, answer in output.answers)),)

    def describe(self, input: AskUserQuestionInput) -> str:
        return f"AskUserQuestion {' '.join(input.questions[0].question.split())[:80]}"

    def show_result(self, input: AskUserQuestionInput, output: QuestionsAnswered) -> View:
        return Table(("question", "answer"), output.answers)


def _question(input: QuestionInput) -> Question:
    choices = tuple(Choice(option.label, option.description, option.preview) for option in input.options)
    return Question(input.question, input.header, choices, several=input.multi_select)


def _answer_to(answers: dict[str, str], question: QuestionInput) -> str:
    return answers.get(question.question) or answers.get(question.header) or "(no answer)"


def _words(answer: Answer) -> str:
    return ", ".join((*answer.chosen, *filter(None, (answer.text.strip(),)))) or "(no answer)"
