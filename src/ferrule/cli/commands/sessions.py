"""`ferrule sessions`: lists conversations that can be resumed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import UTC, datetime

from ...app.build import Settings
from ...app.kept_sessions import ListedSession, list_sessions
from ...output.plain import Style, clean, fit, width_of
from ..exits import OK
from ..session_flags import working_directory


def run(chosen: argparse.Namespace) -> int:
    listed = _of_lost_folder(chosen.cwd) or list_sessions(Settings(cwd=working_directory(chosen.cwd)))
    if chosen.json:
        print(json.dumps([_describe(one) for one in listed], indent=2, ensure_ascii=False))
    else:
        _list(listed)
    return OK


def _of_lost_folder(given: str | None) -> tuple[ListedSession, ...]:
    """A folder that is gone may have left conversations, and their ids are what somebody looks for."""
    return list_sessions(Settings(cwd=os.path.abspath(given))) if given and not os.path.lexists(given) else ()


def _describe(one: ListedSession) -> dict[str, object]:
    return {
        "session_id": one.id,
        "first_prompt": one.first_prompt,
        "last_used": datetime.fromtimestamp(one.last_used, UTC).isoformat(timespec="seconds"),
        "turns": one.turns,
        "path": str(one.path),
    }


def _list(listed: tuple[ListedSession, ...]) -> None:
    style, width = Style.of(sys.stdout, os.environ), width_of(sys.stdout, os.environ)
    if not listed:
        print("No conversations here yet.", file=sys.stderr)
    for one in listed:
        lead = f"{one.id}  {_when(one)}  "
        room = max(10, width - len(lead))
        print(style.paint(lead, "dim") + fit(clean(one.first_prompt), room, ellipsis=style.ellipsis).rstrip())


def _when(one: ListedSession) -> str:
    return datetime.fromtimestamp(one.last_used).astimezone().isoformat(" ", "minutes")[:16]
