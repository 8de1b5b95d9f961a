"""Inputs as models write them: strict about meaning, lenient about spelling."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel, Field, create_model

from ferrule.core.calls import Refusal, Status, ToolCall
from ferrule.core.context import ToolContext
from ferrule.core.inputs import PathText, ToolInput
from ferrule.core.tool import Tool
from tests.requirement import requirement


class Part(ToolInput):
    count: int = Field(default=1, description="How many.")
    wanted: bool = Field(default=False, description="Whether.")


class Cat(ToolInput):
    kind: Literal["cat"]
    lives: int


class Dog(ToolInput):
    kind: Literal["dog"]
    loud: bool


def _tool(**fields: Any) -> Tool[Any, str]:
    class Takes(Tool[Any, str]):
        """Take what is given."""

        name = "Takes"
        input_model = create_model("TakesInput", __base__=ToolInput, **fields)

        async def call(self, input: Any, ctx: ToolContext) -> str:
            return ""

    return Takes()


def _taken(kind: Any, value: Any) -> Any:
    return _tool(x=(kind, ...)).parse({"x": value}).x


def _refused(tool: Tool[Any, str], arguments: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as caught:
        tool.parse(arguments)
    assert caught.value.status is Status.INVALID
    return caught.value.message


def _problem(kind: Any, value: Any) -> str:
    return _refused(_tool(x=(kind, ...)), {"x": value}).splitlines()[1]


# Numbers and booleans


@requirement("CON-2")
@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        (int, "10", 10),
        (int, " -7 ", -7),
        (int, 10.0, 10),
        (int, "0", 0),
        (bool, "true", True),
        (bool, "False", False),
        (bool, True, True),
        (float, "1.5", 1.5),
        (float, "1e3", 1000.0),
        (float, 3, 3.0),
        (str, "10", "10"),
        (str, "true", "true"),
    ],
)
def test_a_value_is_taken_by_its_meaning(kind: type, written: Any, meant: Any) -> None:
    taken = _taken(kind, written)

    assert (type(taken), taken) == (kind, meant)


@requirement("CON-2")
@given(st.integers(min_value=-(10**99) + 1, max_value=10**99 - 1))
def test_any_whole_number_as_text_is_that_number(number: int) -> None:
    assert _WHOLE.parse({"x": str(number)}).x == number


_WHOLE = _tool(x=(int, ...))


@requirement("CON-2")
@given(st.text())
def test_text_is_a_whole_number_only_if_python_reads_it_as_the_same_plain_digits(text: str) -> None:
    plain = text.strip().removeprefix("-")

    if plain and all(letter in "0123456789" for letter in plain):
        assert _WHOLE.parse({"x": text}).x == int(text)
    else:
        with pytest.raises(Refusal):
            _WHOLE.parse({"x": text})


@requirement("CON-2")
@pytest.mark.parametrize(
    ("kind", "written", "problem"),
    [
        (int, "abc", '- `x` must be a whole number, not "abc".'),
        (int, "1.5", '- `x` must be a whole number, not "1.5".'),
        (int, 1.5, "- `x` must be a whole number, not 1.5."),
        (int, True, "- `x` must be a whole number, not true."),
        (int, "", '- `x` must be a whole number, not "".'),
        (int, "1_000", '- `x` must be a whole number, not "1_000".'),
        (int, "٣", '- `x` must be a whole number, not "٣".'),
        (int, "1e3", '- `x` must be a whole number, not "1e3".'),
        (int, None, "- `x` must be a whole number, not null."),
        (int, [1], "- `x` must be a whole number, not a list."),
        (int, {}, "- `x` must be a whole number, not an object."),
        (int, "9" * 5000, f'- `x` must be a whole number, not "{"9" * 57}...".'),
        (bool, "yes", '- `x` must be true or false, not "yes".'),
        (bool, 1, "- `x` must be true or false, not 1."),
        (bool, 0.0, "- `x` must be true or false, not 0.0."),
        (bool, "1", '- `x` must be true or false, not "1".'),
        (float, "abc", '- `x` must be a number, not "abc".'),
        (float, "nan", '- `x` must be a number, not "nan".'),
        (float, "inf", '- `x` must be a number, not "inf".'),
        (float, "1_0.5", '- `x` must be a number, not "1_0.5".'),
        (float, True, "- `x` must be a number, not true."),
        (str, 10, "- `x` must be a string, not 10."),
        (list[int], "1", '- `x` must be a list, not "1".'),
        (Part, 5, "- `x` must be an object, not 5."),
        (Literal["a", "b"], "c", "- `x` must be 'a' or 'b', not \"c\"."),
    ],
)
def test_a_value_that_means_something_else_is_refused_by_its_field(kind: Any, written: Any, problem: str) -> None:
    assert _problem(kind, written) == problem


@requirement("CON-2")
def test_numbers_and_booleans_are_read_by_meaning_wherever_they_stand() -> None:
    assert _taken(list[int], ["1", 2.0]) == [1, 2]
    assert _taken(dict[str, bool], {"a": "true"}) == {"a": True}
    assert _taken(tuple[int, bool], ["1", "false"]) == (1, False)
    assert _taken(Part, {"count": "3", "wanted": "true"}) == Part(count=3, wanted=True)
    assert _taken(list[Part], [{"count": 4.0}]) == [Part(count=4)]
    assert _taken(int | list[int], ["5"]) == [5]
    assert _taken(int | bool, "true") is True
    assert _taken(int | bool, "1") == 1
    assert _taken(int | None, "6") == 6
    assert _taken(Cat | Dog, {"kind": "cat", "lives": "9"}) == Cat(kind="cat", lives=9)
    assert _taken(Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "dog", "loud": "true"}) == Dog(
        kind="dog", loud=True
    )


@requirement("CON-2")
def test_wrong_values_are_refused_by_name_wherever_they_stand() -> None:
    assert _problem(list[int], [1, "a"]) == '- `x.1` must be a whole number, not "a".'
    assert _problem(list[int], [True]) == "- `x.0` must be a whole number, not true."
    assert _problem(dict[str, int], {"a": "1.5"}) == '- `x.a` must be a whole number, not "1.5".'
    assert _problem(Part, {"wanted": 1}) == "- `x.wanted` must be true or false, not 1."
    assert _problem(list[Part], [{}, {"count": "abc"}]) == '- `x.1.count` must be a whole number, not "abc".'
    assert _problem(int | None, "abc") == '- `x` must be a whole number, not "abc".'


@requirement("CON-2")
def test_a_problem_in_a_union_names_the_field_and_not_the_members_of_the_union() -> None:
    assert _refused(_tool(x=(int | list[int] | bool, ...)), {"x": ["a"]}) == snapshot("""\
