"""Values behave as the dataclasses that they stand for."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from inspect import signature
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from ferrule.core.values import FILLED_BY_HAND, frozen_named_value, frozen_value, named_value, plain_value


@plain_value
class Point:
    x: int
    y: int = 0
    notes: list[str] = field(default_factory=list[str], compare=False)
    kept: str = field(default="", repr=False)
    ORIGIN: ClassVar[int] = 0


@dataclass(slots=True, unsafe_hash=True)
class Model:
    """What `Point` is held against."""

    x: int
    y: int = 0
    notes: list[str] = field(default_factory=list[str], compare=False)
    kept: str = field(default="", repr=False)
    ORIGIN: ClassVar[int] = 0


@plain_value
class Higher(Point):
    z: int = 5


@named_value
class Named:
    least: int
    most: int | None = None


@plain_value
class Empty:
    pass


@plain_value
class Odd:  # noqa: PLW1641 - the hash is what is given to it
    x: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd)

    def __repr__(self) -> str:
        return "odd"


@frozen_value
class Fixed:
    x: int
    y: list[int] = field(default_factory=list[int])
    kind: str = field(default="fixed", init=False)


@frozen_named_value
class FixedByName:
    x: int


Values = st.tuples(
    st.integers(-2, 2), st.integers(-2, 2), st.lists(st.text(max_size=1), max_size=1), st.text(max_size=1)
)


@given(Values, Values)
def test_a_value_is_compared_hashed_and_shown_like_a_dataclass(one: Any, other: Any) -> None:
    assert (Point(*one) == Point(*other)) == (Model(*one) == Model(*other))
    assert Point(*one) != Model(*one)
    assert repr(Point(*one)) == repr(Model(*one)).replace("Model", "Point")
    if Point(*one) == Point(*other):
        assert hash(Point(*one)) == hash(Point(*other))


def test_defaults_are_made_anew_for_each_value() -> None:
    assert Point(1).notes is not Point(1).notes
    assert (Point(1).y, Point(1).kept) == (0, "")


def test_a_value_has_slots_and_the_tools_for_dataclasses_take_it() -> None:
    assert not hasattr(Point(1), "__dict__")
    assert is_dataclass(Point)
    assert [each.name for each in fields(Point)] == ["x", "y", "notes", "kept"]
    assert replace(Point(1, 2), y=3) == Point(1, 3)
    assert asdict(Named(least=1)) == {"least": 1, "most": None}
    assert TypeAdapter(Named).validate_python({"least": "1"}) == Named(least=1)


def test_a_value_can_be_taken_apart_by_position_unless_its_fields_are_named() -> None:
    assert Point.__match_args__ == ("x", "y", "notes", "kept")
    assert Named.__match_args__ == ()
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


@pytest.mark.parametrize("make", [Point, lambda: Point(1, wrong=2), lambda: Named(1), lambda: Empty(1)])
def test_wrong_arguments_are_refused_at_the_first_and_at_every_later_time(make: Any) -> None:
    for _ in range(FILLED_BY_HAND + 2):
        with pytest.raises(TypeError):
            make()


def test_the_signature_is_that_of_the_fields_once_some_values_were_made() -> None:
    for _ in range(FILLED_BY_HAND + 1):
        Named(least=1)

    assert list(signature(Named).parameters) == ["least", "most"]


def test_a_value_may_extend_another() -> None:
    assert Higher(1).z == 5
    assert repr(Higher(1, z=2)) == "Higher(x=1, y=0, notes=[], z=2)"
    assert Higher(1) != Point(1)


def test_the_first_values_of_a_class_are_as_all_others() -> None:
    @plain_value
    class Fresh:
        x: int
        y: int = 2
        made: list[int] = field(default_factory=list[int])
        kind: str = field(default="fresh", init=False)

    all_of_them = [Fresh(1, made=[number]) for number in range(FILLED_BY_HAND + 3)]

    assert [(one.x, one.y, one.made, one.kind) for one in all_of_them] == [
        (1, 2, [number], "fresh") for number in range(FILLED_BY_HAND + 3)
    ]
    assert len({repr(replace(one, made=[])) for one in all_of_them}) == 1


def test_a_value_without_fields_equals_every_other_of_its_class() -> None:
    assert Empty() == Empty()
    assert len({Empty(), Empty()}) == 1


def test_methods_that_a_class_writes_itself_are_kept() -> None:
    assert Odd(1) == Odd(2)
    assert repr(Odd(1)) == "odd"


def test_a_value_that_holds_itself_can_be_shown() -> None:
    held: list[Any] = []
    point = Point(1, notes=held)
    held.append(point)

    assert repr(point) == "Point(x=1, y=0, notes=[...])"


def test_a_value_with_a_field_that_cannot_be_hashed_cannot_be_hashed() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point([]))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("value", [Fixed(1), FixedByName(x=1), replace(Fixed(2), x=1)])
def test_a_frozen_value_cannot_be_changed_in_passing(value: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        value.x = 2
    with pytest.raises(FrozenInstanceError):
        del value.x

    assert value.x == 1
    assert value == replace(value)


def test_a_field_that_is_not_given_has_its_default() -> None:
    assert Fixed(1).kind == "fixed"
    with pytest.raises(TypeError):
        Fixed(1, kind="other")  # pyright: ignore[reportCallIssue]
