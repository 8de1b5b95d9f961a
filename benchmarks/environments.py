"""An environment for each peer, made when it is first needed and kept.

Each has one peer and Ferrule, editable, so that both are measured in one
process of one interpreter. One environment for all would not resolve: the
peers want different versions of the same libraries.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from .peers import DISTRIBUTIONS

HERE = Path(__file__).parent
ROOT = HERE.parent
FOLDER = HERE / ".peers"


class Unavailable(Exception):
    """The peer cannot be measured on this interpreter; the message says why."""


def interpreter(peer: str) -> Path:
    """The Python of the peer's environment, which is made if it is not there."""
    requirement = _requirement(DISTRIBUTIONS[peer])
    folder = FOLDER / f"{sys.implementation.cache_tag}-{peer}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text() == requirement:
        return python
    venv.create(folder, with_pip=True, clear=True)
    pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    done = subprocess.run((*pip, "--editable", str(ROOT), requirement), capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(folder)
        raise Unavailable(_reason(requirement, done.stderr))
    stamp.write_text(requirement)
    return python


def _requirement(distribution: str) -> str:
    for line in (HERE / "peers.txt").read_text().splitlines():
        if line.startswith(f"{distribution}=="):
            return line
    raise Unavailable(f"peers.txt does not pin {distribution}")


def _reason(requirement: str, errors: str) -> str:
    version = requirement.partition("==")[2]
    wanted = re.search(rf"\b{re.escape(version)} Requires-Python ([^;\n]+)", errors)
    if wanted:
        return f"{requirement} needs Python {wanted[1]}"
    return f"{requirement} could not be installed"
