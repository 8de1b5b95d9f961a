"""Whether the words of each service are understood: a conversation that is too long, a picture that is not taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.host.http.message import Headers
from ferrule.host.http.urls import Url
from ferrule.providers.service_errors import ServiceAddress, Trouble, trouble_of_report, trouble_of_status
from tests.requirement import requirement

SAID = json.loads(Path(__file__).with_name("refusals.json").read_text("utf-8"))
SERVICE = ServiceAddress(
    name="a service",
    url=Url.parse("http://127.0.0.1:1/v1"),
    headers=(),
    model="m",
    key_variable="KEY",
    url_variable="URL",
)


def trouble(one: dict[str, Any]) -> Trouble:
    body = json.dumps({"error": one["error"]}).encode()
    return trouble_of_status(SERVICE, one["status"], Headers(()), body, now=0.0)


def by_service(kind: str) -> Any:
    return pytest.mark.parametrize("one", SAID[kind], ids=[one["service"] for one in SAID[kind]])


def test_at_least_35_services_are_listed() -> None:
    assert len({one["service"].partition(",")[0] for one in SAID["too_long"]}) >= 34
    assert len(SAID["too_long"]) >= 40


@requirement("LOOP-2")
@by_service("too_long")
def test_a_conversation_that_is_too_long_is_recognised_with_the_window_in_the_words(one: dict[str, Any]) -> None:
    found = trouble(one)

    assert (found.kind, found.window, found.passing) == ("overflow", one["window"], False)


@by_service("images")
def test_a_picture_that_is_not_taken_is_recognised(one: dict[str, Any]) -> None:
    found = trouble(one)

    assert (found.kind, found.passing) == ("images", False)


@by_service("ordinary")
def test_an_ordinary_error_is_taken_for_neither(one: dict[str, Any]) -> None:
    assert trouble(one).kind not in ("overflow", "images")


def test_the_same_words_in_the_middle_of_a_stream_are_recognised() -> None:
    said = {"error": {"type": "server_error", "message": "Context size has been exceeded.", "code": 500}}

    assert trouble_of_report(SERVICE, said).kind == "overflow"
