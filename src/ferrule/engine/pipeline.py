"""The life of one call: prepare, wait, validate, judge, call, project, settle.

`prepare` is synchronous, so that the executor can give a call its place in the
order the moment the model has finished writing it. `run` reads from top to
bottom in the order things happen. A stage that cannot go on raises, and `run`
is the one place where an exception becomes an outcome; outside this module,
errors are data.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from ..core.calls import Refusal, Status, ToolCall, ToolOutcome
from ..core.content import Document, Image, Text
from ..core.context import ToolContext
from ..core.effects import Effects
from ..core.events import Emit, PermissionDecided, ToolStarted
from ..core.inputs import ToolInput
from ..core.ports import AfterCall, Amendment, Approver, Judge, Paths, Proposal
from ..core.state import MovedTo, StateChange
from ..core.tool import AnyTool, Exposure, Result, ToolError
from ..core.verdicts import NO_OPINION, Behavior, Verdict, strictest
from .budget import Budget
from .faults import contained, end, from_outside, told
from .footprint import Footprint, ground
from .judging import guarded, opinions, rewritten
from .pool import ToolPool
from .trace import Trace

log = logging.getLogger(__name__)

MAX_REWRITES = 3


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call whose tool exists and whose arguments parse, with what it would occupy."""

    proposal: Proposal
    parsed: Any
    """The input before its paths were made absolute."""
    given: Mapping[str, Any]
    """The arguments before their paths were made absolute."""
    footprint: Footprint


