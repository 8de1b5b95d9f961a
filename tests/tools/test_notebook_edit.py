"""NotebookEdit: one cell changes, and the notebook stays what it is."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any, ClassVar

import pytest
from inline_snapshot import snapshot

from ferrule.core.calls import Status
from ferrule.core.content import Diff, plain_text
from ferrule.core.ports import Proposal
from ferrule.core.tool import Exposure
from ferrule.core.verdicts import Verdict
from ferrule.host.files.workfiles import Workfiles
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.notebook_edit import NotebookEdit
from tests.host.files.seeing import see
from tests.requirement import requirement
from tests.tools.notebooks import WITH_IDS, WITHOUT_IDS, Place, code, notebook, prose


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = tmp_path / "work"
    folder.mkdir()
    return Place(folder)


class TestNotebookEditContract(ToolContract):
    samples = (
        {"notebook_path": "a.ipynb", "cell_id": "load", "new_source": "x"},
        {"notebook_path": "a.ipynb", "cell_id": "0", "new_source": "x", "cell_type": "raw", "edit_mode": "insert"},
        {"notebook_path": "a.ipynb", "cell_id": "intro", "edit_mode": "delete"},
    )
    files: ClassVar[Workfiles] = Workfiles()

    def make(self) -> NotebookEdit:
        return NotebookEdit(self.files)

    def arrange(self, folder: Path) -> None:
        (folder / "a.ipynb").write_text(WITH_IDS, encoding="utf-8")
        see(self.files.ledgers.of("main"), folder / "a.ipynb")


@requirement("NB-1")
def test_a_cell_is_replaced_and_its_stale_outputs_go(place: Place) -> None:
    path = place.put(WITH_IDS)

    status, said = place.edit(cell_id="load", new_source="a = 2\nprint(a)")

    assert status is Status.OK
    assert said == snapshot("""\
Replaced cell load (index 1, code) of a.ipynb. Its outputs are gone.
--- a/a.ipynb#load
+++ b/a.ipynb#load
@@ -1,2 +1,2 @@
-a = 1
+a = 2
 print(a)\
""")
    expected = notebook(
        prose("# Title", id="intro"), code("a = 2\nprint(a)", id="load"), code("b", id="plot", outputs=1)
    )
    assert path.read_text(encoding="utf-8") == expected


@requirement("NB-1")
def test_a_cell_is_inserted_after_the_named_one(place: Place) -> None:
    place.put(WITH_IDS)

    status, said = place.edit(cell_id="intro", new_source="*new*", cell_type="markdown", edit_mode="insert")

    new = place.cells[1]
    assert status is Status.OK
    assert said.replace(new.id, "NEW") == snapshot("""\
Inserted cell NEW (index 1, markdown) in a.ipynb. It has 4 cells now.
--- a/a.ipynb#NEW
+++ b/a.ipynb#NEW
@@ -0,0 +1 @@
+*new*\
""")
    assert (new.cell_type, place.sources) == ("markdown", ["# Title", "*new*", "a = 1\nprint(a)", "b"])


@requirement("NB-1")
def test_without_a_cell_an_insert_goes_to_the_start(place: Place) -> None:
    place.put(WITH_IDS)

    assert place.edit(new_source="import os", cell_type="code", edit_mode="insert")[0] is Status.OK
    assert place.sources[:2] == ["import os", "# Title"]
    assert place.cells[0].outputs == []


@requirement("NB-1")
def test_a_cell_is_deleted(place: Place) -> None:
    path = place.put(WITH_IDS)

    status, said = place.edit(cell_id="load", edit_mode="delete", new_source="")

    assert status is Status.OK
    assert said == snapshot("""\
