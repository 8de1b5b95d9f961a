"""Start the runner in a room of its own, as somebody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from . import guard

ROOT = Path(__file__).parent.parent.parent
NOBODY = 65534
HANGS = 600.0
"""Seconds after which a run is not slow but stuck."""

WITHOUT_NAMESPACES = (sys.executable, "-IS", str(Path(__file__).with_name("without_namespaces.py")))
AS_USER = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all")
SITUATIONS: dict[str, tuple[str, ...]] = {
    "whoever runs the tests": (),
    "an ordinary user": AS_USER,
    "root without capabilities": ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"),
    "an ordinary user without user namespaces": (*AS_USER, *WITHOUT_NAMESPACES),
}


def run_attacks(how: str, *options: str, situation: str = "whoever runs the tests") -> dict[str, Any]:
    """What the runner reports."""
    become = SITUATIONS[situation]
    if not guard.can_be_had() or (become and os.geteuid() != 0):
        pytest.skip("no room for harm can be made here, or nobody else can be become")
    base = Path(tempfile.mkdtemp(prefix="ferrule-held-", dir="/var/tmp"))
    (base / "shadow").write_text(f"{_word()}\n")
    (base / "shadow").chmod(0o600)
    if AS_USER[1] in become:
        os.chown(base, NOBODY, NOBODY)
    command = [*become, sys.executable, "-m", "tests.held.runner", str(base), how, *options]
    try:
        done = subprocess.run(
            guard.inside(base, command),
            cwd=ROOT,
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "HOME": f"{base}/home",
                "TMPDIR": str(base),
                "PYTHONPATH": str(ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
                "ANTHROPIC_API_KEY": _word(),
                "HELD_ARGUMENT": _word(),
            },
            capture_output=True,
            text=True,
            timeout=HANGS,
            check=False,
        )
    finally:
        subprocess.run(["rm", "-rf", str(base)], check=False)
        shutil.rmtree(base, ignore_errors=True)
    if done.returncode and "unshare failed" in done.stderr:
        pytest.skip(f"no room for harm can be made here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def _word() -> str:
    return f"CANARY{uuid4().hex}"
