"""A transcript of any length is read in bounded memory, and what is kept of it is a conversation."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ferrule import Settings
from ferrule.app.kept_sessions import resume_session
from ferrule.core.content import plain_text
from ferrule.core.events import TurnEnded
from ferrule.core.model import UserTurn
from ferrule.engine.recent_lines import ROOM
from ferrule.engine.restoring import restore_conversation
from ferrule.engine.transcript import new_entry
from ferrule.engine.transcript_entries import line_of, peek
from ferrule.host.http.http_client import HttpClient
from ferrule.host.storage.transcript_files import Transcripts
from ferrule.permissions.modes import Mode
from ferrule.providers.model_catalog import open_model
from ferrule.testing import ModelServer, open_service, well_formed


def line(type: str, content: Any = None, *, kind: str = "", agent: str = "main", **more: Any) -> bytes:
    message = {"message": {"role": "user", "content": content}} if content is not None else {}
    return line_of(new_entry(type, None, "s", agent, {**message, **more}, kind=kind))


def exchange(number: int, size: int) -> list[bytes]:
    """A prompt, a call with a long result, an answer."""
    call: dict[str, Any] = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "x" * size}
    return [
        line("user", f"prompt {number}"),
        line("assistant", [{"type": "text", "text": "Looking."}, call]),
        line("user", [result], kind="results"),
        line("assistant", [{"type": "text", "text": f"Answer {number}."}]),
        line("end", reason="end", error=""),
    ]


def compaction(summary: str, kept: int) -> bytes:
    return line("user", summary, kind="compaction", kept=kept, whole=kept)


def test_the_end_stays_whole_and_the_users_words_of_the_rest_are_kept() -> None:
    lines = [one for number in range(100) for one in exchange(number, 1000)]

    found = restore_conversation(lines, room=20_000)
    whole = restore_conversation(lines)

    first, *rest = found.turns
    assert isinstance(first, UserTurn)
    words = plain_text(first.content)
    assert words.startswith("[This conversation is longer")
    assert all(f"prompt {number}\n" in f"{words}\n" for number in range(80))
    assert rest == whole.turns[-len(rest) :]
    assert (found.prompts, found.last, found.is_cut) == (100, whole.last, False)
    assert well_formed(found.turns)


def test_a_summary_that_falls_out_is_kept_with_what_was_said_after_it() -> None:
    lines = [*exchange(0, 10), compaction("The summary.", 0), *(one for n in range(1, 40) for one in exchange(n, 1000))]

    words = plain_text(restore_conversation(lines, room=5_000).turns[0].content)  # type: ignore[union-attr]

    assert "The summary." in words
    assert "prompt 1" in words
    assert "prompt 0" not in words


def test_a_summary_replaces_all_before_it_however_long_that_is() -> None:
    before = [one for number in range(50) for one in exchange(number, 1000)]
    lines = [*before, compaction("The summary.", 4), *exchange(99, 10)]

    assert restore_conversation(lines, room=20_000).turns == restore_conversation(lines).turns
    assert plain_text(restore_conversation(lines, room=20_000).turns[0].content) == "The summary."  # type: ignore[union-attr]


def test_sixty_megabytes_take_the_memory_of_a_window() -> None:
    def lines() -> Iterator[bytes]:
        long = "я" * 500_000
        for number in range(60):
            yield from exchange(number, 0)[:2]
            yield line("user", [{"type": "tool_result", "tool_use_id": f"c{number}", "content": long}], kind="results")

    tracemalloc.start()
    found = restore_conversation(lines())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 * ROOM
    assert found.prompts == 60
    assert well_formed(found.turns)


async def test_a_long_conversation_goes_on_without_a_request_longer_than_the_window(tmp_path: Path) -> None:
    """What is kept of it is more than this service takes."""
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    path = Transcripts(tmp_path / "state" / "projects").path(str(tmp_path), "long")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(one for number in range(400) for one in exchange(number, 10_000)))
    service = open_service("anthropic", window=200_000)
    turns = [
        {"text": "# Task\n" + "A summary of what was asked for and done. " * 20 + "\n\n# State\nDone."},
        {"text": "Well."},
    ]

    async with ModelServer.playing({"turns": turns}, service=service) as server, HttpClient({}) as client:
        model = open_model(service.model, server.environ, client=client)
        async with resume_session("long", settings) as session, session.ask("go on", model) as events:
            ended = [envelope.event async for envelope in events][-1]

    assert isinstance(ended, TurnEnded)
    assert (ended.reason, server.refusals) == ("end", [])


def group(number: int, kind: str, size: int) -> list[bytes]:
    match kind:
        case "exchange":
            return exchange(number, size)
        case "begun":
            return exchange(number, size)[:2]
        case "ended":
            return exchange(number, size)[2:]
        case "summary":
            return [compaction(f"Summary {number}.", size % 6)]
        case "no summary":
            return [compaction("", 2)]
        case "note":
            return [line("user", "a note", kind="notes", apart=False), line("state", key="cwd", value="/x")]
        case _:
            return [b"garbage\n", line("user", "of an agent", agent="a/b"), b'{"type": "user", "agent": "a/c"}\n']


KINDS = ["exchange", "begun", "ended", "summary", "no summary", "note", "garbage"]


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 400)), max_size=20), st.integers(200, 6000))
def test_whatever_is_left_out_the_rest_is_a_conversation_with_the_same_end(
    groups: list[tuple[str, int]], room: int
) -> None:
    lines = [one for number, (kind, size) in enumerate(groups) for one in group(number, kind, size)]

    found, whole = restore_conversation(lines, room=room), restore_conversation(lines, room=10**9)

    assert well_formed(found.turns)
    assert (found.prompts, found.last, found.is_cut, found.cwd) == (
        whole.prompts,
        whole.last,
        whole.is_cut,
        whole.cwd,
    )
    assert found.turns[-1:] == whole.turns[-1:] or len(found.turns) <= 2


def test_only_lines_of_our_own_are_understood_without_reading_them() -> None:
    own = line("user", "hi", kind="notes")

    assert (peeked := peek(own)) is not None
    assert (peeked.kind, peeked.agent) == ("notes", "main")
    assert peek(own.replace(b":", b": ")) is None
    assert peek(b'{"type":"user","uuid":"x","message":{"agent":"y"},"agent":"main"}') is None
