"""Cells of notebooks whose pictures are many, large or broken."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from itertools import count
from typing import Any

import pytest
from PIL import Image

from ferrule.host.documents.images import FittedPicture
from ferrule.host.documents.notebook_cells import CellPage, cell_page
from ferrule.text.notebooks import Notebook, parse_notebook
from tests.host.documents.making import encoded, png
from tests.requirement import requirement


@cache
def _large() -> str:
    return b64encode(encoded(Image.new("1", (7_900, 7_900)), "PNG")).decode()


def _notebook(*cells: list[str]) -> Notebook:
    told: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "source": "",
            "outputs": [{"output_type": "display_data", "data": {"image/png": picture}} for picture in pictures],
        }
        for number, pictures in enumerate(cells)
    ]
    return parse_notebook(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": told}))


def _page(notebook: Notebook, **more: Any) -> CellPage:
    return cell_page(notebook, first=1, count=None, room=95_000, **more)


@requirement("READ-6")
def test_only_so_many_pixels_of_a_cell_are_unpacked() -> None:
    (cell,) = _page(_notebook([_large()] * 60)).cells

    assert sum(isinstance(output, FittedPicture) for output in cell.outputs) == 3
    assert cell.outputs[-1] == "(one more picture, of 62,410,000 pixels; those before it are as much as a cell shows)"


@requirement("READ-6")
def test_a_page_ends_where_its_pixels_are_too_many() -> None:
    thin = b64encode(encoded(Image.new("1", (60_000, 1_000)), "PNG")).decode()

    page = _page(_notebook(*[[thin]] * 6))

    assert (len(page.cells), page.total) == (3, 6)


@requirement("READ-6")
def test_broken_pictures_count_as_pictures() -> None:
    broken = b64encode(png(64, 64)[:60]).decode()

    (cell,) = _page(_notebook([broken] * 21)).cells

    assert [str(output)[:30] for output in cell.outputs[-2:]] == [
        "(a picture that cannot be show",
        "(one more picture; a cell show",
    ]


@requirement("READ-6")
def test_somebody_who_does_not_wait_any_more_stops_the_work_between_pictures() -> None:
    small = b64encode(png(8, 8)).decode()
    looks = count()

    with pytest.raises(InterruptedError):
        _page(_notebook([small] * 5), interrupted=lambda: next(looks) == 3)

    assert next(looks) == 4
