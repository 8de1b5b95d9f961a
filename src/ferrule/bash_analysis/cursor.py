"""The scanner's state: the text, the position, and what is open."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .quoting import as_bytes_text, odd_characters
from .tokens import Here, PartKind, Scan, Token, Unreadable, WordPart

MAX_OPERATORS = 1_500
MAX_COMMANDS = 500
MAX_TOKENS = 6_000
MAX_PARTS = 12_000


class TokenSheet:
    """Tokens, here-documents and doubts, in the order they are found. Raises `Unreadable` past a limit."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.heres: list[Here] = []
        self._doubts: list[str] = []
        self._runs = 0
        self._commands = 1
        self._operators = 0
        self._parts = 0
        self._substitutions = 0

    def scan(self) -> Scan:
        return Scan(tuple(self.tokens), tuple(self.heres), tuple(self._doubts), self._substitutions)

    def word(self, start: int, end: int, parts: tuple[WordPart, ...], run: int, operator: str = "") -> None:
        self.tokens.append(Token(start, end, operator, parts, run))
        if len(self.tokens) > MAX_TOKENS:
            raise Unreadable(f"it has more than {MAX_TOKENS:,} words")

    def count_part(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise Unreadable(f"its words have more than {MAX_PARTS:,} parts")

    def operator(self, start: int, end: int, operator: str, run: int) -> None:
        self.tokens.append(Token(start, end, operator, (), run))
        self.count_operators(end - start)

    def count_operators(self, count: int) -> None:
        self._operators += count
        if self._operators > MAX_OPERATORS:
            raise Unreadable(f"it has more than {MAX_OPERATORS} operators")

    def separate(self, run: int, *, ends: bool = True) -> int:
        """The run after a separator; `ends` if the separator ends a command."""
        if ends and self.tokens and self.tokens[-1].run == run:
            self._commands += 1
            if self._commands > MAX_COMMANDS + 1:
                raise Unreadable(f"it has more than {MAX_COMMANDS} commands")
        return self.new_run()

    def new_run(self) -> int:
        self._runs += 1
        return self._runs

    def substitute(self) -> int:
        """The run of the commands in a substitution."""
        self._substitutions += 1
        return self.new_run()

    def doubt(self, reason: str) -> None:
        if reason not in self._doubts:
            self._doubts.append(reason)


MAX_DEPTH = 24

_CHARACTER = re.compile(r"[\x00-\x7f]|[\x80-\xff][\x80-\xbf]*")
_FD_NAME = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
_BEFORE_COMMANDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "{", "!", "time"})

Mode: TypeAlias = Literal["commands", "double", "braces", "here"]


@dataclass(slots=True)
class Frame:
    """What is open: a list of commands, a double-quoted string, `${…}`, a here-document."""

    mode: Mode
    closer: str
    quoted: bool = False
    """Whether expansions here are inside double quotes."""
    start: int = -1
    """Where the current word began; -1 between words."""
    parts: list[WordPart] = field(default_factory=list[WordPart])
    run: int = 0
    cases: int = 0
    """How many `case` statements are open: their patterns end with an unmatched `)`."""
    opened: int = 0
    heres: list[tuple[str, bool, bool]] = field(default_factory=list[tuple[str, bool, bool]])
    """Delimiters whose bodies come after the next newline: text, quoted, tabs stripped."""
    awaits_delimiter: str = ""
    end: int = 0
    """Where a here-document's body ends."""


class Cursor:
    """A text being scanned, and its current words."""

    def __init__(self, command: str) -> None:
        self._text = as_bytes_text(command)
        self._at = 0
        self._stack: list[Frame] = [Frame("commands", "")]
        self._sheet = TokenSheet()
        if odd := odd_characters(command):
            self._sheet.doubt(odd)

    def _add(self, frame: Frame, part: WordPart, at: int) -> None:
        """Adds to the current word; text inside `${…}` or a here-document belongs to none."""
        if frame.mode == "double":
            frame = self._stack[-2]
        if frame.mode != "commands":
            return
        if frame.start < 0:
            frame.start = at
        self._sheet.count_part()
        frame.parts.append(part)

    def _open(self, mode: Mode, closer: str, *, quoted: bool, at: int) -> None:
        frame = self._stack[-1]
        if frame.mode == "commands" and frame.start < 0:
            frame.start = at
        self._push(Frame(mode, closer, quoted=quoted), 1)

    def _push(self, frame: Frame, length: int) -> None:
        if len(self._stack) + self._stack[-1].opened > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        self._stack.append(frame)
        self._sheet.count_operators(1)
        self._at += length

    def _end_word(self, frame: Frame) -> None:
        if frame.start < 0:
            return
        start, parts = frame.start, tuple(frame.parts)
        frame.start = -1
        frame.parts = []
        self._sheet.word(start, self._at, parts, frame.run)
        if frame.awaits_delimiter:
            strips = frame.awaits_delimiter == "<<-"
            frame.awaits_delimiter = ""
            if any(part.kind is not PartKind.TEXT for part in parts):
                raise Unreadable("the delimiter of a here-document is expanded")
            if "\\" in self._text[start : self._at]:
                self._sheet.doubt("a here-document whose end is written with a backslash")
            delimiter = "".join(part.text for part in parts)
            frame.heres.append((delimiter, any(part.quoted for part in parts), strips))
        elif len(parts) == 1 and not parts[0].quoted and parts[0].text in ("case", "esac"):
            self._count_case(frame, parts[0].text)

    def _count_case(self, frame: Frame, word: str) -> None:
        """A `)` closes a pattern while a `case` is open. Only a word where a command begins is a keyword."""
        if len(self._sheet.tokens) > 1:
            before = self._sheet.tokens[-2]
            text = self._text[before.start : before.end]
            if before.run == frame.run and text not in _BEFORE_COMMANDS:
                return
        if word == "case":
            frame.cases += 1
        elif frame.cases:
            frame.cases -= 1

    def _end_number(self, frame: Frame) -> None:
        """End the word before a redirection, which may be a file descriptor's number."""
        if frame.start < 0:
            return
        if len(frame.parts) == 1 and not frame.parts[0].quoted and frame.parts[0].kind is PartKind.TEXT:
            text = frame.parts[0].text
            if text.isdigit() or _FD_NAME.fullmatch(text):
                self._sheet.word(frame.start, self._at, tuple(frame.parts), frame.run, "fd")
                frame.start = -1
                frame.parts = []
                return
        self._end_word(frame)

    def _finish_commands(self, frame: Frame) -> None:
        if frame.heres or frame.awaits_delimiter:
            raise Unreadable("a here-document has no body")
        if frame.opened or frame.cases:
            raise Unreadable("a substitution is not balanced")
        self._stack.pop()

    def _after_backslash(self) -> str:
        """The one character that a backslash quotes, all bytes of it."""
        found = _CHARACTER.match(self._text, self._at + 1)
        if found is None:
            raise Unreadable("it ends with a backslash")
        return found[0]
