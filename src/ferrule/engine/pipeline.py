"""The life of one call: prepare, wait, validate, judge, call, project, settle.

`prepare` is synchronous, so that the executor can give a call its place in the
order the moment the model has finished writing it. `run` reads from top to
bottom in the order things happen. A stage that cannot continue raises, and the
exits of these two are where an exception becomes an outcome; beyond them,
errors are data.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Protocol, assert_never, cast

from ..core.calls import CallRecord, Refusal, Status, ToolCall, ToolOutcome
from ..core.content import Block, Document, Image, Text
from ..core.context import ToolContext
from ..core.events import Emit, PermissionDecided, ToolStarted
from ..core.ports import AfterCall, Amendment, Approver, Judge, Paths, Proposal
from ..core.state import Granted, ModeChanged, MovedTo, Queued, StateChange, StateSet, ToolsFound, TurnStopped
from ..core.tool import AnyTool, Result, ToolError
from ..core.values import named_value
from ..core.verdicts import NO_OPINION, Behavior, Verdict, strictest
from .budget import Budget, Fitted
from .error_outcomes import contain_exit, end, from_outside, in_own_task, in_short, outcome_of_error
from .judging import answer_or_refusal, ask_all, rewriting, the_rest
from .pool import ToolPool
from .preparing import PreparedCall, look_up, prepare_call, restate


def as_result(returned: Any) -> Result[Any]:
    return cast(Result[Any], returned) if isinstance(returned, Result) else Result(returned)


def check_blocks(tool: AnyTool, content: object) -> tuple[Block, ...]:
    if not isinstance(content, tuple):
        raise TypeError(f"{tool.name} gave {type(content).__name__} where a tuple of blocks belongs")
    for block in cast(tuple[object, ...], content):
        if not isinstance(block, (Text, Image, Document)):
            raise TypeError(f"{tool.name} gave {type(block).__name__} where a block belongs")
    return cast(tuple[Block, ...], content)


def require_extras(tool: AnyTool, result: Result[Any]) -> None:
    """Messages and changes of state leave the tool here, so their types are checked."""
    for change in result.changes:
        if not isinstance(change, StateChange):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{tool.name} gave {change!r} where a change of state belongs")
        if not _can_be_made(change):
            raise TypeError(f"{tool.name} gave {change!r}, a change of state that cannot be made")
    if isinstance(result.messages, str):
        raise TypeError(f"{tool.name} gave one text where a tuple of texts for the conversation belongs")
    for message in result.messages:
        if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{tool.name} gave {message!r} where a text for the conversation belongs")


def _can_be_made(change: StateChange) -> bool:
    """Whether the session can apply it. What cannot be applied must not be tried."""
    match change:
        case MovedTo(path):
            return _is_text(path) and os.path.isabs(path)
        case Granted(words) | Queued(words) | ModeChanged(words):
            return _is_text(words)
        case TurnStopped():
            return True
        case ToolsFound(names):
            return isinstance(names, tuple) and all(_is_text(name) for name in names)  # pyright: ignore[reportUnnecessaryIsInstance]
        case StateSet(key):
            return _is_text(key)
        case _:
            assert_never(change)


def _is_text(thing: object) -> bool:
    return isinstance(thing, str)


log = logging.getLogger(__name__)

MAX_REWRITES = 3


class Admission(Protocol):
    """The executor's part in a running call."""

    record: CallRecord

    async def admit(self, ready: PreparedCall, /) -> PreparedCall:
        """Wait for the call's turn, and state its effects again on the world as it is then."""
        ...

    async def message_complete(self) -> None:
        """Return when the model has finished the message: nobody is asked before that."""
        ...

    def stop(self) -> None:
        """The call is to end. For its work in threads, which no cancellation reaches."""
        ...


