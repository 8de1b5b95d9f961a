"""What a program that holds a conversation may have to catch. Every message says what happened, then what to do."""

from __future__ import annotations


class SdkError(Exception):
    """The base class of these errors."""


class CannotOpen(SdkError):
    """A conversation cannot be opened as requested."""


class NotConnected(SdkError):
    """A client was used before `connect` or after `disconnect`."""


class NotDone(SdkError):
    """A request to a running conversation cannot be carried out."""
