"""A stream may be cut at any byte: what had closed before is kept, and nothing else is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.model import ModelError, ModelEvent, Stopped, ThoughtReady
from ferrule.providers.anthropic_wire import AnthropicReader
from ferrule.providers.openai_calls import CallsInProgress
from ferrule.providers.openai_wire import OpenAiReader
from ferrule.providers.responses_reader import ResponsesReader
from ferrule.providers.script import ScriptedTurn
from ferrule.providers.service_requests import MessageReader, Pieces
from ferrule.testing.model_server import ModelServer
from ferrule.testing.model_wires import anthropic_frames, openai_frames, responses_frames
from tests.providers.hearing import SERVICE, calls_of, heard_until_error, models_at, text_of
from tests.requirement import requirement

TURN = ScriptedTurn.model_validate(
    {
        "thinking": "Wär es so?",
        "text": "Ich lese… gleich.",
        "calls": [
            {"name": "Read", "input": {"path": "ä/b", "deep": {"list": [1, "{"]}}},
            {"name": "Glob", "input": {}},
            {"name": "Edit", "input": {"old": "a\nb"}},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
)

Wire = tuple[Callable[[], MessageReader], bytes]


def wires() -> dict[str, Wire]:
    return {
        "anthropic": (
            lambda: AnthropicReader(SERVICE),
            "".join(anthropic_frames(TURN, 0, "", "m")).encode(),
        ),
        "openai": (
            lambda: OpenAiReader(SERVICE, CallsInProgress(set())),
            "".join(openai_frames(TURN, 0, "", "m")).encode(),
        ),
        "responses": (
            lambda: ResponsesReader(SERVICE, SERVICE.origin),
            "".join(responses_frames(TURN, 0, "", "m")).encode(),
        ),
    }


def listen(
    reader: MessageReader, chunks: Iterable[bytes], *, is_framed: bool
) -> tuple[list[ModelEvent], ModelError | None]:
    pieces = Pieces(SERVICE, reader)
    found: list[ModelEvent] = []
    try:
        for chunk in chunks:
            found.extend(pieces.feed(chunk))
        found.extend(pieces.end())
        found.extend(reader.end(is_framed=is_framed))
    except ModelError as error:
        return found, error
    return found, None


def thoughts_of(events: list[ModelEvent]) -> list[ThoughtReady]:
    return [event for event in events if isinstance(event, ThoughtReady)]


def cut_up(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks: list[bytes] = []
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    return [*chunks, data]


@requirement("LOOP-1", "SCHED-4")
@pytest.mark.parametrize("wire", wires())
@given(data=st.data())
def test_a_stream_cut_at_any_byte_keeps_what_had_closed_and_invents_nothing(wire: str, data: st.DataObject) -> None:
    make, whole = wires()[wire]
    everything, error = listen(make(), [whole], is_framed=True)
    assert error is None
    at = data.draw(st.integers(0, len(whole)))
    sizes = data.draw(st.lists(st.integers(0, 200), max_size=30))

    found, error = listen(make(), cut_up(whole[:at], sizes), is_framed=False)

    calls = calls_of(found)
    assert calls == calls_of(everything)[: len(calls)]
    assert text_of(everything).startswith(text_of(found))
    assert thoughts_of(found) in ([], thoughts_of(everything))
    if error is None:
        assert calls == calls_of(everything)
        assert found[-1] == Stopped("tool_use")
    else:
        assert error.kind == "cut"
        assert not any(isinstance(one, Stopped) for one in found)


@pytest.mark.parametrize("wire", wires())
def test_calls_are_lost_only_where_their_end_had_not_come(wire: str) -> None:
    make, whole = wires()[wire]
    counts = [len(calls_of(listen(make(), [whole[:at]], is_framed=False)[0])) for at in range(0, len(whole) + 1, 3)]

    assert counts == sorted(counts)
    assert set(counts) >= ({0, 1, 3} if wire == "openai" else {0, 1, 2, 3})


@requirement("LOOP-1")
@given(noise=st.binary(max_size=200), at=st.integers(0, 3000), wire=st.sampled_from(sorted(wires())))
def test_bytes_that_do_not_belong_there_raise_nothing_but_a_model_error(noise: bytes, at: int, wire: str) -> None:
    make, whole = wires()[wire]

    listen(make(), [whole[:at] + noise + whole[at:]], is_framed=True)


@requirement("LOOP-1")
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
async def test_a_connection_that_ends_in_the_middle_is_a_cut_with_what_had_come(share: float) -> None:
    for index, (_, whole) in enumerate(wires().values()):
        fault = {"cut_after": int(len(whole) * share)}
        turn = {**TURN.model_dump(exclude_none=True), "fault": fault}
        async with ModelServer.playing({"turns": [turn]}) as server, models_at(server) as models:
            events, error = await heard_until_error(models[index])

        assert error.kind == "cut"
        assert events
        assert len(server.requests) == 1
