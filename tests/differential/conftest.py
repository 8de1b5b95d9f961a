"""Both programs, where `scripts/clients differential` has fetched the other one."""

from __future__ import annotations

from ..clients.conftest import CACHE

CLAUDE = CACHE / "claude-code" / "node_modules" / ".bin" / "claude"
