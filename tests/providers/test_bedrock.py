"""Claude on Bedrock: signatures, framing and the envelope, by a server that checks them as AWS would."""

from __future__ import annotations

import base64
import json
import sys
from calendar import timegm
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.model import (
    AssistantTurn,
    ModelError,
    ModelProvider,
    Request,
    Retrying,
    Stopped,
    Usage,
    UserTurn,
)
from ferrule.host.http.http_client import HttpClient
from ferrule.host.http.urls import Url
from ferrule.providers.anthropic_wire import AnthropicReader
from ferrule.providers.aws_event_stream import EventStreamReader
from ferrule.providers.aws_signing import AwsKeys, find_region, sign_request
from ferrule.providers.bedrock import BedrockModel
from ferrule.providers.model_catalog import open_model
from ferrule.providers.retry import Retries
from ferrule.providers.service_requests import BadFrame, Pieces
from ferrule.providers.sse import ServerSentEvent
from ferrule.testing.model_server import ModelServer
from ferrule.testing.services import PlayedTurn, open_service
from ferrule.testing.services.cloud_services import CHUNK_HEADERS, KEYS, REGION, BedrockService, encode_frame
from tests.providers.hearing import SERVICE, heard, heard_until_error, long_history, text_of, tools
from tests.providers.rounds import converse, prompt
from tests.requirement import requirement

