"""One simple command, as it would be run."""

from __future__ import annotations

from ..core.values import plain_value
from .shell_state import ShellState
from .shell_words import Word


@plain_value
class Redirection:
    operator: str
    number: str
    """The file descriptor, or the name in braces that gets one; empty for the usual one."""
    target: Word


@plain_value
class Simple:
    """Words, assignments before them, redirections, and the state of the shell when it runs."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...]
    redirections: tuple[Redirection, ...]
    state: ShellState
    source: str
    piped_from: tuple[int, ...] = ()
    """The simple commands before it in its pipeline, by their place in the walk."""
