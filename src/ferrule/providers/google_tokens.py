"""Access tokens of Google Cloud: from the environment, a file of credentials, or the machine itself.

Keys of service accounts are used with `cryptography`; federated and impersonated identities are read by `google-auth`.
Both come with the extra `vertex`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlencode

from ..core.model import ModelError
from ..core.threads import in_a_thread
from ..core.values import named_value
from ..host.http.http_client import HttpClient
from ..host.http.message import HttpError, HttpRequest, Timeouts
from ..host.http.urls import BadUrl, Url
from .service_access import Headers
from .service_errors import Trouble

TOKEN_VARIABLES: Final = ("GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN")
FILE_VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
TOKEN_URI: Final = "https://oauth2.googleapis.com/token"
METADATA_HOST: Final = "metadata.google.internal"
METADATA_PATH: Final = "/computeMetadata/v1/instance/service-accounts/default/token"
EXTRA: Final = "ferrule[vertex]"
LIFETIME: Final = 3600
EARLY: Final = 60.0
"""Seconds before its end that a token is no longer used."""
TIMEOUTS: Final = Timeouts(connect=10.0, first_byte=30.0, idle=30.0)
MACHINE_TIMEOUTS: Final = Timeouts(connect=3.0, first_byte=5.0, idle=5.0)
"""The machine answers at once, or it is not one of Google's."""
WHAT_TO_DO: Final = (
    f"Run `gcloud auth application-default login`, set {FILE_VARIABLE} to a file of credentials, "
    f"or {TOKEN_VARIABLES[0]} to a token."
)


@named_value
class CredentialsFile:
    path: Path
    content: Mapping[str, Any]

    @property
    def project(self) -> str:
        return str(self.content.get("project_id") or self.content.get("quota_project_id") or "")

    def text(self, name: str) -> str:
        """Raises `ModelError` if it is not there."""
        value = self.content.get(name)
        if not isinstance(value, str) or not value:
            raise ModelError(f"{self.path} has no `{name}`. {WHAT_TO_DO}", "key")
        return value


@named_value
class _Token:
    text: str
    until: float


def find_credentials_file(environ: Mapping[str, str]) -> CredentialsFile | None:
    """The one that is named, or the one that `gcloud` writes. Raises `ModelError` if it cannot be read."""
    named = environ.get(FILE_VARIABLE, "").strip()
    if named:
        path = Path(named).expanduser()
    else:
        folder = environ.get("CLOUDSDK_CONFIG", "").strip() or str(Path(environ.get("HOME", "~"), ".config", "gcloud"))
        path = Path(folder).expanduser() / "application_default_credentials.json"
        if not path.is_file():
            return None
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not valid JSON"
        raise ModelError(f"The credentials in {path} cannot be read: {why}. {WHAT_TO_DO}", "key") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path} does not contain credentials. {WHAT_TO_DO}", "key")
    return CredentialsFile(path=path, content=cast(dict[str, Any], content))


