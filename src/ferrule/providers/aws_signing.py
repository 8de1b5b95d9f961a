"""AWS Signature Version 4 for a request, and where its keys come from.

Keys of the environment are used as they are. Profiles, single sign-on and roles of machines are read by `botocore`,
which comes with the extra `bedrock`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

from ..core.model import ModelError
from ..core.threads import in_a_thread
from ..core.values import named_value
from ..host.http.urls import Url
from .service_access import Headers

ALGORITHM: Final = "AWS4-HMAC-SHA256"
KEY_VARIABLE: Final = "AWS_ACCESS_KEY_ID"
SECRET_VARIABLE: Final = "AWS_SECRET_ACCESS_KEY"
TOKEN_VARIABLE: Final = "AWS_SESSION_TOKEN"
PROFILE_VARIABLE: Final = "AWS_PROFILE"
REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
FILE_VARIABLES: Final = {"AWS_CONFIG_FILE": "config_file", "AWS_SHARED_CREDENTIALS_FILE": "credentials_file"}
EXTRA: Final = "ferrule[bedrock]"


@named_value
class AwsKeys:
    key_id: str
    secret: str
    token: str = ""
    """Of a session, if the keys are temporary."""


def sign_request(
    keys: AwsKeys,
    *,
    method: str,
    url: Url,
    headers: Headers,
    body: bytes,
    region: str,
    service: str,
    now: float,
) -> Headers:
    """The headers to add. `headers` are those of the request that are signed besides host, date and token.

    The path is encoded once more than it is sent, as every service but S3 wants it.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    own = [("x-amz-date", stamp), *([("x-amz-security-token", keys.token)] if keys.token else [])]
    signed: dict[str, str] = {}
    for name, value in sorted([("host", url.authority), *headers, *own], key=lambda pair: pair[0].lower()):
        text = " ".join(value.split())
        signed[name.lower()] = f"{signed[name.lower()]},{text}" if name.lower() in signed else text
    path, _, query = url.target.partition("?")
    names = ";".join(signed)
    canonical = "\n".join(
        (
            method,
            quote(path, safe="/-_.~"),
            "&".join(sorted(query.split("&"))),
            *(f"{name}:{value}" for name, value in signed.items()),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    text = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = hmac.new(_signing_key(keys.secret, scope), text.encode(), hashlib.sha256).hexdigest()
    credential = f"{ALGORITHM} Credential={keys.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return (*own, ("authorization", credential))


def _signing_key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def keys_of_environment(environ: Mapping[str, str]) -> AwsKeys | None:
    key_id, secret, token = (environ.get(name, "").strip() for name in (KEY_VARIABLE, SECRET_VARIABLE, TOKEN_VARIABLE))
    return AwsKeys(key_id=key_id, secret=secret, token=token) if key_id and secret else None


class AwsSignature:
    """Signs each request, with keys that are asked for again when they were refused or have expired."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        region: str,
        service: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._environ = environ
        self._region = region
        self._service = service
        self._clock = clock
        self._fixed = keys_of_environment(environ)
        self._source: Any = None
        """What botocore found; it renews keys that expire."""
        self._asking = asyncio.Lock()

    async def headers(self, url: Url, body: bytes, /) -> Headers:
        keys = self._fixed or await self._found_keys()
        return sign_request(
            keys,
            method="POST",
            url=url,
            headers=(),
            body=body,
            region=self._region,
            service=self._service,
            now=self._clock(),
        )

    def forget(self, status: int | None, /) -> bool:
        """Keys that somebody renewed meanwhile, by signing on again, are found by looking once more."""
        if status not in (401, 403) or self._source is None:
            return False
        self._source = None
        return True

    async def _found_keys(self) -> AwsKeys:
        async with self._asking:
            if self._source is None:
                self._source = await in_a_thread(find_credentials, self._environ)
            frozen = await in_a_thread(_frozen_keys, self._source)
        return AwsKeys(key_id=frozen.access_key, secret=frozen.secret_key, token=frozen.token or "")


def find_region(environ: Mapping[str, str]) -> str:
    """Of the environment, or of the profile if that can be read; empty if there is none."""
    named = next(filter(None, (environ.get(name, "").strip() for name in REGION_VARIABLES)), "")
    if named or keys_of_environment(environ) or (botocore := load_botocore()) is None:
        return named
    try:
        return str(_session(botocore, environ).get_config_variable("region") or "")
    except botocore.exceptions.BotoCoreError as error:
        raise _no_keys(str(error)) from None


def find_credentials(environ: Mapping[str, str]) -> Any:
    """Botocore's, which can be renewed. Raises `ModelError` that says what to set or to install."""
    profile = environ.get(PROFILE_VARIABLE, "").strip()
    botocore = load_botocore()
    if botocore is None:
        if profile:
            raise ModelError(
                f"{PROFILE_VARIABLE} is set to `{profile}`, and profiles are read by a package that is not installed. "
                f"Install `{EXTRA}`, or set {KEY_VARIABLE} and {SECRET_VARIABLE} instead.",
                "key",
            )
        raise _no_keys(f"profiles, single sign-on and roles of machines need `{EXTRA}`, which is not installed")
    try:
        found = _session(botocore, environ).get_credentials()
    except botocore.exceptions.BotoCoreError as error:
        raise _no_keys(str(error)) from None
    if found is None:
        raise _no_keys("no profile, sign-on or role was found")
    return found


def load_botocore() -> Any:
    """`None` if it is not installed."""
    try:
        import_module("botocore.session")
        import_module("botocore.exceptions")
        return import_module("botocore")
    except ImportError:
        return None


def _session(botocore: Any, environ: Mapping[str, str]) -> Any:
    """Of the profile and the files that `environ` names. Roles of machines are found by this process's own."""
    session = botocore.session.Session(profile=environ.get(PROFILE_VARIABLE, "").strip() or None)
    for variable, name in FILE_VARIABLES.items():
        if path := environ.get(variable, "").strip():
            session.set_config_variable(name, path)
    return session


def _frozen_keys(source: Any) -> Any:
    """May ask a service for new ones."""
    botocore: Any = load_botocore()
    try:
        return source.get_frozen_credentials()
    except botocore.exceptions.BotoCoreError as error:
        raise _no_keys(str(error)) from None


def _no_keys(why: str) -> ModelError:
    return ModelError(
        f"There are no AWS keys for Bedrock: {why.rstrip('.')}. Set AWS_BEARER_TOKEN_BEDROCK, or {KEY_VARIABLE} and "
        f"{SECRET_VARIABLE}, or {PROFILE_VARIABLE}; after `aws sso login` ask again.",
        "key",
    )