Takes cannot take these arguments:
- `x` must be a whole number, not a list.
- `x.0` must be a whole number, not "a".
- `x` must be true or false, not a list.
It takes: x (required).\
""")


@requirement("CON-2")
@pytest.mark.parametrize("kind", [int | str, str | int, bool | str, float | str])
@pytest.mark.parametrize("text", ["007", "true", "1.50"])
def test_where_text_is_welcome_text_stays_text(kind: Any, text: str) -> None:
    assert _taken(kind, text) == text


@requirement("CON-2")
def test_a_limit_of_a_number_holds_for_its_written_form_too() -> None:
    tool = _tool(x=(int, Field(ge=1)))

    assert tool.parse({"x": "1"}).x == 1
    assert _refused(tool, {"x": "0"}) == snapshot("""\
Takes cannot take these arguments:
- `x`: Input should be greater than or equal to 1 (given: 0).
It takes: x (required).\
""")


# Keys


@requirement("CON-2")
def test_unknown_keys_are_refused_by_name_with_the_nearest_one() -> None:
    tool = _tool(file_path=(str, ...), limit=(int, 5))

    assert _refused(tool, {"filepath": "a", "zzz": 1, "function-like": 2}) == snapshot("""\
Takes cannot take these arguments:
- `file_path` is missing.
- `filepath` is not a parameter; did you mean `file_path`?
- `zzz` is not a parameter.
- `function-like` is not a parameter.
It takes: file_path (required), limit.\
""")


@requirement("CON-2")
def test_an_unknown_key_of_a_nested_model_gets_the_nearest_name_there() -> None:
    tool = _tool(cuont=(list[Part], ...), pet=(Cat | Dog | None, None))

    message = _refused(tool, {"cuont": [{"cuont": 1}], "pet": {"kind": "dog", "lood": True}})

    assert "- `cuont.0.cuont` is not a parameter; did you mean `count`?" in message.splitlines()
    assert "- `pet.Dog.lood` is not a parameter; did you mean `loud`?" in message.splitlines()


@requirement("CON-2")
def test_a_flood_of_unknown_keys_gets_a_short_answer() -> None:
    tool = _tool(x=(int, 1))

    message = _refused(tool, {**{f"key{number}": 1 for number in range(5_000)}, "k" * 1_000_000: 1})

    assert len(message) < 4_000
    assert message.splitlines()[-2:] == ["- and 4,981 more.", "It takes: x."]


@requirement("CON-2")
def test_a_tool_without_parameters_says_that_it_takes_nothing() -> None:
    assert _refused(_tool(), {"a": 1}) == snapshot("""\
