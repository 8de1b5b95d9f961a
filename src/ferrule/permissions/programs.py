"""What rules and modes need to know about programs by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ..bash_analysis.git_showing import Showing, showing
from ..bash_analysis.names_only import NAMES_ONLY

ACCEPTED: Final = frozenset({"mkdir", "touch", "mv", "cp", "rm", "rmdir", "sed"})
"""Programs that may change files inside the workspace in acceptEdits."""

SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash", "eval"})

_ONLY_EXACTLY: Final = frozenset({"watch", "setsid", "ionice", "flock"})
_FIND_ACTIONS: Final = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
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
        "chmod",
    }
)
_CHANGING_FOLDERS: Final = frozenset({"rm", "cp", "chmod", "chown", "chgrp"})
_CHANGING: Final = _CHANGING_FOLDERS | {"rmdir", "sed", "touch", "tee", "truncate", "shred"}
"""Programs that change the files they are given."""
_RECURSIVE: Final = re.compile(r"-[^-]*[rRa].*|--recursive|--dereference-recursive|--archive", re.DOTALL)
"""Also followed by the value of another option: `grep -rA3`, `cp -rt/tmp/x`."""
_OF_FOLDERS: Final = re.compile(r"-[A-Za-z0-9]*d.*|--directories.*", re.DOTALL)
"""How grep treats folders."""
_OF_A_VARIABLE: Final = re.compile(r"[\"']*\$[A-Za-z_{]")
"""A word that begins with an unknown value, as written."""
_DURATION: Final = re.compile(r"[0-9]*\.?[0-9]+[smhd]?")
_PLAIN_WRAPPERS: Final = frozenset({"time", "nohup", "builtin", "noglob"})


def name_of(argv: Sequence[str]) -> str:
    """The program without its folder.

    >>> name_of(("/usr/bin/curl", "x"))
    'curl'
    """
    return argv[0].rpartition("/")[2] if argv else ""


def unwrap(argv: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The command itself, then the rest of it after each wrapper that only runs another command.

    >>> list(unwrap(("timeout", "5", "nice", "npm", "test")))[-1]
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
    # Remaining options belong to a wrapper that does more than run a command: `command -v`, `xargs -I`.
    return argv if not rest or rest[0].startswith("-") else rest


def _after_options(words: tuple[str, ...], *, takes_value: tuple[str, ...]) -> tuple[str, ...]:
    while words and words[0].startswith("-") and words[0] != "--":
        words = words[2:] if words[0] in takes_value else words[1:]
    return words[1:] if words[:1] == ("--",) else words


def _after_duration(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[1:] if words and _DURATION.fullmatch(words[0]) else ()


def needs_an_exact_rule(argv: Sequence[str]) -> bool:
    """Whether the command can do so much with its arguments that no wildcard may allow them."""
    name = name_of(argv)
    return name in _ONLY_EXACTLY or (name == "find" and any(word in _FIND_ACTIONS for word in argv))


def shows_content(argv: Sequence[str]) -> bool:
    """Whether the command may show more than names."""
    return name_of(argv) not in NAMES_ONLY or needs_an_exact_rule(argv)


def reads_below(argv: Sequence[str]) -> bool:
    """Whether the command may show the content of files below a path that it reads."""
    name = name_of(argv)
    if not shows_content(argv):
        return False
    if name == "git":
        return showing(argv[1:]) is not Showing.NAMES
    if _names_many(argv):
        return True
    if name in ("grep", "egrep", "fgrep"):
        return any(_RECURSIVE.fullmatch(word) or _OF_FOLDERS.fullmatch(word) for word in argv[1:])
    if name == "cp":
        return any(_RECURSIVE.fullmatch(word) for word in argv[1:])
    return name not in _ONE_FILE


def writes_below(argv: Sequence[str]) -> bool:
    """Whether the command may change what is below a path that it writes."""
    name = name_of(argv)
    if name == "mv" or (name in _CHANGING and _names_many(argv)):
        return True
    return name in _CHANGING_FOLDERS and any(_RECURSIVE.fullmatch(word) for word in argv[1:])


def names_put_into(argv: Sequence[str]) -> Iterator[str]:
    """The names that the command may create in a path that it writes, if that is a folder.

    >>> list(names_put_into(("cp", "-v", "a/key", "sub")))
    ['key', 'sub']
    """
    if name_of(argv) in ("cp", "ln"):
        yield from (word.rstrip("/").rpartition("/")[2] for word in argv[1:] if not word.startswith("-"))


def _names_many(argv: Sequence[str]) -> bool:
    """Whether a word of it expands to unknown files: a pattern, or a variable that contains one."""
    return any(_OF_A_VARIABLE.match(word) or any(char in word for char in "*?[") for word in argv[1:])


def removes_files_by_name(argv: Sequence[str]) -> bool:
    """Whether a variable only says in which folder a file is that is removed by its name: `rm -f "$X/log"`."""
    words = [word.strip("\"'") for word in argv[1:]]
    plain = all(re.fullmatch(r"-[fiv]+|--force|--verbose|\$\{?\w+\}?/[\w./-]*\w|[\w][\w./-]*", word) for word in words)
    return name_of(argv) == "rm" and plain and not any(".." in word for word in words)


def removes_what_a_variable_names(argv: Sequence[str]) -> bool:
    """`rm -rf "$X"/*`: if the variable is empty, that is everything."""
    return name_of(argv) in ("rm", "rmdir") and any(word.lstrip("\"'").startswith("$") for word in argv[1:])
