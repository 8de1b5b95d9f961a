"""What a request to a service carries besides its body: keys, a command that gives them, headers of the user's own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

from ..core.model import ModelError
from ..core.threads import in_a_thread
from ..core.values import named_value
from ..host.http.urls import Url
from .model_choice import HELPER_VARIABLE

HEADERS_VARIABLE: Final = "ANTHROPIC_CUSTOM_HEADERS"
TTL_VARIABLE: Final = "CLAUDE_CODE_API_KEY_HELPER_TTL_MS"
OAUTH_VARIABLE: Final = "CLAUDE_CODE_OAUTH_TOKEN"
OAUTH_BETA: Final = "oauth-2025-04-20"
BETA: Final = "anthropic-beta"
USUAL_TTL: Final = 300.0
"""Seconds that a key of a helper is used before the helper is asked again."""
HELPER_SECONDS: Final = 60.0

Headers: TypeAlias = tuple[tuple[str, str], ...]

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OF_THE_CONNECTION: Final = frozenset({"connection", "content-length", "transfer-encoding", "te", "upgrade", "trailer"})
_CLOUDS: Final = {
    "CLAUDE_CODE_USE_BEDROCK": "bedrock",
    "CLAUDE_CODE_USE_VERTEX": "vertex",
    "CLAUDE_CODE_USE_FOUNDRY": "foundry",
}
_NO: Final = frozenset({"", "0", "false", "no", "off"})


@named_value
class AnthropicKeys:
    """What a request is authorised with; a service that needs no key gets none."""

    api_key: str = ""
    bearer: str = ""
    helper: str = ""
    """A command that prints the key."""
    source: str = "none"
    """Where it comes from, for a person."""
    betas: tuple[str, ...] = ()
    """Features that the key needs."""

    def __bool__(self) -> bool:
        return bool(self.api_key or self.bearer or self.helper)


def anthropic_keys(environ: Mapping[str, str]) -> AnthropicKeys:
    """A token and a key go together; then comes the helper, then a token of a subscription."""
    api_key, bearer, helper, oauth = (
        environ.get(name, "").strip()
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", HELPER_VARIABLE, OAUTH_VARIABLE)
    )
    if api_key or bearer:
        source = "ANTHROPIC_API_KEY" if api_key else "ANTHROPIC_AUTH_TOKEN"
        return AnthropicKeys(api_key=api_key, bearer=bearer, source=source)
    if helper:
        return AnthropicKeys(helper=helper, source="apiKeyHelper")
    if oauth:
        return AnthropicKeys(bearer=oauth, source=OAUTH_VARIABLE, betas=(OAUTH_BETA,))
    return AnthropicKeys()


def is_on(environ: Mapping[str, str], variable: str) -> bool:
    """Whether a switch is set.

    >>> is_on({"A": "1"}, "A"), is_on({"A": "false"}, "A"), is_on({}, "A")
    (True, False, False)
    """
    return environ.get(variable, "").strip().lower() not in _NO


def cloud_of(environ: Mapping[str, str]) -> str:
    """The cloud that requests are meant for, and never leave for another: `bedrock`, `vertex`, `foundry`, or empty."""
    return next((cloud for variable, cloud in _CLOUDS.items() if is_on(environ, variable)), "")


def own_headers(environ: Mapping[str, str]) -> Headers:
    """`Name: value`, one on each line of the variable. Raises `ModelError`.

    >>> own_headers({"ANTHROPIC_CUSTOM_HEADERS": "X-Team: blue\\nX-Cost: 7"})
    (('x-team', 'blue'), ('x-cost', '7'))
    """
    return tuple(_parse_lines(environ.get(HEADERS_VARIABLE, "")))


def _parse_lines(text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.replace("\\n", "\n").splitlines(), start=1):
        if not line.strip():
            continue
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not _NAME.fullmatch(name) or not value.isprintable() or not value.isascii():
            raise ModelError(f"{HEADERS_VARIABLE}: line {number} is not a header. Write `Name: value`.", "request")
        if name.lower() in _OF_THE_CONNECTION:
            raise ModelError(f"{HEADERS_VARIABLE}: `{name}` belongs to the connection. Remove it.", "request")
        yield name.lower(), value


def with_own_headers(headers: Headers, own: Headers) -> Headers:
    """A header of the user's replaces ours; features are asked for together.

    >>> with_own_headers((("a", "1"), ("anthropic-beta", "x")), (("a", "2"), ("anthropic-beta", "y")))
    (('anthropic-beta', 'x,y'), ('a', '2'))
    """
    betas = ",".join(value for name, value in (*headers, *own) if name == BETA)
    replaced = {name for name, _ in own} | {BETA}
    kept = tuple(one for one in headers if one[0] not in replaced)
    asked = ((BETA, betas),) if betas else ()
    return (*kept, *asked, *(one for one in own if one[0] != BETA))


class RequestAuthorization(Protocol):
    """Gives each request the headers that authorise it."""

    async def headers(self, url: Url, body: bytes, /) -> Headers:
        """Raises `ModelError`."""
        ...

    def forget(self, status: int | None, /) -> bool:
        """A request with these headers was refused with this status: whether others may be accepted."""
        ...


class KeyCommand:
    """Asks the command for a key, and again when the key is old or was refused."""

    def __init__(
        self, command: str, environ: Mapping[str, str], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._command = command
        self._environ = environ
        self._clock = clock
        self._seconds = _ttl(environ)
        self._key = ""
        self._since = 0.0
        self._asking = asyncio.Lock()

    async def headers(self, _url: Url, _body: bytes, /) -> Headers:
        """Both ways of giving a key: the service behind it is not known. Raises `ModelError`."""
        async with self._asking:
            if not self._key or self._clock() - self._since >= self._seconds:
                self._key = await in_a_thread(_printed_key, self._command, self._environ)
                self._since = self._clock()
        return (("x-api-key", self._key), ("authorization", f"Bearer {self._key}"))

    def forget(self, status: int | None, /) -> bool:
        if status != 401:
            return False
        self._key = ""
        return True


def _ttl(environ: Mapping[str, str]) -> float:
    text = environ.get(TTL_VARIABLE, "").strip()
    return int(text) / 1000 if text.isascii() and text.isdecimal() else USUAL_TTL


def _printed_key(command: str, environ: Mapping[str, str]) -> str:
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=HELPER_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise ModelError(
            f"`apiKeyHelper` gave no key within {HELPER_SECONDS:.0f} seconds. Run it by hand.", "key"
        ) from None
    key = out.decode("utf-8", "replace").strip()
    if process.returncode or not key or not key.isprintable() or not key.isascii():
        said = " ".join(err.decode("utf-8", "replace").split())[:200] or f"exit code {process.returncode}"
        what = said if process.returncode else "what it printed is not a key"
        raise ModelError(f"`apiKeyHelper` failed: {what}. Run it by hand; it must print the key alone.", "key")
    return key
