"""Immutable values, as cheap to make as mutable ones.

A frozen dataclass sets each field through `object.__setattr__`, which takes
five times as long as a plain assignment; a call makes some twenty values with
a hundred fields. `plain_value` makes a class that the type checker treats as frozen
and that is a plain slotted dataclass when the program runs.

The classes are cheap as well. A dataclass reads its annotations, writes five
methods and compiles them, which takes longer than anything else in most modules, and
a run makes values of a few classes only, and few of most. Here comparing,
hashing and showing go by the names of the fields, `__init__` is written when
some values were made without it, and what `dataclasses` keeps of a class is
worked out when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from functools import cached_property
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, Final, TypeVar, cast, dataclass_transform

T = TypeVar("T")

FILLED_BY_HAND: Final = 8
"""How many values of a class are made before an `__init__` is written for it."""
NO_SIGNATURE: Final = "A value."
"""Where a class says nothing of itself, a dataclass would work out a signature for it."""
_OF_THE_FIRST_CLASS: Final = ("__dict__", "__weakref__")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def plain_value(cls: type[T]) -> type[T]:
    """Compared by its fields, and hashed by them where each can be; assigning to one is a type error."""
    return _value(cls, named=False)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def named_value(cls: type[T]) -> type[T]:
    """A `plain_value` whose fields are given by name."""
    return _value(cls, named=True)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen_value(cls: type[T]) -> type[T]:
    """A `plain_value` that cannot be changed by accident: for what is passed to other people's code."""
    return _value(cls, named=False, frozen=True)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen_named_value(cls: type[T]) -> type[T]:
    """A `frozen_value` whose fields are given by name."""
    return _value(cls, named=True, frozen=True)


def _value(cls: type[T], *, named: bool, frozen: bool = False) -> type[T]:
    """The class once more, with slots."""
    shape = _Shape(cls, named=named, frozen=frozen)
    content = {name: value for name, value in cls.__dict__.items() if name not in shape.own}
    for name in _OF_THE_FIRST_CLASS:
        content.pop(name, None)
    content["__slots__"] = tuple(name for name in shape.own if name not in shape.inherited)
    content["__match_args__"] = _MatchArgs(shape)
    content["__dataclass_fields__"] = _OfDataclass(shape, "__dataclass_fields__")
    content["__dataclass_params__"] = _OfDataclass(shape, "__dataclass_params__")
    for name, method_of in _METHODS.items():
        if content.get(name) is None:  # a class with an `__eq__` of its own has None for `__hash__`
            content[name] = method_of(shape)
    if frozen:
        content["__setattr__"] = content["__delattr__"] = _refuse
    shape.made = type(cls)(cls.__name__, cls.__bases__, content)
    return shape.made


