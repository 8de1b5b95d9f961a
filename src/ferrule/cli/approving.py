"""A person at the terminal, asked in plain lines."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from ..core.effects import describe_touch
from ..output.plain import clean, lines
from ..permissions.asking import Answer, Person, Question, Reach

MOST_LINES = 60
CHOICES = "[y]es, [n]o"
MORE_CHOICES = ", [s] yes for this session, [a] always (saved for this folder)"


class TerminalPerson:
    """Prints the question and reads the answer, both past stdin and stdout, which belong to the work."""

    def __init__(self, reading: TextIO, writing: TextIO) -> None:
        self._reading = reading
        self._writing = writing

    async def answer(self, question: Question, /) -> Answer:
        print("\n".join(_shown(question)), file=self._writing)
        choices = CHOICES + (MORE_CHOICES if question.rules else "")
        while True:
            print(f"Allow it? {choices}, or what to do instead: ", end="", flush=True, file=self._writing)
            line = await asyncio.to_thread(self._reading.readline)
            if (answer := understood(line, can_keep=bool(question.rules))) is not None:
                return answer
            print("Please answer y or n.", file=self._writing)


def terminal_person() -> Person | None:
    """Whoever sits at the terminal of this process; `None` where nobody does."""
    if not sys.stderr.isatty():
        return None
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return None
    return TerminalPerson(os.fdopen(os.dup(descriptor), "r"), os.fdopen(descriptor, "w"))


def understood(line: str, *, can_keep: bool) -> Answer | None:
    """The answer that a line means; `None` to ask again. The end of input means no.

    >>> understood("y", can_keep=False), understood("use rg", can_keep=False).words
    (Answer(allowed=True, reach=<Reach.ONCE: 'once'>, words='', arguments=None), 'the person said no, and: use rg')
    """
    said = line.strip()
    if not line or said.lower() in ("n", "no"):
        return Answer(allowed=False)
    if said.lower() in ("y", "yes"):
        return Answer(allowed=True)
    if can_keep and said.lower() in ("s", "session"):
        return Answer(allowed=True, reach=Reach.SESSION)
    if can_keep and said.lower() in ("a", "always"):
        return Answer(allowed=True, reach=Reach.SAVED)
    if len(said) < 2:
        return None
    return Answer(allowed=False, words=f"the person said no, and: {said}")


def _shown(question: Question) -> Iterator[str]:
    proposal, verdict = question.proposal, question.verdict
    agent = proposal.ctx.facts.agent
    yield ""
    yield clean(proposal.tool.describe(proposal.input)) + (f"  (agent {clean(agent)})" if agent != "main" else "")
    shown = lines(question.view)
    yield from (f"  {line}" for line in shown[:MOST_LINES])
    if len(shown) > MOST_LINES:
        yield f"  ... and {len(shown) - MOST_LINES:,} more lines"
    yield from (f"  {clean(describe_touch(touch))}" for touch in proposal.effects.touches)
    yield from (f"Risk ({risk.severity}): {clean(risk.message)}" for risk in verdict.risks)
    yield f"It is asked because {clean(verdict.reason)}."
    if question.rules:
        yield "Always would add: " + ", ".join(f"`{clean(rule)}`" for rule in question.rules)
