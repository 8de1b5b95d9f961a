"""What a notebook says, and where each of its cells stands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.text.json_reader import Object, object_at
from ferrule.text.notebooks import NotNotebook, parse_notebook
from tests.drawing import examples
from tests.requirement import requirement
from tests.text.notebook_strategies import by_nbformat, models, written


@given(st.data())
@examples(25)
@requirement("NB-1")
def test_it_says_what_nbformat_reads(data: st.DataObject) -> None:
    text = data.draw(data.draw(models().map(written)))

    notebook, oracle = parse_notebook(text), by_nbformat(text)

    assert (notebook.minor, notebook.metadata) == (oracle.nbformat_minor, oracle.metadata)
    assert [(cell.id, cell.type, cell.source) for cell in notebook.cells] == [
        (cell.get("id"), cell.cell_type, cell.source) for cell in oracle.cells
    ]
    assert [cell.execution_count for cell in notebook.cells] == [cell.get("execution_count") for cell in oracle.cells]
    assert [len(cell.outputs) for cell in notebook.cells] == [len(cell.get("outputs", ())) for cell in oracle.cells]


@given(st.data())
@examples(25)
def test_the_spans_are_those_of_the_cells_and_their_members(data: st.DataObject) -> None:
    text = data.draw(data.draw(models().map(written)))
    notebook = parse_notebook(text)

    assert json.loads(text[notebook.list_span.start : notebook.list_span.end]) == json.loads(text)["cells"]
    for cell in notebook.cells:
        assert json.loads(text[cell.span.start : cell.span.end]) == cell.members
        walked = object_at(text, cell.span.start)
        assert isinstance(walked.value, Object)
        assert walked.end == cell.span.end
        for member in walked.value.members:
            assert json.loads(f"{{{text[member.start : member.end]}}}") == {member.key: member.value.value}


def test_of_a_key_that_comes_twice_the_last_counts() -> None:
    text = '{"cells": [], "cells": [{"cell_type": "raw", "source": "a", "source": "b"}], "nbformat": 4, "metadata": 1}'

    assert [cell.source for cell in parse_notebook(text).cells] == ["b"]


def test_a_cell_is_called_by_its_id_or_else_by_its_index() -> None:
    notebook = parse_notebook(json.dumps(with_cells({"id": "1"}, {"id": "a"}, {}, {"id": "twice"}, {"id": "twice"})))

    assert [cell.index for cell in notebook.find_cells("a")] == [1]
    assert [cell.index for cell in notebook.find_cells("1")] == [0]
    assert [cell.index for cell in notebook.find_cells("cell-1")] == [1]
    assert [cell.index for cell in notebook.find_cells("2")] == [2]
    assert [cell.index for cell in notebook.find_cells("twice")] == [3, 4]
    assert not notebook.find_cells("5")
    assert not notebook.find_cells("-1")
    assert not notebook.find_cells("cell-²")
    assert [cell.name for cell in notebook.cells] == ["1", "a", "cell-2", "twice", "twice"]


def test_an_id_that_the_format_does_not_allow_is_no_name() -> None:
    notebook = parse_notebook(
        json.dumps(with_cells({"id": "two\nlines"}, {"id": ""}, {"id": 3}, {"id": "a" * 65}, {"id": "a-Z_9"}))
    )

    assert [cell.name for cell in notebook.cells] == ["cell-0", "cell-1", "cell-2", "cell-3", "a-Z_9"]
    assert [cell.index for cell in notebook.find_cells("two\nlines")] == [0]


def test_the_language_is_that_of_the_kernel() -> None:
    for metadata, language in (
        ({"language_info": {"name": "R"}, "kernelspec": {"language": "python"}}, "R"),
        ({"kernelspec": {"language": "julia"}}, "julia"),
        ({"kernelspec": None}, ""),
    ):
        assert parse_notebook(json.dumps({**with_cells(), "metadata": metadata})).language == language


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is invalid JSON in line 1, column 1: expected a value, found the end of the file"),
        (
            "{",
            "it is invalid JSON in line 1, column 2: expected a key in double quotes or `}`, found the end of the file",
        ),
        (
            '{"cells": []\n"nbformat": 4}',
            'it is invalid JSON in line 2, column 1: expected `,` or `}`, found `"`. A comma is missing before it',
        ),
        ('{"cells" 1}', "it is invalid JSON in line 1, column 10: expected `:` after the key, found `1`"),
        (
            '{"cells": [], }',
            "it is invalid JSON in line 1, column 15: expected a key in double quotes, found `}`. "
            "Remove the comma before it",
        ),
        (
            '{"cells": [1, ]}',
            "it is invalid JSON in line 1, column 15: expected a value, found `]`. Remove the comma before it",
        ),
        (
            "{} {}",
            "it is invalid JSON in line 1, column 4: expected the end of the file, found `{`. "
            "Remove what follows the first value",
        ),
        ('{"cells": [' + "[" * 100_000, "it is invalid JSON: it is nested too deeply"),
        ('{"metadata": ' * 100_000, "it is invalid JSON: it is nested too deeply"),
        ("[]", "it is JSON, but not an object with cells"),
        ("{}", "it has no number `nbformat`, and only format 4 is supported"),
        ('{"nbformat": true}', "it has no number `nbformat`, and only format 4 is supported"),
        ('{"nbformat": 5, "cells": []}', "its format is 5, and only format 4 is supported"),
        ('{"nbformat": 4, "cells": {}}', "it has no list `cells`"),
        ('{"nbformat": 4, "cells": [[]]}', "its cell 0 is not an object"),
        ('{"nbformat": 4, "cells": [{}]}', "its cell 0 has no `cell_type`"),
        (
            '{"nbformat": 4, "cells": [{"cell_type": "raw", "source": [1]}]}',
            "the source of its cell 0 is neither a string nor a list of strings",
        ),
    ],
)
def test_what_is_no_notebook_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(NotNotebook) as caught:
        parse_notebook(text)

    assert str(caught.value) == reason


@pytest.mark.parametrize("text", ['{"nbformat": 3, "worksheets": []}', '{"worksheets": [1]}', '{"nbformat": 2}'])
def test_a_notebook_of_worksheets_is_to_be_converted_first(text: str) -> None:
    with pytest.raises(NotNotebook, match=r"outdated\. Convert it first: jupyter nbconvert"):
        parse_notebook(text)


def test_a_number_of_too_many_digits_is_no_crash() -> None:
    with pytest.raises(NotNotebook, match="is too large"):
        parse_notebook(f'{{"nbformat": {"9" * 5_000}}}')


def with_cells(*cells: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"cell_type": "raw", "metadata": {}, "source": ""}
    filled = [{**empty, **cell} for cell in cells]
    return {"cells": filled, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
