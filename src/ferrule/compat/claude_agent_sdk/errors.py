"""The errors that programs catch, and the translation of our own."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import NoReturn

from ...sdk.errors import CannotOpen, NotConnected, SdkError


class ClaudeSDKError(Exception):
    """The base class of these errors."""


class CLIConnectionError(ClaudeSDKError):
    """No conversation is open: it cannot be opened as requested, or was not connected."""


class CLINotFoundError(CLIConnectionError):
    """Never raised: no other program is needed."""

    def __init__(self, message: str = "Claude Code not found", cli_path: str | None = None) -> None:
        super().__init__(f"{message}: {cli_path}" if cli_path else message)


class ProcessError(ClaudeSDKError):
    """Never raised: no other process is used."""

    def __init__(self, message: str, exit_code: int | None = None, stderr: str | None = None) -> None:
        self.exit_code = exit_code
        self.stderr = stderr
        super().__init__(message)


class ResultError(ProcessError):
    """Never raised: the `ResultMessage` of a prompt says how it ended."""


class CLIJSONDecodeError(ClaudeSDKError):
    """Never raised: nothing is sent as JSON."""

    def __init__(self, line: str, original_error: Exception) -> None:
        self.line = line
        self.original_error = original_error
        super().__init__(f"not JSON: {line[:100]}")


class NotBuilt(ClaudeSDKError, NotImplementedError):
    """Something that the other library can do and this one cannot, or not yet."""


class FilesLeft(ClaudeSDKError):
    """Our addition: files that `rewind_files` did not touch, each with the reason. All others are restored."""

    def __init__(self, left: Mapping[str, str]) -> None:
        self.left = dict(left)
        files = "\n".join(f"{path}: {why}" for path, why in left.items())
        super().__init__(f"Some files were not restored; review them, or give force=True.\n{files}")


@contextmanager
def in_their_words() -> Generator[None]:
    """Translates the errors of our own client to those that programs catch."""
    try:
        yield
    except (CannotOpen, NotConnected) as error:
        raise CLIConnectionError(str(error)) from error
    except SdkError as error:
        raise ClaudeSDKError(str(error)) from error


def not_built(name: str) -> Callable[..., NoReturn]:
    """A placeholder that can be imported, and raises when it is used."""

    def refuse(*args: object, **options: object) -> NoReturn:
        raise NotBuilt(f"`{name}` is not available in this version. See docs/sdk.md for what is.")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse
