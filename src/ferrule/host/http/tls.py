"""TLS, loaded by the first https URL: the certificates alone take longer to read than a start may last."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssl import SSLContext


class Tls:
    """One context for all connections, made when it is first needed."""

    def __init__(self, make: Callable[[], SSLContext] | None = None) -> None:
        self._make = make or _default_context

    @cached_property
    def context(self) -> SSLContext:
        return self._make()


def _default_context() -> SSLContext:
    import ssl

    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def is_untrusted(error: OSError) -> bool:
    """Whether the TLS library, and not the network, ended the connection."""
    return type(error).__module__ == "ssl"
