"""The tool contract.

An author gives a name, words for the model, an input model and `call`. Every
other method has a default that promises nothing: effects unknown, so the call
runs alone and asks first.
"""

from __future__ import annotations

import inspect
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, cast, get_args, get_origin

from .content import Block, Document, Image, Line, Text, View
from .context import ToolContext
from .effects import Effects
from .state import StateChange
from .values import frozen_value, plain_value
from .verdicts import Verdict

InT = TypeVar("InT")
OutT = TypeVar("OutT")

DEFAULT_RESULT_LIMIT = 30_000


class ToolError(Exception):
    """The call cannot be carried out. The message is for the model: what happened, then what to do.

    What it changed nevertheless (a command that failed in another folder) is passed as `changes`.
    """

    changes: tuple[StateChange, ...] = ()

    def __init__(self, *message: object, changes: tuple[StateChange, ...] = ()) -> None:
        super().__init__(*message)
        self.changes = changes


class ToolDefinitionError(TypeError):
    """A tool that breaks the contract before it is ever called."""


class Exposure(StrEnum):
    DIRECT = "direct"
    DEFERRED = "deferred"
    """Costs only its name in a request until ToolSearch finds it."""


Keep: TypeAlias = Literal["head", "tail", "both"]


@frozen_value
class ToolSpec:
    """The description of a tool. The schema's bytes are the same in every run."""

    name: str
    title: str
    description: str
    """The full usage guide for the model."""
    input_schema: Mapping[str, Any]
    hint: str = ""
    exposure: Exposure = Exposure.DIRECT

    @property
    def summary(self) -> str:
        """The first paragraph of the guide."""
        return " ".join(self.description.split("\n\n", 1)[0].split())

    def schema_json(self) -> str:
        return json.dumps(self.input_schema, separators=(",", ":"), ensure_ascii=False)


@frozen_value
class Alias:
    """An old name, and how its old parameters become the new ones.

    >>> Alias("run_shell", scale={"timeout": 1000}).adapt({"timeout": 2})
    {'timeout': 2000}
    """

    name: str
    rename: Mapping[str, str] = field(default_factory=dict[str, str])
    scale: Mapping[str, float] = field(default_factory=dict[str, float])
    """Old units: the factor for a number given under the old name."""
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Parameters the old name implied."""

    def adapt(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        adapted: dict[str, Any] = dict(self.fixed)
        for key, value in arguments.items():
            adapted[self.rename.get(key, key)] = _scale(value, self.scale.get(key))
        return adapted


def _scale(value: Any, factor: float | None) -> Any:
    if factor is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    if isinstance(value, int) and float(factor).is_integer():
        return value * int(factor)
    try:
        scaled = round(float(value) * factor, 6)
    except (ValueError, OverflowError):
        return value  # left for the schema to refuse by name
    return int(scaled) if scaled.is_integer() else scaled


@plain_value
class Result(Generic[OutT]):
    """An output with more to say than its data. `call` may return the bare output instead."""

    output: OutT
    messages: tuple[str, ...] = ()
    """Texts to add to the conversation after this message's results."""
    changes: tuple[StateChange, ...] = ()
    meta: Mapping[str, Any] | None = None
    """Passed through untouched, for MCP metadata."""


