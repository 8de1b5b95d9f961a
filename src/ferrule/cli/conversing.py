"""A headless run: a conversation of the SDK, what it prints, and its exit code."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..app.headless_run import SchemaError
from ..core.model import ModelError
from ..output.run_answer import DENIED, Ending, RunAnswer
from ..sdk.conversation import Conversation
from ..sdk.conversation_opening import OpenedConversation, OpeningWords, open_for_program
from ..sdk.errors import CannotOpen
from .exits import OK, UsageError
from .printers import Printer, say
from .session_flags import WAYS_ON, rules_for_no_tool, warn_of_root

if TYPE_CHECKING:
    from ..core.events import Envelope
    from ..engine.session import Session
    from ..output.run_answer import Denial
    from ..sdk.conversation import Line, Lines
    from ..sdk.options import Options
    from .signals import Interruptible

MOST_REFUSALS: Final = 5
"""Refused calls that are named; the result has all of them."""


class NoModel(Exception):
    """No model can be asked, for want of a key. The message says what to set."""


class RunListener:
    """Prints what is told, and knows the exit code. Satisfies `sdk.conversation.Listener`."""

    def __init__(self, printer: Printer, signals: Interruptible, *, host_answers: bool = False) -> None:
        """`host_answers` says that a program decides about calls: then a refusal is its answer, and no failure."""
        self._printer = printer
        self._signals = signals
        self._host_answers = host_answers
        self.exit_code = OK
        """Of the last prompt."""

    async def tell(self, line: Line, /) -> None:
        await self._printer.tell(line)

    def tell_at_once(self, line: Line, /) -> None:
        self._printer.tell_at_once(line)

    async def watch(self, envelope: Envelope, lines: Lines, /) -> None:
        await self._printer.watch(envelope, lines)

    def watch_last(self, envelope: Envelope, lines: Lines, /) -> None:
        self._printer.watch_last(envelope, lines)

    async def finish(self, answer: RunAnswer, session_id: str, /) -> None:
        if self._signals.exit_code is not None:
            self.exit_code = self._signals.exit_code
            self._printer.finish_last(_mark_signalled(answer, self.exit_code), session_id)
            return
        self.exit_code = answer.exit_code
        if self._host_answers:
            self.exit_code = OK if answer.exit_code == DENIED else answer.exit_code
        else:
            _say_refusals(answer.denials)
        await self._printer.finish(answer, session_id)

    def close(self) -> None:
        """Whatever was told is written."""


def open_run(options: Options) -> OpenedConversation:
    """With warnings on stderr. Raises `UsageError`, or `NoModel` without a key."""
    try:
        opened = open_for_program(options, words=OpeningWords(ways_on=WAYS_ON, warn=say))
    except CannotOpen as error:
        if isinstance(error.__cause__, ModelError) and error.__cause__.kind == "key":
            raise NoModel(str(error)) from None
        flag = "--json-schema: " if isinstance(error.__cause__, SchemaError) else ""
        raise UsageError(f"{flag}{error}") from None
    for warning in rules_for_no_tool(opened.given_rules):
        say(warning)
    if opened.may_bypass:
        warn_of_root()
    return opened


async def answer_once(
    options: Options, prompt: str, listener: RunListener, signals: Interruptible, tool: str | None = None
) -> int:
    """One prompt. Returns the exit code. `tool` is asked for permission, if given."""
    person = None
    if tool is not None:
        from .host_callbacks import ToolPerson

        person = ToolPerson(tool)
        options = replace(options, person=person, approver_answers=True, deny=(*options.deny, tool))
    conversation = Conversation(open_run(options), listener, options)
    if person is not None:
        person.conversation = conversation
    conversation.say(prompt)
    conversation.say_no_more()
    conversation.start()
    await wait_or_stop(conversation, signals)
    return listener.exit_code if signals.exit_code is None else signals.exit_code


async def wait_or_stop(conversation: Conversation, signals: Interruptible) -> None:
    """Until the conversation has ended; a signal ends it, with the result of the turn that ran."""
    try:
        await conversation.wait()
    except asyncio.CancelledError:
        if signals.exit_code is None:
            conversation.end()
            raise
        conversation.stop()
        await conversation.wait()
    finally:
        _say_if_not_kept(conversation.session)


def _mark_signalled(answer: RunAnswer, exit_code: int) -> RunAnswer:
    """Regardless of the turn's result: the run was ended, and the exit code says so."""
    words = f"Interrupted by signal {exit_code - 128}."
    return replace(answer, ending=Ending.FAILED, errors=(words,), structured=None)


def _say_refusals(denials: tuple[Denial, ...]) -> None:
    """What was refused, and what would allow it."""
    for denial in denials[:MOST_REFUSALS]:
        rules = " ".join(f"--allow {_quoted(rule)}" for rule in denial.allowed_by)
        way = f" To allow it, add {rules}." if rules else ""
        say(f"{denial.call.name} was not allowed: {denial.reason.rstrip('.')}.{way}")
    if len(denials) > MOST_REFUSALS:
        say(f"{len(denials) - MOST_REFUSALS} more calls were not allowed.")


def _quoted(rule: str) -> str:
    """For a shell, on one line.

    >>> _quoted("Bash(echo 'a')")
    '\\'Bash(echo \\'"\\'"\\'a\\'"\\'"\\')\\''
    """
    from shlex import quote

    return quote(" ".join(rule.split()))


def _say_if_not_kept(session: Session) -> None:
    if session.transcript is not None and (problem := session.transcript.problem):
        say(f"this conversation cannot be resumed as it was: {problem}")
