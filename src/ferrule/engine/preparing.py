"""A call made ready for the queue: its tool found, its input parsed, its effects stated.

The same call is stated twice: here, when it is submitted, and again when its
turn has come, on the working directory and the links of that moment.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..core.calls import Refusal, Status, ToolCall
from ..core.context import ToolContext
from ..core.effects import Effects
from ..core.ports import Paths, Proposal
from ..core.tool import AnyTool, Exposure, ToolError
from ..core.values import plain_value
from .footprint import Footprint, ground
from .pool import ToolPool

if TYPE_CHECKING:
    from ..core.inputs import ToolInput

log = logging.getLogger(__name__)


@plain_value
class PreparedCall:
    """A call whose tool exists and whose arguments parse, with what it would occupy."""

    proposal: Proposal
    parsed: Any
    """The input before its paths were made absolute."""
    given: Mapping[str, Any]
    """The arguments before their paths were made absolute."""
    footprint: Footprint


def look_up(call: ToolCall, pool: ToolPool) -> tuple[AnyTool, Mapping[str, Any]]:
    """The tool, and the arguments under its own parameter names."""
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


def prepare_call(
    call: ToolCall, tool: AnyTool, arguments: Mapping[str, Any], ctx: ToolContext, paths: Paths
) -> PreparedCall:
    """Schema, paths, the checks that need no disk, and the first statement of effects."""
    try:
        parsed = tool.parse(arguments)
    except (Refusal, ToolError) as refusal:
        message = str(refusal)
        if tool.exposure is Exposure.DEFERRED:
            message = f"{message}\nIts schema: {tool.spec.schema_json()}"
        raise Refusal(Status.INVALID, message) from None
    try:
        ready = _state(call, tool, parsed, arguments, ctx, paths)
        tool.check(ready.proposal.input, ctx)
    except ToolError as error:
        raise Refusal(Status.INVALID, str(error)) from None
    return ready


def restate(ready: PreparedCall, cwd: str, paths: Paths) -> PreparedCall:
    """The same call on the working directory and the links of this moment; the same value where nothing moved."""
    proposal = ready.proposal
    ctx = proposal.ctx
    if ctx.cwd == cwd and proposal.input is ready.parsed:
        effects = ground(_effects(proposal.tool, proposal.input, ctx), paths)
        if effects == proposal.effects:
            return ready
    elif ctx.cwd != cwd:
        ctx = ctx.moved_to(cwd)
    return _state(proposal.call, proposal.tool, ready.parsed, ready.given, ctx, paths)


def _state(
    call: ToolCall, tool: AnyTool, parsed: Any, given: Mapping[str, Any], ctx: ToolContext, paths: Paths
) -> PreparedCall:
    input, arguments, leans_on_cwd = _anchor_paths(parsed, given, ctx.cwd, paths)
    effects = ground(_effects(tool, input, ctx), paths)
    footprint = Footprint.of(effects, reads_cwd=leans_on_cwd, agent=ctx.facts.agent)
    return PreparedCall(Proposal(call, tool, input, arguments, effects, ctx), parsed, given, footprint)


def _effects(tool: AnyTool, input: Any, ctx: ToolContext) -> Effects:
    """What the tool says it would do; if it cannot say, the worst."""
    try:
        effects = tool.effects(input, ctx)
    except Exception:  # a statement that fails says nothing, and nothing means the worst
        log.exception("%s could not state its effects", tool.name)
        return Effects()
    if not isinstance(effects, Effects):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Effects()
    if tool.only_reads and not effects.read_only:
        log.error("%s promises to only read, and would do more", tool.name)
        return Effects()
    return effects


def _anchor_paths(
    parsed: Any, arguments: Mapping[str, Any], cwd: str, paths: Paths
) -> tuple[Any, Mapping[str, Any], bool]:
    """Input and arguments with absolute paths, and whether the call depends on the working directory.

    It does unless every path it takes was given, and given absolutely.
    """
    path_fields: tuple[str, ...] = getattr(parsed, "path_fields", ())  # of a `ToolInput`
    if not path_fields:
        return parsed, arguments, True
    absolute: dict[str, Any] = {}
    leans = False
    for name in path_fields:
        written = getattr(parsed, name)
        if isinstance(written, str):
            anchored: Any = _anchor(name, written, cwd, paths)
            leans = leans or not _stands_alone(written)
        elif isinstance(written, list | tuple):
            several = cast(Sequence[str], written)
            anchored = type(several)(_anchor(name, one, cwd, paths) for one in several)  # pyright: ignore[reportCallIssue]
            leans = leans or not all(_stands_alone(one) for one in several)
        else:
            leans = True
            continue
        if anchored != written:
            absolute[name] = anchored
    if not absolute:
        return parsed, arguments, leans
    fields = cast("type[ToolInput]", type(parsed)).model_fields
    shown = {name if name in arguments else fields[name].alias or name: path for name, path in absolute.items()}
    return parsed.model_copy(update=absolute), {**arguments, **shown}, leans


def _anchor(name: str, written: str, cwd: str, paths: Paths) -> str:
    if "\0" in written:
        raise Refusal(Status.INVALID, f"`{name}` holds a NUL character, which no path can. Remove it.")
    return paths.anchor(written, cwd)


def _stands_alone(written: str) -> bool:
    """Whether the path means the same in every working directory; `~x` does only if there is such a user."""
    return written.startswith("/") or (written.startswith("~") and os.path.isabs(os.path.expanduser(written)))


def _no_such_tool(name: str, pool: ToolPool) -> str:
    if name in pool.off:
        return f"{name} cannot be used here: {pool.off[name]}."
    name = _excerpt(name)
    near = pool.nearest(name)
    if near:
        return f"No tool is named {name}. Did you mean {' or '.join(near)}?"
    return f"No tool is named {name}. Available: {', '.join(tool.name for tool in pool)}."


def _excerpt(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:120]} ... {text[-60:]}"
