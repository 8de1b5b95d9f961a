"""That each known difference is explained to people who move over; needs no other program."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from .cases import CASES

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
KNOWN = tomllib.loads((Path(__file__).parent / "known.toml").read_text())


def test_every_difference_has_its_row_and_every_row_a_difference() -> None:
    used = {
        *KNOWN["everywhere"].values(),
        *(reason for facets in KNOWN["cases"].values() for reason in facets.values()),
    }
    explained = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), flags=re.MULTILINE)

    assert sorted(explained) == sorted(used)


def test_every_case_that_differs_is_one() -> None:
    assert set(KNOWN["cases"]) <= {case.name for case in CASES}
    assert len({case.name for case in CASES}) == len(CASES)
