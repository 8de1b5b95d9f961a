"""The record of a conversation, written as it happens: one line of JSON for each entry.

Writing is appending, so the two-thousandth turn costs what the twentieth does. docs/sessions.md describes the format.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from ..core.ids import new_uuid
from ..core.model import AssistantTurn, ResultTurn, StopReason, Usage, UserTurn
from ..core.ports import TranscriptStore
from ..core.state import SessionState
from ..core.threads import in_a_thread
from .shortening import Shortened
from .transcript_entries import (
    assistant_fields,
    form_fields,
    line_of,
    notes_fields,
    results_fields,
    usage_fields,
    user_fields,
)

log = logging.getLogger(__name__)

FORMAT = 2
LINKED = ("user", "assistant", "system")
"""The types whose entries form the chain of `parentUuid`; the others name the entry before them and are not named."""
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
        meta: Callable[[], Mapping[str, Any]] | None = None,
        cwd: str = "",
        surroundings: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """`meta` says where the session runs and what it comes from; it precedes the first entry, and
        is asked for then.

        `surroundings` are fields of every entry; they are looked up with each prompt.
        """
        self._store = store
        self._session_id = session_id
        self._agent = agent
        self._parent = parent
        self._meta = meta
        self._cwd = cwd
        self._surroundings = surroundings
        self._around: Mapping[str, Any] | None = None
        self._known: dict[str, Any] = {}
        self.problem = ""
        """Why it is not complete, if it is not."""

    def of_agent(self, agent: str) -> Transcript:
        """For the entries of another agent in the same record."""
        around = self._surroundings
        return Transcript(self._store, self._session_id, agent=agent, cwd=self._cwd, surroundings=around)

    def user(self, turn: UserTurn) -> None:
        self._around = None
        self._write("user", user_fields(turn))

    def notes(self, texts: tuple[str, ...], *, apart: bool = False) -> None:
        """What was appended to the last turn before the model read it; or `apart`, if the model had already read it."""
        self._write("user", {"isMeta": True, "apart": apart, **notes_fields(texts)}, kind="notes")

    def assistant(self, turn: AssistantTurn, *, model: str, stopped: StopReason, usage: Usage) -> None:
        """Written before the calls that change something run, so that they are recorded even after a crash."""
        self._write("assistant", assistant_fields(turn, model=model, stopped=stopped, usage=usage))

    def results(self, turn: ResultTurn) -> None:
        self._write("user", results_fields(turn), kind="results")

    def note_usage(self, model: str, usage: Usage) -> None:
        """For a message that does not stay in the conversation."""
        self._write("usage", {"message": {"model": model, "usage": usage_fields(usage)}})

    def compaction(self, made: Shortened, *, trigger: str, before: int, after: int) -> None:
        """Sizes are estimates in tokens.

        The boundary is for other programs; what a conversation is restored from is the entry behind it.
        """
        boundary = {"subtype": "compact_boundary", "content": "Conversation compacted"}
        self._write("system", {**boundary, "compactMetadata": {"trigger": trigger, "preTokens": before}})
        fields = {**form_fields(made.form), "before": before, "after": after, "prompts": list(made.prompts)}
        message = {"role": "user", "content": made.summary}
        self._write("user", {"isCompactSummary": True, **fields, "message": message}, kind="compaction")

    def state(self, state: SessionState) -> None:
        """The parts of the state that changed since they were last written."""
        now = {CWD: state.cwd, FOUND: state.found_tools, **{VALUE + key: value for key, value in state.values.items()}}
        known, self._known = self._known, now
        self._cwd = state.cwd
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

    def _write(self, type: str, fields: Mapping[str, Any], *, kind: str = "") -> None:
        if self._meta is not None:
            meta, self._meta = self._meta, None
            self._write("meta", {"format": FORMAT, **meta()})
        if self._around is None:
            self._around = self._surroundings()
        around = {"cwd": self._cwd, **self._around}
        entry = new_entry(type, self._parent, self._session_id, self._agent, {**around, **fields}, kind=kind)
        try:
            self._store.append(line_of(entry))
        except (OSError, TypeError, ValueError, RecursionError) as problem:
            self._complain(problem)
        else:
            if type in LINKED:
                self._parent = entry["uuid"]

    def _complain(self, problem: Exception) -> None:
        if not self.problem:
            log.warning("the transcript of %s is not complete: %s", self._session_id, problem)
            self.problem = str(problem)


def first_line(session_id: str, meta: Mapping[str, Any]) -> bytes:
    """The line that a transcript begins with whose other lines come from elsewhere."""
    return line_of(new_entry("meta", None, session_id, "main", {"format": FORMAT, **meta}))


def new_entry(
    type: str, parent: str | None, session_id: str, agent: str, fields: Mapping[str, Any], *, kind: str = ""
) -> dict[str, Any]:
    """With what every entry has. `type` is what other programs know it as, and `kind` what it is here, if different."""
    return {
        "type": type,
        **({"kind": kind} if kind else {}),
        "uuid": new_uuid(),
        "parentUuid": parent,
        "sessionId": session_id,
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "agent": agent,
        "isSidechain": agent != "main",
        **({"agentId": agent.rpartition("/")[2]} if agent != "main" else {}),
        **fields,
    }
