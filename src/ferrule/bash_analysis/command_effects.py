"""From a simple command to what it touches."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..core.effects import Change, WritesPath
from .account import EVERYTHING, Account, Put
from .commands import awk, conditions, find, git, jq, network, pagers, sed, transfers, wrappers
from .commands.machine import MACHINE, ONLY_VERSION
from .commands.reading_programs import READING
from .commands.text_programs import TEXT
from .risks import look
from .shell_state import is_quiet, is_unfamiliar_but_plain
from .shell_words import Word
from .syntax import Simple
from .table import Arguments, ProgramUsage, arguments, usage

WRITING = {
    "touch": "-acm -d: -r:read -t: -h --no-create --date= --reference=read --time= --no-dereference --version --help"
    " | writes",
    "mkdir": "-pv -m: --mode= --parents --verbose --version --help | creates",
    "rmdir": "-pv --ignore-fail-on-non-empty --parents --verbose --version --help | unlinks",
    "rm": "-dfiIrRv --force --interactive? --one-file-system --no-preserve-root --preserve-root? --recursive --dir"
    " --verbose --version --help | unlinks",
    "unlink": "--version --help | unlinks",
    "shred": "-fuvxz -n: -s: --force --iterations= --remove? --verbose --exact --zero | deletes",
    "truncate": "-co -r:read -s: --no-create --io-blocks --reference=read --size= --version --help | writes",
    "tee": "-aip --append --ignore-interrupts --output-error? --version --help | writes",
    "chmod": "-cfvRr --changes --quiet --silent --verbose --reference=read --recursive --preserve-root"
    " --no-preserve-root --version --help | text1 writes | modes",
    "chown": "-cfhRvHLP --changes --quiet --silent --verbose --dereference --no-dereference --from= --reference=read"
    " --recursive --preserve-root --no-preserve-root --version --help | text1 writes | follows=-L,-H",
    "chgrp": "-cfhRvHLP --changes --quiet --silent --verbose --recursive --reference=read --version --help | text1"
    " writes | follows=-L,-H",
    "cp": "-abdfiHlLnPprRsTuvxZ -S: -t: --archive --attributes-only --backup? --copy-contents --force"
    " --interactive --link --dereference --no-clobber --no-dereference --preserve? --no-preserve= --parents --recursive"
    " --reflink? --remove-destination --sparse= --strip-trailing-slashes --symbolic-link --suffix="
    " --target-directory= --no-target-directory --update? --verbose --one-file-system --version --help | copies",
    "mv": "-bfinTuvZ -S: -t: --backup? --force --interactive --no-clobber --strip-trailing-slashes --suffix="
    " --target-directory= --no-target-directory --update? --verbose --version --help | moves",
    "ln": "-bdFfiLnPrsTv -S: -t: --backup? --directory --force --interactive --logical --no-dereference --physical"
    " --relative --symbolic --suffix= --target-directory= --no-target-directory --verbose --version --help |"
    " links",
}


ENTRIES = {**READING, **TEXT, **MACHINE, **WRITING}
"""The table, by the names of the program and of its subcommand, if it has any."""
_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECLARATION = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(=.*)?", re.DOTALL)
_SECONDS = re.compile(r"[0-9]{0,3}(\.[0-9]+)?s?")
_OF_THE_SHELL = frozenset(
    {"cd", "pushd", "read", "export", "local", "readonly", "declare", "typeset", "unset", "umask", "jobs", "exit"}
    | {"return", "break", "continue", "type", "help", ":"}
)
_CHANGES = {
    "writes": Change.REPLACES,
    "creates": Change.CREATES,
    "deletes": Change.DELETES,
    "unlinks": Change.UNLINKS,
}

_Reader: TypeAlias = Callable[[list[Word], Account], None]

READERS: dict[str, _Reader] = {
    "sed": sed.read,
    "awk": awk.read,
    "gawk": awk.read,
    **dict.fromkeys(pagers.NAMES, pagers.read),
    "mawk": awk.read,
    "nawk": awk.read,
    "find": find.read,
    "git": git.read,
    "jq": jq.read,
    "yq": jq.read_yq,
    "curl": network.read_curl,
    "wget": network.read_wget,
    "tar": network.read_tar,
    "unzip": network.read_unzip,
}


def surroundings(simple: Simple, account: Account) -> None:
    """Adds what the shell itself does for the command, and what is unknown about that."""
    for redirection in simple.redirections:
        if redirection.number.startswith("{"):
            account.doubt("a file descriptor gets a name")
        account.redirects(redirection.operator, redirection.target)
    if not simple.words:
        if not simple.assignments and not simple.redirections:
            account.doubt("the command is empty")
        return
    if simple.state.poison:
        account.doubt(f"{simple.state.poison} before it")
    if simple.assignments:
        _environment(simple, account)


def run(words: Sequence[Word], account: Account, functions: frozenset[str] = frozenset()) -> None:
    """Adds what running these words touches."""
    account.note_start(words)
    first, *rest = words
    look(words, account)
    name = _program(first)
    if name is None:
        account.doubt(f"which program {first.shown} is is not known")
    elif account.depth and name in _OF_THE_SHELL:
        account.doubt(f"{name} is a part of the shell, not a program")
    elif name in functions:
        _function(name, account)
    elif len(rest) == 1 and rest[0].text in ONLY_VERSION.get(name, ()):
        return
    elif name in ("test", "[", "[["):
        conditions.read(name, rest, account)
    elif name in wrappers.NAMES:
        wrappers.read(name, rest, account)
    elif name in READERS:
        READERS[name](rest, account)
    else:
        _by_table(name, rest, account)


def _function(name: str, account: Account) -> None:
    """A function's body is analysed where it is defined."""
    if account.state.in_function:
        account.doubt(f"{name} may call itself")
    if name in ENTRIES or name in READERS or name in wrappers.NAMES:
        account.doubt(f"{name} is given another meaning")


