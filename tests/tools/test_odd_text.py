"""Names and text that are no Unicode: what can be done is done, and the rest is refused in words."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.calls import Status
from tests.requirement import requirement
from tests.tools.working import Workplace, words

NOTEBOOK = json.dumps(
    {
        "cells": [{"cell_type": "raw", "id": "a", "metadata": {}, "source": ["1"]}],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
)


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.put("a.txt", "one\n")
    place.put("a.ipynb", NOTEBOOK)
    return place


@requirement("FILE-6")
def test_a_name_that_is_no_utf8_can_be_found_read_edited_and_written(place: Workplace) -> None:
    path = place.put(os.fsdecode(b"inv\xff.txt"), "one\n", seen=False)

    outcomes = place.run(
        ("Glob", {"pattern": "inv*"}),
        ("Read", {"file_path": str(path)}),
        ("Edit", {"file_path": str(path), "old_string": "one", "new_string": "two"}),
        ("Write", {"file_path": str(path), "content": "three\n"}),
    )

    assert [outcome.status for outcome in outcomes] == [Status.OK] * 4
    assert outcomes[0].output.paths == (str(path),)
    assert path.read_text() == "three\n"


@requirement("FILE-6")
def test_a_notebook_whose_name_is_no_utf8_can_be_edited(place: Workplace) -> None:
    path = place.put(os.fsdecode(b"inv\xff.ipynb"), NOTEBOOK)

    (outcome,) = place.run(("NotebookEdit", {"notebook_path": str(path), "cell_id": "a", "new_source": "2"}))

    assert not outcome.is_error
    assert json.loads(path.read_text())["cells"][0]["source"] == ["2"]


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("Edit", {"file_path": "a.txt", "old_string": "one\ud83d", "new_string": "x"}, "old_string"),
        ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "\ud83d"}, "new_string"),
        ("Edit", {"file_path": "new.txt", "old_string": "", "new_string": "\ud83d"}, "new_string"),
        ("Write", {"file_path": "a.txt", "content": "\ud83d"}, "content"),
        ("NotebookEdit", {"notebook_path": "a.ipynb", "cell_id": "a", "new_source": "\ud83d"}, "new_source"),
    ],
)
@requirement("FILE-6")
def test_half_a_character_is_refused_and_its_field_named(
    place: Workplace, tool: str, arguments: dict[str, Any], field: str
) -> None:
    (outcome,) = place.run((tool, arguments))

    assert outcome.status is Status.INVALID
    assert words(outcome, place.folder).startswith(
        f"`{field}` holds U+D83D, half of a character, which cannot be written to a file. Give the whole character."
    )
    assert (place.folder / "a.txt").read_text() == "one\n"
    assert not (place.folder / "new.txt").exists()


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("Edit", {"file_path": "", "old_string": "a", "new_string": "b"}, "`file_path` is empty, or names"),
        ("Write", {"file_path": "", "content": "b"}, "`file_path` is empty, or names"),
        ("Write", {"file_path": ".", "content": "b"}, "`file_path` is empty, or names"),
        ("NotebookEdit", {"notebook_path": "", "cell_id": "a", "new_source": "b"}, "`notebook_path` is empty, or"),
        ("NotebookEdit", {"notebook_path": "a.ipynb", "cell_id": "", "new_source": "b"}, "`cell_id` is empty."),
        ("Edit", {"file_path": "\ud83d", "old_string": "a", "new_string": "b"}, "\ud83d does not exist."),
        ("Write", {"file_path": "\ud83d", "content": "b"}, "\ud83d holds"),
    ],
)
@requirement("PIPE-2")
def test_a_path_that_names_no_file_is_refused_in_words(
    place: Workplace, tool: str, arguments: dict[str, Any], said: str
) -> None:
    (outcome,) = place.run((tool, arguments))

    assert outcome.is_error
    assert words(outcome, place.folder).startswith(said)
