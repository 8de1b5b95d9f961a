"""The Agent SDKs as they are published, where `scripts/clients` has put them; Ferrule is their command line.

FERRULE_CLIENTS_CLI names another program to run the same cases with: they hold for Claude Code as well.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("FERRULE_CONFORMANCE_CACHE") or Path.home() / ".cache" / "ferrule-conformance")
PYTHON_SDK = CACHE / "claude-agent-sdk"
TYPESCRIPT_SDK = CACHE / "typescript-sdk" / "node_modules"
CLI = os.environ.get("FERRULE_CLIENTS_CLI") or str(Path(sys.executable).parent / "ferrule")

if not PYTHON_SDK.is_dir():
    collect_ignore_glob = ["test_python_*.py"]
else:
    sys.path.insert(0, str(PYTHON_SDK / "src"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.clients)