Deleted cell load (index 1, code) from a.ipynb. It has 2 cells now.
--- a/a.ipynb#load
+++ b/a.ipynb#load
@@ -1,2 +0,0 @@
-a = 1
-print(a)\
""")
    assert path.read_text(encoding="utf-8") == notebook(prose("# Title", id="intro"), code("b", id="plot", outputs=1))


@requirement("NB-1")
@pytest.mark.parametrize("name", ["1", "cell-1", 1])
def test_a_cell_without_an_id_goes_by_its_index(place: Place, name: str | int) -> None:
    place.put(WITHOUT_IDS)

    status, said = place.edit(cell_id=name, new_source="x")

    assert (status, said.split("\n")[0]) == (
        Status.OK,
        "Replaced cell cell-1 (index 1, code) of a.ipynb. Its outputs are gone.",
    )
    assert place.sources == ["# Title", "x"]


@requirement("NB-1")
def test_an_id_goes_before_an_index(place: Place) -> None:
    place.put(notebook(code("a", id="1"), code("b", id="x")))

    assert place.edit(cell_id="1", new_source="A")[0] is Status.OK
    assert place.edit(cell_id="cell-1", new_source="B")[0] is Status.OK
    assert place.sources == ["A", "B"]


@requirement("NB-1")
def test_a_cell_can_change_its_type(place: Place) -> None:
    place.put(WITH_IDS)

    _, said = place.edit(cell_id="load", new_source="# Loading", cell_type="markdown")

    assert said.startswith(
        "Replaced cell load (index 1, markdown) of a.ipynb. It was code before. Its outputs are gone.\n"
    )
    assert "outputs" not in place.cells[1]


@requirement("NB-1")
def test_text_that_becomes_code_loses_its_attachments_and_says_so(place: Place) -> None:
    place.put(notebook({**prose("![](attachment:a)", id="x"), "attachments": {"a": {"image/png": "AA=="}}}))

    _, said = place.edit(cell_id="x", new_source="![](attachment:a)", cell_type="code")

    assert said == "Replaced cell x (index 0, code) of a.ipynb. It was markdown before. Its attachments are gone."
    assert place.cells[0].outputs == []


@requirement("NB-1")
def test_two_edits_of_one_message_are_made_in_order(place: Place) -> None:
    place.put(WITH_IDS)

    outcomes = place.run(
        {"cell_id": "0", "edit_mode": "delete"},
        {"cell_id": "0", "new_source": "first now"},
        {"cell_id": "plot", "new_source": "last", "cell_type": "code", "edit_mode": "insert"},
    )

    assert [outcome.status for outcome in outcomes] == [Status.OK] * 3
    assert place.sources == ["first now", "b", "last"]


@requirement("NB-1")
@pytest.mark.parametrize("old_name", ["NotebookEdit", "NotebookEditCell", "notebook_edit"])
@pytest.mark.parametrize("old_parameter", ["cell_number", "cell_index"])
def test_the_old_parameters_name_the_index_of_the_cell_and_of_a_new_one(
    place: Place, old_name: str, old_parameter: str
) -> None:
    place.put(WITH_IDS)

    def edit(number: int | str, **arguments: Any) -> Status:
        return place.edit(old_name, **{old_parameter: number}, **arguments)[0]

    assert edit(1, new_source="one") is Status.OK
    assert edit("1", new_source="new", cell_type="code", edit_mode="insert") is Status.OK
    assert edit(4, new_source="end", cell_type="markdown", edit_mode="insert") is Status.OK
    assert edit(0, new_source="", edit_mode="delete") is Status.OK
    assert place.sources == ["new", "one", "b", "end"]


@requirement("NB-1")
@pytest.mark.parametrize(("mark", "newline"), [(b"\xef\xbb\xbf", "\r\n"), (b"", "\r\n"), (b"\xef\xbb\xbf", "\n")])
def test_a_byte_order_mark_and_line_endings_stay(place: Place, mark: bytes, newline: str) -> None:
    def data(text: str) -> bytes:
        return mark + text.replace("\n", newline).encode()

    path = place.put(data(WITHOUT_IDS))

    assert place.edit(cell_id="1", new_source="ü\nö")[0] is Status.OK
    assert path.read_bytes() == data(notebook(prose("# Title"), code("ü\nö"), minor=4))


# What is refused


@requirement("NB-1")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"notebook_path": "a.py", "cell_id": "1", "new_source": ""},
            "a.py is not a notebook (.ipynb). Use Edit to change it.",
        ),
        ({"cell_id": "1"}, "`new_source` is missing. Give the whole content of the cell to replace it."),
        (
            {"edit_mode": "insert", "new_source": "x"},
            "`cell_type` is missing. Say whether to insert code, markdown or raw.",
        ),
        ({"new_source": "x"}, "`cell_id` is missing. Name the cell to replace by its id or index."),
        ({"edit_mode": "delete"}, "`cell_id` is missing. Name the cell to delete by its id or index."),
        (
            {"cell_id": "1", "cell_number": 1, "new_source": "x"},
            "`cell_id` and `cell_number` both name a cell. Give only `cell_id`.",
        ),
        (
            {"cell_id": "laod", "new_source": "x"},
            'a.ipynb has no cell "laod". The nearest ids are load. Its cells have the indices 0 to 2.',
        ),
        ({"cell_id": "3", "new_source": "x"}, 'a.ipynb has no cell "3". Its cells have the indices 0 to 2.'),
        (
            {"cell_id": "a\n" * 1_000, "new_source": "x"},
            f'a.ipynb has no cell "{"a " * 39}a…". Its cells have the indices 0 to 2.',
        ),
        ({"cell_id": "-1", "new_source": "x"}, 'a.ipynb has no cell "-1". Its cells have the indices 0 to 2.'),
        ({"cell_number": 3, "new_source": "x"}, "a.ipynb has no cell 3. Its cells have the indices 0 to 2."),
        (
            {"cell_number": 4, "new_source": "x", "cell_type": "raw", "edit_mode": "insert"},
            "a.ipynb has no place 4. Its cells have the indices 0 to 2.",
        ),
        (
            {"cell_id": "plot", "new_source": "b"},
            "Cell plot of a.ipynb already has this source and type. Nothing was written.",
        ),
    ],
)
def test_a_refusal_says_what_to_do_and_changes_nothing(place: Place, arguments: dict[str, Any], words: str) -> None:
    path = place.put(WITH_IDS)

    status, said = place.edit(**arguments)

    assert (status, said) == (Status.INVALID, words)
    assert path.read_text(encoding="utf-8") == WITH_IDS


@requirement("NB-1")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "a.ipynb cannot be changed as a notebook: it is invalid JSON"),
        (
            '{"cells": [1, ]}',
            "found `]`. Remove the comma before it. Until it is one, change its text with Edit.",
        ),
        ('{"nbformat": 3, "worksheets": []}', "a.ipynb cannot be changed as a notebook: it is in format 3"),
        (notebook(), 'a.ipynb has no cell "x": it has no cells. Insert one at the start, without `cell_id`.'),
        (notebook(code("a"), minor=4), "Its only cell has the index 0. None of them has an id."),
        (notebook(code("a", id="x"), code("b", id="x")), "Name the one you mean by its index: 0, 1."),
        (b"\xff\xd8\x00\x00\x01", "a.ipynb cannot be changed as text: it is binary."),
    ],
)
def test_a_file_that_cannot_be_changed_is_refused_with_the_reason(
    place: Place, content: str | bytes, words: str
) -> None:
    path = place.put(content, seen=isinstance(content, str))
    before = path.read_bytes()

    status, said = place.edit(cell_id="x", new_source="y")

    assert status is Status.INVALID
    assert words in said
    assert path.read_bytes() == before


@requirement("NB-1")
def test_a_notebook_must_have_been_read_as_it_is(place: Place) -> None:
    path = place.put(WITH_IDS, seen=False)

    assert place.edit(cell_id="load", new_source="x") == (
        Status.INVALID,
        "a.ipynb has not been read yet. Read it first.",
    )
    place.see(path)
    path.write_text(WITHOUT_IDS, encoding="utf-8")
    status, said = place.edit(cell_id="1", new_source="x")
    assert status is Status.INVALID
    assert "has changed since" in said
    assert path.read_text(encoding="utf-8") == WITHOUT_IDS


def test_a_missing_notebook_is_said_to_be_missing(place: Place) -> None:
    assert place.edit(cell_id="1", new_source="x") == (
        Status.INVALID,
        "a.ipynb does not exist. Use Glob to find the file.",
    )


def test_what_cannot_be_written_is_said_in_words(place: Place) -> None:
    path = place.put(WITH_IDS)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        (outcome,) = place.run({"cell_id": "1", "new_source": "x"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert outcome.status is Status.FAILED
    assert plain_text(outcome.content) == f"{path} was not written: it would be larger than files may be here."
    assert path.read_text(encoding="utf-8") == WITH_IDS


def test_a_notebook_that_changed_while_somebody_was_asked_is_left_alone(place: Place) -> None:
    path = place.put(WITH_IDS)

    class Meddling:
        def judge(self, proposal: Proposal, /) -> Verdict | None:
            path.write_text(WITHOUT_IDS, encoding="utf-8")
            return None

    place.open(Meddling())
    status, said = place.edit(cell_id="1", new_source="x")

    assert status is Status.FAILED
    assert said == "a.ipynb changed since it was read. Read it again, then repeat the change."
    assert path.read_text(encoding="utf-8") == WITHOUT_IDS


def test_a_link_is_followed_and_said_to_be_one(place: Place) -> None:
    path = place.put(WITH_IDS, "real.ipynb")
    (place.folder / "a.ipynb").symlink_to(path)

    status, said = place.edit(cell_id="load", edit_mode="delete")

    assert status is Status.OK
    assert said.endswith("a.ipynb is a link; what was written is real.ipynb.")
    assert (place.folder / "a.ipynb").is_symlink()


@requirement("POOL-4")
def test_it_costs_only_its_name_until_it_is_looked_for() -> None:
    assert NotebookEdit().spec.exposure is Exposure.DEFERRED


def test_people_see_which_cell_changes_and_the_diff_of_its_source(place: Place) -> None:
    path = place.put(WITH_IDS)
    tool = NotebookEdit()

    (outcome,) = place.run({"cell_id": "plot", "new_source": "c"})

    assert outcome.view == Diff(str(path), "--- a/a.ipynb#plot\n+++ b/a.ipynb#plot\n@@ -1 +1 @@\n-b\n+c\n")
    for arguments, line in (
        ({"cell_id": "a"}, "NotebookEdit replace cell a of n.ipynb"),
        ({"cell_id": "a", "edit_mode": "insert"}, "NotebookEdit insert after cell a of n.ipynb"),
        ({"edit_mode": "insert"}, "NotebookEdit insert at the start of n.ipynb"),
        ({"cell_number": 2, "edit_mode": "delete"}, "NotebookEdit delete cell 2 of n.ipynb"),
    ):
        assert tool.describe(tool.parse({"notebook_path": "n.ipynb", **arguments})) == line
