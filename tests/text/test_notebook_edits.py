"""Edits of notebooks: right by the reference implementation, and nothing else touched."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import nbformat.v4
from hypothesis import example, given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.text.matching import TextEdit, splice_edits
from ferrule.text.notebook_edits import delete_cell, insert_cell, replace_cell
from ferrule.text.notebooks import Cell, CellType, Notebook, parse_notebook
from tests.drawing import examples
from tests.requirement import requirement
from tests.text.notebook_strategies import by_nbformat, kinds, metadata, models, sources, written


class Case(NamedTuple):
    notebook: Notebook
    cell: Cell


@st.composite
def cases(draw: st.DrawFn) -> Case:
    notebook = parse_notebook(draw(written(draw(models(min_cells=1)))))
    return Case(notebook, draw(st.sampled_from(notebook.cells)))


@given(cases(), sources, st.none() | kinds)
@examples(25)
@requirement("NB-1")
def test_a_replaced_cell_is_what_nbformat_makes_of_it(case: Case, source: str, type: CellType | None) -> None:
    notebook, cell = case
    after = edited(notebook, replace_cell(notebook, cell, source, type))

    expected = by_nbformat(notebook.text)
    if source != cell.source or (type or cell.type) != cell.type:
        _replace(expected.cells[cell.index], source, type or cell.type)
    assert by_nbformat(after.text) == expected
    assert_others_stand(notebook, after, [(n, n) for n in range(len(notebook.cells)) if n != cell.index])


@given(cases(), st.booleans(), sources, kinds)
@examples(25)
@requirement("NB-1")
def test_an_inserted_cell_is_what_nbformat_makes_of_it(case: Case, first: bool, source: str, type: CellType) -> None:
    notebook, cell = case
    after = edited(notebook, insert_cell(notebook, None if first else cell, source, type))

    expected, at = by_nbformat(notebook.text), 0 if first else cell.index + 1
    expected.cells.insert(at, _new_cell(after.cells[at].id, source, type))
    assert by_nbformat(after.text) == expected
    assert (after.cells[at].id is not None) == (notebook.minor >= 5)
    assert after.cells[at].id not in [cell.id for cell in notebook.cells if cell.id]
    assert_others_stand(notebook, after, [(n, n + (n >= at)) for n in range(len(notebook.cells))])


@given(cases())
@examples(25)
@requirement("NB-1")
def test_a_deleted_cell_is_gone_and_no_other(case: Case) -> None:
    notebook, cell = case
    after = edited(notebook, delete_cell(notebook, cell))

    expected = by_nbformat(notebook.text)
    del expected.cells[cell.index]
    assert by_nbformat(after.text) == expected
    kept = [n for n in range(len(notebook.cells)) if n != cell.index]
    assert_others_stand(notebook, after, [(n, n - (n > cell.index)) for n in kept])


@given(st.data(), sources, kinds)
@examples(25)
@requirement("NB-1")
def test_to_insert_and_then_to_delete_changes_nothing(data: st.DataObject, source: str, type: CellType) -> None:
    text = data.draw(written(data.draw(models())))
    text = re.sub(r'("cells"\s*:\s*)\[\s*\]', r"\1[]", text)  # an emptied list keeps no whitespace
    notebook = parse_notebook(text)
    after = data.draw(st.sampled_from([None, *notebook.cells]))

    grown = edited(notebook, insert_cell(notebook, after, source, type))
    at = after.index + 1 if after else 0

    assert edited(grown, delete_cell(grown, grown.cells[at])).text == notebook.text


@given(cases(), sources)
@examples(25)
@requirement("NB-1")
def test_a_source_can_be_put_back(case: Case, source: str) -> None:
    notebook, cell = case
    changed = edited(notebook, replace_cell(notebook, cell, source))

    back = edited(changed, replace_cell(changed, changed.cells[cell.index], cell.source))

    assert back.cells[cell.index].source == cell.source


class Style(NamedTuple):
    indent: int | str | None
    separators: tuple[str, str]
    newline: str
    ascii_only: bool

    def write(self, model: Any) -> str:
        text = json.dumps(model, indent=self.indent, separators=self.separators, ensure_ascii=self.ascii_only)
        return text.replace("\n", self.newline)


styles = st.builds(
    Style,
    st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    st.sampled_from([(",", ":"), (",", ": ")]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
) | st.builds(Style, st.none(), st.just((", ", ": ")), st.just("\n"), st.booleans())


@st.composite
def uniform(draw: st.DrawFn) -> dict[str, Any]:
    """A notebook that leaves no doubt how its writer would write any other: keys sorted, one form of source."""
    as_list, minor = draw(st.booleans()), draw(st.sampled_from([4, 5]))
    cells: list[dict[str, Any]] = []
    for number, source in enumerate(["a\nb\nc", *draw(st.lists(sources, max_size=3))]):
        kind = draw(kinds)
        cell: dict[str, Any] = {"cell_type": kind, "metadata": draw(metadata), "source": form(source, as_list=as_list)}
        cell |= {"execution_count": 1, "outputs": [{"output_type": "stream"}]} if kind == "code" else {}
        cell |= {"id": f"x{number}"} if minor == 5 else {}
        cells.append(dict(sorted(cell.items())))
    return {"cells": cells, "metadata": {"é": 1}, "nbformat": 4, "nbformat_minor": minor}


@given(uniform(), styles, sources, kinds, st.data())
@examples(25)
@requirement("NB-1")
def test_what_is_new_looks_as_its_writer_would_have_written_it(
    model: dict[str, Any], style: Style, source: str, type: CellType, data: st.DataObject
) -> None:
    notebook = parse_notebook(style.write(model))
    cell = data.draw(st.sampled_from(notebook.cells))
    as_list = isinstance(model["cells"][0]["source"], list)
    expected = copy.deepcopy(model)

    after = edited(notebook, insert_cell(notebook, cell, source, type))
    new: dict[str, Any] = {"cell_type": type, "metadata": {}, "source": form(source, as_list=as_list)}
    new |= {"execution_count": None, "outputs": []} if type == "code" else {}
    new |= {"id": after.cells[cell.index + 1].id} if notebook.minor == 5 else {}
    expected["cells"].insert(cell.index + 1, dict(sorted(new.items())))
    assert after.text == style.write(expected)

    again = edited(after, replace_cell(after, after.cells[cell.index], source, type))
    if source != cell.source or type != cell.type:
        changed = {**expected["cells"][cell.index], "cell_type": type, "source": new["source"]}
        kept = {key: value for key, value in changed.items() if key not in ("outputs", "execution_count")}
        kept |= {"execution_count": None, "outputs": []} if type == "code" else {}
        expected["cells"][cell.index] = dict(sorted(kept.items()))
    assert again.text == style.write(expected)

    fewer = edited(again, delete_cell(again, again.cells[cell.index + 1]))
    del expected["cells"][cell.index + 1]
    assert fewer.text == style.write(expected)


@given(styles, sources, kinds)
@examples(25)
@example(Style(1, (",", ": "), "\n", ascii_only=False), "import os\nos.getcwd()", "code")
@requirement("NB-1")
def test_a_first_cell_is_laid_out_as_the_rest_of_the_file(style: Style, source: str, type: CellType) -> None:
    model: dict[str, Any] = {"cells": [], "metadata": {"é": 1}, "nbformat": 4, "nbformat_minor": 4}
    notebook = parse_notebook(style.write(model))

    after = edited(notebook, insert_cell(notebook, None, source, type))

    cell: dict[str, Any] = {"cell_type": type, "metadata": {}, "source": form(source, as_list=True)}
    cell |= {"execution_count": None, "outputs": []} if type == "code" else {}
    assert after.text == style.write({**model, "cells": [dict(sorted(cell.items()))]})


JUPYTER = """\
{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "first",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\\n"
     ]
    }
   ],
   "source": [
    "a = 1\\n",
    "b = '\\u00e9'\\n",
    "print(a)"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"""


@requirement("NB-1")
def test_of_a_changed_source_only_the_changed_lines_and_stale_results_are_written() -> None:
    notebook = parse_notebook(JUPYTER)

    edits = replace_cell(notebook, notebook.cells[0], "a = 2\nb = 'é'\nprint(a)")

    assert [(JUPYTER[edit.start : edit.end], edit.new) for edit in edits] == [
        ("3", "null"),
        (JUPYTER[JUPYTER.index("[\n    {") : JUPYTER.index(',\n   "source"')], "[]"),
        (r'"a = 1\n"', r'"a = 2\n"'),
    ]


@requirement("NB-1")
def test_lines_that_stay_between_changed_ones_keep_their_escapes() -> None:
    for text in (JUPYTER.replace("print", "prünt"), JUPYTER.replace("print", "prünt").replace(",\n    ", ", ")):
        notebook = parse_notebook(text)

        after = edited(notebook, replace_cell(notebook, notebook.cells[0], "ä\nb = 'é'\nö"))

        assert re.search(r"""\[\s+"ä\\n",\s+"b = '\\u00e9'\\n",\s+"ö"\s+\]""", after.text)


@requirement("NB-1")
def test_lines_of_a_string_keep_their_escapes_too() -> None:
    text = '{"cells": [{"cell_type": "raw", "metadata": {}, "source": "a\\nü \\/ \\u00fc\\nb"}], "nbformat": 4}'
    notebook = parse_notebook(text)

    after = edited(notebook, replace_cell(notebook, notebook.cells[0], "A\nü / ü\nB\nC"))

    assert after.text == text.replace("a\\n", "A\\n").replace("\\nb", "\\nB\\nC")


@requirement("NB-1")
def test_a_new_cell_has_its_keys_in_the_order_of_the_nearest_of_its_type() -> None:
    code = '{"outputs": [], "source": "x", "metadata": {}, "cell_type": "code", "execution_count": null}'
    text = '{"source": "y", "metadata": {}, "cell_type": "markdown"}'
    notebook = parse_notebook(f'{{"cells": [{code}, {text}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 4}}')

    new = edited(notebook, insert_cell(notebook, notebook.cells[1], "z", "code")).cells[2]

    assert list(new.members) == ["outputs", "source", "metadata", "cell_type", "execution_count"]


@requirement("NB-1")
def test_the_same_source_and_type_are_no_change() -> None:
    notebook = parse_notebook(JUPYTER)

    assert replace_cell(notebook, notebook.cells[0], notebook.cells[0].source) == ()
    assert replace_cell(notebook, notebook.cells[0], notebook.cells[0].source, "code") == ()


@requirement("NB-1")
def test_code_that_becomes_text_and_code_again() -> None:
    notebook = parse_notebook(JUPYTER)

    text = edited(notebook, replace_cell(notebook, notebook.cells[0], "# Title", "markdown"))
    code = edited(text, replace_cell(text, text.cells[0], "x", "code"))

    assert text.text == snapshot("""\
{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "first",
   "metadata": {},
   "source": [
    "# Title"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
""")
    assert code.text == snapshot("""\
{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "first",
   "metadata": {},
   "outputs": [],
   "source": [
    "x"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
""")


def test_keys_that_come_twice_go_together() -> None:
    text = (
        '{"cells": [{"outputs": [1], "cell_type": "raw", "cell_type": "code", "outputs": [], "metadata": {}, '
        '"execution_count": 1, "source": "a", "source": "b"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}'
    )
    notebook = parse_notebook(text)

    after = edited(notebook, replace_cell(notebook, notebook.cells[0], "c", "markdown"))

    assert after.text == snapshot(
        '{"cells": [{"cell_type": "raw", "cell_type": "markdown", "metadata": {}, '
        '"source": "a", "source": "c"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}'
    )


def test_a_cell_without_a_source_gets_one() -> None:
    notebook = parse_notebook('{"cells": [{"cell_type": "raw"}, {"outputs": [], "cell_type": "code"}], "nbformat": 4}')

    first = edited(notebook, replace_cell(notebook, notebook.cells[0], "a"))
    second = edited(first, replace_cell(first, first.cells[1], "b", "raw"))

    assert second.text == (
        '{"cells": [{"cell_type": "raw", "source": ["a"]}, {"cell_type": "raw", "source": ["b"]}], "nbformat": 4}'
    )


def test_half_a_surrogate_pair_is_written_as_an_escape() -> None:
    notebook = parse_notebook(JUPYTER.replace("print", "prünt"))

    after = edited(notebook, insert_cell(notebook, None, "\ud800", "raw"))

    assert '"\\ud800"' in after.text
    assert after.text.encode()
    assert after.cells[0].source == "\ud800"


def test_a_new_id_is_none_of_those_there() -> None:
    notebook = parse_notebook(JUPYTER)
    taken = edited(notebook, insert_cell(notebook, None, "x", "raw")).cells[0].id
    assert taken is not None
    twin = parse_notebook(JUPYTER.replace("first", taken))

    new = edited(twin, insert_cell(twin, None, "x", "raw")).cells[0].id

    assert new is not None
    assert new != taken
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", new)


def edited(notebook: Notebook, edits: Sequence[TextEdit]) -> Notebook:
    return parse_notebook(splice_edits(notebook.text, edits))


def form(source: str, *, as_list: bool) -> list[str] | str:
    return re.findall(r"[^\n]*\n|[^\n]+", source) if as_list else source


def assert_others_stand(before: Notebook, after: Notebook, pairs: list[tuple[int, int]]) -> None:
    """Every other cell, and all around the list of cells, has the same characters."""
    assert len(after.cells) >= len(pairs)
    for old, new in pairs:
        one, other = before.cells[old].span, after.cells[new].span
        assert before.text[one.start : one.end] == after.text[other.start : other.end]
    assert before.text[: before.list_span.start] == after.text[: after.list_span.start]
    assert before.text[before.list_span.end :] == after.text[after.list_span.end :]


def _replace(cell: Any, source: str, type: str) -> None:
    cell.source, cell.cell_type = source, type
    for key in ("attachments",) if type == "code" else ("outputs", "execution_count"):
        cell.pop(key, None)
    if type == "code":
        cell.outputs, cell.execution_count = [], None


def _new_cell(id: str | None, source: str, type: str) -> Any:
    v4: Any = nbformat.v4
    cell: Any = {"code": v4.new_code_cell, "markdown": v4.new_markdown_cell, "raw": v4.new_raw_cell}[type](source)
    del cell["id"]
    return {**cell, **({"id": id} if id else {})}
