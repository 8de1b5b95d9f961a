"""How the words of a command line are read.

A flag is written out in full: a shorter one might mean another in the next
version. A list takes every word up to the next flag or `--`, as in Claude
Code, so that a word of a list is never taken for the prompt; `--flag=VALUE`
takes exactly that value.
"""

from __future__ import annotations

import argparse
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from .exits import UsageError


class Several(argparse.Action):
    """A list, which may be given several times. A word of another form ends it, as a flag does."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, *, form: re.Pattern[str] | None = None, **more: Any
    ) -> None:
        super().__init__(option_strings, dest, nargs="+", **more)
        self._form = form

    def fits(self, word: str) -> bool:
        return self._form is None or self._form.match(word) is not None

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), *(values or ())])


class _HelpColumns(argparse.HelpFormatter):
    """The names of a flag once, its value once."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Lines that were broken before stay as they are."""
        if "\n" not in text:
            return super()._fill_text(text, width, indent)
        return "\n".join(f"{indent}{line}" for line in text.splitlines())

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, action.dest.upper())
        return f"{', '.join(action.option_strings)} {value}"

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if isinstance(action, Several):
            return f"{action.metavar}..."
        return super()._format_args(action, default_metavar)


class FlagParser(argparse.ArgumentParser):
    """Every error is a `UsageError` that says what to write instead."""

    def __init__(
        self, prog: str, *, refused: Mapping[str, str] | None = None, unknown_hint: str = "", **more: Any
    ) -> None:
        """`refused` are flags that others know, with the words to refuse them; `unknown_hint` is for unknown ones."""
        super().__init__(prog, allow_abbrev=False, formatter_class=_HelpColumns, **more)
        self._refused = refused or {}
        self._unknown_hint = unknown_hint

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - it has two overloads
        """`last_taken` of the result is the last word that a list or an optional value took, with its flag."""
        reading = _Reading(self, args or ())
        chosen, excess = super().parse_known_args([*reading.flags, "--", *reading.operands], namespace)
        if excess := [word for word in excess if word != "--"]:
            self.error(f"`{excess[0]}` is one word too many. {self._excess_hint}")
        chosen.last_taken = reading.last_taken
        return chosen, []

    @property
    def operands(self) -> list[argparse.Action]:
        return [action for action in self._actions if not action.option_strings]

    @property
    def _excess_hint(self) -> str:
        if any(action.dest == "prompt" for action in self.operands):
            return "Put quotes around the whole prompt."
        return "Put quotes around a value with spaces."

    def find_flag(self, name: str) -> argparse.Action | None:
        return self._option_string_actions.get(name)

    def refuse_unknown(self, name: str) -> NoReturn:
        if name in self._refused:
            self.error(f"{name}: {self._refused[name]}")
        visible = [flag for flag, action in self._option_string_actions.items() if action.help is not argparse.SUPPRESS]
        self.error(f"there is no flag {name}.{guess(name, visible)}{self._unknown_hint}")

    def error(self, message: str) -> NoReturn:
        words = message.removeprefix("argument ")
        raise UsageError(f"{words}{'' if words.endswith(('.', '?')) else '.'} See `{self.prog} --help`.")


class _Reading:
    """The words in a form that cannot be misread: a value is joined to its flag, everything else is an operand."""

    def __init__(self, parser: FlagParser, words: Iterable[str]) -> None:
        self._parser = parser
        self._waiting = deque(words)
        self.flags: list[str] = []
        self.operands: list[str] = []
        self.last_taken: tuple[str, str] | None = None
        while self._waiting:
            self._read(self._waiting.popleft())

    def _read(self, word: str) -> None:
        if word == "--":
            self.operands += self._waiting
            self._waiting.clear()
        elif not self._may_be_flag(word):
            self.operands.append(word)
        elif (action := self._parser.find_flag(word)) is not None:
            self._read_values(word, action)
        elif word.startswith("--"):
            self._read_joined(word)
        else:
            self._read_short(word)

    def _may_be_flag(self, word: str) -> bool:
        """A prompt may begin with a dash, as a list of things to do does."""
        if len(word) < 2 or word[0] != "-":
            return False
        first, *others = word.split(maxsplit=1)
        if not others or "=" in first:
            return True
        if self._parser.find_flag(first) is not None:
            self._parser.error(f"`{word}` is one word. Put the quotes around the value of {first} alone")
        return False

    def _read_values(self, name: str, action: argparse.Action) -> None:
        if action.nargs == 0:
            self.flags.append(_long_name(action))
        elif action.nargs == "?":
            if self._waiting and not self._waiting[0].startswith("-"):
                self._take(name, action, self._waiting.popleft())
            else:
                self.flags.append(_long_name(action))
        else:
            self._add(action, self._first_value(name))
            if isinstance(action, Several):
                while self._waiting and not self._ends(action, self._waiting[0]):
                    self._take(name, action, self._waiting.popleft())

    def _ends(self, action: Several, word: str) -> bool:
        return word == "--" or not action.fits(word) or self._may_be_flag(word)

    def _first_value(self, name: str) -> str:
        """Anything but one of our flags: what looks like one is more likely a value that was forgotten."""
        if not self._waiting or self._waiting[0] == "--":
            self._parser.error(f"{name} needs a value")
        word = self._waiting.popleft()
        if self._parser.find_flag(word) is not None:
            self._parser.error(f"{name} needs a value, and {word} is a flag. Write {name}={word} if it is the value")
        return word

    def _read_joined(self, word: str) -> None:
        name, equals, value = word.partition("=")
        action = self._parser.find_flag(name)
        if action is None:
            self._parser.refuse_unknown(name)
        if action.nargs == 0:
            self._parser.error(f"{name} takes no value")
        assert equals, "a known flag without a value was read before"
        self._add(action, value)

    def _read_short(self, word: str) -> None:
        """`-pc` is `-p -c`, and `-rID` is `-r ID`."""
        action = self._parser.find_flag(word[:2])
        if action is None:
            self._parser.refuse_unknown(word)
        if action.nargs == 0:
            self.flags.append(_long_name(action))
            self._waiting.appendleft(f"-{word[2:]}")
        else:
            self._add(action, word[2:].removeprefix("="))

    def _take(self, name: str, action: argparse.Action, value: str) -> None:
        self.last_taken = (name, value)
        self._add(action, value)

    def _add(self, action: argparse.Action, value: str) -> None:
        self.flags.append(f"{_long_name(action)}={value}")


def _long_name(action: argparse.Action) -> str:
    return next(name for name in action.option_strings if name.startswith("--"))


def one_of(*values: str) -> Callable[[str], str]:
    """For `type` of a flag: one of these, or an error that names the nearest."""

    def parse(text: str) -> str:
        if text not in values:
            raise argparse.ArgumentTypeError(f"`{text}` is not one of {', '.join(values)}.{guess(text, values)}")
        return text

    return parse


def positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """For `type` of a flag: a number above 0."""

    def parse(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = 0
        if not 0 < number < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
        return number

    return parse


def guess(word: str, known: Iterable[str]) -> str:
    """A question that names what may have been meant, or nothing.

    >>> guess("--outputformat", ["--output-format", "--input-format"])
    ' Did you mean --output-format?'
    >>> guess("x", ["doctor"])
    ''
    """
    from difflib import get_close_matches

    by_small = {one.lower(): one for one in known}
    near = get_close_matches(word.lower(), by_small, n=1, cutoff=0.7)
    return f" Did you mean {by_small[near[0]]}?" if near else ""