class Admission(Protocol):
    """The executor's part in a running call."""

    trace: Trace

    async def admit(self, ready: Prepared, /) -> Prepared:
        """Wait for the call's turn, and state its effects again on the world as it is then."""
        ...

    async def message_complete(self) -> None:
        """Return when the model has finished the message: nobody is asked before."""
        ...

    def stop(self) -> None:
        """The call is to end. For its work in threads, which no cancellation reaches."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    paths: Paths
    approver: Approver
    emit: Emit
    judges: Sequence[Judge] = ()
    after: Sequence[AfterCall] = ()
    budget: Budget = field(default_factory=Budget)
    time_limits: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds by tool name; a setting goes before what the tool says."""

    # Before the queue

    def prepare(self, call: ToolCall, pool: ToolPool, ctx: ToolContext) -> Prepared | ToolOutcome:
        try:
            tool, arguments = _looked_up(call, pool)
            return self._prepared(call, tool, arguments, ctx)
        except BaseException as error:  # the pipeline's exit, for calls that never enter the queue
            return told(call, error)

    def restate(self, ready: Prepared, cwd: str) -> Prepared:
        """The same call on the working directory and the links of this moment."""
        proposal = ready.proposal
        ctx = proposal.ctx if proposal.ctx.cwd == cwd else replace(proposal.ctx, cwd=cwd)
        return self._stated(proposal.call, proposal.tool, ready.parsed, ready.given, ctx)

    def _prepared(self, call: ToolCall, tool: AnyTool, arguments: Mapping[str, Any], ctx: ToolContext) -> Prepared:
        try:
            ready = self._stated(call, tool, tool.parse(arguments), arguments, ctx)
            tool.check(ready.proposal.input, ctx)
        except (Refusal, ToolError) as refusal:
            message = str(refusal)
            if tool.exposure is Exposure.DEFERRED:
                message = f"{message}\nIts schema: {tool.spec.schema_json()}"
            raise Refusal(Status.INVALID, message) from None
        return ready

    def _stated(
        self, call: ToolCall, tool: AnyTool, parsed: Any, given: Mapping[str, Any], ctx: ToolContext
    ) -> Prepared:
        input, arguments, leans_on_cwd = self._anchored(parsed, given, ctx.cwd)
        effects = ground(stated_effects(tool, input, ctx), self.paths)
        footprint = Footprint.of(effects, reads_cwd=leans_on_cwd)
        return Prepared(Proposal(call, tool, input, arguments, effects, ctx), parsed, given, footprint)

    def _anchored(self, parsed: Any, arguments: Mapping[str, Any], cwd: str) -> tuple[Any, Mapping[str, Any], bool]:
        """Input and arguments with absolute paths, and whether the call depends on the working directory.

        It does unless every path it takes was given, and given absolutely.
        """
        if not isinstance(parsed, ToolInput) or not parsed.path_fields:
            return parsed, arguments, True
        absolute: dict[str, Any] = {}
        leans = False
        for name in parsed.path_fields:
            written = getattr(parsed, name)
            if isinstance(written, str):
                anchored: Any = self._anchor(name, written, cwd)
                leans = leans or not written.startswith(("/", "~"))
            elif isinstance(written, list | tuple):
                several = cast(Sequence[str], written)
                anchored = type(several)(self._anchor(name, one, cwd) for one in several)  # pyright: ignore[reportCallIssue]
                leans = leans or not all(one.startswith(("/", "~")) for one in several)
            else:
                leans = True
                continue
            if anchored != written:
                absolute[name] = anchored
        if not absolute:
            return parsed, arguments, leans
        fields = type(parsed).model_fields
        shown = {
            name if name in arguments else fields[name].alias or name: anchored for name, anchored in absolute.items()
        }
        return parsed.model_copy(update=absolute), {**arguments, **shown}, leans

    def _anchor(self, name: str, written: str, cwd: str) -> str:
        if "\0" in written:
            raise Refusal(Status.INVALID, f"`{name}` holds a NUL character, which no path can. Remove it.")
        return self.paths.anchor(written, cwd)

    # In its turn

    async def run(self, ready: Prepared, admission: Admission) -> ToolOutcome:
        """The outcome, whatever happens; only a cancellation from outside leaves as an exception."""
        ran = False
        try:
            ready = await admission.admit(ready)
            ready = await self._cleared(ready, admission)
            ran = True
            outcome = await self._carried_out(ready.proposal, admission)
        except BaseException as error:  # the pipeline's exit: the one place where exceptions become outcomes
            outcome = told(ready.proposal.call, error, ready.proposal.tool)
        if ran and self.after:
            outcome = await self._followed_up(ready.proposal, outcome, admission.trace)
        return outcome

    async def _cleared(self, ready: Prepared, admission: Admission) -> Prepared:
        """The call that may run. One whose input was changed is validated and judged as changed."""
        approved: Verdict | None = None
        for _ in range(MAX_REWRITES + 1):
            await self._validated(ready.proposal, admission.trace)
            changed, approved = await self._judged(ready, admission, approved)
            if changed is None:
                return ready
            admission.trace.rewrites += (changed,)
            proposal = ready.proposal
            ready = await admission.admit(self._prepared(proposal.call, proposal.tool, changed, proposal.ctx))
        raise Refusal(
            Status.DENIED, f"{ready.proposal.tool.name} was not allowed: its input was changed again and again."
        )

    async def _validated(self, proposal: Proposal, trace: Trace) -> None:
        try:
            await proposal.tool.validate(proposal.input, proposal.ctx)
        except ToolError as error:
            raise Refusal(Status.INVALID, str(error)) from None
        finally:
            trace.effects = proposal.effects
            trace.mark("validate")
        self.emit(ToolStarted(proposal.call, proposal.tool.show_call(proposal.input)))

    async def _judged(
        self, ready: Prepared, admission: Admission, approved: Verdict | None
    ) -> tuple[Mapping[str, Any] | None, Verdict | None]:
        """Return if it may run; with the input that replaces this one, if somebody changed it. Otherwise refuse.

        `approved` is the word of whoever was asked and made this input: it answers an ASK, not a DENY.
        """
        proposal, trace = ready.proposal, admission.trace
        heard = await opinions(proposal, self.judges)
        verdict = strictest(heard)
        trace.mark("judge")
        if (
            verdict.behavior is not Behavior.DENY
            and (changed := rewritten(heard, proposal.arguments, ready.given)) is not None
        ):
            return changed, None
        if verdict.behavior is Behavior.ASK and approved is not None:
            verdict = approved
        elif verdict.behavior is Behavior.ASK:
            verdict = await self._asked(proposal, verdict, admission)
            if (
                verdict.behavior is Behavior.ALLOW
                and (changed := rewritten((verdict,), proposal.arguments, ready.given)) is not None
            ):
                return changed, verdict
        trace.verdict = verdict
        self.emit(PermissionDecided(proposal.call.id, verdict))
        if verdict.behavior is not Behavior.ALLOW:
            raise Refusal(Status.DENIED, f"{proposal.tool.name} was not allowed: {verdict.reason}.")
        return None, None

    async def _asked(self, proposal: Proposal, verdict: Verdict, admission: Admission) -> Verdict:
        await admission.message_complete()
        answer = await guarded(self.approver.approve(proposal, verdict))
        admission.trace.mark("ask")
        return answer or NO_OPINION

    async def _carried_out(self, proposal: Proposal, admission: Admission) -> ToolOutcome:
        trace = admission.trace
        returned = await self._called(proposal, admission)
        trace.mark("call")
        result = cast(Result[Any], returned) if isinstance(returned, Result) else Result(returned)
        return await self._projected(proposal, result, trace)

    async def _called(self, proposal: Proposal, admission: Admission) -> Any:
        tool = proposal.tool
        limit = self.time_limits.get(tool.name, tool.time_limit)
        if limit is None:
            return await tool.call(proposal.input, proposal.ctx)
        task = asyncio.ensure_future(contained(tool.call(proposal.input, proposal.ctx)))
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

    async def _projected(self, proposal: Proposal, result: Result[Any], trace: Trace) -> ToolOutcome:
        """Typed output to blocks for the model, within the budget, and a view for people."""
        tool = proposal.tool
        output = tool.check_output(result.output)
        content = tool.to_model(output)
        _require_blocks(tool, content)
        _require_extras(tool, result)
        fitted = await self.budget.fit(proposal.call.id, tool, content)
        view = tool.show_result(proposal.input, output)
        trace.produced, trace.sent, trace.saved_to = fitted.produced, fitted.sent, fitted.saved_to
        trace.mark("project")
        return ToolOutcome(
            proposal.call,
            Status.OK,
            fitted.content,
            view,
            output,
            tuple(result.messages),
            tuple(result.changes),
            result.meta,
        )

    # After the call

    async def _followed_up(self, proposal: Proposal, outcome: ToolOutcome, trace: Trace) -> ToolOutcome:
        for step in self.after:
            try:
                answer = step.after(proposal, outcome)
                amendment = await answer if isinstance(answer, Awaitable) else answer
                if amendment is not None:
                    outcome = await self._amended(proposal, outcome, amendment, trace)
            except BaseException as error:  # a step is somebody else's code, and the call has already happened
                if from_outside(error):
                    raise
                log.exception("a step after %s failed", proposal.tool.name)
                note = Text(f"[A step after the call failed: {type(error).__name__}: {error}]")
                outcome = replace(outcome, content=(*outcome.content, note))
        trace.mark("after")
        return outcome

    async def _amended(
        self, proposal: Proposal, outcome: ToolOutcome, amendment: Amendment, trace: Trace
    ) -> ToolOutcome:
        if amendment.output is not None:
            result = Result(amendment.output, outcome.messages, outcome.changes, outcome.meta)
            outcome = replace(await self._projected(proposal, result, trace), status=outcome.status)
        if amendment.content is not None:
            _require_blocks(proposal.tool, amendment.content)
            fitted = await self.budget.fit(proposal.call.id, proposal.tool, amendment.content)
            outcome = replace(outcome, content=fitted.content)
        return replace(outcome, messages=outcome.messages + amendment.messages)


