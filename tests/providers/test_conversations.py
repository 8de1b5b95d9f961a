"""One conversation suite for every service: a new wire is added to `SERVICES` and has to pass all of it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.core.content import Block, Text
from ferrule.core.events import TurnEnded
from ferrule.core.model import AssistantTurn, ResultTurn, Thought, ToolResult, Usage, UserTurn
from ferrule.core.ports import Note
from ferrule.permissions.modes import Mode
from ferrule.testing import well_formed
from tests.host.documents.making import pdf, png
from tests.providers.conversing import Conversation, conversing, every_service, texts_sent

TWO = [{"name": "Tool0", "input": {"path": "a"}}, {"name": "Tool1", "input": {"path": "b"}}]
ODD_IDS = ("toolu_01", "functions.Tool0:0", "chatcmpl-tool-" + "0123456789abcdef" * 2, "call 7|ü", "x" * 90)


def reply(call: ToolCall) -> tuple[Block, ...]:
    return (Text(f"result of {call.name}"),)


def contains(conversation: Conversation, request: int, *words: str) -> bool:
    sent = "\n".join(texts_sent(conversation.server.bodies[request]))
    return all(word in sent for word in words)


@every_service()
async def test_parallel_calls_get_their_results(name: str) -> None:
    async with conversing(name, {"text": "Both.", "calls": TWO}, {"calls": TWO[:1]}, {"text": "Done."}) as talk:
        assert await talk.say("go", reply=reply) == "Done."

    talk.check()
    assert [len(turn.calls) for turn in talk.history if isinstance(turn, AssistantTurn)] == [2, 1, 0]
    assert contains(talk, -1, "result of Tool0", "result of Tool1")
    assert well_formed(talk.history)


@every_service()
async def test_reasoning_goes_back_until_the_turn_ends_and_later_prompts_are_taken(name: str) -> None:
    turns = [{"thinking": "First I look.", "calls": TWO}, {"thinking": "Then I say.", "text": "Done."}, {"text": "Ok."}]
    async with conversing(name, *turns) as talk:
        assert await talk.say("go", reply=reply) == "Done."
        assert await talk.say("and now?", reply=reply) == "Ok."

    talk.check()
    thoughts = [part for turn in talk.history if isinstance(turn, AssistantTurn) for part in turn.parts]
    if any(isinstance(part, Thought) and part.text == "First I look." for part in thoughts) and name not in READS_NONE:
        assert contains(talk, 1, "First I look.")


READS_NONE = frozenset({"gemini", "gemini-2.5", "mistral"})
"""Services that refuse reasoning where it comes back, or want its signatures alone."""


@every_service()
async def test_a_note_follows_the_results(name: str) -> None:
    async with conversing(name, {"calls": TWO}, {"text": "Done."}) as talk:
        assert await talk.say("go", reply=reply, note="<note>\nA file changed.\n</note>") == "Done."

    talk.check()
    assert contains(talk, 1, "A file changed.")


@every_service()
async def test_calls_with_the_ids_of_other_services_are_taken(name: str) -> None:
    """A conversation that began elsewhere goes on here, with several calls in one message and in many."""
    async with conversing(name, {"text": "Well."}) as talk:
        for id in ODD_IDS:
            talk.history += (
                UserTurn.saying(f"before {id}"),
                AssistantTurn((ToolCall(id, "Tool0", {}), ToolCall(f"{id}-2", "Tool1", {}))),
                ResultTurn(tuple(ToolResult(one, (Text("ok"),), is_error=False) for one in (id, f"{id}-2"))),
                AssistantTurn((Text("Fine."),)),
            )
        assert await talk.say("go on", reply=reply) == "Well."

    talk.check()


@every_service()
async def test_usage_is_what_the_service_reports(name: str) -> None:
    counted = {"input_tokens": 100, "output_tokens": 7, "cache_read_tokens": 50}
    async with conversing(name, {"text": "Hi.", "usage": counted}) as talk:
        await talk.say("go", reply=reply)

    usage = [event for event in talk.events if isinstance(event, Usage)][-1]
    if name == "ollama":  # it reports what it read, whatever a script says, and knows no cache
        assert 0 < usage.input_tokens < 200_000
    else:
        assert usage == Usage(100, 7, 50, 0)


@every_service()
async def test_what_was_sent_once_is_sent_again_to_the_letter(name: str) -> None:
    """Every service caches what a request has in common with the one before it."""
    turns = [{"thinking": "hm", "calls": TWO}, {"text": "Done."}, {"calls": TWO}, {"text": "Done again."}]
    async with conversing(name, *turns) as talk:
        await talk.say("go", reply=reply)
        await talk.say("again", reply=reply)

    bodies = [_without_marks(request.body) for request in talk.server.accepted]
    for before, after in pairwise(bodies):
        for key in before.keys() - {"messages", "input", "contents"}:
            assert after[key] == before[key], key
        kept = next(key for key in ("messages", "input", "contents") if key in before)
        assert after[kept][: len(before[kept])] == before[kept]


def _without_marks(value: Any) -> Any:
    """Cache marks move on with the conversation."""
    match value:
        case dict():
            items = cast(dict[str, Any], value).items()
            return {key: _without_marks(one) for key, one in items if key not in ("cache_control", "cachePoint")}
        case list():
            return [_without_marks(one) for one in cast(list[Any], value)]
        case _:
            return value


# The whole engine, with its tools and their descriptions


@every_service()
async def test_the_engine_has_a_whole_conversation(name: str, tmp_path: Path) -> None:
    """Files, a picture, a document, an edit, notes, a failing call, and a second prompt."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "a.txt").write_text("alpha\n")
    (workspace / "p.png").write_bytes(png(8, 8))
    (workspace / "d.pdf").write_bytes(pdf(["Page one"]))
    turns: list[dict[str, Any]] = [
        {
            "thinking": "I look at all of it.",
            "text": "Looking.",
            "calls": [
                {"name": "Read", "input": {"file_path": "a.txt"}},
                {"name": "Read", "input": {"file_path": "p.png"}},
                {"name": "Read", "input": {"file_path": "d.pdf"}},
                {"name": "Read", "input": {"file_path": "missing.txt"}},
                {"name": "NoSuchTool", "input": {}},
            ],
        },
        {"calls": [{"name": "Edit", "input": {"file_path": "a.txt", "old_string": "alpha", "new_string": "beta"}}]},
        {"text": "Changed."},
        {"calls": [{"name": "Read", "input": {"file_path": "a.txt"}}]},
        {"text": "It says beta."},
    ]
    settings = Settings(cwd=str(workspace), mode=Mode.BYPASS, state_folder=tmp_path / "state")
    async with conversing(name, *turns) as talk, open_session(settings) as session:
        session.note(Note("beginning", "A note before the first prompt."))
        assert await _ask(session, "change it", talk) == "end"
        session.note(Note("between", "A note between two prompts."))
        assert await _ask(session, "what does it say?", talk) == "end"

    talk.check()
    assert (workspace / "a.txt").read_text() == "beta\n"
    assert contains(talk, -1, "d.pdf", "A note between two prompts.")
    assert well_formed(session.history)


async def _ask(session: Any, prompt: str, talk: Conversation) -> str:
    async with session.ask(prompt, talk.model) as events:
        ended = [envelope.event async for envelope in events if isinstance(envelope.event, TurnEnded)]
    assert not ended[-1].error, json.dumps([refusal.body for refusal in talk.server.refusals])[:2000]
    return str(ended[-1].reason)
