"""The words and operators of a command, by bash's lexical rules, in one linear pass.

The syntax tree shows how words form commands; the scan shows what the words are.
Each is checked against the other (`syntax.py`), because a parser that sees
one word where bash sees two is how commands get past an analysis. The scan
also comes first and bounds what the parser is given.

The text is scanned as bytes in the form of Latin-1, so that positions are the
same as the tree's.
"""

from __future__ import annotations

import re

from .cursor import MAX_DEPTH, Frame
from .expansions import Expansions
from .quoting import as_bytes_text
from .tokens import PartKind, Scan, Unreadable, WordPart

MAX_LENGTH = 100_000
MAX_MARKS = 800

_MARKS = re.compile(r"[\[\]{}=~!$`*?]")
_PLAIN = re.compile(r"""[^ \t\n|&;<>()$`"'\\#]+""")
_BLANKS = re.compile(r"[ \t]+")
_COMMENT = re.compile(r"[^\n]*")
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|\|&|&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||[|&;<>()]")
_SINGLE = re.compile(r"'([^']*)'")
_ARITHMETIC_COMMAND = re.compile(r"\(\(((?:[A-Za-z0-9_ \t+*/%<>=!&|?:,()-]|\$(?!\())*?)\)\)")

_ENDING_WORDS = frozenset({"", " ", "\t", "\n", "|", "&", ";"})
_REDIRECTIONS = frozenset({"<", ">", ">>", ">|", "<>", "<&", ">&", "&>", "&>>", "<<<", "<<", "<<-"})


def scan_command(command: str) -> Scan:
    """The scan of a command. Raises `Unreadable` for what no shell would run, and what is too large."""
    if len(command) > MAX_LENGTH:
        raise Unreadable(f"it is longer than {MAX_LENGTH:,} characters")
    scan = _Scanner(command).scan()
    marks = len(_MARKS.findall(command))
    if marks > MAX_MARKS and marks - _count_quoted_marks(scan, as_bytes_text(command)) > MAX_MARKS:
        raise Unreadable(f"it has more than {MAX_MARKS} special characters")
    return scan


def _count_quoted_marks(scan: Scan, text: str) -> int:
    """Special characters that are quoted; all others, those in comments too, cost the parser time."""
    quoted = (part.text for token in scan.tokens for part in token.parts if part.quoted and part.kind is PartKind.TEXT)
    bodies = (text[here.start : here.end] for here in scan.heres if here.quoted)
    return sum(len(_MARKS.findall(text)) for text in (*quoted, *bodies))


