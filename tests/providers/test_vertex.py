"""Claude on Vertex AI: the envelope, and where tokens come from, by servers that check them as Google would."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from ferrule.core.model import AssistantTurn, ModelError, ModelProvider, Request, Stopped, Usage, UserTurn
from ferrule.host.http.http_client import HttpClient
from ferrule.host.http.urls import Url
from ferrule.providers.google_tokens import GoogleToken, find_credentials_file
from ferrule.providers.model_catalog import open_model
from ferrule.providers.retry import Retries
from ferrule.testing.model_server import ModelServer
from ferrule.testing.services import LoggedRequest, open_service
from ferrule.testing.services.cloud_services import VertexService
from tests.providers.hearing import heard, heard_until_error, text_of, tools
from tests.providers.rounds import converse, prompt
from tests.requirement import requirement

DONE = {
    "text": "Done.",
    "usage": {"input_tokens": 3, "output_tokens": 5, "cache_read_tokens": 7, "cache_write_tokens": 9},
}
TOKEN = {"access_token": "ya29.a-token", "expires_in": 3599, "token_type": "Bearer"}
NO_TOKEN = {"GOOGLE_OAUTH_ACCESS_TOKEN": ""}
PLACE = "/v1/projects/a-project/locations/europe-west1/publishers/anthropic/models"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


@asynccontextmanager
async def asked(
    *turns: Mapping[str, Any],
    model: str = "vertex:claude-sonnet-4-5",
    service: VertexService | None = None,
    retries: Retries | None = None,
    **environ: str,
) -> AsyncIterator[tuple[ModelServer, ModelProvider]]:
    strict = service or open_service("vertex")
    async with ModelServer.playing({"turns": list(turns)}, service=strict) as server, HttpClient({}) as client:
        around = {name: value.replace("{url}", server.url) for name, value in environ.items()}
        yield server, open_model(model, {**server.environ, **around}, client=client, retries=retries)


class WithTokens(VertexService):
    """Gives tokens as well, and keeps what it was asked for."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        super().__init__()
        self.forms: list[dict[str, list[str]]] = []
        self.asked: list[LoggedRequest] = []
        self._answers = list(answers)

    def describe(self, request: LoggedRequest) -> Any:
        self.asked.append(request)
        self.forms.append(parse_qs(request.raw.decode()))
        return self._answers.pop(0) if self._answers else None


@requirement("LOOP-1")
async def test_a_whole_conversation_is_taken() -> None:
    calls = {
        "thinking": "I look.",
        "text": "Looking.",
        "calls": [{"name": "Tool0", "input": {"path": "ü"}}, {"name": "Tool1", "input": {}, "id": "functions.Tool1:0"}],
    }
    async with asked(calls, DONE, {"text": "Yes."}) as (server, model):
        history = await converse(model, prompt())
        await converse(model, [*history, UserTurn.saying("sure?")])

    assert server.refusals == []
    assert [turn.text for turn in history if isinstance(turn, AssistantTurn)] == ["Looking.", "Done."]
    assert {request.path for request in server.requests} == {f"{PLACE}/claude-sonnet-4-5@20250929:streamRawPredict"}


async def test_the_body_says_no_model_and_features_are_a_header() -> None:
    async with asked(DONE, model="vertex:sonnet[1m]", ANTHROPIC_BETAS="theirs") as (server, model):
        events = await heard(model, Request(prompt(), tools(2), cache_after=2, system="s"))

    (request,) = server.requests
    assert request.path == f"{PLACE}/claude-sonnet-5-5:streamRawPredict"
    assert request.body.keys() == {"anthropic_version", "stream", "max_tokens", "tools", "system", "messages"}
    assert request.headers["anthropic-beta"] == "theirs,context-1m-2025-08-07"
    assert request.raw.count(b'"cache_control"') == 3
    assert [event for event in events if isinstance(event, Usage)][-1] == Usage(3, 5, 7, 9)
    assert model.facts.window == 1_000_000