@named_value
class Pipeline:
    paths: Paths
    approver: Approver
    emit: Emit
    judges: Sequence[Judge] = ()
    after: Sequence[AfterCall] = ()
    budget: Budget = field(default_factory=Budget)
    time_limits: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds by tool name; a setting takes precedence over the tool's own limit."""
    cut: Callable[[str, str], None] = lambda agent, call_id: None
    """Called with the agent and the call's id if the model does not get the result as the tool gave it."""

    # Before the queue

    def prepare(self, call: ToolCall, pool: ToolPool, ctx: ToolContext) -> PreparedCall | ToolOutcome:
        try:
            tool, arguments = look_up(call, pool)
            return prepare_call(call, tool, arguments, ctx, self.paths)
        except BaseException as error:  # the pipeline's exit, for calls that never enter the queue
            return outcome_of_error(call, error)

    def restate(self, ready: PreparedCall, cwd: str) -> PreparedCall:
        return restate(ready, cwd, self.paths)

    async def decide(self, ready: PreparedCall) -> tuple[PreparedCall, Verdict]:
        """The verdict of the judges, and the call with its input as they changed it. Nobody is asked, nothing runs.

        Raises `Refusal` for an input that is not valid once it was changed.
        """
        for _ in range(MAX_REWRITES + 1):
            verdict, changed = await self._heard(ready)
            if changed is None:
                return ready, verdict
            ready = self._prepare_changed(ready.proposal, changed)
        raise _changed_too_often(ready)

    # In its turn

    async def run(self, ready: PreparedCall, admission: Admission) -> ToolOutcome:
        """The outcome, whatever happens; only a cancellation from outside leaves as an exception."""
        ran = False
        try:
            ready = await admission.admit(ready)
            ready = await self._clear(ready, admission)
            ran = True
            outcome = await self._carry_out(ready.proposal, admission)
        except BaseException as error:  # the pipeline's exit: the one place where exceptions become outcomes
            outcome = outcome_of_error(ready.proposal.call, error, ready.proposal.tool)
            outcome = await self._bound(ready.proposal, outcome, admission.record)
        if ran and self.after:
            outcome = await self._follow_up(ready.proposal, outcome, admission.record)
        return outcome

    async def _clear(self, ready: PreparedCall, admission: Admission) -> PreparedCall:
        """The call that may run. One whose input was changed is validated and judged as changed."""
        approved: Verdict | None = None
        for _ in range(MAX_REWRITES + 1):
            proposal = ready.proposal
            admission.record.effects = proposal.effects
            if proposal.tool.looks_first:
                await _validate(proposal)
            admission.record.mark("validate")
            self.emit(ToolStarted(proposal.call, proposal.tool.show_call(proposal.input)))
            changed, approved = await self._judge(ready, admission, approved)
            if changed is None:
                return ready
            admission.record.rewrites += (changed.updated_arguments or {},)
            ready = await admission.admit(self._prepare_changed(proposal, changed))
        raise _changed_too_often(ready)

    def _prepare_changed(self, proposal: Proposal, changed: Verdict) -> PreparedCall:
        """With the input that somebody wants instead. It is not the model's, so an error says whose it is."""
        try:
            return prepare_call(proposal.call, proposal.tool, changed.updated_arguments or {}, proposal.ctx, self.paths)
        except Refusal as refusal:
            words = f"{proposal.tool.name} did not run because its input was changed: {changed.reason}. {refusal}"
            raise Refusal(refusal.status, words) from None

    async def _heard(self, ready: PreparedCall) -> tuple[Verdict, Verdict | None]:
        """What all judges say as one verdict, and that with an input to use instead, if it is not refused."""
        proposal = ready.proposal
        heard, waiting = ask_all(proposal, self.judges)
        if waiting:
            heard += await the_rest(waiting)
        verdict = strictest(heard)
        denied = verdict.behavior is Behavior.DENY
        return verdict, None if denied else rewriting(heard, proposal.arguments, ready.given)

    async def _judge(
        self, ready: PreparedCall, admission: Admission, approved: Verdict | None
    ) -> tuple[Verdict | None, Verdict | None]:
        """Return if it may run; with the verdict that replaces its input, if somebody changed it. Otherwise refuse.

        `approved` is the answer of the approver who made this input: it answers an ASK, not a DENY.
        """
        proposal, record = ready.proposal, admission.record
        verdict, changed = await self._heard(ready)
        record.mark("judge")
        if changed is not None:
            return changed, None
        if verdict.behavior is Behavior.ASK:
            verdict = _inside(approved, verdict) if approved else await self._ask(proposal, verdict, admission)
            if approved is None and verdict.behavior is Behavior.ALLOW:
                changed = rewriting((verdict,), proposal.arguments, ready.given)
                if changed is not None:
                    return changed, verdict
        elif approved is not None and verdict.behavior is Behavior.ALLOW:
            verdict = replace(verdict, approved=verdict.approved or approved.approved)
        record.verdict = verdict
        self.emit(PermissionDecided(proposal.call.id, verdict))
        if verdict.behavior is not Behavior.ALLOW:
            stop = "" if verdict.reason.endswith((".", "!", "?")) else "."
            words = f"{proposal.tool.name} was not allowed: {verdict.reason}{stop}"
            raise Refusal(Status.DENIED, words, stops=verdict.stops)
        return None, None

    async def _ask(self, proposal: Proposal, verdict: Verdict, admission: Admission) -> Verdict:
        await admission.message_complete()
        answer = await answer_or_refusal(self.approver.approve(proposal, verdict)) or NO_OPINION
        admission.record.mark("ask")
        if answer.behavior is Behavior.ALLOW and not _is_held(answer):
            answer = replace(answer, approved=True)
        return _inside(answer, verdict)

    async def _carry_out(self, proposal: Proposal, admission: Admission) -> ToolOutcome:
        tool = proposal.tool
        limit = self.time_limits.get(tool.name, tool.time_limit)
        try:
            if limit is None:
                returned = await tool.call(proposal.input, proposal.ctx)
            else:
                returned = await _within(limit, proposal, admission)
        finally:
            admission.record.mark("call")
        return await self._project(proposal, as_result(returned), admission.record)

    async def _project(self, proposal: Proposal, result: Result[Any], record: CallRecord) -> ToolOutcome:
        """Typed output to blocks for the model, within the budget, and a view for people."""
        tool = proposal.tool
        output = tool.check_output(result.output)
        content = check_blocks(tool, tool.to_model(output))
        if result.changes or result.messages:
            require_extras(tool, result)
        fitted = self.budget.within(tool, content)
        if fitted is None:
            fitted = await self.budget.fit(proposal.call.id, tool, content)
            self.cut(proposal.ctx.facts.agent, proposal.call.id)
        view = tool.show_result(proposal.input, output)
        _note(record, fitted)
        record.mark("project")
        return ToolOutcome(
            proposal.call,
            Status.OK,
            fitted.content,
            view,
            output,
            tuple(result.messages),
            tuple(result.changes),
            result.meta,
            record,
        )

    async def _bound(self, proposal: Proposal, outcome: ToolOutcome, record: CallRecord) -> ToolOutcome:
        """An error can be as long as a result, and has the same limit."""
        fitted = await self.budget.fit(proposal.call.id, proposal.tool, outcome.content)
        _note(record, fitted)
        return outcome if fitted.content is outcome.content else replace(outcome, content=fitted.content)

    # After the call

    async def _follow_up(self, proposal: Proposal, outcome: ToolOutcome, record: CallRecord) -> ToolOutcome:
        for step in self.after:
            try:
                answer = step.after(proposal, outcome)
                amendment = await answer if isinstance(answer, Awaitable) else answer
                if amendment is not None:
                    outcome = await self._amend(proposal, outcome, amendment, record)
            except BaseException as error:  # a step is somebody else's code, and the call has already happened
                if from_outside(error):
                    raise
                log.exception("a step after %s failed", proposal.tool.name)
                note = Text(f"[A step after the call failed: {in_short(error)}]")
                outcome = replace(outcome, content=(*outcome.content, note))
        record.mark("after")
        return outcome

    async def _amend(
        self, proposal: Proposal, outcome: ToolOutcome, amendment: Amendment, record: CallRecord
    ) -> ToolOutcome:
        if amendment.output is not None:
            result = Result(amendment.output, outcome.messages, outcome.changes, outcome.meta)
            outcome = replace(await self._project(proposal, result, record), status=outcome.status)
        if amendment.content is not None:
            content = check_blocks(proposal.tool, amendment.content)
            fitted = await self.budget.fit(proposal.call.id, proposal.tool, content)
            _note(record, fitted)
            outcome = replace(outcome, content=fitted.content)
            self.cut(proposal.ctx.facts.agent, proposal.call.id)
        return replace(outcome, messages=outcome.messages + amendment.messages, stops=outcome.stops or amendment.stops)


