"""The same command line, project and model for both programs; what differs must be listed and explained.

`known.toml` says which facets of which cases differ, and for which reason; docs/compatibility.md explains each.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ..clients.conftest import CLI
from .cases import CASES, Case
from .comparing import run_case
from .conftest import CLAUDE

KNOWN = tomllib.loads((Path(__file__).parent / "known.toml").read_text())

pytestmark = [
    pytest.mark.differential,
    pytest.mark.skipif(not CLAUDE.exists(), reason="`scripts/clients differential` was never run here"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_what_differs_is_known(case: Case, tmp_path: Path) -> None:
    theirs = await run_case(case, str(CLAUDE), tmp_path / "theirs")
    ours = await run_case(case, CLI, tmp_path / "ours")

    differing = theirs.differences(ours)
    for facet, (one, other) in differing.items():
        print(f"\n{case.name} · {facet} ({_reason(case, facet) or 'NOT LISTED'})\n  - {one!r}\n  + {other!r}")
    unlisted = [facet for facet in differing if _reason(case, facet) is None]
    stale = [facet for facet in KNOWN["cases"].get(case.name, {}) if facet not in differing]
    assert (unlisted, stale) == ([], [])


def _reason(case: Case, facet: str) -> str | None:
    return KNOWN["cases"].get(case.name, {}).get(facet) or KNOWN["everywhere"].get(facet)