class GoogleToken:
    """A token that is kept while it is valid. Satisfies `RequestAuthorization`."""

    def __init__(
        self,
        environ: Mapping[str, str],
        file: CredentialsFile | None,
        client: HttpClient,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._environ = environ
        self._file = file
        self._client = client
        self._clock = clock
        self._fixed = next(filter(None, (environ.get(name, "").strip() for name in TOKEN_VARIABLES)), "")
        self._token: _Token | None = None
        self._asking = asyncio.Lock()

    async def headers(self, _url: Url, _body: bytes, /) -> Headers:
        async with self._asking:
            if not self._fixed and (self._token is None or self._clock() >= self._token.until):
                self._token = await self._new_token()
        quota = str(self._file.content.get("quota_project_id") or "") if self._file and not self._fixed else ""
        token = self._fixed or (self._token.text if self._token else "")
        return (("authorization", f"Bearer {token}"), *((("x-goog-user-project", quota),) if quota else ()))

    def forget(self, status: int | None, /) -> bool:
        if status != 401 or self._fixed:
            return False
        self._token = None
        return True

    async def _new_token(self) -> _Token:
        if self._file is None:
            return await self._token_of_machine()
        match self._file.content.get("type"):
            case "service_account":
                return await self._ask_for_token(await in_a_thread(_assertion_form, self._file, self._clock()))
            case "authorized_user":
                form = {name: self._file.text(name) for name in ("client_id", "client_secret", "refresh_token")}
                return await self._ask_for_token({"grant_type": "refresh_token", **form})
            case _:
                text = await in_a_thread(_token_by_google_auth, self._file)
                return _Token(text=text, until=self._clock() + LIFETIME / 4)

    async def _ask_for_token(self, form: Mapping[str, str]) -> _Token:
        assert self._file is not None
        uri = str(self._file.content.get("token_uri") or TOKEN_URI)
        try:
            request = HttpRequest(
                url=Url.parse(uri),
                method="POST",
                headers=(("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")),
                body=urlencode(form).encode(),
                timeouts=TIMEOUTS,
            )
        except BadUrl as error:
            raise ModelError(f"`token_uri` in {self._file.path} {error}. {WHAT_TO_DO}", "key") from None
        try:
            status, answer = await _exchange(self._client, request)
        except HttpError as error:
            raise Trouble(f"Google gives no access token. {error}", "network", passing=True) from None
        return self._read_token(status, answer, f"Google gives no access token for {self._file.path}")

    async def _token_of_machine(self) -> _Token:
        host = self._environ.get("GCE_METADATA_HOST", "").strip() or METADATA_HOST
        try:
            request = HttpRequest(
                url=Url.parse(f"http://{host}{METADATA_PATH}"),
                headers=(("metadata-flavor", "Google"),),
                timeouts=MACHINE_TIMEOUTS,
            )
            async with HttpClient({}) as client:  # a proxy is another machine
                status, answer = await _exchange(client, request)
        except (BadUrl, HttpError):
            raise ModelError(f"There are no credentials of Google Cloud. {WHAT_TO_DO}", "key") from None
        return self._read_token(status, answer, "This machine's service account has no access token")

    def _read_token(self, status: int, answer: Mapping[str, Any], failure: str) -> _Token:
        if status >= 500:
            raise Trouble(f"{failure} ({status}).", "overload", passing=True, status=status)
        text, seconds = answer.get("access_token"), answer.get("expires_in")
        if status != 200 or not isinstance(text, str) or not text.isascii() or not text.isprintable():
            why = answer.get("error_description") or answer.get("error") or f"status {status}"
            raise ModelError(f"{failure}: {str(why)[:200]}. {WHAT_TO_DO}", "key")
        lasts = float(seconds) if isinstance(seconds, int | float) else LIFETIME
        return _Token(text=text, until=self._clock() + lasts - EARLY)


async def _exchange(client: HttpClient, request: HttpRequest) -> tuple[int, Mapping[str, Any]]:
    async with client.send(request) as response:
        body = await response.read()
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    return response.status, cast(dict[str, Any], answer) if isinstance(answer, dict) else {}


def _assertion_form(file: CredentialsFile, now: float) -> dict[str, str]:
    """A statement that the service account signs with its own key (RS256)."""
    try:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding, rsa
    except ImportError:
        raise _missing_package(file) from None
    claims = {
        "iss": file.text("client_email"),
        "scope": SCOPE,
        "aud": str(file.content.get("token_uri") or TOKEN_URI),
        "iat": int(now),
        "exp": int(now) + LIFETIME,
    }
    head = {"alg": "RS256", "typ": "JWT", "kid": str(file.content.get("private_key_id") or "")}
    try:
        key = serialization.load_pem_private_key(file.text("private_key").encode(), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise ModelError(f"`private_key` in {file.path} is not an RSA key. {WHAT_TO_DO}", "key")
    text = b".".join(map(_base64, (json.dumps(head).encode(), json.dumps(claims).encode())))
    signature = key.sign(text, padding.PKCS1v15(), hashes.SHA256())
    assertion = b".".join((text, _base64(signature))).decode()
    return {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _token_by_google_auth(file: CredentialsFile) -> str:
    """For kinds of credentials that take several steps: federated and impersonated identities."""
    try:
        package: Any = import_module("google.auth")
        transport: Any = import_module("google.auth.transport.requests")
    except ImportError:
        raise _missing_package(file) from None
    try:
        with warnings.catch_warnings():  # it warns of files from elsewhere; this one is of the user's own choosing
            warnings.simplefilter("ignore", DeprecationWarning)
            found, _ = package.load_credentials_from_file(str(file.path), scopes=[SCOPE])
        found.refresh(transport.Request())
    except package.exceptions.GoogleAuthError as error:
        raise ModelError(
            f"Google gives no access token for {file.path}: {str(error)[:200]}. {WHAT_TO_DO}", "key"
        ) from None
    return str(found.token)


def _missing_package(file: CredentialsFile) -> ModelError:
    kind = file.content.get("type") or "unknown"
    return ModelError(
        f"The credentials in {file.path} are of the type `{kind}`, which is used by packages that are not installed. "
        f"Install `{EXTRA}`, or set {TOKEN_VARIABLES[0]} to a token.",
        "key",
    )