def _changed_too_often(ready: PreparedCall) -> Refusal:
    name = ready.proposal.tool.name
    return Refusal(Status.DENIED, f"{name} was not allowed: its input was rewritten more than {MAX_REWRITES} times.")


def _is_held(answer: Verdict) -> bool:
    """Whether an approver only repeats what a mode says, which approves nothing."""
    return answer.needs_confinement is not None and answer.needs_confinement.grants is not None


def _inside(answer: Verdict, verdict: Verdict) -> Verdict:
    """The answer to a verdict, with the sandbox that the verdict wants."""
    if verdict.needs_confinement is None or answer.needs_confinement is not None:
        return answer
    return replace(answer, needs_confinement=verdict.needs_confinement)


def _note(record: CallRecord, fitted: Fitted) -> None:
    record.produced_chars, record.sent_chars, record.saved_to = fitted.produced, fitted.sent, fitted.saved_to


async def _validate(proposal: Proposal) -> None:
    try:
        await proposal.tool.validate(proposal.input, proposal.ctx)
    except ToolError as error:
        raise Refusal(Status.INVALID, str(error)) from None


async def _within(limit: float, proposal: Proposal, admission: Admission) -> Any:
    """The call in a task of its own, which is ended when its time is up."""
    tool = proposal.tool
    task = in_own_task(tool.call(proposal.input, proposal.ctx), contain_exit)
    try:
        finished, _ = await asyncio.wait((task,), timeout=limit)
    except asyncio.CancelledError:
        await end(task)
        raise
    if finished:
        return task.result()
    admission.stop()
    if not await end(task):
        words = f"{tool.name} did not stop at its time limit of {limit:g} s. It may still be running."
        raise Refusal(Status.FAILED, words)
    raise Refusal(Status.FAILED, f"{tool.name} was stopped after {limit:g} s, its time limit.")
