"""Valid notebooks, written in every way that JSON allows."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import nbformat
from hypothesis import strategies as st

CHARS = "ab \"\\\n\t/'{}[],:é\u2028\U0001f600\x0c"
sources = st.text(alphabet=CHARS, max_size=20)
kinds = st.sampled_from(["code", "markdown", "raw"])
metadata = st.dictionaries(st.sampled_from(["deep", "shown", "ü"]), st.sampled_from([["a"], True, "x\n", 1.5, None]))

streams: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"output_type": st.just("stream"), "name": st.sampled_from(["stdout", "stderr"]), "text": sources}
)
pictures: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "output_type": st.just("display_data"),
        "metadata": st.just(dict[str, Any]()),
        "data": st.fixed_dictionaries({"image/png": st.just("iVBORw0KGgo="), "text/plain": sources}),
    }
)


def by_nbformat(text: str) -> Any:
    """The notebook as the reference implementation reads it, found valid."""
    notebook = cast(Any, nbformat.reads(text, as_version=nbformat.NO_CONVERT))  # pyright: ignore[reportUnknownMemberType]
    nbformat.validate(notebook, relax_add_props=False)  # pyright: ignore[reportUnknownMemberType]
    return notebook


@st.composite
def models(draw: st.DrawFn, *, min_cells: int = 0) -> dict[str, Any]:
    """A notebook as nbformat would hold it, but for the forms that its sources take."""
    minor = draw(st.sampled_from([0, 2, 4, 5]))
    count = draw(st.integers(min_cells, 4))
    as_lists = draw(st.booleans())
    return {
        "cells": [draw(cell_models(minor, f"id-{index}", as_list=as_lists)) for index in range(count)],
        "metadata": draw(metadata),
        "nbformat": 4,
        "nbformat_minor": minor,
    }


@st.composite
def cell_models(draw: st.DrawFn, minor: int, id: str, *, as_list: bool) -> dict[str, Any]:
    kind, source = draw(kinds), draw(sources)
    cell: dict[str, Any] = {"cell_type": kind, "metadata": draw(metadata)}
    cell["source"] = source.splitlines(keepends=True) if as_list else source
    if kind == "code":
        cell |= {"execution_count": draw(st.none() | st.integers(0, 99))}
        cell |= {"outputs": draw(st.lists(streams | pictures, max_size=2))}
    elif minor and draw(st.booleans()):
        cell |= {"attachments": {"a.png": {"image/png": "iVBORw0KGgo="}}}
    if minor >= 5:
        cell |= {"id": id}
    return cell


@st.composite
def written(draw: st.DrawFn, model: Any) -> str:
    """As some program would write it, or as none would."""
    ascii_only, end = draw(st.booleans()), draw(st.sampled_from(["", "\n", " \r\n"]))
    ordered = draw(_orders(model))
    if draw(st.integers(0, 3)) == 0:
        return draw(_spaced(ordered, ascii_only=ascii_only)) + end
    indent: int | str | None = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (",", ": ")]))
    text = json.dumps(ordered, indent=indent, separators=separators, ensure_ascii=ascii_only)
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))) + end


@st.composite
def _orders(draw: st.DrawFn, model: dict[str, Any]) -> dict[str, Any]:
    if draw(st.booleans()):
        return {key: model[key] for key in draw(st.permutations(sorted(model)))}
    keys = draw(st.permutations(["cell_type", "id", "execution_count", "metadata", "attachments", "outputs", "source"]))
    return {**model, "cells": [{key: cell[key] for key in keys if key in cell} for cell in model["cells"]]}


@st.composite
def _spaced(draw: st.DrawFn, value: Any, *, ascii_only: bool) -> str:
    """Any whitespace wherever there may be some, and a key that comes again now and then."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', json.dumps(value, ensure_ascii=ascii_only))
    spaces = draw(st.lists(st.sampled_from(["", "", " ", "\n", "\r\n\t"]), min_size=7, max_size=7))
    spaced = "".join(token + spaces[index % 7] for index, token in enumerate(tokens))
    return spaced.replace('"cell_type"', '"cell_type":"twice","cell_type"', 1) if draw(st.booleans()) else spaced
