"""A person at the terminal, asked in plain lines."""

from __future__ import annotations

import asyncio
import os
import termios
from contextlib import suppress

from ..app.questions import question_lines
from ..output.plain import harmless
from ..permissions.approvals import AnswerScope, ApprovalAnswer, ApprovalQuestion, Person

_PIECE = 4096
CHOICES = "[y]es, [n]o"
MORE_CHOICES = ", [s] yes for this session, [a] always (saved for this folder)"


class TerminalPerson:
    """Prints the question and reads the answer, both past stdin and stdout, which belong to the work."""

    def __init__(self, terminal: int) -> None:
        """`terminal` is a descriptor, which stays the caller's."""
        self._terminal = terminal

    async def answer(self, question: ApprovalQuestion, /) -> ApprovalAnswer:
        choices = CHOICES + (MORE_CHOICES if question.rules else "")
        self._forget_what_was_typed()
        self._say("\n".join(("", *question_lines(question), "")))
        while True:
            self._say(f"Allow it? {choices}, or what to do instead: ")
            line = await self._line()
            if (answer := parse_answer(line, can_keep=bool(question.rules))) is not None:
                return answer
            self._say("Please answer y or n.\n")

    def _forget_what_was_typed(self) -> None:
        """Discards keys that were pressed before the question appeared."""
        with suppress(termios.error):
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    def _say(self, text: str) -> None:
        data = harmless(text).encode("utf-8", "replace")
        with suppress(OSError):  # the terminal is gone, so its next line is the end of input
            while data:
                data = data[os.write(self._terminal, data) :]

    async def _line(self) -> str:
        """Reads one line; empty at the end. Uses no thread, because a cancellation would leave it waiting."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        got = bytearray()
        loop.add_reader(self._terminal, ready.set)
        try:
            while b"\n" not in got:
                await ready.wait()
                ready.clear()
                try:
                    piece = os.read(self._terminal, _PIECE)
                except OSError:
                    return ""
                if not piece:
                    return ""
                got += piece
        finally:
            loop.remove_reader(self._terminal)
        return bytes(got).partition(b"\n")[0].decode("utf-8", "replace") + "\n"


def terminal_person() -> Person | None:
    """The person at the terminal of this process; `None` without a terminal."""
    if not is_at_terminal():
        return None
    try:
        return TerminalPerson(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return None


def is_at_terminal() -> bool:
    """Whether a person can be asked: both input and output are a terminal."""
    try:
        return os.isatty(0) and os.isatty(2)
    except OSError:
        return False


def parse_answer(line: str, *, can_keep: bool) -> ApprovalAnswer | None:
    """The answer that a line means; `None` to ask again. The end of input means no.

    >>> parse_answer("y", can_keep=False).allowed, parse_answer("use rg", can_keep=False).words
    (True, 'the person said no, and: use rg')
    """
    said = line.strip()
    if not line or said.lower() in ("n", "no"):
        return ApprovalAnswer(allowed=False)
    if said.lower() in ("y", "yes"):
        return ApprovalAnswer(allowed=True)
    if can_keep and said.lower() in ("s", "session"):
        return ApprovalAnswer(allowed=True, reach=AnswerScope.SESSION)
    if can_keep and said.lower() in ("a", "always"):
        return ApprovalAnswer(allowed=True, reach=AnswerScope.SAVED)
    if len(said) < 2:
        return None
    return ApprovalAnswer(allowed=False, words=f"the person said no, and: {said}")
