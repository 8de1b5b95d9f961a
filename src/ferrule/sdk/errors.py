"""What a program that holds a conversation may have to catch. Every message says what happened, then what to do."""

from __future__ import annotations


class SdkError(Exception):
    """The root of these."""


class CannotOpen(SdkError):
    """A conversation that cannot be had as it was asked for."""


class NotConnected(SdkError):
    """A client was used before `connect` or after `disconnect`."""


class NotDone(SdkError):
    """Something that was asked of a running conversation and cannot be done."""
