"""Values that nobody changes, at the price of ones that could be.

A frozen dataclass sets each field through `object.__setattr__`, which takes
five times as long as a plain assignment; a call makes some twenty values with
a hundred fields. `plain_value` makes a class that the type checker treats as frozen
and that is a plain slotted dataclass when the program runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def plain_value(cls: type[T]) -> type[T]:
    """Compared by its fields, and hashed by them where each can be; assigning to one is a type error."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def named_value(cls: type[T]) -> type[T]:
    """A `plain_value` whose fields are given by name."""
    return dataclass(slots=True, unsafe_hash=True, kw_only=True)(cls)
