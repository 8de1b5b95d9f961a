"""Claude on Amazon Bedrock and on Google Vertex AI, strictly: signature, framing, and the fields of each envelope."""

from __future__ import annotations

import base64
import json
import re
import struct
import time
import zlib
from calendar import timegm
from collections.abc import Iterator, Mapping
from typing import ClassVar

from ...host.http.urls import Url
from ...providers.aws_signing import AwsKeys, sign_request
from .messages_service import MESSAGE_RULES, AnthropicService, anthropic_error
from .strict_service import LoggedRequest, PlayedTurn, Refusal, first_refusal

KEYS = AwsKeys(key_id="ASIAEXAMPLE", secret="a+secret/key", token="a-session-token==")
REGION = "eu-west-1"
BEDROCK_PATH = re.compile(r"/model/(?P<model>[^/]+)/invoke-with-response-stream")
VERTEX_PATH = re.compile(
    r"/v1/projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)"
    r"/publishers/anthropic/models/(?P<model>[^/:]+):streamRawPredict"
)
CREDENTIAL = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<day>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request, "
    r"SignedHeaders=(?P<signed>[a-z0-9;-]+), Signature=[0-9a-f]{64}"
)
LATEST_VERSION = "2026-10-21"
"""What newer clients of Anthropic say in the place of a cloud's own version."""
LONGEST_SKEW = 300


class BedrockService(AnthropicService):
    """bedrock-runtime.REGION.amazonaws.com."""

    name = "bedrock"
    model = "bedrock:claude-sonnet-4-5"
    content_type: ClassVar[str] = "application/vnd.amazon.eventstream"
    garbage: ClassVar[bytes] = b"\x00\x00\x00\x20\x00\x00\x00\x00not a frame"

    def environ(self, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BEDROCK_BASE_URL": url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": KEYS.key_id,
            "AWS_SECRET_ACCESS_KEY": KEYS.secret,
            "AWS_SESSION_TOKEN": KEYS.token,
        }

    def converses(self, request: LoggedRequest) -> bool:
        return BEDROCK_PATH.fullmatch(request.plain_path) is not None and request.method == "POST"

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        if refusal := first_refusal((check_signature, check_bedrock_body, self.refuse_length), request):
            return refusal
        refusal = first_refusal((*MESSAGE_RULES, *self.rules), request)
        return aws_error("ValidationException", refusal.body["error"]["message"]) if refusal else None

    def overflow(self, tokens: int, window: int) -> Refusal:
        said = f"prompt is too long: {tokens} tokens > {window} maximum"
        return aws_error("ValidationException", f"The model returned the following errors: {said}")

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        for value in self.values(played):
            piece = base64.b64encode(json.dumps(value).encode()).decode()
            yield encode_frame(CHUNK_HEADERS, json.dumps({"bytes": piece, "p": "abcdef"}).encode())


class VertexService(AnthropicService):
    """REGION-aiplatform.googleapis.com."""

    name = "vertex"
    model = "vertex:claude-sonnet-4-5"

    def environ(self, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_VERTEX_BASE_URL": url,
            "ANTHROPIC_VERTEX_PROJECT_ID": "a-project",
            "CLOUD_ML_REGION": "europe-west1",
            "GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.a-token",
        }

    def converses(self, request: LoggedRequest) -> bool:
        return VERTEX_PATH.fullmatch(request.plain_path) is not None and request.method == "POST"

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        return first_refusal((check_vertex_body, *MESSAGE_RULES, *self.rules, self.refuse_length), request)


CHUNK_HEADERS: Mapping[str, str] = {
    ":event-type": "chunk",
    ":content-type": "application/json",
    ":message-type": "event",
}


def encode_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of AWS's event stream."""
    head = b"".join(
        struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    begun = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return begun + struct.pack(">I", zlib.crc32(begun))


def aws_error(kind: str, message: str, status: int = 400) -> Refusal:
    return Refusal(status, {"message": message}, {"x-amzn-errortype": f"{kind}:http://internal.amazon.com/"})


def check_signature(request: LoggedRequest) -> Refusal | None:
    """The signature is made again from what arrived: the path with its escapes, the headers, the bytes of the body."""
    given = request.headers.get("authorization", "")
    if given.startswith("Bearer "):
        return None if given == "Bearer ABSK-a-key" else _denied("Authentication failed: API Key is not valid.")
    found = CREDENTIAL.fullmatch(given)
    if found is None:
        return _denied("Missing Authentication Token")
    if (found["key"], found["region"], found["service"]) != (KEYS.key_id, REGION, "bedrock"):
        return _denied("The security token included in the request is invalid.")
    if request.headers.get("x-amz-security-token") != KEYS.token:
        return _denied("The security token included in the request is invalid.")
    signed, required = set(found["signed"].split(";")), {"host", "x-amz-date", "x-amz-security-token"}
    if not required <= signed:
        return _denied("'Host', 'X-Amz-Date' and 'X-Amz-Security-Token' must be signed headers.")
    then = timegm(time.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ"))
    if abs(time.time() - then) > LONGEST_SKEW or not request.headers["x-amz-date"].startswith(found["day"]):
        return _denied("Signature expired.")
    made = sign_request(
        KEYS,
        method=request.method,
        url=Url.parse(f"http://{request.headers['host']}{request.path}"),
        headers=tuple((name, request.headers.get(name, "")) for name in signed - required),
        body=request.raw,
        region=REGION,
        service="bedrock",
        now=then,
    )
    expected = dict(made)["authorization"]
    return None if given == expected else _denied("The request signature we calculated does not match.")


def _denied(message: str) -> Refusal:
    return aws_error("AccessDeniedException", message, 403)


def check_bedrock_body(request: LoggedRequest) -> Refusal | None:
    for name in request.body.keys() & {"model", "stream", "betas"}:
        said = f"Malformed input request: #: extraneous key [{name}] is not permitted, please reformat your input."
        return aws_error("ValidationException", said)
    if request.body.get("anthropic_version") not in ("bedrock-2023-05-31", LATEST_VERSION):
        return aws_error("ValidationException", "anthropic_version: Field required")
    if not isinstance(request.body.get("anthropic_beta", []), list):
        return aws_error("ValidationException", "anthropic_beta: Input should be a valid list")
    found = BEDROCK_PATH.fullmatch(request.plain_path)
    if found is None or "anthropic" not in found["model"]:
        return aws_error("ValidationException", "The provided model identifier is invalid.")
    return None


def check_vertex_body(request: LoggedRequest) -> Refusal | None:
    if request.headers.get("authorization") != "Bearer ya29.a-token":
        said = "Request had invalid authentication credentials. Expected OAuth 2 access token."
        return Refusal(401, [{"error": {"code": 401, "message": said, "status": "UNAUTHENTICATED"}}])
    if "model" in request.body:
        return anthropic_error("model: Extra inputs are not permitted")
    if request.body.get("anthropic_version") not in ("vertex-2023-10-16", LATEST_VERSION):
        return anthropic_error("anthropic_version: Field required")
    if request.body.get("stream") is not True:
        return anthropic_error("stream: Input should be true")
    return None
