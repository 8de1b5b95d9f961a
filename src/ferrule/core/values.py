"""Values that nobody changes, at the price of ones that could be.

A frozen dataclass sets each field through `object.__setattr__`, which takes
five times as long as a plain assignment; a call makes some twenty values with
a hundred fields. `plain_value` makes a class that the type checker treats as frozen
and that is a plain slotted dataclass when the program runs.

The classes are cheap as well. A dataclass writes and compiles five methods,
which takes longer than all else in most modules, and a run makes values of a
few classes only. Here comparing, hashing and showing go by the names of the
fields, and `__init__` is written when the first value is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform

T = TypeVar("T")


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
    """A `plain_value` that nobody can change in passing: for what is handed to other people's code."""
    return _frozen(_value(cls, named=False, frozen=True))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen_named_value(cls: type[T]) -> type[T]:
    """A `frozen_value` whose fields are given by name."""
    return _frozen(_value(cls, named=True, frozen=True))


def _frozen(cls: type[T]) -> type[T]:
    def refuse(self: object, name: str, value: object = None) -> None:
        raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")

    cls.__setattr__ = refuse
    cls.__delattr__ = refuse
    return cls


def _value(cls: type[T], *, named: bool, frozen: bool = False) -> type[T]:
    cls.__doc__ = cls.__doc__ or cls.__name__  # where there is none, a signature would be worked out for it
    made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=named)(cls)
    own = fields(cast(Any, made))
    methods: dict[str, Callable[..., Any]] = {
        "__init__": _init_when_first_called(made, frozen),
        "__repr__": _repr_of([each.name for each in own if each.repr]),
        "__eq__": _eq_of([each.name for each in own if each.compare]),
        "__hash__": _hash_of([each.name for each in own if (each.compare if each.hash is None else each.hash)]),
    }
    for name, method in methods.items():
        if cls.__dict__.get(name) is None:  # a class with an `__eq__` of its own has None for `__hash__`
            setattr(made, name, method)
    return made


def _init_when_first_called(cls: type[Any], frozen: bool) -> Callable[..., None]:
    def __init__(self: object, *args: Any, **named: Any) -> None:  # noqa: N807 - it is one
        init = _written_init(cls, frozen)
        cls.__init__ = init
        init(self, *args, **named)

    return __init__


def _written_init(cls: type[Any], frozen: bool) -> Callable[..., None]:
    """What `dataclass` writes for a class with the same fields."""
    own = fields(cls)
    twin = type(
        cls.__name__,
        (),
        {
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "__annotations__": dict.fromkeys((each.name for each in own), Any),  # quicker than to read them again
            **{each.name: _again(each) for each in own},
        },
    )
    fills_in = not all(each.init for each in own)  # a default that cannot be given is set for slots alone
    return dataclass(repr=False, eq=False, slots=fills_in, frozen=frozen)(twin).__init__


def _again(given: Field[Any]) -> Any:
    """A `Field` belongs to one class, and this one is for another."""
    made: Any = field(init=given.init, kw_only=given.kw_only)
    made.default, made.default_factory = given.default, given.default_factory
    return made


def _repr_of(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807 - it is one
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _eq_of(names: list[str]) -> Callable[[Any, object], bool]:
    content = _content(names)

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807 - it is one
        return content(self) == content(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hash_of(names: list[str]) -> Callable[[Any], int]:
    content = _content(names)

    def __hash__(self: Any) -> int:  # noqa: N807 - it is one
        return hash(content(self))

    return __hash__


def _content(names: list[str]) -> Callable[[Any], object]:
    return attrgetter(*names) if names else lambda _: ()
