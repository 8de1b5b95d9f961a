"""What a shell builtin does to the shell."""

from __future__ import annotations

import re

from .shell_state import ShellState, join_states
from .shell_words import Word
from .syntax import Simple

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
_UNSETTLING = frozenset(
    {"eval", "source", ".", "mapfile", "readarray", "getopts", "let", "exec", "trap", "enable", "hash", "complete"}
    | {"compopt", "bind", "alias", "unalias", "shopt", "set", "popd", "dirs", "coproc", "shift", "fc", "history"}
)
"""Commands that may change what any later word or command means."""


def after(simple: Simple, state: ShellState) -> tuple[ShellState, ShellState]:
    """The state after a command whether or not it succeeded, and the state if it did."""
    words = _unwrap(simple.words)
    if not words:
        for name, value in simple.assignments:
            state = state.assign(name, value)
        return _always(state)
    name = words[0].text
    if name is None:
        return _always(state.lose_track().poison_with(f"{words[0].shown} may be any command"))
    if name in ("cd", "pushd"):
        return _change_directory(words, state)
    if name in _DECLARING:
        return _always(_declare(words, state))
    if name == "read":
        return _always(_read(words, state))
    if name == "unset":
        return _always(_unset(words, state))
    if name == "printf" and any(word.text is None or word.text.startswith("-v") for word in words[1:2]):
        return _always(state.forget())
    if name in _UNSETTLING:
        return _always(state.lose_track().poison_with(f"`{name}` may change what commands mean"))
    if name in state.functions:
        return _always(state.lose_track())
    return _always(state)


def _always(state: ShellState) -> tuple[ShellState, ShellState]:
    return state, state


def _unset(words: tuple[Word, ...], state: ShellState) -> ShellState:
    names = [word.text for word in words[1:] if word.text is not None and _NAME.fullmatch(word.text)]
    if len(names) < len(words) - 1:
        return state.forget().poison_with("something is unset")
    for name in names:
        state = state.assign(name, Word(None, source=f"${name}"))
    return state


def _unwrap(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Without `command`, `builtin` and `time`, which run a builtin in this same shell."""
    while len(words) > 1 and words[0].text in ("command", "builtin", "time", "--", "-p"):
        words = words[1:]
    return words


def _change_directory(words: tuple[Word, ...], state: ShellState) -> tuple[ShellState, ShellState]:
    given = [word for word in words[1:] if word.text not in ("-P", "-L", "-e", "-@", "--")]
    if len(given) > 1 or (given and given[0].many):
        return _always(state.lose_track())
    if not given and words[0].text == "pushd":
        return _always(state.lose_track())
    target = given[0] if given else Word.of_text(state.home)
    if (target.text or "").startswith(("+", "-")):
        target = Word(None)
    moved = state.move_to(target)
    return join_states(state, moved), moved


def _declare(words: tuple[Word, ...], state: ShellState) -> ShellState:
    for word in words[1:]:
        if word.text is None:
            return state.lose_track().poison_with("a variable is declared whose name is not known")
        name, equals, value = word.text.partition("=")
        if equals:
            state = state.assign(name, Word.of_text(value))
        elif not word.text.startswith("-") and not _NAME.fullmatch(name):
            return state.lose_track().poison_with("something is declared")
    return state


def _read(words: tuple[Word, ...], state: ShellState) -> ShellState:
    names = [word.text for word in words[1:] if word.text is not None and _NAME.fullmatch(word.text)]
    certain = all(word.text is not None for word in words)
    for name in names:
        state = state.assign(name, Word(None, source=f"${name}"))
    return state if certain else state.forget().poison_with("what `read` sets is not known")
