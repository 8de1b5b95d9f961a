"""The functions and aliases of the user's own shell, for commands that use them by name.

Only those under names that nothing else has: a command was judged by what its
words mean on this machine, and no function may give `ls` or `git` another
meaning. They are passed on as bash passes on exported functions, in variables,
so no command reads the user's files.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from typing import Final

from .command import Command, CommandFailed
from .command_runner import CommandRunner

SECONDS: Final = 2.0
"""The first command waits no longer for it."""
MOST_BYTES: Final = 64 << 10
"""Of all functions together: the system limits what a program can be given."""
_MARK: Final = "--- ferrule: what follows is of another kind ---"
_ASKING: Final = f"declare -f; echo '{_MARK}'; alias -p; echo '{_MARK}'; compgen -bk"
_HEAD: Final = re.compile(r"^([A-Za-z_][\w.-]*) \(\) *$")
_PLAIN: Final = re.compile(r"[\w ./=:,+@%~-]+")
"""An alias without anything that a shell reads as more than words."""


async def take_snapshot(commands: CommandRunner, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that define them; none where the shell does not say in time what it has."""
    home = environment.get("HOME", "/")
    text = f"exec bash -ic {shlex.quote(_ASKING)} 2>/dev/null </dev/null"
    try:
        ran = await commands.run(Command(text=text, cwd=home, env=environment), timeout=SECONDS)
    except CommandFailed:
        return {}
    parts = (ran.output.head + ran.output.tail).decode("utf-8", "replace").split(f"{_MARK}\n")
    if ran.timed_out or not ran.output.whole or len(parts) != 3:
        return {}
    functions, aliases, known = parts
    return _variables(functions, aliases, frozenset(known.split()), environment.get("PATH", ""))


def _variables(functions: str, aliases: str, known: frozenset[str], path: str) -> dict[str, str]:
    made: dict[str, str] = {}
    room = MOST_BYTES
    for name, body in (*_aliases(aliases), *_functions(functions)):
        if name in known or shutil.which(name, path=path) is not None:
            continue
        room -= len(name) + len(body)
        if room > 0:
            made[f"BASH_FUNC_{name}%%"] = f"() {body}"
    return made


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """As `declare -f` prints them.

    >>> list(_functions("greet () \\n{ \\n    echo hello\\n}\\n"))
    [('greet', '{ \\n    echo hello\\n}')]
    """
    name, body = "", list[str]()
    for line in text.splitlines():
        if not body and (head := _HEAD.match(line)):
            name = head[1]
        elif name:
            body.append(line)
            if line == "}":
                yield name, "\n".join(body)
                name, body = "", []


def _aliases(text: str) -> Iterator[tuple[str, str]]:
    """As `alias -p` prints them, those that are plain words with something behind them.

    >>> list(_aliases("alias ll='ls -alF'\\nalias danger='rm -rf *'\\n"))
    [('ll', '{ ls -alF "$@"; }')]
    """
    for line in text.splitlines():
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        name, _, value = words[1].partition("=") if len(words) == 2 else ("", "", "")
        if _HEAD.match(f"{name} ()") and _PLAIN.fullmatch(value):
            yield name, f'{{ {value} "$@"; }}'