VECTORS = json.loads((Path(__file__).parent / "aws_sigv4_vectors.json").read_text(encoding="utf-8"))["vectors"]
SUITE_KEYS = AwsKeys(key_id="AKIDEXAMPLE", secret="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SUITE_TIME = timegm((2015, 8, 30, 12, 36, 0))
DONE = {
    "text": "Done.",
    "usage": {"input_tokens": 3, "output_tokens": 5, "cache_read_tokens": 7, "cache_write_tokens": 9},
}
MODEL = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"


@asynccontextmanager
async def asked(
    *turns: Mapping[str, Any],
    model: str = MODEL,
    service: BedrockService | None = None,
    retries: Retries | None = None,
    **environ: str,
) -> AsyncIterator[tuple[ModelServer, ModelProvider]]:
    strict = service or open_service("bedrock")
    async with ModelServer.playing({"turns": list(turns)}, service=strict) as server, HttpClient({}) as client:
        yield server, open_model(model, {**server.environ, **environ}, client=client, retries=retries)


async def no_sleep(_seconds: float) -> None:
    pass


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_signatures_are_those_of_the_test_suite_of_aws(vector: dict[str, Any]) -> None:
    headers = sign_request(
        SUITE_KEYS,
        method=vector["method"],
        url=Url.parse(f"https://example.amazonaws.com{vector['target']}"),
        headers=tuple((name, value) for name, value in vector["headers"]),
        body=vector["body"].encode(),
        region="us-east-1",
        service="service",
        now=SUITE_TIME,
    )

    assert dict(headers)["authorization"].rpartition("Signature=")[2] == vector["signature"]
    assert dict(headers)["x-amz-date"] == "20150830T123600Z"


@given(
    model=st.text(alphabet="abcXYZ019.:-_/~@ü ", min_size=1, max_size=30).filter(lambda name: name.strip(".")),
    body=st.binary(max_size=100),
    token=st.sampled_from(["", "a/token+=="]),
)
def test_a_signature_is_the_one_that_botocore_makes(model: str, body: bytes, token: str) -> None:
    pytest.importorskip("botocore")
    from urllib.parse import quote

    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    url = Url.parse(f"https://bedrock-runtime.eu-west-1.amazonaws.com/model/{quote(model, safe='')}/invoke")
    ours = sign_request(
        AwsKeys(key_id="AKID", secret="s", token=token),
        method="POST",
        url=url,
        headers=(),
        body=body,
        region="eu-west-1",
        service="bedrock",
        now=SUITE_TIME,
    )
    theirs = AWSRequest("POST", str(url), data=body)
    theirs.context["timestamp"] = "20150830T123600Z"
    signer = SigV4Auth(Credentials("AKID", "s", token or None), "bedrock", "eu-west-1")
    theirs.headers["X-Amz-Date"] = "20150830T123600Z"
    if token:
        theirs.headers["X-Amz-Security-Token"] = token
    signature = signer.signature(signer.string_to_sign(theirs, signer.canonical_request(theirs)), theirs)

    assert dict(ours)["authorization"].endswith(f"Signature={signature}")


@requirement("LOOP-1")
async def test_a_whole_conversation_is_signed_framed_and_taken() -> None:
    calls = {
        "thinking": "I look.",
        "text": "Looking.",
        "calls": [{"name": "Tool0", "input": {"path": "ü"}}, {"name": "Tool1", "input": {}, "id": "functions.Tool1:0"}],
    }
    async with asked(calls, DONE, {"text": "Yes."}) as (server, model):
        history = await converse(model, prompt())
        history = await converse(model, [*history, UserTurn.saying("sure?")])

    assert server.refusals == []
    assert [turn.text for turn in history if isinstance(turn, AssistantTurn)] == ["Looking.", "Done.", "Yes."]
    last = server.requests[-1]
    assert last.path == "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"
    assert last.headers["accept"] == "application/vnd.amazon.eventstream"
    assert last.body["messages"][1]["content"][0]["type"] == "thinking"


async def test_whatever_another_service_left_in_the_conversation_is_taken() -> None:
    def own(turn: Any) -> Any:  # the strict service signs by itself, so what another Claude signed is not there
        return (
            AssistantTurn(tuple(part for part in turn.parts if not getattr(part, "signature", "")))
            if isinstance(turn, AssistantTurn)
            else turn
        )

    async with asked(DONE) as (server, model):
        events = await heard(
            model, Request([own(turn) for turn in long_history()], tools(3), cache_after=3, system="s")
        )

    assert server.refusals == []
    assert [event for event in events if isinstance(event, Usage)][-1] == Usage(3, 5, 7, 9)
    assert server.requests[0].raw.count(b'"cache_control"') == 4
    kinds = [block["type"] for block in server.bodies[0]["messages"][0]["content"]]
    assert kinds == ["text", "image", "document"]


async def test_the_body_says_no_model_and_asks_for_features_itself() -> None:
    own = "X-Team: blue\nanthropic-beta: mine"
    async with asked(DONE, model="bedrock:sonnet[1m]", ANTHROPIC_BETAS="theirs", ANTHROPIC_CUSTOM_HEADERS=own) as (
        server,
        model,
    ):
        await heard(model)

    (request,) = server.requests
    assert request.path.startswith("/model/eu.anthropic.claude-sonnet-5-5/")
    assert request.body.keys() == {"anthropic_version", "anthropic_beta", "max_tokens", "messages"}
    assert request.body["anthropic_beta"] == ["theirs", "context-1m-2025-08-07", "mine"]
    assert request.headers["x-team"] == "blue"
    assert "anthropic-beta" not in request.headers


@requirement("LOOP-1")
@pytest.mark.parametrize("name", [None, "sonnet", "claude-opus-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"])
async def test_a_request_for_bedrock_is_never_sent_elsewhere(name: str | None) -> None:
    async with (
        ModelServer.playing({"turns": [DONE]}) as other,
        ModelServer.playing({"turns": [DONE]}, service=open_service("bedrock")) as server,
        HttpClient({}) as client,
    ):
        around = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_BASE_URL": other.url}
        model = open_model(name, {**around, **server.environ, "CLAUDE_CODE_USE_BEDROCK": "1"}, client=client)
        await heard(model)

    assert (len(server.requests), len(other.requests), server.refusals) == (1, 0, [])
    assert "x-api-key" not in server.requests[0].headers
    assert server.requests[0].headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=")


async def test_opusplan_asks_opus_for_plans_there_too() -> None:
    async with asked(DONE, DONE, model="bedrock:opusplan") as (server, model):
        await heard(model, Request(prompt(), (), planning=True))
        await heard(model)

    assert [one.path.split("/")[2] for one in server.requests] == [
        "eu.anthropic.claude-opus-5-5",
        "eu.anthropic.claude-sonnet-5-5",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "anthropic.claude-sonnet-4-5-20250929-v1:0:200k",
        "claude-sonnet-4-5",
        "arn:aws:bedrock:us-east-2:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ],
)
def test_a_model_is_known_by_whatever_name_bedrock_has_for_it(name: str) -> None:
    facts = open_model(f"bedrock:{name}", {"AWS_REGION": "us-east-1"}).facts

    assert (facts.input_price, facts.output_price, facts.window) == (3, 15, 200_000)


async def test_an_arn_is_one_part_of_the_path() -> None:
    arn = "arn:aws:bedrock:eu-west-1:123:application-inference-profile/anthropic"
    async with asked(DONE, model=f"bedrock:{arn}") as (server, model):
        await heard(model)

    assert server.refusals == []
    assert server.requests[0].path.count("/") == 3


@pytest.mark.parametrize(
    ("variable", "value"),
    [("AWS_SECRET_ACCESS_KEY", "another"), ("AWS_SESSION_TOKEN", "old"), ("AWS_REGION", "us-west-2")],
)
async def test_what_is_signed_in_another_way_is_refused(variable: str, value: str) -> None:
    async with asked(DONE, **{variable: value}) as (server, model):
        with pytest.raises(ModelError, match="Check the AWS keys") as caught:
            await heard(model)

    assert caught.value.kind == "key"
    assert [refusal.status for refusal in server.refusals] == [403]


async def test_a_key_of_bedrock_is_sent_as_it_is() -> None:
    async with asked(DONE, AWS_BEARER_TOKEN_BEDROCK="ABSK-a-key\n") as (server, model):
        assert text_of(await heard(model)) == "Done."

    assert server.requests[0].headers["authorization"] == "Bearer ABSK-a-key"
    assert "x-amz-date" not in server.requests[0].headers


class Gateway(BedrockService):
    """Signs by itself, so it wants none of ours."""

    def refuse(self, request: Any) -> None:
        assert "x-amz-date" not in request.headers


async def test_a_gateway_that_signs_by_itself_gets_its_own_token_and_aws_never_does() -> None:
    skip = {"CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1", "ANTHROPIC_AUTH_TOKEN": "gateway"}
    async with asked(DONE, service=Gateway(), **skip) as (server, model):
        await heard(model)
    direct = open_model(MODEL, skip)

    assert server.requests[0].headers["authorization"] == "Bearer gateway"
    assert isinstance(direct, BedrockModel)
    assert direct.key_source == "none"


@requirement("LOOP-1")
async def test_keys_of_a_profile_are_found(tmp_path: Path) -> None:
    pytest.importorskip("botocore")
    file = tmp_path / "credentials"
    file.write_text(
        f"[work]\naws_access_key_id = {KEYS.key_id}\naws_secret_access_key = {KEYS.secret}\n"
        f"aws_session_token = {KEYS.token}\n"
    )
    (tmp_path / "config").write_text(f"[profile work]\nregion = {REGION}\n")
    profile = {
        "AWS_PROFILE": "work",
        "AWS_SHARED_CREDENTIALS_FILE": str(file),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_ACCESS_KEY_ID": "",
        "AWS_REGION": "",
    }
    async with asked(DONE, DONE, **profile) as (server, model):
        await heard(model)
        await heard(model)

    assert server.refusals == []
    assert find_region(profile) == REGION


async def test_a_profile_that_does_not_exist_is_named(tmp_path: Path) -> None:
    pytest.importorskip("botocore")
    missing = {"AWS_PROFILE": "nobody", "AWS_CONFIG_FILE": str(tmp_path / "none"), "AWS_ACCESS_KEY_ID": ""}
    async with asked(DONE, **missing) as (server, model):
        with pytest.raises(ModelError, match="nobody") as caught:
            await heard(model)

    assert caught.value.kind == "key"
    assert server.requests == []


@pytest.mark.parametrize(("profile", "words"), [("work", "AWS_PROFILE is set to `work`"), ("", "AWS_ACCESS_KEY_ID")])
async def test_without_botocore_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, profile: str, words: str) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    async with asked(DONE, AWS_PROFILE=profile, AWS_ACCESS_KEY_ID="") as (server, model):
        with pytest.raises(ModelError, match="ferrule\\[bedrock\\]") as caught:
            await heard(model)

    assert words in str(caught.value)
    assert server.requests == []


