"""What went wrong with a service, as text for a person, and whether to retry."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, cast

from ..core.model import FailureKind, ModelError
from ..core.values import named_value
from ..host.http.message import Headers, HttpError
from ..host.http.urls import Url
from .refusals import is_about_images, is_overflow, window_in

MOST_QUOTED = 400
_NO_KEY = r"api[ _]key (not valid|expired|not found)|api_key_invalid|invalid api key"
_NO_CREDIT = r"insufficient_quota|credit balance|billing|payment"


@named_value
class ServiceAddress:
    """The service and its URL."""

    name: str
    url: Url
    headers: tuple[tuple[str, str], ...]
    model: str
    key_variable: str
    url_variable: str
    wire: str = ""
    """The name of the API's format, such as `chat`."""

    @property
    def origin(self) -> str:
        """Where opaque fields come from. Another host, or another format of the same one, could not read them."""
        return f"{self.wire}@{self.url.authority}"


class Trouble(ModelError):
    """A `ModelError`, and whether a retry is worthwhile."""

    def __init__(
        self,
        message: str,
        kind: FailureKind,
        *,
        passing: bool = False,
        wait: float | None = None,
        status: int | None = None,
        said: str = "",
        window: int | None = None,
    ) -> None:
        super().__init__(message, kind, status=status, window=window)
        self.passing = passing
        """Whether it may be temporary."""
        self.wait = wait
        """How many seconds the service asks to wait."""
        self.said = said
        """The service's own words, with the type and code it gave them."""


def cut(service: ServiceAddress, why: str = "") -> Trouble:
    return Trouble(f"{service.name} broke off its answer{f' ({why})' if why else ''}.", "cut", passing=True)


def unreadable(service: ServiceAddress, text: str) -> Trouble:
    return Trouble(f"{service.name} sent an invalid response: {_short(text)}.", "answer", passing=True)


def empty(service: ServiceAddress) -> Trouble:
    return Trouble(f"{service.name} sent an empty answer.", "answer", passing=True)


def unreachable(service: ServiceAddress, error: HttpError) -> Trouble:
    match error.kind:
        case "resolve" | "connect" | "timeout" | "closed":
            return Trouble(f"{service.name} cannot be reached. {error}", "network", passing=True)
        case "url":
            hint = f"Check {service.key_variable} and {service.url_variable}."
            return Trouble(f"{service.name} cannot be used. {error} {hint}", "key")
        case "tls" | "proxy":
            hint = f"Check {service.url_variable}, the proxy variables and the certificates of this machine."
            return Trouble(f"{service.name} cannot be reached. {error} {hint}", "network")
        case "protocol":
            return Trouble(f"{service.name} did not answer with HTTP. {error}", "answer", passing=True)
        case "too_large":
            return Trouble(f"{service.name} answered with too much. {error}", "answer")


def trouble_of_status(service: ServiceAddress, status: int, headers: Headers, body: bytes, *, now: float) -> Trouble:
    """An unsuccessful response."""
    said = ErrorReport.of(body)
    trouble = _by_status(service, status, said)
    wait = _wait(headers, now) or _wait_in(body)
    passing = trouble.passing and headers.get("x-should-retry") != "false"
    return Trouble(
        str(trouble),
        trouble.kind,
        passing=passing,
        wait=wait,
        status=status,
        said=said.words,
        window=trouble.window,
    )


def trouble_of_report(service: ServiceAddress, body: Any) -> Trouble:
    """An error that arrived instead of a message."""
    said = ErrorReport.of_value(body)
    statuses = {
        "overloaded_error": 529,
        "rate_limit_error": 429,
        "rate_limit_exceeded": 429,
        "authentication_error": 401,
        "permission_error": 403,
        "not_found_error": 404,
        "invalid_request_error": 400,
        "request_too_large": 413,
        "billing_error": 402,
        "insufficient_quota": 402,
    }
    code = said.code if said.code.isdigit() else ""
    return _by_status(service, statuses.get(said.type) or int(code or 0) or statuses.get(said.code, 500), said)