@requirement("LOOP-1")
@pytest.mark.parametrize("name", [None, "opus", "claude-opus-4-1@20250805", "claude-opus-4-1-20250805"])
async def test_a_request_for_vertex_is_never_sent_elsewhere(name: str | None) -> None:
    async with (
        ModelServer.playing({"turns": [DONE]}) as other,
        ModelServer.playing({"turns": [DONE]}, service=open_service("vertex")) as server,
        HttpClient({}) as client,
    ):
        around = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_BASE_URL": other.url}
        model = open_model(name, {**around, **server.environ, "CLAUDE_CODE_USE_VERTEX": "1"}, client=client)
        await heard(model)

    assert (len(server.requests), len(other.requests), server.refusals) == (1, 0, [])
    assert "x-api-key" not in server.requests[0].headers
    assert model.facts.input_price is not None


async def test_a_region_for_one_model_is_used_for_that_model_alone() -> None:
    regions = {"VERTEX_REGION_CLAUDE_HAIKU_4_5": "us-east5", "VERTEX_REGION_CLAUDE_5_OPUS": "global"}
    paths: list[str] = []
    for name in ("claude-haiku-4-5", "claude-opus-5", "claude-sonnet-5"):
        async with asked(DONE, model=f"vertex:{name}", **regions) as (server, model):
            await heard(model)
        paths += [server.requests[0].path.split("/")[5]]

    assert paths == ["us-east5", "global", "europe-west1"]


def signed_by(key: rsa.RSAPrivateKey, assertion: str) -> dict[str, Any]:
    """The claims of the statement, whose signature is verified."""
    text, _, signature = assertion.rpartition(".")
    key.public_key().verify(_decoded(signature), text.encode(), padding.PKCS1v15(), hashes.SHA256())
    head, claims = (json.loads(_decoded(part)) for part in text.split("."))
    assert head == {"alg": "RS256", "typ": "JWT", "kid": "the-key"}
    return claims


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def service_account(folder: Path, key: rsa.RSAPrivateKey, url: str) -> Path:
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    file = folder / "account.json"
    content = {
        "type": "service_account",
        "project_id": "of-the-file",
        "private_key_id": "the-key",
        "private_key": pem,
        "client_email": "robot@of-the-file.iam.gserviceaccount.com",
        "token_uri": f"{url}/token",
    }
    file.write_text(json.dumps(content))
    return file


@requirement("LOOP-1")
async def test_a_service_account_signs_for_a_token_that_is_used_until_it_ends(
    tmp_path: Path, key: rsa.RSAPrivateKey
) -> None:
    service = WithTokens(TOKEN)
    async with ModelServer.playing({"turns": [DONE, DONE]}, service=service) as server, HttpClient({}) as client:
        url = server.url
        file = service_account(tmp_path, key, url)
        around = {
            **server.environ,
            **NO_TOKEN,
            "ANTHROPIC_VERTEX_PROJECT_ID": "",
            "GOOGLE_APPLICATION_CREDENTIALS": str(file),
        }
        model = open_model("vertex:sonnet", around, client=client)
        await heard(model)
        await heard(model)

    (form,) = service.forms
    claims = signed_by(key, form["assertion"][0])
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    assert (claims["iss"], claims["aud"]) == ("robot@of-the-file.iam.gserviceaccount.com", f"{url}/token")
    assert claims["exp"] - claims["iat"] == 3600
    assert "/projects/of-the-file/" in server.requests[-1].path
    assert server.refusals == []


async def test_what_gcloud_wrote_is_found_and_renewed_before_it_ends(tmp_path: Path) -> None:
    now = [1_000.0]
    service = WithTokens({**TOKEN, "expires_in": 100}, {**TOKEN, "expires_in": 100})
    async with ModelServer.playing({"turns": [DONE]}, service=service) as server, HttpClient({}) as client:
        content = {
            "type": "authorized_user",
            "client_id": "id",
            "client_secret": "secret",
            "refresh_token": "fresh",
            "quota_project_id": "paying",
            "token_uri": f"{server.url}/token",
        }
        (tmp_path / "application_default_credentials.json").write_text(json.dumps(content))
        file = find_credentials_file({"CLOUDSDK_CONFIG": str(tmp_path)})
        token = GoogleToken({}, file, client, clock=lambda: now[0])
        headers: list[dict[str, str]] = []
        for then in (1_000.0, 1_039.0, 1_041.0):
            now[0] = then
            headers.append(dict(await token.headers(Url.parse(server.url), b"")))

    assert len(service.forms) == 2
    assert service.forms[0] == {
        "grant_type": ["refresh_token"],
        "client_id": ["id"],
        "client_secret": ["secret"],
        "refresh_token": ["fresh"],
    }
    assert headers[0] == {"authorization": "Bearer ya29.a-token", "x-goog-user-project": "paying"}


