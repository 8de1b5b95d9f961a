"""Signing in at a remote server, as the protocol's package offers it. Imported through `lazy_imports.py` only.

The package registers a client, sends the person to the server's page, and
renews what it got. It does not keep when a token expires and where it
is renewed, so that is stored with the tokens. If nobody can be sent to a
page, the connection fails and says what to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import BaseModel, ValidationError

from .callbacks import SignIn
from .config import Remote
from .token_store import TokenFile

CLIENT_NAME: Final = "Ferrule"
NO_ADDRESS: Final = "http://127.0.0.1/callback"
NOBODY: Final = "nobody"
"""Replaces the client if nobody can sign in: a registered one would stay unused."""
_EARLY: Final = 30.0
"""Seconds before its expiry at which a token is renewed: clocks differ."""

M = TypeVar("M", bound=BaseModel)


class NeedsSignIn(Exception):
    """A person has to sign in, and nobody can be asked to."""


class SignInRefused(Exception):
    """The person or the server refused the sign-in."""


class _Storage:
    def __init__(
        self, file: TokenFile, remote: Remote, address: str | None, context: Callable[[], OAuthContext]
    ) -> None:
        self._file = file
        self._remote = remote
        self._address = address
        self._context = context

    async def get_tokens(self) -> OAuthToken | None:
        return _read(OAuthToken, self._file.get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self._context()
        lasts = tokens.expires_in
        ends = None if lasts is None else time.time() + lasts - min(_EARLY, lasts / 2)
        context.token_expiry_time = ends
        self._file.put("tokens", {**_as_json(tokens), "ends": ends})
        self._file.put(
            "discovered",
            {"server": _as_json(context.oauth_metadata), "resource": _as_json(context.protected_resource_metadata)},
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """One that was registered for another redirect address cannot be used."""
        own, found = self._remote.client_id, self._file.get("client") or {}
        fits = self._address is None or self._address in found.get("redirect_uris", ())
        if own is None and found and fits:
            return _read(OAuthClientInformationFull, found)
        spare = NOBODY if self._address is None else None
        name = own or spare
        return None if name is None else OAuthClientInformationFull.model_validate({"client_id": name})

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._file.put("client", _as_json(client_info))

    def recall(self) -> None:
        """What an earlier process stored with the tokens."""
        context = self._context()
        discovered = self._file.get("discovered") or {}
        context.oauth_metadata = _read(OAuthMetadata, discovered.get("server"))
        context.protected_resource_metadata = _read(ProtectedResourceMetadata, discovered.get("resource"))
        ends = (self._file.get("tokens") or {}).get("ends")
        context.token_expiry_time = ends if isinstance(ends, int | float) else None

    def doubt_token(self) -> bool:
        """The server refuses the token before its expiry: whether the next try can renew it."""
        context, kept = self._context(), self._file.get("tokens") or {}
        if not context.can_refresh_token() or not context.is_token_valid():
            return False
        context.token_expiry_time = 1.0
        self._file.put("tokens", {**kept, "ends": 1.0})
        return True


def authorisation(name: str, remote: Remote, tokens: TokenFile, sign_in: SignIn | None) -> OAuthClientProvider:
    """Acts only if the server asks for it."""

    async def send_to(url: str) -> None:
        if sign_in is not None:
            await sign_in.send_to(_with_scopes(url, remote.scopes))
        elif storage.doubt_token():
            raise NeedsSignIn("its token was refused, and will be renewed on the next try")
        else:
            raise NeedsSignIn(f"a person has to sign in first. Run `ferrule mcp test {name}` in a terminal")

    async def wait_for_answer() -> AuthorizationCodeResult:
        if sign_in is None:
            raise NeedsSignIn("a person has to sign in first")
        answer = await sign_in.answer()
        if "code" not in answer:
            why = answer.get("error_description") or answer.get("error") or "no reason given"
            raise SignInRefused(f"the sign-in was refused: {why}")
        return AuthorizationCodeResult.model_validate(dict(answer))

    address = None if sign_in is None else sign_in.address
    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": CLIENT_NAME,
            "redirect_uris": [address or NO_ADDRESS],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            **({"scope": remote.scopes} if remote.scopes else {}),
        }
    )
    storage = _Storage(tokens, remote, address, lambda: provider.context)
    provider = OAuthClientProvider(remote.url, metadata, storage, send_to, wait_for_answer)
    storage.recall()
    return provider


def _with_scopes(url: str, scopes: str | None) -> str:
    """The package asks for what the server names, also where somebody has chosen less.

    >>> _with_scopes("https://a.test/?scope=all&state=x", "read write")
    'https://a.test/?state=x&scope=read+write'
    """
    if not scopes:
        return url
    parts = urlsplit(url)
    query = [(key, value) for key, value in parse_qsl(parts.query) if key != "scope"]
    return parts._replace(query=urlencode([*query, ("scope", scopes)])).geturl()


def _read(model: type[M], found: Any) -> M | None:
    """`None` for a missing or invalid entry."""
    if not found:
        return None
    try:
        return model.model_validate(found)
    except ValidationError:
        return None


def _as_json(value: BaseModel | None) -> dict[str, Any]:
    return {} if value is None else value.model_dump(mode="json", exclude_none=True)
