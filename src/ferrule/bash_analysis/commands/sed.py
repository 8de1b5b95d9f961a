"""sed scripts: which of them only print."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...core.effects import Change
from ..account import Account
from ..shell_words import Word
from ..table import arguments, usage

USAGE = (
    "-nErsuzb -e: -f:unknown -l: -i? --quiet --silent --regexp-extended --separate --unbuffered --null-data --binary"
    " --expression= --file=unknown --line-length= --posix --debug --sandbox --follow-symlinks --in-place?"
    " --version --help | reads"
)

MAX_SCRIPT = 3_000

_BLANK = re.compile(r"[ \t;\n]*")
_ADDRESS = re.compile(r"[0-9]+(~[0-9]+)?|\$|[+~][0-9]+")
_REGEX_FLAGS = re.compile(r"[IM]*")
_BEFORE_COMMAND = re.compile(r"[ \t]*(!+[ \t]*)?")
_PLAIN = re.compile(r"[=dDgGhHnNpPxzF]")
_NUMBERED = re.compile(r"[lLqQ][ \t]*[0-9]*")
_LABEL = re.compile(r"[ \t]*[A-Za-z0-9_.-]*[ \t]*(?=[;\n}]|$)")
_TEXT = re.compile(r"[aic](?:[^\n\\]|\\.)*(\n|$)", re.DOTALL)
_FLAGS = re.compile(r"[gpiIMm0-9]*")


class UnsafeSed(Exception):
    """A script that does more than print, or that cannot be parsed."""


def read(words: list[Word], account: Account) -> None:
    given = arguments(words, usage(USAGE))
    if given.doubt:
        account.doubt(given.doubt)
        if any((word.text or "").startswith(("-i", "--in")) for word in words):
            account.risk("in-place", "low", "It may edit files in place.")
        return
    scripts = [option.value for option in given.options if option.name in ("-e", "--expression")]
    files = list(given.operands)
    if given.has("-f", "--file"):
        account.doubt("the script is in a file")
    elif not scripts:
        scripts = files[:1]
        files = files[1:]
    _check(scripts, account)
    if not given.has("-i", "--in-place"):
        for file in files:
            account.reads(file)
        return
    for file in files:
        account.writes(file, Change.REPLACES)
    for option in given.options:
        if option.name in ("-i", "--in-place") and option.value is not None and option.value.text != "":
            _backups(option.value, files, account, follows=given.has("--follow-symlinks"))


def _backups(suffix: Word, files: Sequence[Word], account: Account, *, follows: bool) -> None:
    """The original is kept: under its name with the suffix appended, or as a `*` or a `/` in the suffix specifies."""
    text = suffix.text
    if text is None or "/" in text or follows:
        account.doubt("where its backups go is not known")
        return
    for file in files:
        path = file.text if file.text is not None else file.glob
        folder, slash, name = path.rpartition("/")
        kept = folder + slash + (text.replace("*", name) if "*" in text else f"{name}{text}")
        if file.text is not None:
            account.writes(Word.of_text(kept))
        elif file.glob:
            account.writes(Word(None, file.prefix[: file.prefix.rfind("/") + 1], pattern=True, source=kept, glob=kept))


def _check(scripts: Sequence[Word | None], account: Account) -> None:
    texts = [script.text if script else None for script in scripts]
    if not texts or any(text is None for text in texts):
        account.doubt("the script is not known")
        return
    try:
        check_script("\n".join(text or "" for text in texts))
    except UnsafeSed as reason:
        account.doubt(str(reason))


def check_script(script: str) -> None:
    """Raise `UnsafeSed` unless the script only edits what passes through.

    >>> check_script("1,5p;s/a/b/g")
    """
    if len(script) > MAX_SCRIPT:
        raise UnsafeSed("the script is too long to look through")
    at = depth = 0
    while (at := _end(_BLANK, script, at)) < len(script):
        at = _addresses(script, at)
        if at >= len(script):
            raise UnsafeSed("the script ends in the middle of a command")
        command = script[at]
        if command == "{":
            depth += 1
            at += 1
        elif command == "}":
            depth -= 1
            at = _find_end(script, at + 1)
        elif command == "#":
            at = _line_end(script, at)
        elif command == "s":
            at = _find_end(script, _substitution(script, at))
        elif command == "y":
            at = _find_end(script, _pair(script, at)[0])
        else:
            at = _other(script, at)
    if depth:
        raise UnsafeSed("the script's braces are not balanced")


def _other(script: str, at: int) -> int:
    command = script[at]
    if found := _PLAIN.match(script, at) or _NUMBERED.match(script, at):
        return _find_end(script, found.end())
    if command in "btT:":
        if found := _LABEL.match(script, at + 1):
            return found.end()
    elif found := _TEXT.match(script, at):
        if script[at + 1 : found.end()].rstrip("\n").endswith("\\"):
            raise UnsafeSed("text that goes on")
        return found.end()
    raise UnsafeSed(
        {"w": "`w` writes a file", "W": "`W` writes a file", "e": "`e` runs a command"}.get(
            command, f"`{command}` does more than print"
        )
    )


def _addresses(script: str, at: int) -> int:
    at = _address(script, at)
    following = _end(_BLANK, script, at) if script[at : at + 1] in " \t" else at
    if script[following : following + 1] == ",":
        before = _end(re.compile(r"[ \t]*"), script, following + 1)
        at = _address(script, before)
        if at == before:
            raise UnsafeSed("an address is missing")
    found = _BEFORE_COMMAND.match(script, at)
    return found.end() if found else at


def _address(script: str, at: int) -> int:
    if found := _ADDRESS.match(script, at):
        return found.end()
    character = script[at : at + 1]
    if character == "/":
        return _end(_REGEX_FLAGS, script, _find_delimiter(script, at + 1, "/"))
    if character == "\\" and at + 1 < len(script):
        return _end(_REGEX_FLAGS, script, _find_delimiter(script, at + 2, script[at + 1]))
    return at


def _substitution(script: str, at: int) -> int:
    end, _ = _pair(script, at)
    found = _FLAGS.match(script, end)
    return found.end() if found else end


def _pair(script: str, at: int) -> tuple[int, str]:
    delimiter = script[at + 1 : at + 2]
    if not delimiter or delimiter in "\\\n":
        raise UnsafeSed("a delimiter is missing")
    middle = _find_delimiter(script, at + 2, delimiter)
    return _find_delimiter(script, middle, delimiter, plain=True), delimiter


def _find_delimiter(script: str, at: int, delimiter: str, *, plain: bool = False) -> int:
    """The position after the next delimiter that is not escaped by a backslash."""
    start = at
    while at < len(script):
        character = script[at]
        if character == "\\":
            at += 2
            continue
        if character == delimiter:
            inside = script[start:at]
            if not plain and _opens_bracket(inside):
                raise UnsafeSed("a delimiter inside brackets")
            return at + 1
        if character == "\n" and not plain:
            raise UnsafeSed("an expression over several lines")
        at += 1
    raise UnsafeSed("an expression is not closed")


def _opens_bracket(expression: str) -> bool:
    """Whether a bracket is open at the end, so that readers may differ on where the expression ends."""
    without = re.sub(r"\\.", "", expression)
    at = without.find("[")
    while at >= 0:
        first = at + 2 if without[at + 1 : at + 2] == "^" else at + 1
        close = without.find("]", first + 1)
        if close < 0:
            return True
        at = without.find("[", close)
    return False


def _find_end(script: str, at: int) -> int:
    """A command ends with a separator, a closing brace or the script."""
    at = _end(re.compile(r"[ \t]*"), script, at)
    if at < len(script) and script[at] not in ";\n}#":
        flag = script[at]
        raise UnsafeSed("`w` writes a file" if flag == "w" else "`e` runs a command" if flag == "e" else f"`{flag}`")
    return at


def _line_end(script: str, at: int) -> int:
    end = script.find("\n", at)
    return len(script) if end < 0 else end


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
