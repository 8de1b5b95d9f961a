"""A typed Python function as a tool: `@tool`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints, overload

from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from .content import Block
from .context import ToolContext
from .effects import Effects
from .inputs import ToolInput
from .threads import in_a_thread
from .tool import Result, Tool, ToolDefinitionError, as_blocks


class FunctionTool(Tool[ToolInput, Any]):
    """A function and what its signature says. Calling the object calls the function."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str = "",
        effects: Effects | Callable[..., Effects] | None = None,
        time_limit: float | None = None,
    ) -> None:
        hints = get_type_hints(function, include_extras=True)
        self.name = name or function.__name__
        self.title = title
        self.description = inspect.getdoc(function) or ""
        self.time_limit = time_limit
        self._function = function
        self._is_coroutine = inspect.iscoroutinefunction(function)
        self._effects = effects
        self.only_reads = isinstance(effects, Effects) and effects.read_only
        self._context = next((key for key, kind in hints.items() if kind is ToolContext and key != "return"), None)
        self.input_model = _input_model(self.name, function, hints, skip=self._context)
        self.output_model = _output_model(hints)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def guide(self) -> str:
        return self.description

    def effects(self, input: ToolInput, ctx: ToolContext) -> Effects:
        if callable(self._effects):
            return self._effects(**input.__dict__)
        return self._effects or Effects()

    async def call(self, input: ToolInput, ctx: ToolContext) -> Any:
        arguments = input.__dict__
        if self._context:
            arguments = {**arguments, self._context: ctx}
        if self._is_coroutine:
            return await self._function(**arguments)
        return await in_a_thread(self._function, **arguments)

    def to_model(self, output: Any) -> tuple[Block, ...]:
        return as_blocks(output)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str = "",
    effects: Effects | Callable[..., Effects] | None = None,
    time_limit: float | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a function with typed parameters and a docstring.

    The docstring is the guide for the model; a parameter's words come from
    `Annotated[str, "words"]` or from the docstring's `Args:`. `effects` is a
    value, or a function of the same parameters; without it the call runs
    alone and asks. A parameter typed `ToolContext` is given the context. A
    function that is not a coroutine runs in a thread.
    """
    return FunctionTool(function, **options) if function else partial(FunctionTool, **options)


def _input_model(
    name: str, function: Callable[..., Any], hints: Mapping[str, Any], *, skip: str | None
) -> type[ToolInput]:
    documented = _parameters_from_doc(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == skip:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolDefinitionError(f"{name}: parameter `{parameter}` cannot be given by name, so it cannot be used.")
        if parameter.name not in hints:
            raise ToolDefinitionError(f"{name}: parameter `{parameter.name}` has no type.")
        default = ... if parameter.default is parameter.empty else parameter.default
        annotation = hints[parameter.name]
        words = _words_of_annotation(annotation) or documented.get(parameter.name)
        fields[parameter.name] = (annotation, Field(default, description=words) if words else default)
    return create_model(f"{name}_input", __base__=ToolInput, **fields)


def _words_of_annotation(annotation: Any) -> str | None:
    if get_origin(annotation) is not Annotated:
        return None
    for mark in get_args(annotation)[1:]:
        if isinstance(mark, str):
            return mark
        if isinstance(mark, FieldInfo) and mark.description:
            return mark.description
    return None


def _parameters_from_doc(doc: str) -> dict[str, str]:
    """The `Args:` section of a docstring, in Google's form."""
    section = re.search(r"^(?:Args|Parameters):\n((?:[ \t]+.*\n?|\n)+)", doc, re.MULTILINE)
    if not section:
        return {}
    entries = re.findall(
        r"^[ \t]+(\w+)(?: \([^)]*\))?:[ \t]*(.+(?:\n[ \t]{5,}.+)*)", inspect.cleandoc("\n" + section[1]), re.MULTILINE
    ) or re.findall(r"^(\w+)(?: \([^)]*\))?:[ \t]*(.+(?:\n[ \t]+.+)*)", inspect.cleandoc(section[1]), re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in entries}


def _output_model(hints: Mapping[str, Any]) -> Any:
    declared = hints.get("return", Any)
    if get_origin(declared) is Result:
        declared = get_args(declared)[0]
    return None if declared in (Any, Result, type(None)) else declared
