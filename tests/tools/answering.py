"""A person who answers questions, for tests."""

from __future__ import annotations

from ferrule.core.ports import Answer, Question, Unanswered


class Person:
    """Gives these answers to whatever is asked, and remembers what it was."""

    def __init__(self, *answers: Answer, refusing: Unanswered | None = None) -> None:
        self.asked: list[tuple[tuple[Question, ...], str]] = []
        self._answers = answers
        self._refusing = refusing

    async def ask(self, questions: tuple[Question, ...], /, *, asker: str) -> tuple[Answer, ...] | Unanswered:
        self.asked.append((questions, asker))
        return self._refusing or self._answers
