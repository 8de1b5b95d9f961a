"""awk programs: which of them only print."""

from __future__ import annotations

import re

from ..account import Account
from ..shell_words import Word
from ..table import arguments, usage

USAGE = (
    "-F: -v: -f:unknown --field-separator= --assign= --file=unknown --posix --re-interval --version --help |"
    " reads | leading"
)

MAX_PROGRAM = 3_000

_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|\\\n|\#[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<number>[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<operator>&&|\|\||>=|<=|==|!=|!~|\+\+|--|\+=|-=|\*=|%=|\^=|\*\*|>>|[-+*%^!<>|~?:,$=(){}\[\];\n])
    |(?P<slash>/)""",
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r"/(?>[^/\\\n\[]|\\[^\n]|\[\^?+\]?+(?>[^]\\\n]|\\[^\n])*+\])*+/")
_FORBIDDEN = {
    "system": "`system` runs a command",
    "getline": "`getline` may read anything or run a command",
    "ENVIRON": "it looks at the environment",
    "ARGV": "it may change its own arguments",
    "ARGC": "it may change its own arguments",
    "PROCINFO": "it looks at the process",
    "fflush": "`fflush` is about files and commands",
    "close": "`close` is about files and commands",
    "extension": "it loads code",
    "SYMTAB": "it may change any variable",
    "FUNCTAB": "it calls functions by name",
}
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
"""An operand that begins like this is not a file; a `=` further on is part of a name."""
_ENDS_STATEMENT = frozenset({";", "{", "}", "\n"})
_GOES_ON = frozenset(
    {
        ",",
        "&&",
        "||",
        "?",
        ":",
        "+",
        "-",
        "*",
        "/",
        "%",
        "^",
        "=",
        "==",
        "!=",
        ">",
        "<",
        ">=",
        "<=",
        "~",
        "!~",
        "!",
        "(",
    }
    | {"[", "$", "+=", "-=", "*=", "%=", "^=", "**"}
)
"""After these a line break does not end a statement, or is an error."""
_WORDS_BEFORE_REGEX = frozenset({"return", "print", "printf", "in", "do", "else"})
"""Only what is a keyword in every awk: where `case` is a variable, the slash after it divides."""


class UnsafeAwk(Exception):
    """A program that does more than print, or that cannot be parsed."""


def read(words: list[Word], account: Account) -> None:
    given = arguments(words, usage(USAGE))
    if given.doubt:
        account.doubt(given.doubt)
        return
    if given.has("-f", "--file"):
        account.doubt("the program is in a file")
        return
    if not given.operands:
        account.doubt("its program is missing")
        return
    program, *files = given.operands
    if program.text is None:
        account.doubt("the program is not known")
    elif len(program.text) > MAX_PROGRAM:
        account.doubt("the program is too long to look through")
    else:
        try:
            check_program(program.text)
        except UnsafeAwk as reason:
            account.doubt(str(reason))
    for file in files:
        if not _ASSIGNMENT.match(file.text or ""):
            account.reads(file)


def check_program(program: str) -> None:
    """Raise `UnsafeAwk` unless the program only prints.

    >>> check_program("$1 > 5 {print $2}")
    """
    at = depth = 0
    before = "\n"
    prints = False
    while at < len(program):
        found = _TOKEN.match(program, at)
        if found is None:
            raise UnsafeAwk(f"`{program[at]}` is not known")
        at = found.end()
        kind, text = found.lastgroup, found[0]
        if kind == "space":
            continue
        if kind == "slash":
            at = _slash(program, found.start(), before)
            before = "/" if at == found.end() else "regex"
            continue
        if kind == "name":
            if text in _FORBIDDEN:
                raise UnsafeAwk(_FORBIDDEN[text])
            prints = prints or text in ("print", "printf")
        elif kind == "operator":
            depth += (text in "([") - (text in ")]")
            if text == "\n" and before in _GOES_ON:
                continue
            if text in _ENDS_STATEMENT:
                prints = False
                depth = 0
            elif text == "|":
                raise UnsafeAwk("a pipe runs a command")
            elif text == ">>" or (text == ">" and prints and depth <= 0):
                raise UnsafeAwk("it writes a file")
        before = text if kind != "string" else "string"


def _slash(program: str, at: int, before: str) -> int:
    """The position after a regular expression, or after a division sign."""
    divides = before in (")", "]", "$", "string", "++", "--") or (
        (before[0].isalnum() or before[0] == "_") and before not in _WORDS_BEFORE_REGEX
    )
    if divides:
        if program.find("/", at + 1) >= 0:
            raise UnsafeAwk("a slash that may divide or begin an expression")
        return at + 1
    found = _REGEX.match(program, at)
    if found is None:
        raise UnsafeAwk("an expression is not closed")
    return found.end()