def _program(word: Word) -> str | None:
    text = word.text
    if not text or word.many:
        return None
    if "/" not in text:
        return text
    for folder in _SYSTEM_FOLDERS:
        if text.startswith(folder) and "/" not in text[len(folder) :]:
            return text[len(folder) :]
    return None


def _environment(simple: Simple, account: Account) -> None:
    """Variables set for one command: harmless ones, or ones that no program uses, if it has no settings."""
    unfamiliar = [(name, value) for name, value in simple.assignments if not is_quiet(name, value)]
    if not unfamiliar:
        return
    name = _program(simple.words[0])
    entry = ENTRIES.get(name or "")
    plain = entry is not None and usage(entry).has("plain")
    if len(unfamiliar) > 1 or not plain or not is_unfamiliar_but_plain(*unfamiliar[0]):
        account.doubt(f"{unfamiliar[0][0]} may change what the command does")


def _by_table(name: str, words: list[Word], account: Account) -> None:
    entry = ENTRIES.get(name)
    if entry is None and words and words[0].text is not None:
        entry = ENTRIES.get(f"{name} {words[0].text}")
        words = words[1:]
    if entry is None:
        account.doubt(f"{name} is not known")
        return
    known = usage(entry)
    if known.has("verbatim"):
        return
    if known.has("format"):
        _printf(words, account)
        return
    given = arguments(words, known)
    if given.doubt:
        account.doubt(given.doubt)
    if known.has("responses") and any((word.text or word.prefix).startswith("@") for word in words):
        account.doubt("some of its arguments are in a file")
    _options(given, account)
    _operands(known, given, account)
    if name in WRITING and not given.has("--version", "--help") and not _states_a_write(account):
        account.doubt(f"what {name} changes is not known")


def _states_a_write(account: Account) -> bool:
    return any(isinstance(touch, WritesPath) for touch in account.touches)


def _printf(words: list[Word], account: Account) -> None:
    if words and words[0].may_be_option and words[0].text != "--":
        account.doubt(f"{words[0].shown} may be an option")


def _options(given: Arguments, account: Account) -> None:
    for option in given.options:
        value = option.value
        if option.role in ("", "glob"):
            continue
        if option.role == "read" and value is not None:
            account.reads(value)
        elif option.role == "write" and value is not None:
            account.writes(value)
        else:
            account.doubt(f"{option.name} does more than read")


