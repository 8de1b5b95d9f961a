"""The files of a folder that a command uses, and the parts of a command whose files cannot be found.

A file is considered named if any word of the command could refer to it: below
the start folder, or below any folder of the project that the command names, as
`cd` might go there. Naming too much is harmless: a change to such a file is then
treated as a change of the command.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Final

PROJECT_VARIABLES: Final = ("CLAUDE_PROJECT_DIR", "FERRULE_PROJECT_DIR")
MOST_NAMED: Final = 64
"""Words of one command that are looked up as files."""
MOST_BASES: Final = 16
"""Folders in which a word is looked up."""
MOST_MATCHES: Final = 256
"""Files that one pattern may mean."""

_FOLDER: Final = re.compile(
    r"\$(?:(?:{names})\b|\{{(?:{names})(?::?[-=+?][^}}]*)?\}})|\$\(\s*(?:pwd|git\s+rev-parse\s+--show-toplevel)\s*\)|`pwd`".format(
        names="|".join((*PROJECT_VARIABLES, "PWD"))
    )
)
_SPLIT: Final = re.compile(r"[\s\"'`;|&()<>=,]+")
_WILD: Final = re.compile(r"[*?\[]")
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ENTRY_NAMES: Final = ("__main__.py", "index.js", "index.mjs", "index.cjs", "package.json")
"""Files that interpreters run when given a folder."""
_SUFFIXES: Final = (".js", ".mjs", ".cjs", ".py")
"""Suffixes that interpreters try after a name."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_UNKNOWN: Final = re.compile(r"[$`]")
_BEFORE: Final = "! { } if then elif else fi do done while until time exec command env nohup nice sudo timeout builtin"
_SHELL_NAMES: Final = "sh bash dash zsh ksh ash"
_OTHERS: Final = "source . node deno bun ruby perl php lua pwsh"
_RUNNER_NAMES: Final = """
    make gmake just ninja rake task invoke inv tox nox pytest cargo go mvn mvnw gradle gradlew dotnet swift sbt lein mix
    npm npx pnpm pnpx yarn yarnpkg bunx uv uvx pipx poetry pipenv pdm hatch rye conda bundle composer artisan
    docker docker-compose podman pre-commit lefthook husky turbo nx lerna bazel bazelisk cmake ctest meson
    jest vitest mocha eslint prettier webpack vite rollup gulp grunt xargs parallel eval
"""
_PASSED_OVER: Final = frozenset(_BEFORE.split())
_SHELLS: Final = frozenset(_SHELL_NAMES.split())
_INTERPRETERS: Final = _SHELLS | frozenset(_OTHERS.split())
_RUNNERS: Final = frozenset(_RUNNER_NAMES.split())
"""Programs that run whatever some file of the project specifies."""
_RUNNING_OPTIONS: Final = {"find": ("-exec", "-execdir", "-ok", "-okdir"), "fd": ("-x", "-X", "--exec")}
_DEEPEST: Final = 4


def paths_named(command: str, bases: Sequence[str], cwd: str, holds: Callable[[str], bool]) -> Iterator[str]:
    """The paths in the folder that the words of a command could name, existing or not."""
    words = [form for word in _words_of(_with_folder(command, cwd))[:MOST_NAMED] for form in _expand(word)]
    folders = list(bases)
    for word in (*words, *words):  # a folder may be known only after a word that depends on it
        for base in tuple(folders):
            path = os.path.normpath(os.path.join(base, os.path.expanduser(word)))
            if len(folders) < MOST_BASES and path not in folders and holds(path) and os.path.isdir(path):
                folders.append(path)
    for word in words:
        for base in folders:
            path = os.path.normpath(os.path.join(base, os.path.expanduser(word)))
            if holds(path):
                yield from _paths_meant(path, word)


def uncovered_parts(command: str, cwd: str, depth: int = 0) -> Iterator[str]:
    """The simple commands that are controlled by files which cannot be found from the text."""
    try:
        tokens = _tokens(_with_folder(command, cwd))
    except ValueError:
        yield command
        return
    if len(_words_of(command)) > MOST_NAMED:
        yield command
    for simple in _simple_commands(tokens):
        program, rest = os.path.basename(simple[0]), simple[1:]
        if program in _SHELLS and "-c" in rest[:-1] and depth < _DEEPEST:
            yield from uncovered_parts(rest[rest.index("-c") + 1], cwd, depth + 1)
        elif _leads_on(simple[0], program, rest):
            yield " ".join(simple)


def _leads_on(written: str, program: str, rest: Sequence[str]) -> bool:
    if _UNKNOWN.search(written) or program in _RUNNERS:
        return True
    if any(option in rest for option in _RUNNING_OPTIONS.get(program, ())):
        return True
    if program.startswith("python"):
        return "-m" in rest or _first_is_unknown(rest)
    return program in _INTERPRETERS and _first_is_unknown(rest)


def _first_is_unknown(rest: Sequence[str]) -> bool:
    operands = [word for word in rest if not word.startswith("-")]
    return bool(operands) and "-c" not in rest and "-e" not in rest and _UNKNOWN.search(operands[0]) is not None


def _with_folder(command: str, cwd: str) -> str:
    return _FOLDER.sub(lambda _: cwd, command)


def _tokens(command: str) -> list[str]:
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def _simple_commands(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Each command from its program on, without what only precedes it."""
    current: list[str] = []
    for token in (*tokens, ";"):
        if token and not token.strip(";&|()"):
            if current:
                yield current
            current = []
        elif current or not _is_passed_over(token):
            current.append(token)


def _is_passed_over(token: str) -> bool:
    """What may come before a program: a keyword, an assignment, a wrapper with its options and numbers."""
    return token in _PASSED_OVER or bool(_ASSIGNMENT.match(token)) or token[:1] == "-" or token[:1].isdigit()


def _paths_meant(path: str, word: str) -> Iterator[str]:
    if _WILD.search(word):
        yield os.path.dirname(path)
        yield from sorted(glob.glob(path, recursive=True))[:MOST_MATCHES]
        return
    yield path
    if os.path.isdir(path):
        yield from (os.path.join(path, name) for name in _ENTRY_NAMES)
    elif "/" in word and not os.path.splitext(path)[1]:
        yield from (f"{path}{suffix}" for suffix in _SUFFIXES)


def _expand(word: str) -> list[str]:
    """
    >>> _expand("tools/{a,b}.sh")
    ['tools/a.sh', 'tools/b.sh']
    """
    found = [word]
    for _ in range(_DEEPEST):
        found = [
            one[: braces.start()] + part + one[braces.end() :] if braces else one
            for one in found
            for braces in (_BRACES.search(one),)
            for part in (braces[1].split(",") if braces else ("",))
        ][:MOST_NAMED]
    return found


def _words_of(command: str) -> list[str]:
    """Split as a shell does, and at every character that could end a word: commands may be nested."""
    try:
        quoted = shlex.split(command)
    except ValueError:
        quoted = []
    return list(dict.fromkeys((*quoted, *_SPLIT.split(command))))