class Tool(ABC, Generic[InT, OutT]):
    """One capability. Override what you can promise; the defaults promise nothing."""

    name: str = ""
    description: str = ""
    """The usage guide for the model; the class docstring where this is empty."""
    title: str = ""
    """A display name for people; `name` where this is empty."""
    hint: str = ""
    """Three to ten words that tool search matches."""
    input_model: type[InT]
    output_model: Any = None
    """A type the output must validate against, where declared."""
    aliases: tuple[Alias, ...] = ()
    exposure: Exposure = Exposure.DIRECT
    server: str | None = None
    """The MCP server the tool comes from, as it is configured; `None` for every other tool."""
    feature: ClassVar[str | None] = None
    """The feature switch of this tool; `None` for a tool that is always available."""
    result_limit: int | None = DEFAULT_RESULT_LIMIT
    """Characters of text the model gets; the rest is saved. `None` for no limit."""
    keep: Keep = "both"
    """Which part of an oversized result the model sees."""
    time_limit: float | None = None
    """Seconds after which the engine ends a call."""
    only_reads: bool = False
    """Whether the effects of every input only read. The engine enforces it."""

    # What the tool is

    @cached_property
    def spec(self) -> ToolSpec:
        name, guide = getattr(self, "name", ""), self.guide().strip()
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", name):
            raise ToolDefinitionError(
                f"{type(self).__name__} needs a `name` of 1 to 128 letters, digits, `_`, `-` or `.`; it has {name!r}."
            )
        if not guide:
            raise ToolDefinitionError(
                f"{name} has no description for the model. Give it a `description` or a docstring."
            )
        return ToolSpec(
            name=name,
            title=self.title or name,
            description=guide,
            input_schema=self.input_schema(),
            hint=self.hint,
            exposure=self.exposure,
        )

    def guide(self) -> str:
        """Words for the model. Asked once, so it may depend on what the constructor was given."""
        return self.description or inspect.cleandoc(type(self).__dict__.get("__doc__") or "")

    def input_schema(self) -> Mapping[str, Any]:
        from .inputs import schema_of

        model = getattr(self, "input_model", None)
        schema = schema_of(model)
        if schema is None:
            raise ToolDefinitionError(f"{type(self).__name__} needs an `input_model` that derives from ToolInput.")
        return schema

    def parse(self, arguments: Mapping[str, Any]) -> InT:
        """The typed input. Raises `Refusal(INVALID)` that names each bad field."""
        from .inputs import parse_input

        return cast(InT, parse_input(self.name, cast(Any, self.input_model), arguments))

    def unavailable(self) -> str | None:
        """Why the tool is off here, such as a missing program; `None` when it is on."""
        return None

    # What a call would do

    def effects(self, input: InT, ctx: ToolContext) -> Effects:
        """All that the call touches. Pure and quick; said again right before the call runs."""
        return Effects()

    def check(self, input: InT, ctx: ToolContext) -> None:
        """Refuse, with `ToolError`, what can be refused without looking at the world."""

    async def validate(self, input: InT, ctx: ToolContext) -> None:
        """Refuse, with `ToolError`, what the world rules out. Runs when the call's turn has come."""

    async def opinion(self, input: InT, ctx: ToolContext) -> Verdict | None:
        """The tool's own judgement. It can tighten what policy says, never loosen it."""
        return None

    @cached_property
    def has_opinion(self) -> bool:
        """Whether `opinion` was overridden; one that was not need not be asked."""
        return type(self).opinion is not Tool[Any, Any].opinion

    @cached_property
    def looks_first(self) -> bool:
        """Whether `validate` was overridden; one that was not need not be awaited."""
        return type(self).validate is not Tool[Any, Any].validate

    def matches(self, specifier: str, input: InT) -> bool | None:
        """Whether a rule `Name(specifier)` is about this input; `None` leaves it to the general matching."""
        return None

    # The call

    @abstractmethod
    async def call(self, input: InT, ctx: ToolContext) -> OutT | Result[OutT]: ...

    def output_schema(self) -> Mapping[str, Any] | None:
        """The schema of the output as JSON, by `output_model` or else by the class; `None` if neither says."""
        from .outputs import output_schema_of

        bases = (base for each in type(self).__mro__ for base in each.__dict__.get("__orig_bases__", ()))
        given = next((get_args(base)[1] for base in bases if issubclass(get_origin(base) or object, Tool)), None)
        return output_schema_of(self.output_model or given)

    def check_output(self, output: OutT) -> OutT:
        """The output, validated where `output_model` is declared."""
        if self.output_model is None:
            return output
        return cast(OutT, self._output_check(output))

    def to_model(self, output: OutT) -> tuple[Block, ...]:
        """What the model reads. Text and blocks are passed as they are, everything else becomes JSON."""
        return as_blocks(output)

    # What people see

    def describe(self, input: InT) -> str:
        """One short line about this call."""
        return f"{self.title or self.name} {_brief(input)}".rstrip()

    def show_call(self, input: InT) -> View:
        return Line(self.describe(input))

    def show_plan(self, input: InT, ctx: ToolContext) -> View:
        """What is about to happen, for a person who is asked about it. `ctx.kept` has what `validate` worked out."""
        return self.show_call(input)

    def show_result(self, input: InT, output: OutT) -> View:
        return Line("done")

    def show_error(self, message: str) -> View:
        return Line(message)

    @cached_property
    def _output_check(self) -> Callable[[Any], Any]:
        from .outputs import check_of

        return check_of(self.output_model)


AnyTool: TypeAlias = Tool[Any, Any]


def as_blocks(output: Any) -> tuple[Block, ...]:
    """
    >>> as_blocks({"a": 1})
    (Text(text='{"a":1}'),)
    """
    match output:
        case str():
            return (Text(output),)
        case None:
            return (Text("(no output)"),)
        case Text() | Image() | Document():
            return (output,)
        case tuple() | list() if output and all(isinstance(item, Text | Image | Document) for item in output):  # pyright: ignore[reportUnknownVariableType]
            return tuple(cast(list[Block], output))
        case _:
            from .outputs import to_json

            return (Text(to_json(output)),)


def _brief(input: Any) -> str:
    """What was given first, in one short line: it is what a call is about."""
    given = getattr(input, "model_fields_set", None)
    if given is not None:
        first = next((value for name, value in input.__dict__.items() if name in given), "")
    else:
        first = next(iter(cast(Mapping[str, Any], input).values()), "") if isinstance(input, Mapping) else input
    text = " ".join(str(first).split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def guide_listing(guide: str, heading: str, listed: str) -> str:
    """The guide with the available choices below it, if there are any."""
    return f"{guide.strip()}\n\n{heading}:\n{listed}" if listed else guide


def load_guide(source: str) -> str:
    """The guide that lies beside a tool: `read.md` for `read.py`, given its `__file__`."""
    return Path(source).with_suffix(".md").read_text(encoding="utf-8")
