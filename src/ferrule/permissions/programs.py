"""What rules and modes must know about programs by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

ACCEPTED: Final = frozenset({"mkdir", "touch", "mv", "cp", "rm", "rmdir", "sed"})
"""Programs that acceptEdits lets change files inside the workspace."""

SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash", "eval"})

_ONLY_EXACTLY: Final = frozenset({"watch", "setsid", "ionice", "flock"})
_FIND_ACTIONS: Final = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
)

_NAMES_ONLY: Final = frozenset(
    {"ls", "cd", "find", "tree", "du", "df", "stat", "test", "[", "[[", "pushd", "popd", "pwd", "dirname", "basename"}
    | {"realpath", "readlink", "mkdir", "touch", "rmdir", "rm", "which", "type", "file"}
)
_ONE_FILE: Final = frozenset(
    {
        "cat",
        "head",
        "tail",
        "wc",
        "sort",
        "uniq",
        "cut",
        "nl",
        "tac",
        "rev",
        "paste",
        "join",
        "comm",
        "fold",
        "fmt",
        "tr",
    }
    | {"column", "od", "xxd", "hexdump", "strings", "less", "more", "md5sum", "sha1sum", "sha256sum", "cksum", "base64"}
    | {
        "jq",
        "yq",
        "awk",
        "gawk",
        "mawk",
        "sed",
        "cmp",
        "bat",
        "expand",
        "unexpand",
        "tee",
        "split",
        "mv",
        "ln",
        "chmod",
    }
)
_CHANGING_FOLDERS: Final = frozenset({"rm", "cp", "chmod", "chown", "chgrp"})
_RECURSIVE: Final = re.compile(r"-[A-Za-z]*[rRa][A-Za-z]*|--recursive|--dereference-recursive|--archive")
_GIT_NAMES: Final = frozenset(
    {
        "status",
        "branch",
        "tag",
        "remote",
        "rev-parse",
        "ls-files",
        "ls-tree",
        "describe",
        "config",
        "version",
        "symbolic-ref",
    }
)
_GIT_LOGS: Final = frozenset({"log", "reflog", "shortlog"})
_PATCH: Final = re.compile(r"-[A-Za-z]*[puLSGc].*|--patch.*|--cc|--pickaxe.*|--word-diff.*|--remerge-diff.*|--ext-diff")
_DURATION: Final = re.compile(r"[0-9]*\.?[0-9]+[smhd]?")
_PLAIN_WRAPPERS: Final = frozenset({"time", "nohup", "builtin", "noglob"})


def name_of(argv: Sequence[str]) -> str:
    """The program without its folder.

    >>> name_of(("/usr/bin/curl", "x"))
    'curl'
    """
    return argv[0].rpartition("/")[2] if argv else ""


def unwrapped(argv: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The command itself, then what is left of it without each wrapper that only passes a command on.

    >>> list(unwrapped(("timeout", "5", "nice", "npm", "test")))[-1]
    ('npm', 'test')
    """
    rest = tuple(argv)
    while rest:
        yield rest
        inner = _inside(rest)
        if inner == rest:
            return
        rest = inner


def _inside(argv: tuple[str, ...]) -> tuple[str, ...]:
    first, rest = argv[0], argv[1:]
    if first in _PLAIN_WRAPPERS:
        rest = rest[1:] if first == "time" and rest[:1] == ("-p",) else rest
    elif first == "command":
        rest = rest[1:] if rest[:1] in (("--",), ("-p",)) else rest
    elif first == "timeout":
        rest = _after_duration(_after_options(rest, takes_value=("-s", "-k")))
    elif first == "nice":
        rest = _after_options(rest, takes_value=("-n",))
    elif first == "stdbuf":
        rest = _after_options(rest, takes_value=("-i", "-o", "-e"))
    elif first != "xargs":
        return argv
    # Options that are left over belong to a wrapper that does more than pass on: `command -v`, `xargs -I`.
    return argv if not rest or rest[0].startswith("-") else rest


def _after_options(words: tuple[str, ...], *, takes_value: tuple[str, ...]) -> tuple[str, ...]:
    while words and words[0].startswith("-") and words[0] != "--":
        words = words[2:] if words[0] in takes_value else words[1:]
    return words[1:] if words[:1] == ("--",) else words


def _after_duration(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[1:] if words and _DURATION.fullmatch(words[0]) else ()


def needs_an_exact_rule(argv: Sequence[str]) -> bool:
    """Whether the command does so much with its arguments that no wildcard may allow them."""
    name = name_of(argv)
    return name in _ONLY_EXACTLY or (name == "find" and any(word in _FIND_ACTIONS for word in argv))


def shows_content(argv: Sequence[str]) -> bool:
    """Whether the command may show more than names."""
    return name_of(argv) not in _NAMES_ONLY or needs_an_exact_rule(argv)


def reads_below(argv: Sequence[str]) -> bool:
    """Whether the command may show what is in the files below a path that it reads."""
    name = name_of(argv)
    if not shows_content(argv):
        return False
    if name == "git":
        return _git_reads_below(argv[1:])
    if any(char in word for word in argv[1:] for char in "*?["):
        return True
    if name in ("grep", "egrep", "fgrep", "cp", "diff"):
        return any(_RECURSIVE.fullmatch(word) for word in argv[1:])
    return name not in _ONE_FILE


def writes_below(argv: Sequence[str]) -> bool:
    """Whether the command may change what lies below a path that it writes."""
    name = name_of(argv)
    return name == "mv" or (name in _CHANGING_FOLDERS and any(_RECURSIVE.fullmatch(word) for word in argv[1:]))


def _git_reads_below(words: Sequence[str]) -> bool:
    command = next((word for word in words if not word.startswith("-") and "/" not in word), "")
    if command in _GIT_LOGS:
        return any(_PATCH.fullmatch(word) for word in words)
    return command not in _GIT_NAMES


def removes_what_a_variable_names(argv: Sequence[str]) -> bool:
    """`rm -rf "$X"/*`: where it is empty, that is everything."""
    return name_of(argv) in ("rm", "rmdir") and any(word.lstrip("\"'").startswith("$") for word in argv[1:])
