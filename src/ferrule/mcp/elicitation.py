"""A server's questions to a person: a form becomes questions, the answers become the form's content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from ..core.ports import Answer, Choice, Question, Questioner, Unanswered

AT_ONCE: Final = 4
"""Questions that a person is asked together."""
YES, NO = "Yes", "No"
OPENED, REFUSED = "I have opened it", "No"


async def put_to_person(questioner: Questioner, server: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The answer as the protocol has it: the content, or that the person declined, or that nobody can be asked."""
    if asked.get("mode") == "url":
        return await _ask_to_open(questioner, server, asked)
    schema = cast(Mapping[str, Any], asked.get("requestedSchema") or {})
    fields = list(cast(Mapping[str, Mapping[str, Any]], schema.get("properties") or {}).items())
    required = cast(list[str], schema.get("required") or [])
    message = str(asked.get("message", ""))
    content: dict[str, Any] = {}
    if not fields:
        return await _confirm(questioner, server, message)
    for start in range(0, len(fields), AT_ONCE):
        some = fields[start : start + AT_ONCE]
        answers = await questioner.ask(tuple(_question(message, name, field) for name, field in some), asker=server)
        if isinstance(answers, Unanswered):
            return _not_answered(answers)
        for (name, field), answer in zip(some, answers, strict=True):
            value = _value(field, answer) if answer.chosen or answer.text.strip() else field.get("default")
            if value is None and name in required:
                return {"action": "decline"}
            if value is not None:
                content[name] = value
    return {"action": "accept", "content": content}


async def _confirm(questioner: Questioner, server: str, message: str) -> dict[str, Any]:
    answers = await questioner.ask((Question(message, choices=(Choice(YES), Choice(NO))),), asker=server)
    if isinstance(answers, Unanswered):
        return _not_answered(answers)
    return {"action": "accept", "content": {}} if YES in answers[0].chosen else {"action": "decline"}


async def _ask_to_open(questioner: Questioner, server: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The URL is shown and never opened from here: the person decides whether to trust it."""
    text = f"{asked.get('message', '')}\n{asked.get('url', '')}"
    answers = await questioner.ask((Question(text, choices=(Choice(OPENED), Choice(REFUSED))),), asker=server)
    if isinstance(answers, Unanswered):
        return _not_answered(answers)
    return {"action": "accept" if OPENED in answers[0].chosen else "decline"}


def _not_answered(answer: Unanswered) -> dict[str, Any]:
    return {"action": "decline" if answer.why == "declined" else "cancel"}


def _question(message: str, name: str, field: Mapping[str, Any]) -> Question:
    title, more = str(field.get("title") or name), str(field.get("description") or "")
    spare = f" [{_show_default(field)}]" if "default" in field else ""
    text = f"{message}\n{title}{f': {more}' if more else ''}{spare}"
    choices = tuple(Choice(label) for label in _labels(field))
    return Question(text, header=title[:12], choices=choices, several=field.get("type") == "array")


def _show_default(field: Mapping[str, Any]) -> str:
    """The default, as a person would write it."""
    default: Any = field["default"]
    values: list[Any] = cast(list[Any], default) if isinstance(default, list) else [default]
    labels = _labels(field)
    return ", ".join(next((label for label, value in labels.items() if value == one), str(one)) for one in values)


def _labels(field: Mapping[str, Any]) -> dict[str, Any]:
    """The choices, each with its value."""
    if field.get("type") == "boolean":
        return {YES: True, NO: False}
    source = cast(Mapping[str, Any], field.get("items") or {}) if field.get("type") == "array" else field
    titled: list[Any] = [one for one in _list(source.get("oneOf") or source.get("anyOf")) if isinstance(one, dict)]
    if titled:
        return {str(one.get("title") or one.get("const")): one.get("const") for one in titled}
    values, names = _list(source.get("enum")), _list(source.get("enumNames"))
    return dict(zip(map(str, names if len(names) == len(values) else values), values, strict=True))


def _list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _value(field: Mapping[str, Any], answer: Answer) -> Any:
    """`None` if the answer is not valid for the field."""
    labels = _labels(field)
    chosen = [labels[label] for label in answer.chosen if label in labels]
    if field.get("type") == "array":
        return chosen
    if chosen:
        return chosen[0]
    text = answer.text.strip()
    match field.get("type"):
        case "integer" | "number":
            return _number(text, whole=field.get("type") == "integer")
        case "boolean":
            return {"yes": True, "true": True, "no": False, "false": False}.get(text.lower())
        case _:
            return text or None


def _number(text: str, *, whole: bool) -> int | float | None:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        return None