async def test_the_machine_itself_gives_a_token_where_there_is_no_file(tmp_path: Path) -> None:
    service = WithTokens(TOKEN)
    async with ModelServer.playing({"turns": [DONE]}, service=service) as server, HttpClient({}) as client:
        host = server.url.removeprefix("http://")
        around = {**server.environ, **NO_TOKEN, "CLOUDSDK_CONFIG": str(tmp_path), "GCE_METADATA_HOST": host}
        await heard(open_model("vertex:sonnet", around, client=client))

    assert server.refusals == []
    assert service.asked[0].headers["metadata-flavor"] == "Google"
    assert service.asked[0].path.endswith("/service-accounts/default/token")


async def test_a_token_that_is_refused_is_asked_for_again_once(tmp_path: Path) -> None:
    service = WithTokens({**TOKEN, "access_token": "ya29.old"}, TOKEN)
    async with ModelServer.playing({"turns": [DONE]}, service=service) as server, HttpClient({}) as client:
        host = server.url.removeprefix("http://")
        around = {**server.environ, **NO_TOKEN, "CLOUDSDK_CONFIG": str(tmp_path), "GCE_METADATA_HOST": host}
        assert text_of(await heard(open_model("vertex:sonnet", around, client=client))) == "Done."

    assert [refusal.status for refusal in server.refusals] == [401]


async def test_a_token_of_the_environment_that_is_refused_is_an_error_in_the_services_words() -> None:
    async with asked(DONE, GOOGLE_OAUTH_ACCESS_TOKEN="old") as (server, model):
        with pytest.raises(ModelError, match="Expected OAuth 2 access token") as caught:
            await heard(model)

    assert caught.value.kind == "key"
    assert len(server.requests) == 1


async def test_a_gateway_that_signs_by_itself_gets_its_own_token() -> None:
    class Gateway(VertexService):
        def refuse(self, request: LoggedRequest) -> None:
            assert request.headers["authorization"] == "Bearer gateway"

    skip = {"CLAUDE_CODE_SKIP_VERTEX_AUTH": "1", "ANTHROPIC_AUTH_TOKEN": "gateway"}
    async with asked(DONE, service=Gateway(), **skip) as (_, model):
        assert text_of(await heard(model)) == "Done."


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        ("{", "it is not valid JSON"),
        ("[]", "does not contain credentials"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None, words: str) -> None:
    file = tmp_path / "credentials.json"
    if content is not None:
        file.write_text(content)

    with pytest.raises(ModelError, match="gcloud auth application-default login") as caught:
        open_model("vertex:sonnet", {"ANTHROPIC_VERTEX_PROJECT_ID": "p", "GOOGLE_APPLICATION_CREDENTIALS": str(file)})

    assert caught.value.kind == "key"
    assert words in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"type": "service_account", "client_email": "a", "private_key": "no key"}, "is not an RSA key"),
        ({"type": "service_account", "client_email": "a"}, "has no `private_key`"),
        ({"type": "authorized_user", "client_id": "a"}, "has no `client_secret`"),
        (
            {"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"},
            "Google gives no access token for",
        ),
    ],
    ids=str,
)
async def test_credentials_that_give_no_token_are_named_and_nothing_is_asked(
    tmp_path: Path, content: dict[str, str], words: str
) -> None:
    file = tmp_path / "credentials.json"
    async with ModelServer.playing({"turns": [DONE]}, service=WithTokens()) as server, HttpClient({}) as client:
        file.write_text(json.dumps({**content, "token_uri": f"{server.url}/token"}))
        around = {**server.environ, **NO_TOKEN, "GOOGLE_APPLICATION_CREDENTIALS": str(file)}
        with pytest.raises(ModelError) as caught:
            await heard(open_model("vertex:sonnet", around, client=client))

    assert caught.value.kind == "key"
    assert words in str(caught.value)
    assert not any("streamRawPredict" in request.path for request in server.requests)


