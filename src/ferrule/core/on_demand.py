"""A tool that is loaded when it is first called: its card describes it, and the tool does the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import cached_property
from typing import Any, cast

from .content import Block, View
from .context import ToolContext
from .effects import Effects
from .tool import Alias, AnyTool, Exposure, Keep, Result, Tool
from .values import named_value
from .verdicts import Verdict


@named_value
class Card:
    """The description of a tool, and what the engine needs to know about it, as data."""

    name: str
    module: str
    """The name of its module."""
    needs: str
    """The service without which it is off; empty for none."""
    choices: str
    """The heading under which its guide lists what that service offers."""
    title: str
    hint: str
    aliases: tuple[Alias, ...]
    exposure: Exposure
    result_limit: int | None
    keep: Keep
    time_limit: float | None
    only_reads: bool
    input_schema: Mapping[str, Any]

    @classmethod
    def of(cls, tool: AnyTool, **given: Any) -> Card:
        """`given` is what the tool does not say itself."""
        given["input_schema"] = tool.input_schema()
        return cls(**given, **{one.name: getattr(tool, one.name) for one in fields(cls) if one.name not in given})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Card:
        read: dict[str, Any] = dict(data)
        read["aliases"] = tuple(Alias(**alias) for alias in data["aliases"])
        read["exposure"] = Exposure(data["exposure"])
        return cls(**read)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(cast(Any, self)), "aliases": [asdict(cast(Any, alias)) for alias in self.aliases]}


class OnDemand(Tool[Any, Any]):
    """Whatever is not on its card is taken from the tool."""

    def __init__(
        self,
        card: Card,
        *,
        guide: Callable[[], str],
        off: Callable[[], str | None],
        load: Callable[[], AnyTool],
    ) -> None:
        self.name = card.name
        self.title = card.title
        self.hint = card.hint
        self.aliases = card.aliases
        self.exposure = card.exposure
        self.result_limit = card.result_limit
        self.keep = card.keep
        self.time_limit = card.time_limit
        self.only_reads = card.only_reads
        self._card = card
        self._guide = guide
        self._off = off
        self._load = load

    @cached_property
    def tool(self) -> AnyTool:
        return self._load()

    def guide(self) -> str:
        return self._guide()

    def input_schema(self) -> Mapping[str, Any]:
        return self._card.input_schema

    def output_schema(self) -> Mapping[str, Any] | None:
        return self.tool.output_schema()

    def unavailable(self) -> str | None:
        return self._off()

    def parse(self, arguments: Mapping[str, Any]) -> Any:
        return self.tool.parse(arguments)

    def effects(self, input: Any, ctx: ToolContext) -> Effects:
        return self.tool.effects(input, ctx)

    def check(self, input: Any, ctx: ToolContext) -> None:
        self.tool.check(input, ctx)

    async def validate(self, input: Any, ctx: ToolContext) -> None:
        await self.tool.validate(input, ctx)

    async def opinion(self, input: Any, ctx: ToolContext) -> Verdict | None:
        return await self.tool.opinion(input, ctx)

    def matches(self, specifier: str, input: Any) -> bool | None:
        return self.tool.matches(specifier, input)

    async def call(self, input: Any, ctx: ToolContext) -> Any | Result[Any]:
        return await self.tool.call(input, ctx)

    def check_output(self, output: Any) -> Any:
        return self.tool.check_output(output)

    def to_model(self, output: Any) -> tuple[Block, ...]:
        return self.tool.to_model(output)

    def describe(self, input: Any) -> str:
        return self.tool.describe(input)

    def show_call(self, input: Any) -> View:
        return self.tool.show_call(input)

    def show_plan(self, input: Any, ctx: ToolContext) -> View:
        return self.tool.show_plan(input, ctx)

    def show_result(self, input: Any, output: Any) -> View:
        return self.tool.show_result(input, output)

    def show_error(self, message: str) -> View:
        return self.tool.show_error(message)
