"""Signing in at a remote server, as the protocol's package offers it. Imported through `late.py` only.

The package registers a client, sends the person to the server's page, and
renews what it got. Where nobody can be sent there, the connection fails and
says what to do.
"""

from __future__ import annotations

from typing import Final

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from .config import Remote
from .hooks import SignIn
from .tokens import TokenFile

CLIENT_NAME: Final = "Ferrule"
NO_ADDRESS: Final = "http://127.0.0.1/callback"


class NeedsSignIn(Exception):
    """A person has to sign in, and nobody is there to do it."""


class _Storage:
    def __init__(self, file: TokenFile, remote: Remote) -> None:
        self._file = file
        self._remote = remote

    async def get_tokens(self) -> OAuthToken | None:
        found = self._file.get("tokens")
        return OAuthToken.model_validate(found) if found else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._file.put("tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        found = self._file.get("client")
        if found:
            return OAuthClientInformationFull.model_validate(found)
        if self._remote.client_id is None:
            return None
        return OAuthClientInformationFull.model_validate({"client_id": self._remote.client_id})

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._file.put("client", client_info.model_dump(mode="json", exclude_none=True))


def authorisation(name: str, remote: Remote, tokens: TokenFile, sign_in: SignIn | None) -> OAuthClientProvider:
    """Acts only if the server asks for it."""

    async def send_to(url: str) -> None:
        if sign_in is None:
            raise NeedsSignIn(f"a person has to sign in first. Run `ferrule mcp test {name}` in a terminal")
        await sign_in.send_to(url)

    async def answered() -> AuthorizationCodeResult:
        if sign_in is None:
            raise NeedsSignIn("a person has to sign in first")
        return AuthorizationCodeResult.model_validate(dict(await sign_in.answer()))

    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": CLIENT_NAME,
            "redirect_uris": [NO_ADDRESS if sign_in is None else sign_in.address],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            **({"scope": remote.scopes} if remote.scopes else {}),
        }
    )
    return OAuthClientProvider(remote.url, metadata, _Storage(tokens, remote), send_to, answered)