def stated_effects(tool: AnyTool, input: Any, ctx: ToolContext) -> Effects:
    """What the tool says it would do; if it cannot say, the worst."""
    try:
        effects = tool.effects(input, ctx)
    except Exception:  # a statement that fails says nothing, and nothing means the worst
        log.exception("%s could not state its effects", tool.name)
        return Effects()
    return effects if isinstance(effects, Effects) else Effects()  # pyright: ignore[reportUnnecessaryIsInstance]


def _looked_up(call: ToolCall, pool: ToolPool) -> tuple[AnyTool, Mapping[str, Any]]:
    found = pool.get(call.name)
    if found is None:
        raise Refusal(Status.INVALID, _no_such_tool(call.name, pool))
    if call.malformed is not None:
        raise Refusal(
            Status.INVALID,
            f"The arguments of {call.name} are not a JSON object: {_excerpt(call.malformed)}\n"
            "Send them again as one JSON object.",
        )
    tool, alias = found
    return tool, alias.adapt(call.arguments) if alias else call.arguments


def _no_such_tool(name: str, pool: ToolPool) -> str:
    if name in pool.off:
        return f"{name} cannot be used here: {pool.off[name]}."
    near = pool.nearest(name)
    if near:
        return f"There is no tool named {name}. Did you mean {' or '.join(near)}?"
    return f"There is no tool named {name}. There are: {', '.join(tool.name for tool in pool)}."


def _excerpt(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:120]} ... {text[-60:]}"


def _require_blocks(tool: AnyTool, content: object) -> None:
    if not isinstance(content, tuple):
        raise TypeError(f"{tool.name} gave {type(content).__name__} where a tuple of blocks belongs")
    for block in cast(tuple[object, ...], content):
        if not isinstance(block, Text | Image | Document):
            raise TypeError(f"{tool.name} gave {type(block).__name__} where a block belongs")


def _require_extras(tool: AnyTool, result: Result[Any]) -> None:
    for change in result.changes:
        if not isinstance(change, StateChange):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{tool.name} gave {change!r} where a change of state belongs")
        if isinstance(change, MovedTo) and not os.path.isabs(change.path):
            raise TypeError(f"{tool.name} gave {change.path!r} where an absolute working directory belongs")
    if isinstance(result.messages, str):
        raise TypeError(f"{tool.name} gave one text where a tuple of texts for the conversation belongs")
    for message in result.messages:
        if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{tool.name} gave {message!r} where a text for the conversation belongs")
