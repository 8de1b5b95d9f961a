"""How programs parse their arguments, as data, and what each argument means.

An entry of the table is a line of text: options, operands, properties.

    -n: -c: -qv --lines= --quiet | reads | digits

`-qv` are flags; `-n:` takes a value that touches nothing and `-o:write` one
that names a file to write; `-C?` may have a value attached. `--lines=`,
`--output=write` and `--color?` mean the same for long options. What is not in
the entry is unknown, and makes the whole call unknown.

Some properties: `follows=-R` names options that make it follow the links it
finds, `names` means that it shows names but no contents, `responses` that it takes
arguments from a file after `@`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from ..core.values import plain_value
from .shell_words import Word

_DIGITS = re.compile(r"-[0-9]+")


@plain_value
class Option:
    """What an option takes: nothing, a value, or a value if it is attached; and what the value is."""

    takes: str
    """Empty, `value` or `maybe`."""
    role: str = ""


@plain_value
class ProgramUsage:
    """One program, or one of its subcommands."""

    shorts: Mapping[str, Option]
    longs: Mapping[str, Option]
    operands: tuple[str, ...]
    """The role of each operand; the last applies to all that follow."""
    properties: frozenset[str]

    def has(self, name: str) -> bool:
        return name in self.properties


@plain_value
class Given:
    """An option as it was given."""

    name: str
    value: Word | None
    role: str


@plain_value
class Arguments:
    """Parsed arguments."""

    options: tuple[Given, ...]
    operands: tuple[Word, ...]
    doubt: str = ""
    """What could not be parsed; empty if nothing."""

    def has(self, *names: str) -> bool:
        return any(option.name in names for option in self.options)


@cache
def usage(entry: str) -> ProgramUsage:
    """The meaning of an entry of the table."""
    options, operands, properties = (f"{entry} | | ".split("|"))[:3]
    shorts: dict[str, Option] = {}
    longs: dict[str, Option] = {}
    for item in options.split():
        if item.startswith("--"):
            _add_long(longs, item)
        elif len(item) > 2 and item[2] in ":?":
            shorts[item[1]] = Option("value" if item[2] == ":" else "maybe", item[3:])
        else:
            shorts.update(dict.fromkeys(item[1:], Option("")))
    return ProgramUsage(shorts, longs, tuple(operands.split()), frozenset(properties.split()))


def _add_long(longs: dict[str, Option], item: str) -> None:
    if "=" in item:
        name, _, role = item.partition("=")
        longs[name] = Option("value", role)
    elif "?" in item:
        name, _, role = item.partition("?")
        longs[name] = Option("maybe", role)
    else:
        longs[item] = Option("")


def arguments(words: Sequence[Word], usage: ProgramUsage) -> Arguments:
    """The words after a program's name, by the rules of getopt."""
    return _Reading(words, usage).finish()


class _Reading:
    def __init__(self, words: Sequence[Word], usage: ProgramUsage) -> None:
        self._words = list(words)
        self._usage = usage
        self._options: list[Given] = []
        self._operands: list[Word] = []
        self._doubt = ""
        self._stopped = False
        """Whether an option was met whose values, if it takes any, cannot be distinguished from operands."""
        self._only_operands = False

    def finish(self) -> Arguments:
        while self._words and not self._stopped:
            word = self._words.pop(0)
            if self._only_operands or not word.may_be_option:
                self._operand(word)
            elif word.text is None:
                self._uncertain(word)
            elif word.text == "--":
                self._only_operands = True
            elif word.text.startswith("--"):
                self._long(word.text)
            elif self._usage.has("digits") and _DIGITS.fullmatch(word.text):
                self._options.append(Given("-#", word, ""))
            elif self._usage.has("words"):
                self._long(word.text)
            else:
                self._short(word.text)
        return Arguments(tuple(self._options), tuple(self._operands), self._doubt)

    def _operand(self, word: Word) -> None:
        self._operands.append(word)
        if self._usage.has("leading") and not word.many:
            self._only_operands = True

    def _uncertain(self, word: Word) -> None:
        """A word that may be an option is accepted only if every option is harmless."""
        if not self._usage.has("harmless"):
            self._doubt = f"{word.shown} may be an option"
        self._operand(word)

    def _long(self, text: str) -> None:
        name, equals, value = text.partition("=")
        option = self._usage.longs.get(name) or self._find_abbreviated(name)
        if option is None:
            self._stop(f"the option {name} is not known")
        elif equals:
            if not option.takes:
                self._doubt = f"{name} takes no value"
            self._options.append(Given(name, Word.of_text(value), option.role))
        elif option.takes == "value":
            self._options.append(Given(name, self._next(name), option.role))
        else:
            self._options.append(Given(name, None, option.role))

    def _find_abbreviated(self, name: str) -> Option | None:
        """An abbreviated option is accepted only if it does more than a flag, never if that would lower the risk."""
        if len(name) < 4:
            return None
        meant = [option for known, option in self._usage.longs.items() if known.startswith(name)]
        return meant[0] if len(meant) == 1 and meant[0].role else None

    def _short(self, text: str) -> None:
        for at in range(1, len(text)):
            letter, rest = text[at], text[at + 1 :]
            option = self._usage.shorts.get(letter)
            name = f"-{letter}"
            if option is None:
                self._stop(f"the option {name} is not known")
                return
            if not option.takes:
                self._options.append(Given(name, None, option.role))
                continue
            if rest or option.takes == "maybe":
                self._options.append(Given(name, Word.of_text(rest) if rest else None, option.role))
            else:
                self._options.append(Given(name, self._next(name), option.role))
            return

    def _stop(self, doubt: str) -> None:
        self._doubt = doubt
        self._stopped = True

    def _next(self, name: str) -> Word | None:
        if not self._words:
            self._doubt = f"{name} needs a value"
            return None
        word = self._words.pop(0)
        if word.many:
            self._doubt = f"{word.shown} may be several words"
        elif word.may_be_option and not self._usage.has("harmless"):
            self._doubt = f"{word.shown} may be an option or the value of {name}"
        return word