async def test_a_token_service_that_is_busy_is_asked_again(tmp_path: Path) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    content = {"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}
    (tmp_path / "file").write_text(json.dumps({**content, "token_uri": "http://127.0.0.1:1/token"}))
    file = {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "file")}
    retries = Retries(attempts=3, sleep=sleep)
    async with asked(DONE, retries=retries, **NO_TOKEN, **file) as (server, model):
        with pytest.raises(ModelError, match="Tried 3 times") as caught:
            await heard(model)

    assert (caught.value.kind, len(slept), server.requests) == ("network", 2, [])


@pytest.mark.parametrize("module", ["cryptography.hazmat.primitives.asymmetric", "google.auth"])
async def test_without_a_package_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: rsa.RSAPrivateKey, module: str
) -> None:
    file = service_account(tmp_path, key, "http://127.0.0.1:1")
    if module == "google.auth":
        file.write_text(json.dumps({"type": "external_account", "audience": "x"}))
    monkeypatch.setitem(sys.modules, module, None)
    async with asked(DONE, **NO_TOKEN, GOOGLE_APPLICATION_CREDENTIALS=str(file)) as (server, model):
        with pytest.raises(ModelError, match="Install `ferrule\\[vertex\\]`"):
            await heard(model)

    assert server.requests == []


async def test_other_kinds_of_credentials_are_read_by_google_auth(tmp_path: Path) -> None:
    pytest.importorskip("google.auth")
    file = tmp_path / "file"
    file.write_text(json.dumps({"type": "external_account", "audience": "x"}))
    async with asked(DONE, **NO_TOKEN, GOOGLE_APPLICATION_CREDENTIALS=str(file)) as (_, model):
        with pytest.raises(ModelError, match="Google gives no access token") as caught:
            await heard(model)

    assert caught.value.kind == "key"


async def test_where_nothing_is_set_the_error_says_what_to_do(tmp_path: Path) -> None:
    nothing = {"CLOUDSDK_CONFIG": str(tmp_path), "GCE_METADATA_HOST": "127.0.0.1:1"}
    async with asked(DONE, **NO_TOKEN, **nothing) as (server, model):
        with pytest.raises(ModelError, match="There are no credentials of Google Cloud") as caught:
            await heard(model)

    assert (caught.value.kind, server.requests) == ("key", [])


def test_a_project_that_is_missing_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="Set ANTHROPIC_VERTEX_PROJECT_ID") as caught:
        open_model("vertex:sonnet", {"CLOUDSDK_CONFIG": str(tmp_path)})

    assert caught.value.kind == "key"


@requirement("LOOP-1")
@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (
            {"status": 404, "body": [{"error": {"code": 404, "message": "Publisher Model `x` was not found."}}]},
            "request",
            "has no model",
        ),
        ({"status": 403, "body": {"error": {"message": "Permission denied"}}}, "key", "a-project may use the model"),
        (
            {
                "status": 400,
                "body": {"type": "error", "error": {"message": "prompt is too long: 9 tokens > 5 maximum"}},
            },
            "overflow",
            "too long",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_refusals_are_told_in_words_that_help(fault: dict[str, Any], kind: str, words: str) -> None:
    async with asked({"text": "", "fault": fault}) as (_, model):
        with pytest.raises(ModelError) as caught:
            await heard(model)

    assert caught.value.kind == kind
    assert words in str(caught.value)


async def test_what_may_pass_is_asked_again_and_a_cut_after_words_is_one() -> None:
    async def sleep(_seconds: float) -> None:
        pass

    faults = [{"text": "x", "fault": {"status": 429}}, {"text": "x", "fault": {"cut_after": 20}}]
    broken = {"text": "One two three", "fault": {"cut_after": 700}}
    async with asked(*faults, DONE, broken, retries=Retries(sleep=sleep)) as (_, model):
        events = await heard(model)
        half, error = await heard_until_error(model)

    assert (text_of(events), events[-1]) == ("Done.", Stopped("end"))
    assert (error.kind, text_of(half).startswith("One")) == ("cut", True)
