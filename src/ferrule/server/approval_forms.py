"""The questions of AskUserQuestion as a form of plain fields, which every client can show, and the answers in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..output.plain import clean
from ..tools.ask_user_question import QuestionInput


def form_for(questions: Sequence[QuestionInput]) -> Mapping[str, Any]:
    """The choices of each question, and a field for free text."""
    properties: dict[str, Any] = {}
    for number, question in enumerate(questions, 1):
        properties |= _ticks(number, question) if question.multi_select else _choice(number, question)
        properties[_words(number)] = {
            "type": "string",
            "title": "Another answer",
            "description": clean(question.question),
        }
    return {"type": "object", "properties": properties}


def answers_of(questions: Sequence[QuestionInput], content: Mapping[str, Any]) -> dict[str, str]:
    """By question, several comma-separated. Unknown fields are left out."""
    answers: dict[str, str] = {}
    for number, question in enumerate(questions, 1):
        labels = [option.label for option in question.options]
        if question.multi_select:
            given = [label for place, label in enumerate(labels, 1) if content.get(_tick(number, place)) is True]
        else:
            given = [label for label in labels if content.get(_key_of_choice(number)) == label]
        words = content.get(_words(number))
        said = words.strip() if isinstance(words, str) else ""
        answers[question.question] = ", ".join((*given, *([said] if said else []))) or "(no answer)"
    return answers


def _choice(number: int, question: QuestionInput) -> dict[str, Any]:
    told = [f"{clean(option.label)}: {clean(option.description)}" for option in question.options if option.description]
    return {
        _key_of_choice(number): {
            "type": "string",
            "title": clean(question.header) or f"Question {number}",
            "description": "\n".join((clean(question.question), *told)),
            "enum": [option.label for option in question.options],
        }
    }


def _ticks(number: int, question: QuestionInput) -> dict[str, Any]:
    """One for each option: a field for several values is newer than some clients."""
    return {
        _tick(number, place): {
            "type": "boolean",
            "title": clean(option.label),
            "description": clean(option.description or question.question),
        }
        for place, option in enumerate(question.options, 1)
    }


def _key_of_choice(number: int) -> str:
    return f"choice_{number}"


def _tick(number: int, place: int) -> str:
    return f"choice_{number}_{place}"


def _words(number: int) -> str:
    return f"answer_{number}"