class _Shape:
    """What is known of a class of values, each part from when it is needed first."""

    def __init__(self, cls: type[Any], *, named: bool, frozen: bool) -> None:
        self.cls = cls
        self.made = cls
        """The class that has slots, as soon as there is one."""
        self.named = named
        self.frozen = frozen
        self.count = 0
        """Of values that were filled by hand."""
        self.own = {
            name: cls.__dict__.get(name, MISSING)
            for name, kind in get_annotations(cls).items()
            if not str(kind).startswith(("ClassVar", "typing.ClassVar"))
        }
        """The fields that are not inherited, with what the class says they are without being given."""
        bases = (base for base in reversed(cls.__mro__[1:]) if is_dataclass(base))
        self.inherited = {each.name: each for base in bases for each in fields(base)}

    @cached_property
    def fields(self) -> dict[str, Field[Any]]:
        return self.inherited | {name: self._field(said) for name, said in self.own.items()}

    def _field(self, said: Any) -> Field[Any]:
        made = cast("Field[Any]", said if isinstance(said, Field) else field(default=said))
        if made.kw_only is MISSING:
            made.kw_only = self.named
        return made

    @cached_property
    def positional(self) -> tuple[str, ...]:
        return tuple(name for name, each in self.fields.items() if each.init and not each.kw_only)

    @cached_property
    def repr_fields(self) -> list[str]:
        return [name for name, each in self.fields.items() if each.repr]

    @cached_property
    def compare_key(self) -> Callable[[Any], object]:
        return _content([name for name, each in self.fields.items() if each.compare])

    @cached_property
    def hash_key(self) -> Callable[[Any], object]:
        counts = {name: each.compare if each.hash is None else each.hash for name, each in self.fields.items()}
        return _content([name for name in counts if counts[name]])

    @cached_property
    def as_dataclass(self) -> type[Any]:
        """The first class, which the second one is made from."""
        self.cls.__doc__ = self.cls.__doc__ or NO_SIGNATURE
        return dataclass(init=False, repr=False, eq=False, kw_only=self.named)(self.cls)

    def fill(self, value: object, args: Sequence[Any], named: Mapping[str, Any]) -> bool:
        """False if these are not the arguments of this class; then no error is raised here."""
        given = dict(zip(self.positional, args, strict=False))
        if len(given) < len(args) or not named.keys() <= self.fields.keys() - given.keys():
            return False
        given |= named
        for name, each in self.fields.items():
            if name in given and each.init:
                content = given[name]
            elif name in given:
                return False
            elif each.default is not MISSING:
                content = each.default
            elif each.default_factory is not MISSING:
                content = each.default_factory()
            else:
                return False
            object.__setattr__(value, name, content)
        return True

    def make_init(self) -> Callable[..., None]:
        """What `dataclass` writes for a class with the same fields."""
        twin = type(
            self.cls.__name__,
            (),
            {
                "__module__": self.cls.__module__,
                "__qualname__": self.cls.__qualname__,
                "__doc__": NO_SIGNATURE,
                "__annotations__": dict.fromkeys(self.fields, Any),  # quicker than to read them
                **{name: _again(each) for name, each in self.fields.items()},
            },
        )
        fills_in = not all(
            each.init for each in self.fields.values()
        )  # one that cannot be given is set for slots alone
        return dataclass(repr=False, eq=False, slots=fills_in, frozen=self.frozen)(twin).__init__


class _MatchArgs:
    def __init__(self, shape: _Shape) -> None:
        self._shape = shape

    def __get__(self, value: object, owner: type[Any]) -> tuple[str, ...]:
        self._shape.made.__match_args__ = self._shape.positional
        return self._shape.positional


class _OfDataclass:
    """Placeholder for what a dataclass has under this name, until it is requested."""

    def __init__(self, shape: _Shape, name: str) -> None:
        self._shape = shape
        self._name = name

    def __get__(self, value: object, owner: type[Any]) -> Any:
        known, made = self._shape.as_dataclass, self._shape.made
        setattr(made, self._name, getattr(known, self._name))
        return getattr(known, self._name)


def _init_of(shape: _Shape) -> Callable[..., None]:
    def __init__(self: object, *args: Any, **named: Any) -> None:  # noqa: N807 - it is one
        shape.count += 1
        if shape.count > FILLED_BY_HAND or not shape.fill(self, args, named):
            shape.made.__init__ = init = shape.make_init()
            init(self, *args, **named)

    return __init__


def _again(given: Field[Any]) -> Any:
    """A `Field` belongs to one class, and this one is for another."""
    made: Any = field(init=given.init, kw_only=given.kw_only)
    made.default, made.default_factory = given.default, given.default_factory
    return made


def _repr_of(shape: _Shape) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807 - it is one
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in shape.repr_fields)
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _eq_of(shape: _Shape) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:  # noqa: N807 - it is one
        return shape.compare_key(self) == shape.compare_key(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hash_of(shape: _Shape) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:  # noqa: N807 - it is one
        return hash(shape.hash_key(self))

    return __hash__


def _refuse(self: object, name: str, value: object = None) -> None:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _content(names: list[str]) -> Callable[[Any], object]:
    return attrgetter(*names) if names else lambda _: ()


_METHODS: Final[Mapping[str, Callable[[_Shape], Callable[..., Any]]]] = {
    "__init__": _init_of,
    "__repr__": _repr_of,
    "__eq__": _eq_of,
    "__hash__": _hash_of,
}