@named_value
class ErrorReport:
    """A service's description of an error, in any of the common formats."""

    message: str
    type: str = ""
    code: str = ""
    window: int | None = None
    """The window, if it is a field of its own."""

    @classmethod
    def of(cls, body: bytes) -> ErrorReport:
        try:
            return cls.of_value(json.loads(body))
        except (ValueError, RecursionError):
            return cls(message=_short(body.decode("utf-8", "replace")))

    @classmethod
    def of_value(cls, value: Any) -> ErrorReport:
        """
        >>> ErrorReport.of_value({"error": {"type": "overloaded_error", "message": "Overloaded"}}).type
        'overloaded_error'
        >>> ErrorReport.of_value({"error": "model not found"}).message
        'model not found'
        """
        if isinstance(value, list) and value:  # as in Google's streams
            return cls.of_value(cast(list[Any], value)[0])
        if not isinstance(value, dict):
            return cls(message=_short(str(cast(object, value))))
        outer = cast(dict[str, Any], value)
        error: Any = outer.get("error", outer)
        if not isinstance(error, dict):
            return cls(message=_short(str(cast(object, error))))
        inner = cast(dict[str, Any], error)
        message: object = inner.get("message") or inner.get("detail") or outer
        return cls(
            message=_short(message if isinstance(message, str) else json.dumps(message, default=str)),
            type=str(inner.get("type") or ""),
            code=str(inner.get("code") or ""),
            window=window if isinstance(window := inner.get("n_ctx"), int) else None,
        )

    @property
    def is_about_credit(self) -> bool:
        return bool(re.search(_NO_CREDIT, self.words, re.IGNORECASE))

    @property
    def is_about_key(self) -> bool:
        return bool(re.search(_NO_KEY, self.words, re.IGNORECASE))

    @property
    def words(self) -> str:
        return f"{self.type} {self.code} {self.message}"


def _by_status(service: ServiceAddress, status: int, said: ErrorReport) -> Trouble:
    quoted = f"{said.message} ({status})" if said.message else f"status {status}"
    name = service.name
    if is_overflow(status, said.words):
        window = said.window or window_in(said.words)
        return Trouble(f"The conversation is too long for {service.model}: {quoted}.", "overflow", window=window)
    if is_about_images(status, said.words):
        return Trouble(f"{name} does not take a picture or document of the conversation: {quoted}.", "images")
    if status == 402 or (status in (400, 403, 429) and said.is_about_credit):
        return Trouble(f"{name} requires payment: {quoted}. Check the account's credit and limits.", "limit")
    if status in (401, 403) or (status == 400 and said.is_about_key):
        return Trouble(f"{name} does not accept the key: {quoted}. Check {service.key_variable}.", "key")
    if status == 404 and "model" in said.message.lower():
        return Trouble(f'{name} has no model "{service.model}": {quoted}. Choose another with --model.', "request")
    if status == 404 or 300 <= status < 400:
        return Trouble(f"No model answers at {service.url} ({status}). Check {service.url_variable}.", "request")
    if status == 429:
        return Trouble(f"{name} accepts no more requests for now: {quoted}.", "limit", passing=True)
    if status in (408, 409) or status >= 500:
        return Trouble(f"{name} has an internal error: {quoted}.", "overload", passing=True)
    return Trouble(f"{name} refuses the request: {quoted}.", "request")


def _wait(headers: Headers, now: float) -> float | None:
    """Seconds to wait before a retry, if the service says so."""
    for text, scale in ((headers.get("retry-after-ms"), 0.001), (headers.get("retry-after"), 1.0)):
        if re.fullmatch(r"\d+(\.\d+)?", text.strip()):
            return float(text) * scale
        try:
            return max(0.0, _http_date(text.strip()) - now)
        except (ValueError, OverflowError):
            continue
    return None


def _wait_in(body: bytes) -> float | None:
    """What Google says in the body of its refusal.

    >>> _wait_in(b'{"error": {"details": [{"retryDelay": "34.5s"}]}}')
    34.5
    """
    found = re.search(rb'"retryDelay":\s*"(\d+(?:\.\d+)?)s"', body)
    return float(found[1]) if found else None


def _http_date(text: str) -> float:
    """Seconds since 1970. Raises `ValueError`."""
    return datetime.strptime(text, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC).timestamp()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_QUOTED else f"{line[:MOST_QUOTED]}…"
