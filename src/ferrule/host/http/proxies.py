"""Which proxy the environment asks for."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from ...core.values import plain_value
from .message import HttpError
from .urls import Url

DEFAULT_PORT = 8080


@plain_value
class Proxy:
    host: str
    port: int
    authorization: str = ""
    """The value of the Proxy-Authorization header, where the URL has a user name."""


def proxy_for(url: Url, environ: Mapping[str, str]) -> Proxy | None:
    """By `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in lower case or upper case.

    This machine's own loopback is never asked for through a proxy.

    >>> proxy_for(Url.parse("https://example.org/"), {"HTTPS_PROXY": "http://proxy:3128"})
    Proxy(host='proxy', port=3128, authorization='')
    >>> proxy_for(Url.parse("https://a.example.org/"), {"ALL_PROXY": "proxy:3128", "NO_PROXY": ".example.org"})
    """
    text = _variable(environ, f"{url.scheme}_proxy") or _variable(environ, "all_proxy")
    if not text or _is_loopback(url.host) or _is_excepted(url, _variable(environ, "no_proxy")):
        return None
    return _parse(text)


def _variable(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.endswith(".localhost") or host.startswith("127.")


def _is_excepted(url: Url, exceptions: str) -> bool:
    for exception in exceptions.lower().replace(",", " ").split():
        name, _, port = exception.rpartition(":") if exception.count(":") == 1 else (exception, "", "")
        name = name.strip("[]").removeprefix("*").removeprefix(".")
        if port and port != str(url.port):
            continue
        if exception == "*" or (name and (url.host == name or url.host.endswith(f".{name}"))):
            return True
    return False


def _parse(text: str) -> Proxy:
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError as error:
        raise HttpError("proxy", f"The proxy named in the environment is not a valid URL ({error}).") from None
    if parts.scheme != "http" or not parts.hostname:
        raise HttpError("proxy", "The proxy named in the environment must be http://HOST:PORT.")
    credentials = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = f"Basic {b64encode(pair.encode()).decode()}"
    return Proxy(parts.hostname, port or DEFAULT_PORT, credentials)