class _Scanner(Expansions):
    def scan(self) -> Scan:
        end = len(self._text)
        while True:
            frame = self._stack[-1]
            if frame.mode == "here" and self._at >= frame.end:
                self._leave_here(frame)
                continue
            if self._at >= end:
                break
            if frame.mode == "commands":
                self._commands_step(frame)
            elif frame.mode == "double":
                self._double_step(frame)
            elif frame.mode == "braces":
                self._braces_step(frame)
            else:
                self._here_step(frame)
        frame = self._stack[-1]
        if len(self._stack) > 1:
            raise Unreadable(f"`{frame.closer}` is missing at its end")
        self._end_word(frame)
        if frame.heres or frame.awaits_delimiter:
            raise Unreadable("a here-document has no body")
        if frame.cases:
            self._sheet.doubt("a `case` without its `esac`")
        return self._sheet.scan()

    def _commands_step(self, frame: Frame) -> None:
        text, at = self._text, self._at
        if found := _PLAIN.match(text, at):
            end = self._at = found.end()
            self._add(frame, WordPart(PartKind.TEXT, found[0], False), at)
            if text[end : end + 1] == " ":
                self._end_word(frame)
                self._at = end + 1
            return
        character = text[at]
        if character in " \t":
            self._end_word(frame)
            self._at = _BLANKS.match(text, at).end()  # type: ignore[union-attr]
        elif character == "\n":
            self._newline(frame)
        elif character == "'":
            self._single(frame)
        elif character == '"':
            self._open("double", '"', quoted=True, at=at)
        elif character == "$":
            self._dollar(frame)
        elif character == "\\":
            self._backslash(frame)
        elif character == "`":
            self._backtick(frame)
        elif character == "#":
            if frame.start < 0:
                self._at = _COMMENT.match(text, at).end()  # type: ignore[union-attr]
            else:
                self._add(frame, WordPart(PartKind.TEXT, "#", False), at)
                self._at += 1
        else:
            self._operator(frame)

    def _operator(self, frame: Frame) -> None:
        text, at = self._text, self._at
        found = _OPERATOR.match(text, at)
        if found is None:
            raise Unreadable(f"`{text[at]}` cannot be parsed")
        operator = found[0]
        if operator in ("<", ">") and text[at + 1 : at + 2] == "(":
            self._open_process(frame)
            return
        if operator == "(":
            self._open_parenthesis(frame)
            return
        if operator == ")":
            self._close_parenthesis(frame)
            return
        if operator in _REDIRECTIONS:
            if operator.startswith("&"):
                self._end_word(frame)
            else:
                self._end_number(frame)
            self._sheet.operator(at, found.end(), operator, frame.run)
            if operator in ("<<", "<<-"):
                frame.awaits_delimiter = operator
        else:
            if operator.startswith(";") and len(operator) > 1 and not frame.cases:
                raise Unreadable(f"`{operator}` is outside of a `case`")
            self._end_word(frame)
            self._sheet.operator(at, found.end(), operator, frame.run)
            frame.run = self._sheet.separate(frame.run)
        self._at = found.end()

    def _open_process(self, frame: Frame) -> None:
        if frame.start >= 0:
            self._sheet.doubt("a process substitution inside a word")
        self._add(frame, WordPart(PartKind.FILE, "", False), self._at)
        self._push(Frame("commands", ")", run=self._sheet.substitute()), 2)

    def _open_parenthesis(self, frame: Frame) -> None:
        at = self._at
        found = _ARITHMETIC_COMMAND.match(self._text, at) if frame.start < 0 else None
        if found is not None and found[1].count("(") == found[1].count(")"):
            self._sheet.operator(at, found.end(), "((", frame.run)
            self._at = found.end()
            return
        if frame.start >= 0:
            before = self._text[at - 1]
            if before == "=":
                self._sheet.doubt("an array")
            elif before in "?*+@!":
                self._sheet.doubt("an extended pattern")
        elif self._text.startswith("((", at):
            self._sheet.doubt("arithmetic")
        self._end_word(frame)
        self._sheet.operator(at, at + 1, "(", frame.run)
        frame.run = self._sheet.separate(frame.run)
        frame.opened += 1
        if frame.opened + len(self._stack) > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        self._at += 1

    def _close_parenthesis(self, frame: Frame) -> None:
        self._end_word(frame)
        at = self._at
        if frame.opened:
            frame.opened -= 1
        elif frame.cases:
            pass
        elif frame.closer == ")":
            self._finish_commands(frame)
            self._at += 1
            return
        else:
            raise Unreadable("`)` closes nothing")
        self._sheet.operator(at, at + 1, ")", frame.run)
        frame.run = self._sheet.separate(frame.run, ends=False)
        self._at += 1

    def _newline(self, frame: Frame) -> None:
        self._end_word(frame)
        frame.run = self._sheet.separate(frame.run)
        self._at += 1
        if frame.heres:
            pending, frame.heres = frame.heres, []
            if len(pending) > 1:
                raise Unreadable("it has several here-documents in one line")
            delimiter, quoted, strips = pending[0]
            self._here_document(delimiter, quoted=quoted, strips=strips)

    def _backslash(self, frame: Frame) -> None:
        following = self._after_backslash()
        if following != "\n":
            self._add(frame, WordPart(PartKind.TEXT, following, True), self._at)
        elif self._text[self._at + 2 : self._at + 3] in _ENDING_WORDS:
            self._end_word(frame)
        self._at += 1 + len(following)

    def _single(self, frame: Frame) -> None:
        found = _SINGLE.match(self._text, self._at)
        if found is None:
            raise Unreadable("a single quote is not closed")
        self._add(frame, WordPart(PartKind.TEXT, found[1], True), self._at)
        self._at = found.end()
