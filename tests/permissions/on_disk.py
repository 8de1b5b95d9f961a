"""Commands judged in a real folder, with its real links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ferrule.core.calls import ToolCall
from ferrule.engine.preparing import prepare_call
from ferrule.host.files.local_paths import LocalPaths
from ferrule.permissions.judge import RuleJudge
from ferrule.permissions.modes import Mode
from ferrule.permissions.path_patterns import Places
from ferrule.testing import bare_context
from tests.permissions.scene import rules_of, tool_named


def decided_in(
    folder: Path,
    command: str,
    *,
    mode: Mode = Mode.DEFAULT,
    rules: Mapping[str, Iterable[str]] | None = None,
    home: str = "/home/u",
) -> str:
    """allow, ask or deny; silence asks."""
    places = Places(cwd=(str(folder),), home=(home,), roots=(str(folder),))
    arguments = {"command": command}
    call = ToolCall("1", "Bash", arguments)
    ready = prepare_call(call, tool_named("Bash"), arguments, bare_context(str(folder)), LocalPaths())
    verdict = RuleJudge(rules_of(rules or {}), mode, places).judge(ready.proposal)
    return "ask" if verdict is None else verdict.behavior.name.lower()