@pytest.mark.parametrize(
    ("environ", "region"),
    [
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "us-west-2"}, "eu-west-1"),
        ({"AWS_DEFAULT_REGION": "ap-south-1"}, "ap-south-1"),
        ({}, ""),
    ],
)
def test_the_region_is_that_of_the_environment(environ: dict[str, str], region: str) -> None:
    assert find_region({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", **environ}) == region


def test_a_url_that_is_not_one_is_named() -> None:
    with pytest.raises(ModelError, match="ANTHROPIC_BEDROCK_BASE_URL is not a usable URL"):
        open_model("bedrock:sonnet", {"ANTHROPIC_BEDROCK_BASE_URL": "here"})


@requirement("LOOP-1")
@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ({"status": 403, "body": {"message": "You don't have access to the model."}}, "key", "Check the AWS keys"),
        ({"status": 400, "body": {"message": "Input is too long for requested model."}}, "overflow", "too long"),
        ({"status": 400, "body": {"message": "The provided model identifier is invalid."}}, "request", "identifier"),
        ({"status": 404, "body": {"message": "Model use case details have not been submitted"}}, "request", "model"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_refusals_are_told_in_words_that_help(fault: dict[str, Any], kind: str, words: str) -> None:
    async with asked({"text": "", "fault": fault}) as (_, model):
        with pytest.raises(ModelError) as caught:
            await heard(model)

    assert caught.value.kind == kind
    assert words in str(caught.value)


@requirement("LOOP-1")
@pytest.mark.parametrize(
    "fault",
    [
        {"status": 429, "body": {"message": "Too many requests, please wait before trying again."}},
        {"status": 503, "body": {"message": "Service unavailable"}},
        {"close": True},
        {"cut_after": 0},
        {"cut_after": 90},
        {"garbage_at": 0},
    ],
    ids=str,
)
async def test_what_may_pass_is_asked_again_with_a_new_signature(fault: dict[str, Any]) -> None:
    failing = {"text": "never", "fault": fault}
    async with asked(failing, DONE, retries=Retries(sleep=no_sleep)) as (server, model):
        events = await heard(model)

    assert text_of(events) == "Done."
    assert isinstance(next(event for event in events if not isinstance(event, Usage)), Retrying)
    assert server.refusals == []


class Failing(BedrockService):
    """Sends an exception in the midst of the stream."""

    def __init__(self, kind: str, after: int) -> None:
        super().__init__()
        self._kind = kind
        self._after = after

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        frames = list(super().events(played))
        if played.place:
            yield from frames
            return
        yield from frames[: self._after]
        headers = {":exception-type": self._kind, ":content-type": "application/json", ":message-type": "exception"}
        yield encode_frame(headers, b'{"message":"It happened."}')


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("throttlingException", None),
        ("internalServerException", None),
        ("modelStreamErrorException", None),
        ("serviceUnavailableException", None),
        ("validationException", "request"),
        ("accessDeniedException", "key"),
    ],
)
async def test_an_exception_before_the_first_word_is_asked_again_only_if_it_may_pass(
    kind: str, failure: str | None
) -> None:
    service = Failing(kind, after=1)
    async with asked({"text": "never"}, DONE, service=service, retries=Retries(sleep=no_sleep)) as (_, model):
        if failure is None:
            assert text_of(await heard(model)) == "Done."
        else:
            _, error = await heard_until_error(model)
            assert (error.kind, "It happened." in str(error)) == (failure, True)


async def test_an_exception_after_the_first_word_leaves_what_came() -> None:
    async with asked({"text": "One two"}, service=Failing("throttlingException", after=4)) as (_, model):
        events, error = await heard_until_error(model)

    assert error.kind == "cut"
    assert text_of(events) == "One "


def frames_of(*values: dict[str, Any]) -> bytes:
    return b"".join(
        encode_frame(CHUNK_HEADERS, json.dumps({"bytes": base64.b64encode(json.dumps(one).encode()).decode()}).encode())
        for one in values
    )


STREAM = frames_of({"type": "ping"}, {"type": "message_start", "message": {}}, {"type": "message_stop"})


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_frames_may_be_cut_anywhere(cuts: list[int]) -> None:
    reader = EventStreamReader()
    places = [0, *sorted(cuts), len(STREAM)]
    events = [event for a, b in pairwise(places) for event in reader.feed(STREAM[a:b])]

    assert [json.loads(event.data)["type"] for event in events] == ["ping", "message_start", "message_stop"]
    assert reader.end() == []


@given(at=st.integers(0, len(STREAM) - 1), bit=st.integers(0, 7))
def test_one_wrong_bit_is_never_taken_for_an_answer(at: int, bit: int) -> None:
    spoilt = bytearray(STREAM)
    spoilt[at] ^= 1 << bit
    whole = list(EventStreamReader().feed(STREAM))

    got: list[ServerSentEvent] = []
    reader = EventStreamReader()
    with suppress(BadFrame):  # or it waits for what never comes
        for byte in spoilt:
            got += reader.feed(bytes([byte]))

    assert got == whole[: len(got)]
    assert len(got) < len(whole)


def test_a_wrong_length_is_noticed_before_anything_is_waited_for() -> None:
    spoilt = bytearray(STREAM[:12])
    spoilt[1] ^= 1

    with pytest.raises(BadFrame, match="checksum of a message's beginning"):
        list(EventStreamReader().feed(bytes(spoilt)))


def test_frames_are_those_that_botocore_reads() -> None:
    pytest.importorskip("botocore")
    from botocore.eventstream import EventStreamBuffer

    buffer = EventStreamBuffer()
    buffer.add_data(STREAM)

    assert [message.headers[":event-type"] for message in buffer] == ["chunk"] * 3


@pytest.mark.parametrize(
    "frame",
    [
        encode_frame({":message-type": "event", ":event-type": "chunk"}, b"not JSON"),
        encode_frame({":message-type": "event", ":event-type": "chunk"}, b'{"bytes":"%%%"}'),
        encode_frame({":message-type": "event", ":event-type": "chunk"}, b"[]"),
        encode_frame({":message-type": "odd"}, b"{}"),
        encode_frame({}, b""),
    ],
)
def test_a_frame_that_cannot_be_read_is_an_unreadable_answer(frame: bytes) -> None:
    pieces = Pieces(SERVICE, AnthropicReader(SERVICE), EventStreamReader())

    with pytest.raises(ModelError) as caught:
        list(pieces.feed(frame))

    assert caught.value.kind == "answer"


def test_events_that_are_not_pieces_are_passed_over_and_errors_are_told() -> None:
    reader = EventStreamReader()
    initial = encode_frame({":message-type": "event", ":event-type": "initial-response"}, b"{}")
    error = encode_frame({":message-type": "error", ":error-code": "x", ":error-message": "why"}, b"")

    assert list(reader.feed(initial)) == []
    assert json.loads(next(reader.feed(error)).data)["error"] == {"type": "api_error", "message": "why"}


async def test_a_message_stop_ends_the_answer() -> None:
    async with asked({"text": "x", "stop": "refusal"}, {"text": "y", "stop": "max_tokens"}) as (_, model):
        assert [(await heard(model))[-1] for _ in range(2)] == [Stopped("refusal"), Stopped("max_tokens")]
