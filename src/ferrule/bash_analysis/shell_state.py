"""The state of the shell at one point of a command: its directory, its variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..core.values import plain_value
from .analysis_budget import MAX_VALUE
from .shell_words import Names, Word
from .word_paths import absolute

MAX_BASES = 4

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INFLUENTIAL = re.compile(
    r"""(LD|DYLD|BASH|GIT|SSH|PERL|PYTHON|RUBY|NODE|NPM|YARN|PNPM|JAVA|_JAVA|JDK|LESS|GCONV|GLIBC|MALLOC|RUST|CARGO
    |DOCKER|KUBE|PIP|UV|HIST|TMP|XDG|SUDO|RIPGREP|FZF|BAT|JQ|SYSTEMD|DBUS|GTK|QT|OPENSSL|SSL|CURL|WGET|TAR_|GZIP|XZ
    |ZSTD|POSIX|GREP|MAKE|LLVM|ASAN|GCOV|GLOB|COMP_|READLINE_|MAN_|KRB5|TERMINFO|EPOCH|GO[A-Z]|NLS|DIRSTACK).*
    |_?ENV|IFS|HOME|PWD|OLDPWD|SHELL|SHELLOPTS|VISUAL|BROWSER|EDITOR|CDPATH|TERM|DISPLAY|TAPE|RSH|LANG|LANGUAGE|LC_.*
    |TZDIR|UID|EUID|PPID|_|PIPESTATUS|LINENO|IGNOREEOF|PS[0-4]|PROMPT.*|INPUTRC|ZDOTDIR|RES_OPTIONS|HOSTALIASES|LOCPATH
    |FUNCNAME|FUNCNEST|EXECIGNORE|FIGNORE|FCEDIT|OPTARG|OPTIND|OPTERR|COMPREPLY|TEMP|TEMPDIR|MAIL|MAILCHECK|MAILDIR
    |RANDOM|SRANDOM|SECONDS|TIMEFORMAT|TEXTDOMAIN.*|CC|CXX|CPP|LD|AR|AS
    |(http|https|ftp|all|no)_proxy
    |.*(PATH|PAGER|EDITOR|OPTIONS|OPTS|FLAGS|CONFIG|COMMAND|PROXY|_RC|SHELL|_HOOKS?|PROGRAM|PRELOAD|_HOME|ASKPASS|BROWSER
    |WRAPPER|LINKER)""",
    re.VERBOSE,
)
"""Variables that may change what programs do, or what the shell does. Meant to be too many rather than too few."""
_QUIET = frozenset(
    {"LANG", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "LANGUAGE", "TZ", "NO_COLOR"}
    | {"FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "TERM", "COLORTERM", "CI", "DEBUG", "VERBOSE"}
    | {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "NODE_ENV", "RUST_BACKTRACE", "RUST_LOG", "LS_COLORS"}
    | {"TIME_STYLE", "BLOCK_SIZE", "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT"}
)
"""Variables known to change only how output looks."""
_PAGERS = frozenset({"PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER"})
"""Variables that name a program; `cat` is harmless, and commonly used to disable a pager."""
_SHORT_VALUE = re.compile(r"[A-Za-z0-9_.,:@+-]*")
_UNFAMILIAR = re.compile(r"[A-Za-z][A-Za-z0-9]*")


@plain_value
class ShellState:
    bases: tuple[str, ...]
    """The directories the shell may be in; empty if unknown."""
    variables: Mapping[str, Word]
    home: str
    functions: frozenset[str] = frozenset()
    """Names that the command itself defines."""
    in_function: bool = False
    poison: str = ""
    """Why nothing that follows can be known; empty if it can."""

    @property
    def names(self) -> Names:
        return Names(self.variables, self.home, self.bases[0] if len(self.bases) == 1 else None)

    def move_to(self, word: Word) -> ShellState:
        """After a change of directory that succeeded."""
        if word.text is None or word.text in ("-", "") or not self.bases:
            known = word.text is not None and word.text.startswith("/")
            return replace(self, bases=(absolute(word.text or "/", "/"),) if known else ())
        return replace(self, bases=tuple(dict.fromkeys(absolute(word.text, base) for base in self.bases)))

    def assign(self, name: str, value: Word) -> ShellState:
        if not _PLAIN_NAME.fullmatch(name):
            return self.poison_with(f"{name} is set")
        if len(value.text or "") > MAX_VALUE:
            value = Word(None, source=f"${name}")
        state = replace(self, variables={**self.variables, name: value})
        return state.poison_with(f"{name} is set") if is_influential(name) else state

    def forget(self, *names: str) -> ShellState:
        """After something gave these variables unknown values; all of them if none is named."""
        left = {} if not names else {name: value for name, value in self.variables.items() if name not in names}
        return replace(self, variables=left)

    def lose_track(self) -> ShellState:
        """After something that may have moved the shell and set any variable."""
        return replace(self, variables={}, bases=())

    def poison_with(self, reason: str) -> ShellState:
        return self if self.poison else replace(self, poison=reason)


def join_states(one: ShellState, other: ShellState) -> ShellState:
    """What is certain whichever of two states the shell is in."""
    if one is other:
        return one
    variables = {name: value for name, value in one.variables.items() if other.variables.get(name) == value}
    bases = tuple(dict.fromkeys((*one.bases, *other.bases))) if one.bases and other.bases else ()
    return ShellState(
        bases if len(bases) <= MAX_BASES else (),
        variables,
        one.home,
        one.functions | other.functions,
        one.in_function or other.in_function,
        one.poison or other.poison,
    )


def is_influential(name: str) -> bool:
    """
    >>> is_influential("LD_PRELOAD"), is_influential("NO_COLOR"), is_influential("count")
    (True, False, False)
    """
    return name not in _QUIET and _INFLUENTIAL.fullmatch(name) is not None


def is_quiet(name: str, value: Word) -> bool:
    """Whether this variable does not change what a program does.

    >>> is_quiet("LANG", Word.of_text("C")), is_quiet("PAGER", Word.of_text("sh"))
    (True, False)
    """
    if name in _PAGERS:
        return value.text in ("cat", "")
    return name in _QUIET and value.text is not None and _SHORT_VALUE.fullmatch(value.text) is not None


def is_unfamiliar_but_plain(name: str, value: Word) -> bool:
    """A variable that no known program uses, with a value that is neither a path nor a command."""
    return (
        _UNFAMILIAR.fullmatch(name) is not None
        and not is_influential(name)
        and value.text is not None
        and _SHORT_VALUE.fullmatch(value.text) is not None
    )
