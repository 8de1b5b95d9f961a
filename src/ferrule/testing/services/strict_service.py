"""What the model server needs to know of a service: its paths, its rules, and the form of its stream.

A service keeps no state. What it wants back from a client (a signature, reasoning) is derived from what it sent, with
`seal`, so that it can check a conversation that began in another process or was taken from a transcript.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Final, TypeAlias, cast

from ...providers.script import ScriptedTurn

BYTES_PER_TOKEN: Final = 4
TOKENS_PER_PICTURE: Final = 1600
DATA: Final = re.compile(rb"[A-Za-z0-9+/=]{4096,}")
"""Bytes of a picture or document in base64."""


@dataclass(frozen=True)
class LoggedRequest:
    path: str
    """With its query."""
    headers: Mapping[str, str]
    """By their names in lower case."""
    raw: bytes
    method: str = "POST"

    @cached_property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def plain_path(self) -> str:
        return self.path.partition("?")[0]


@dataclass(frozen=True)
class Refusal:
    """An answer without a message, in the words of the vendor."""

    status: int
    body: Any
    """A string as it is, anything else as JSON."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class PlayedTurn:
    """A turn of the script that answers a request."""

    turn: ScriptedTurn
    place: int
    """Its index in the script."""
    results: str
    """The text of the last results, for `fill_found`."""
    request: LoggedRequest


Rule: TypeAlias = Callable[[LoggedRequest], Refusal | None]
"""`None` if the request is as the service wants it."""


class StrictService(ABC):
    """One service: `ModelServer.playing(script, service=...)`.

    A subclass says what is special about its vendor and names the source of each rule.
    """

    name: ClassVar[str]
    """As in `SERVICES`."""
    model: ClassVar[str]
    """A name for `open_model` that this service would serve."""
    content_type: ClassVar[str] = "text/event-stream"
    garbage: ClassVar[bytes] = b"data: {this is not JSON\n\n"
    """What a scripted fault sends in place of an event."""

    def __init__(self, *, window: int | None = None) -> None:
        """A request of more tokens than `window` is too long, by `count_tokens`."""
        self.window = window

    @abstractmethod
    def environ(self, url: str) -> dict[str, str]:
        """The variables with which Ferrule asks this service at the URL of the model server."""

    @abstractmethod
    def converses(self, request: LoggedRequest) -> bool:
        """Whether the request asks for a turn; by its path."""

    @abstractmethod
    def refuse(self, request: LoggedRequest) -> Refusal | None:
        """What the vendor would answer in place of a turn. A refused request uses up no turn of the script."""

    @abstractmethod
    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        """The turn as the vendor streams it. Raises `ModelError` where `$found` finds nothing."""

    @abstractmethod
    def results(self, request: LoggedRequest) -> str:
        """The text of the results after the model's last message."""

    @abstractmethod
    def overflow(self, tokens: int, window: int) -> Refusal:
        """How the vendor says that a request of so many tokens is too long."""

    def refuse_length(self, request: LoggedRequest) -> Refusal | None:
        """A rule."""
        tokens = count_tokens(request)
        return self.overflow(tokens, self.window) if self.window is not None and tokens > self.window else None

    def describe(self, request: LoggedRequest) -> Any:
        """The JSON for a path that is about models, such as `/v1/models`; `None` where there is no such path."""
        return None


def count_tokens(request: LoggedRequest) -> int:
    """An estimate: four bytes each, and for pictures and documents as many as a large picture has."""
    text, count = DATA.subn(b"", request.raw)
    return len(text) // BYTES_PER_TOKEN + count * TOKENS_PER_PICTURE


def first_refusal(rules: Iterator[Rule] | tuple[Rule, ...], request: LoggedRequest) -> Refusal | None:
    return next((refusal for rule in rules if (refusal := rule(request))), None)


def seal(*content: Any) -> str:
    """A signature of what was sent: whoever sends back something else, or nothing, is refused."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def dig(value: Any, *names: str) -> Any:
    """What is below these keys; `None` where one is missing.

    >>> dig({"a": {"b": 1}}, "a", "b"), dig({"a": None}, "a", "b")
    (1, None)
    """
    for name in names:
        if not isinstance(value, dict):
            return None
        value = cast(dict[str, Any], value).get(name)
    return value
