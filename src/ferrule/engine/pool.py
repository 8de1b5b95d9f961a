"""Which tools exist: every tool, then those this context allows, then the pool the model sees.

Each layer is a small function from a selection to a narrower one; a tool that
is left out keeps its name and the reason, so that a call of it can be answered with that reason.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from ..core.on_demand import OnDemand
from ..core.tool import Alias, AnyTool, Exposure, ToolSpec
from ..core.values import plain_value

log = logging.getLogger(__name__)


@plain_value
class Selection:
    """Tools, and for each name that is off, old names included, the reason why.

    `hidden` tools are not shown to the model; a call of one is judged like any other.
    """

    tools: tuple[AnyTool, ...]
    off: Mapping[str, str] = field(default_factory=lambda: MappingProxyType[str, str]({}))
    hidden: tuple[AnyTool, ...] = ()

    def dropping(self, why: Callable[[AnyTool], str | None]) -> Selection:
        """Without the tools for which `why` gives a reason."""
        kept: list[AnyTool] = []
        off = dict(self.off)
        for tool in self.tools:
            reason = why(tool)
            if reason is None:
                kept.append(tool)
            else:
                off.update((name, reason) for name in (tool.name, *(alias.name for alias in tool.aliases)))
        return Selection(tuple(kept), off, self.hidden)


Layer: TypeAlias = Callable[[Selection], Selection]


def select(tools: Iterable[AnyTool], *layers: Layer) -> Selection:
    selection = Selection(tuple(tools))
    for layer in layers:
        selection = layer(selection)
    return selection


def features(switched_on: Collection[str]) -> Layer:
    """Keep tools without a switch, and those whose switch is on."""

    def why(tool: AnyTool) -> str | None:
        if tool.feature is None or tool.feature in switched_on:
            return None
        return f"it requires the feature `{tool.feature}`, which is off"

    return lambda selection: selection.dropping(why)


def available() -> Layer:
    """Leave out what switches itself off, such as a tool whose program is missing."""
    return lambda selection: selection.dropping(_unavailable)


def _unavailable(tool: AnyTool) -> str | None:
    try:
        return tool.unavailable()
    except Exception as error:  # a tool that cannot say whether it is on is off, and the others are not affected
        log.exception("%s could not say whether it is available", tool.name)
        return f"it could not say whether it is available ({type(error).__name__})"


def only(names: Collection[str], why: str = "it is not among the tools chosen for this run") -> Layer:
    return lambda selection: selection.dropping(lambda tool: None if _is_named(tool, names) else why)


def without(names: Collection[str], why: str) -> Layer:
    return lambda selection: selection.dropping(lambda tool: why if _is_named(tool, names) else None)


def hiding(denied: Callable[[AnyTool], bool]) -> Layer:
    """Hide tools that a rule denies from the model. A call of one still reaches the judge, which explains it."""

    def hide(selection: Selection) -> Selection:
        shown = tuple(tool for tool in selection.tools if not denied(tool))
        hidden = tuple(tool for tool in selection.tools if denied(tool))
        return Selection(shown, selection.off, selection.hidden + hidden)

    return hide


def _is_named(tool: AnyTool, names: Collection[str]) -> bool:
    return tool.name in names or any(alias.name in names for alias in tool.aliases)


@dataclass(frozen=True)
class ToolPool:
    """An ordered, immutable set of tools with unique names: built-in ones first, each part by name."""

    builtin: tuple[AnyTool, ...]
    remote: tuple[AnyTool, ...] = ()
    off: Mapping[str, str] = field(default_factory=lambda: MappingProxyType[str, str]({}))
    hidden: tuple[AnyTool, ...] = ()

    def __iter__(self) -> Iterator[AnyTool]:
        yield from self.builtin
        yield from self.remote

    def __len__(self) -> int:
        return len(self.builtin) + len(self.remote)

    def get(self, name: str) -> tuple[AnyTool, Alias | None] | None:
        """The tool of that name, loaded, and the alias if the name is an old one."""
        found = self._by_name.get(name)
        if found is not None and isinstance(found[0], OnDemand):
            return found[0].tool, found[1]
        return found

    def knows(self, name: str) -> bool:
        """Whether a tool has that name or had it before."""
        return name in self._by_name

    def nearest(self, name: str) -> list[str]:
        """Names a caller may have meant, best first."""
        by_folded = {known.lower(): known for known, (tool, _) in self._by_name.items() if tool not in self.hidden}
        close = difflib.get_close_matches(name.lower(), by_folded, n=3, cutoff=0.5)
        return list(dict.fromkeys(self._by_name[by_folded[folded]][0].name for folded in close))

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self)

    @cached_property
    def deferred(self) -> tuple[ToolSpec, ...]:
        return tuple(spec for spec in self.specs if spec.exposure is Exposure.DEFERRED)

    @cached_property
    def cache_after(self) -> int:
        """How many specs at the front of a request belong to built-in tools; the cache breakpoint is there."""
        return sum(tool.spec.exposure is Exposure.DIRECT for tool in self.builtin)

    def specs_for_request(self, found: Sequence[str] = ()) -> tuple[ToolSpec, ...]:
        """What a request carries: the direct tools, then the found ones in the order they were found."""
        if not found:
            return self._direct
        by_name = {spec.name: spec for spec in self.deferred}
        return self._direct + tuple(by_name[name] for name in found if name in by_name)

    @cached_property
    def _direct(self) -> tuple[ToolSpec, ...]:
        return tuple(spec for spec in self.specs if spec.exposure is Exposure.DIRECT)

    @cached_property
    def _by_name(self) -> dict[str, tuple[AnyTool, Alias | None]]:
        callable_ones = (*self, *self.hidden)
        named: dict[str, tuple[AnyTool, Alias | None]] = {tool.name: (tool, None) for tool in callable_ones}
        for tool in callable_ones:
            for alias in tool.aliases:
                named.setdefault(alias.name, (tool, alias))
        return named


def assemble(builtin: Selection, remote: Selection = Selection(())) -> ToolPool:  # noqa: B008 - immutable
    """The pool. On a name clash the built-in wins, also when it is off.

    Servers come and go; placed after the built-ins, they leave the bytes before them unchanged.
    """
    own = sorted({tool.name: tool for tool in builtin.tools}.values(), key=_name)
    taken = {tool.name for tool in (*own, *builtin.hidden)} | set(builtin.off)
    foreign = sorted((tool for tool in remote.tools if tool.name not in taken), key=_name)
    unique = {tool.name: tool for tool in foreign}
    hidden = tuple({tool.name: tool for tool in (*remote.hidden, *builtin.hidden)}.values())
    return ToolPool(tuple(own), tuple(unique.values()), {**remote.off, **builtin.off}, hidden)


def _name(tool: AnyTool) -> str:
    return tool.name


class Registry:
    """The tools of a session while it runs. Every change makes a new pool; a pool once taken never changes."""

    def __init__(
        self, builtin: Iterable[AnyTool], *layers: Layer, changed: Callable[[tuple[str, ...]], None] | None = None
    ) -> None:
        self._builtin = {tool.spec.name: tool for tool in builtin}
        self._remote: dict[str, AnyTool] = {}
        self._layers = layers
        self._disabled: dict[str, str] = {}
        self._changed = changed
        self._pool: ToolPool | None = None

    @property
    def pool(self) -> ToolPool:
        if self._pool is None:
            layers = (*self._layers, self._leave_out_disabled)
            self._pool = assemble(select(self._builtin.values(), *layers), select(self._remote.values(), *layers))
        return self._pool

    def add(self, tool: AnyTool, *, remote: bool = False) -> None:
        """Add a tool, or replace the one of that name. A tool that breaks the contract is refused here."""
        _ = tool.spec
        (self._remote if remote else self._builtin)[tool.name] = tool
        self._renew(tool.name)

    def replace_remote(self, gone: Iterable[str], come: Iterable[AnyTool]) -> None:
        """Remove remote tools and add others, as one change. One that breaks the contract is refused here."""
        new = {tool.spec.name: tool for tool in come}
        names = tuple(dict.fromkeys((*gone, *new)))
        for name in names:
            self._remote.pop(name, None)
        self._remote.update(new)
        if names:
            self._renew(*names)

    def remove(self, name: str) -> None:
        """Remove a tool for good; an unknown name is not an error."""
        found = (self._builtin.pop(name, None), self._remote.pop(name, None))
        self._disabled.pop(name, None)
        if any(found):
            self._renew(name)

    def disable(self, name: str, why: str = "it was disabled") -> None:
        self._disabled[name] = why
        self._renew(name)

    def enable(self, name: str) -> None:
        if self._disabled.pop(name, None) is not None:
            self._renew(name)

    def _leave_out_disabled(self, selection: Selection) -> Selection:
        return selection.dropping(lambda tool: self._disabled.get(tool.name))

    def _renew(self, *names: str) -> None:
        self._pool = None
        if self._changed:
            self._changed(names)