def _operands(known: ProgramUsage, given: Arguments, account: Account) -> None:
    roles, operands = known.operands, list(given.operands)
    role = roles[0] if roles else "text"
    if role == "pattern":
        by_option = given.has("-e", "-f", "--regexp", "--file", "--files", "--type-list")
        if operands and operands[0].text is None and operands[0].may_be_option:
            account.reads(operands[0])
        operands, role = operands if by_option else operands[1:], roles[1]
        recursive = given.has("-r", "-R", "--recursive", "--dereference-recursive")
        if not operands and (recursive or known.has("cwd")):
            account.reads_here(through=_follows_links(known, given))
    elif role in ("read1", "text1"):
        for operand in operands[:1] if role == "read1" else ():
            account.reads(operand)
        # A pattern or a variable in the first place may be more than one word, and `--reference` replaces the first.
        whole = given.has("--reference") or (bool(operands) and operands[0].many)
        operands = operands if whole else operands[1:]
        role = roles[1]
    elif role.startswith("=") and len(roles) > 1:
        if not _is_harmless(role, operands[:1]):
            account.doubt(f"what {operands[0].shown} makes it do is not known")
        operands, role = operands[1:], roles[1]
    elif not operands and known.has("cwd"):
        account.reads_here()
    _each(role, operands, known, given, account)


def _with_parents(operands: list[Word], account: Account) -> None:
    """`rmdir -p a/b` removes a too."""
    for operand in operands:
        account.writes(operand, Change.UNLINKS)
        above = posixpath.dirname((operand.text or "").rstrip("/"))
        while above.strip("/"):
            account.writes(Word.of_text(above), Change.UNLINKS)
            above = posixpath.dirname(above)


def _follows_links(known: ProgramUsage, given: Arguments) -> bool:
    """Whether it follows links that it finds: the property names the options for that."""
    options = next((one for one in known.properties if one.startswith("follows=")), "")
    return bool(options) and given.has(*options.removeprefix("follows=").split(","))


def _globs(given: Arguments) -> list[str]:
    """The name patterns of files that it reads, from options such as `--include`."""
    values = [option.value.text for option in given.options if option.role == "glob" and option.value is not None]
    return [text for text in values if text and not text.startswith("!")]


def _each(role: str, operands: list[Word], known: ProgramUsage, given: Arguments, account: Account) -> None:
    if role == "reads":
        through = _follows_links(known, given)
        contents = not known.has("names")
        for operand in operands:
            account.reads(operand, contents=contents)
            if through:
                account.reads_through(operand)
        for glob in _globs(given):
            for operand in operands or [Word.of_text(".")]:
                account.reads_named(operand, glob)
    elif role == "unlinks" and given.has("-p", "--parents"):
        _with_parents(operands, account)
    elif role in _CHANGES:
        put = Put(EVERYTHING) if _follows_links(known, given) else None
        for operand in operands:
            account.writes(operand, _CHANGES[role], put)
    elif role in transfers.ROLES:
        transfers.transfer(role, operands, given, account)
    elif role == "assign":
        _declarations(operands, account)
    elif not _is_harmless(role, operands):
        account.doubt(f"what {operands[0].shown} makes it do is not known")


def _is_harmless(role: str, operands: list[Word]) -> bool:
    """Whether operands other than paths only query something."""
    if role == "text" or not operands:
        return True
    if role == "format":
        return all((operand.text or operand.prefix).startswith("+") and not operand.many for operand in operands)
    if role == "seconds":
        return all(_SECONDS.fullmatch(operand.text or "") for operand in operands)
    if role == "name":
        return all(_IDENTIFIER.fullmatch(operand.text or "") for operand in operands)
    return role.startswith("=") and all(operand.text in role[1:].split(",") for operand in operands)


def _declarations(operands: list[Word], account: Account) -> None:
    if not operands:
        account.doubt("it prints every variable")
    for operand in operands:
        found = _DECLARATION.fullmatch(operand.text or "")
        if found is None:
            account.doubt(f"what {operand.shown} declares is not known")
        elif found[2] and not is_quiet(found[1], Word.of_text(found[2][1:])):
            account.doubt(f"{found[1]} may change what later commands do")