Takes cannot take these arguments:
- `a` is not a parameter.
It takes: nothing.\
""")


# Null


@requirement("CON-2")
def test_a_null_for_an_optional_field_means_its_default() -> None:
    tool = _tool(
        count=(int, 5),
        items=(list[int], Field(default_factory=lambda: [1])),
        maybe=(int | None, None),
        part=(Part, Part(count=9)),
    )

    taken = tool.parse({"count": None, "items": None, "maybe": None, "part": {"count": None}})

    assert taken.model_dump() == {"count": 5, "items": [1], "maybe": None, "part": {"count": 1, "wanted": False}}


@requirement("CON-2")
def test_a_null_means_the_default_in_any_kind_of_mapping() -> None:
    assert _tool(count=(int, 5)).parse(MappingProxyType({"count": None})).count == 5


@requirement("CON-2")
def test_a_null_for_a_required_field_is_refused() -> None:
    assert _problem(str, None) == "- `x` must be a string, not null."


@requirement("CON-2")
def test_a_null_for_an_unknown_key_is_refused() -> None:
    assert "- `y` is not a parameter." in _refused(_tool(x=(int, 1)), {"y": None})


# Paths and calls


@requirement("CON-8")
def test_the_path_fields_of_an_input_are_known() -> None:
    class Both(ToolInput):
        one: PathText
        other: PathText | None = None
        text: str = ""

    assert Both.path_fields == ("one", "other")


@requirement("PIPE-2")
@pytest.mark.parametrize("text", ["{", "[1]", "null", '"x"', "[" * 100_000, '{"x": ' + "9" * 5_000 + "}"])
def test_arguments_that_are_no_json_object_are_kept_as_written(text: str) -> None:
    call = ToolCall.from_text("1", "Read", text)

    assert (call.arguments, call.malformed) == ({}, text)


@requirement("PIPE-2")
@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()))
def test_arguments_as_text_are_read_back_as_they_were(arguments: dict[str, Any]) -> None:
    call = ToolCall.from_text("1", "Read", json.dumps(arguments))

    assert (call.arguments, call.malformed) == (arguments, None)


@requirement("PIPE-2")
@pytest.mark.parametrize("text", ["", "  \n"])
def test_no_text_means_no_arguments(text: str) -> None:
    assert ToolCall.from_text("1", "Read", text) == ToolCall("1", "Read", {})


@requirement("CON-2")
def test_a_model_inside_an_input_must_be_an_input_itself() -> None:
    class Plain(BaseModel):
        count: int

    with pytest.raises(TypeError, match="`parts` holds Plain, which must derive from ToolInput"):

        class _(ToolInput):
            parts: list[Plain] = []


@requirement("CON-8")
def test_a_path_inside_a_nested_input_is_refused_where_it_is_declared() -> None:
    class Place(ToolInput):
        path: PathText

    with pytest.raises(TypeError, match="`place` holds Place, whose paths nobody would make absolute"):

        class _(ToolInput):
            place: Place | None = None
