"""Server-sent events, wherever the bytes are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferrule.providers.sse import ServerSentEvent, SseReader

lines = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20)
events = st.lists(st.tuples(lines, st.lists(lines, min_size=1, max_size=3)), max_size=6)


def read(data: bytes, cuts: list[int]) -> list[ServerSentEvent]:
    reader = SseReader()
    at, found = 0, []
    for size in cuts:
        found += reader.feed(data[at : at + size])
        at += size
    return [*found, *reader.feed(data[at:]), *reader.end()]


@given(events, st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 9), max_size=60), st.booleans())
def test_events_come_through_whatever_the_line_ends_and_wherever_the_pieces_end(
    written: list[tuple[str, list[str]]], line_end: str, cuts: list[int], closed: bool
) -> None:
    text = "\ufeff"
    for name, data in written:
        text += "".join((f": comment{line_end}", f"event: {name}{line_end}", f"id: 7{line_end}"))
        text += "".join(f"data: {line}{line_end}" for line in data) + line_end
    if not closed:
        text = text.removesuffix(line_end)

    found = read(text.encode(), cuts)

    assert found == [ServerSentEvent(name, "\n".join(data)) for name, data in written]


def test_an_event_without_data_is_none_and_its_name_is_forgotten() -> None:
    assert read(b"event: ping\n\ndata\n\ndata:x\n\n", []) == [ServerSentEvent("", ""), ServerSentEvent("", "x")]


def test_half_a_line_at_the_end_is_the_last_event() -> None:
    assert read(b"data: [DONE]", [5]) == [ServerSentEvent("", "[DONE]")]


def test_bytes_that_are_no_text_do_not_stop_the_rest() -> None:
    assert read(b"data: \xff\n\ndata: b\n\n", []) == [ServerSentEvent("", "\ufffd"), ServerSentEvent("", "b")]
