"""The record of a conversation, written as it happens: one line of JSON for each entry.

Writing is appending, so the two-thousandth turn costs what the twentieth does. docs/sessions.md describes the format.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..core.ids import new_uuid
from ..core.model import AssistantTurn, ResultTurn, StopReason, Usage, UserTurn
from ..core.ports import TranscriptStore
from ..core.state import SessionState
from ..core.threads import in_a_thread
from .transcript_entries import assistant_fields, line_of, results_fields, usage_fields, user_fields

log = logging.getLogger(__name__)

VERSION = 1
CWD, FOUND, VALUE = "cwd", "found_tools", "value:"
"""The keys of state entries; the last one is a prefix for a tool's own key."""


class Transcript:
    """One agent's entries in the record of a session. A disk failure is logged once, and the turn continues."""

    def __init__(
        self,
        store: TranscriptStore,
        session_id: str,
        *,
        agent: str = "main",
        parent: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """`meta` says where the session runs and what it comes from; it precedes the first entry."""
        self._store = store
        self._session_id = session_id
        self._agent = agent
        self._parent = parent
        self._meta = meta
        self._known: dict[str, Any] = {}
        self.problem = ""
        """Why it is not complete, if it is not."""

    def of_agent(self, agent: str) -> Transcript:
        """For the entries of another agent in the same record."""
        return Transcript(self._store, self._session_id, agent=agent)

    def user(self, turn: UserTurn) -> None:
        self._write("user", user_fields(turn))

    def notes(self, texts: tuple[str, ...], *, apart: bool = False) -> None:
        """What was appended to the last turn before the model read it; or `apart`, if the model had already read it."""
        self._write("notes", {"texts": list(texts), "apart": apart})

    def assistant(self, turn: AssistantTurn, *, model: str, stopped: StopReason, usage: Usage) -> None:
        """Written before the calls that change something run, so that they are recorded even after a crash."""
        self._write(
            "assistant", {**assistant_fields(turn), "model": model, "stopped": stopped, "usage": usage_fields(usage)}
        )

    def results(self, turn: ResultTurn) -> None:
        self._write("results", results_fields(turn))

    def note_usage(self, model: str, usage: Usage) -> None:
        """For a message that does not stay in the conversation."""
        self._write("usage", {"model": model, "usage": usage_fields(usage)})

    def compaction(self, summary: str, *, kept: int, whole: int, before: int, after: int) -> None:
        """See `compaction.shorter`; sizes are estimates in tokens."""
        fields = {"summary": summary, "kept": kept, "whole": whole, "before": before, "after": after}
        self._write("compaction", fields)

    def state(self, state: SessionState) -> None:
        """The parts of the state that changed since they were last written."""
        now = {CWD: state.cwd, FOUND: state.found_tools, **{VALUE + key: value for key, value in state.values.items()}}
        known, self._known = self._known, now
        for key, value in now.items():
            if key not in known or not (known[key] is value or known[key] == value):
                self._write("state", {"key": key, "value": value})

    async def end_turn(self, reason: str, error: str) -> None:
        """When this returns the turn is on disk."""
        self._write("end", {"reason": reason, "error": error})
        try:
            await in_a_thread(self._store.sync)
        except OSError as problem:
            self._complain(problem)

    def _write(self, kind: str, fields: Mapping[str, Any]) -> None:
        if self._meta is not None:
            meta, self._meta = self._meta, None
            self._write("meta", {"version": VERSION, **meta})
        entry = entry_about(kind, self._parent, self._session_id, self._agent, fields)
        try:
            self._store.append(line_of(entry))
        except (OSError, TypeError, ValueError, RecursionError) as problem:
            self._complain(problem)
        else:
            self._parent = entry["uuid"]

    def _complain(self, problem: Exception) -> None:
        if not self.problem:
            log.warning("the transcript of %s is not complete: %s", self._session_id, problem)
            self.problem = str(problem)


def first_line(session_id: str, meta: Mapping[str, Any]) -> bytes:
    """The line that a transcript begins with whose other lines come from elsewhere."""
    return line_of(entry_about("meta", None, session_id, "main", {"version": VERSION, **meta}))


def entry_about(
    kind: str, parent: str | None, session_id: str, agent: str, fields: Mapping[str, Any]
) -> dict[str, Any]:
    """With what every entry has."""
    return {
        "type": kind,
        "uuid": new_uuid(),
        "parent": parent,
        "session": session_id,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "agent": agent,
        **fields,
    }
