"""The official conformance suite, where `scripts/conformance` has installed it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ..requirement import requirement

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("FERRULE_CONFORMANCE_CACHE") or Path.home() / ".cache" / "ferrule-conformance")
TOLD = tomllib.loads((Path(__file__).parent / "conformance.toml").read_text(encoding="utf-8"))


def test_every_expected_failure_has_a_reason_and_every_reason_is_needed() -> None:
    given = {reason for run in TOLD["runs"] for reason in run.get("fails", {}).values()}

    assert given == set(TOLD["reasons"])


@requirement("MCP-5")
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not (CACHE / "0.1.16" / "node_modules").is_dir(), reason="scripts/conformance was never run here")
@pytest.mark.parametrize("number", range(len(TOLD["runs"])))
def test_the_official_suite_passes_but_for_what_is_expected(number: int) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/conformance"), str(number)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
