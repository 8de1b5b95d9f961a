"""A server that wants a sign-in, and the authorization server that it trusts, on one port of this machine.

Registration, authorization with PKCE, tokens and their renewal as the
specification has them; whatever is not as it should be is refused.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

import uvicorn

from tests.mcp.servers.packaged import make

REFUSED = {"error": "access_denied", "error_description": "The person said no."}


@dataclass
class Authorization:
    """What it knows, and what it was asked."""

    url: str = ""
    consents: bool = True
    lasts: int | None = 3600
    """Seconds that a token is good for, as it says."""
    clients: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    access: set[str] = field(default_factory=set[str])
    renewals: set[str] = field(default_factory=set[str])
    asked: list[str] = field(default_factory=list[str])

    async def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Mapping[str, Any]]:
        match method, path:
            case "GET", "/.well-known/oauth-protected-resource/mcp":
                return 200, {"resource": f"{self.url}/mcp", "authorization_servers": [self.url]}
            case "GET", "/.well-known/oauth-authorization-server":
                return 200, {
                    "issuer": self.url,
                    "authorization_endpoint": f"{self.url}/sign-in",
                    "token_endpoint": f"{self.url}/oauth/tokens",
                    "registration_endpoint": f"{self.url}/clients",
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "scopes_supported": ["read", "write"],
                }
            case "POST", "/clients":
                self.asked.append("register")
                return 201, self._registered(json.loads(body))
            case "GET", "/sign-in":
                self.asked.append(f"sign-in for {query.get('scope')}")
                return 302, {"location": self._signed_in(query)}
            case "POST", "/oauth/tokens":
                form = dict(parse_qsl(body.decode()))
                self.asked.append(form["grant_type"])
                return self._tokens(form)
            case _:
                return 404, {}

    def _registered(self, wanted: dict[str, Any]) -> dict[str, Any]:
        client = {**wanted, "client_id": secrets.token_hex(4)}
        self.clients[client["client_id"]] = client
        return client

    def _signed_in(self, query: dict[str, str]) -> str:
        assert query["redirect_uri"] in self.clients[query["client_id"]]["redirect_uris"]
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        if not self.consents:
            return f"{query['redirect_uri']}?{urlencode({**REFUSED, 'state': query['state']})}"
        code = secrets.token_hex(8)
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def _tokens(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"], {})
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            same = all(form[key] == asked.get(key) for key in ("client_id", "redirect_uri"))
            if not same or base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
                return 400, {"error": "invalid_grant"}
        elif form["client_id"] not in self.clients or form["refresh_token"] not in self.renewals:
            return 400, {"error": "invalid_grant"}
        else:
            self.renewals.remove(form["refresh_token"])
        access, renewal = secrets.token_hex(8), secrets.token_hex(8)
        self.access.add(access)
        self.renewals.add(renewal)
        lasts = {} if self.lasts is None else {"expires_in": self.lasts}
        return 200, {"access_token": access, "token_type": "Bearer", "refresh_token": renewal, **lasts}


@asynccontextmanager
async def wanting_a_sign_in() -> AsyncGenerator[Authorization]:
    authorization = Authorization()
    server = uvicorn.Server(uvicorn.Config(_guarded(authorization), host="127.0.0.1", port=0, log_level="critical"))
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)
    authorization.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield authorization
    finally:
        server.should_exit = server.force_exit = True
        await serving


def _guarded(authorization: Authorization) -> Any:
    inner = make().streamable_http_app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await inner(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if scope["path"] == "/mcp" and headers.get("authorization", "").removeprefix("Bearer ") in authorization.access:
            await inner(scope, receive, send)
            return
        body = b""
        while (part := await receive())["type"] == "http.request":
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        query = dict(parse_qsl(scope["query_string"].decode()))
        status, content = 401, {"www-authenticate": "Bearer"}
        if scope["path"] != "/mcp":
            status, content = await authorization.answer(scope["method"], scope["path"], query, body)
        plain = {"content-type": "application/json"} if status < 300 else dict(content)
        head = [(name.encode(), str(value).encode()) for name, value in plain.items()]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": json.dumps(content).encode() if status != 302 else b""})

    return app
