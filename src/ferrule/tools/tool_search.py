"""Find deferred tools and make them callable."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from ..core.content import Block, Listing, Text, View
from ..core.context import ToolContext
from ..core.effects import ChangesState, Effects
from ..core.inputs import ToolInput
from ..core.state import ToolsFound
from ..core.tool import Alias, Exposure, Result, ToolSpec, load_guide
from ..core.values import plain_value
from ..text.ranking import rank_documents
from . import BuiltinTool

_SELECT = "select:"


class ToolSearchInput(ToolInput):
    query: str = Field(min_length=1, description='Words to look for, or "select:NameA,NameB" to take tools by name.')
    max_results: int = Field(default=5, ge=1, le=20, description="How many tools to return at most.")


@plain_value
class Matches:
    specs: tuple[ToolSpec, ...]
    unknown: tuple[str, ...] = ()
    """Names that were asked for and do not exist."""
    available: tuple[str, ...] = ()
    """All names that can be found, if nothing was found."""


class ToolSearch(BuiltinTool[ToolSearchInput, Matches]):
    name = "ToolSearch"
    description = load_guide(__file__)
    hint = "find and load further tools"
    input_model = ToolSearchInput
    aliases = (Alias("tool_search"),)

    def effects(self, input: ToolSearchInput, ctx: ToolContext) -> Effects:
        return Effects.of(ChangesState("found_tools"))

    async def call(self, input: ToolSearchInput, ctx: ToolContext) -> Result[Matches]:
        deferred = [spec for spec in ctx.facts.tools if spec.exposure is Exposure.DEFERRED]
        matches = _select(input.query, ctx.facts.tools) or _rank(input, deferred)
        names = tuple(spec.name for spec in matches.specs if spec.exposure is Exposure.DEFERRED)
        return Result(matches, changes=(ToolsFound(names),) if names else ())

    def to_model(self, output: Matches) -> tuple[Block, ...]:
        parts = list[str]()
        if output.specs:
            parts.append(f"You can now call {', '.join(spec.name for spec in output.specs)}.")
        if output.unknown:
            parts.append(f"No tool is named {' or '.join(output.unknown)}.")
        if not output.specs:
            parts.append(_nothing(output.available))
        return (Text(" ".join(parts)),)

    def show_result(self, input: ToolSearchInput, output: Matches) -> View:
        return Listing(tuple(spec.name for spec in output.specs), len(output.specs))


def _nothing(available: tuple[str, ...]) -> str:
    if not available:
        return "Nothing was found: every tool can already be called."
    return f"Nothing was found. Available: {', '.join(available)}."


def _select(query: str, specs: Sequence[ToolSpec]) -> Matches | None:
    if not query.lower().startswith(_SELECT):
        return None
    by_name = {spec.name.lower(): spec for spec in specs}
    names = [name.strip() for name in query[len(_SELECT) :].split(",") if name.strip()]
    found = {name: by_name.get(name.lower()) for name in names}
    return Matches(
        tuple({spec.name: spec for spec in found.values() if spec}.values()),
        tuple(name for name, spec in found.items() if not spec),
        _deferred_names(specs),
    )


def _rank(input: ToolSearchInput, deferred: Sequence[ToolSpec]) -> Matches:
    """By words in name, hint and guide."""
    by_name = {spec.name: spec for spec in deferred}
    fields = {spec.name: ((spec.name, 5.0), (spec.hint, 3.0), (spec.description, 1.0)) for spec in deferred}
    best = rank_documents(input.query, fields)[: input.max_results]
    return Matches(tuple(by_name[name] for name in best), available=_deferred_names(deferred))


def _deferred_names(specs: Sequence[ToolSpec]) -> tuple[str, ...]:
    return tuple(spec.name for spec in specs if spec.exposure is Exposure.DEFERRED)
