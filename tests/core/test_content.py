"""Blocks on the wire."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.content import Block, Document, Image, Text, encodable, plain_text, wire
from tests.requirement import requirement

_any_text = st.text(st.characters(exclude_categories=()))


@requirement("CON-9", "BUD-5")
@pytest.mark.parametrize(
    ("block", "written"),
    [
        (Text("hi"), {"type": "text", "text": "hi"}),
        (Text("bad \udc80 byte"), {"type": "text", "text": "bad \ufffd byte"}),
        (
            Image("image/png", "AAAA"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        ),
        (
            Document("application/pdf", "AAAA"),
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}},
        ),
        (
            Document("application/pdf", "AAAA", "a\udcff.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
                "title": "a\ufffd.pdf",
            },
        ),
    ],
)
def test_a_block_is_written_as_the_messages_api_has_it(block: Block, written: dict[str, object]) -> None:
    assert wire(block) == written


@requirement("CON-9")
@given(_any_text)
def test_what_goes_on_the_wire_can_always_be_encoded(text: str) -> None:
    assert json.dumps(wire(Text(text)), ensure_ascii=False).encode()


@requirement("CON-9")
@given(st.text())
def test_text_that_can_be_encoded_stays_as_it_is(text: str) -> None:
    assert encodable(text) == text


@requirement("CON-9")
@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("\ud800", "\ufffd"),
        ("a\udc80b", "a\ufffdb"),
        ("\ud83dx", "\ufffdx"),
        ("\udcff\udcfe", "\ufffd\ufffd"),
        ("😀\ud800", "😀\ufffd"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_a_lone_surrogate_becomes_a_replacement_character(text: str, sent: str) -> None:
    assert encodable(text) == sent


@requirement("CON-9")
@given(st.lists(st.sampled_from(["a", "ü", "😀", "\udc80"])).map("".join))
def test_nothing_but_the_lone_surrogates_changes(text: str) -> None:
    assert encodable(text) == re.sub("\udc80", "\ufffd", text)


@requirement("CON-12")
def test_blocks_in_plain_text_name_what_is_not_text() -> None:
    blocks = (Text("a"), Image("image/png", "AAAA"), Document("application/pdf", "AAAA"))

    assert plain_text(blocks) == "a\n[image/png]\n[application/pdf]"
