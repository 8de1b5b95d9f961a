"""Where this user's sessions, transcripts and caches are kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def state_folder() -> Path:
    """As the XDG base directory specification says; on macOS, where applications keep such things."""
    chosen = os.environ.get("XDG_STATE_HOME", "").strip()
    if os.path.isabs(chosen):
        return Path(chosen, "ferrule")
    home = Path(os.path.expanduser("~"))
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "ferrule"
    return home / ".local" / "state" / "ferrule"
