"""The words and operators of a command, by bash's lexical rules, in one linear pass.

The syntax tree says how words form commands; this says what the words are.
Each is checked against the other (`syntax.py`), because a parser that sees
one word where bash sees two is how commands get past an analysis. The scan
also comes first and bounds what the parser is given.

The text is scanned as bytes in the form of Latin-1, so that positions are the
same as the tree's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .quoting import as_bytes_text, decode_ansi, odd_characters
from .sheet import Sheet
from .tokens import Here, Kind, Part, Scan, Unreadable

MAX_LENGTH = 10_000
MAX_DEPTH = 24
MAX_MARKS = 200

_MARKS = re.compile(r"[\[\]{}=~!$`*?]")
_PLAIN = re.compile(r"""[^ \t\n|&;<>()$`"'\\#]+""")
_BLANKS = re.compile(r"[ \t]+")
_COMMENT = re.compile(r"[^\n]*")
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|\|&|&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||[|&;<>()]")
_IN_DOUBLE = re.compile(r"""[^$`"\\]+""")
_IN_BRACES = re.compile(r"""[^$`"'\\{}]+""")
_IN_HERE = re.compile(r"[^$`\\]+")
_SINGLE = re.compile(r"'([^']*)'")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_NAME = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!_-])")
_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])\}")
_ARITHMETIC = re.compile(r"\$\(\(([A-Za-z0-9_ \t+*/%<>=!&|?:,$()-]*?)\)\)")
_ARITHMETIC_COMMAND = re.compile(r"\(\(([A-Za-z0-9_ \t+*/%<>=!&|?:,$()-]*?)\)\)")
_CHARACTER = re.compile(r"[\x00-\x7f]|[\x80-\xff][\x80-\xbf]*")
_FD_NAME = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")

_BEFORE_COMMANDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "{", "!", "time"})
_REDIRECTIONS = frozenset({"<", ">", ">>", ">|", "<>", "<&", ">&", "&>", "&>>", "<<<", "<<", "<<-"})

_Mode: TypeAlias = Literal["commands", "double", "braces", "here"]


@dataclass(slots=True)
class _Frame:
    """What is open: a list of commands, a double-quoted string, `${…}`, a here-document."""

    mode: _Mode
    closer: str
    quoted: bool = False
    """Whether what is expanded here stands inside double quotes."""
    start: int = -1
    """Where the word under way began; -1 between words."""
    parts: list[Part] = field(default_factory=list[Part])
    run: int = 0
    cases: int = 0
    """How many `case` are open: their patterns end with a `)` that nothing opened."""
    opened: int = 0
    heres: list[tuple[str, bool, bool]] = field(default_factory=list[tuple[str, bool, bool]])
    """Delimiters whose bodies come after the next newline: text, quoted, tabs stripped."""
    awaits_delimiter: str = ""
    end: int = 0
    """Where a here-document's body ends."""


def scanned(command: str) -> Scan:
    """The scan of a command. Raises `Unreadable` for what no shell would run, and what is too large."""
    if len(command) > MAX_LENGTH:
        raise Unreadable(f"it is longer than {MAX_LENGTH:,} characters")
    scan = _Scanner(command).scan()
    marks = len(_MARKS.findall(command))
    if marks > MAX_MARKS and marks - _quoted_marks(scan, as_bytes_text(command)) > MAX_MARKS:
        raise Unreadable(f"it has more than {MAX_MARKS} special characters")
    return scan


def _quoted_marks(scan: Scan, text: str) -> int:
    """Special characters where they are none; all others, those in comments too, cost the parser time."""
    quoted = (part.text for token in scan.tokens for part in token.parts if part.quoted and part.kind is Kind.TEXT)
    bodies = (text[here.start : here.end] for here in scan.heres if here.quoted)
    return sum(len(_MARKS.findall(text)) for text in (*quoted, *bodies))


class _Scanner:
    def __init__(self, command: str) -> None:
        self._text = as_bytes_text(command)
        self._at = 0
        self._stack: list[_Frame] = [_Frame("commands", "")]
        self._sheet = Sheet()
        if odd := odd_characters(command):
            self._sheet.doubt(odd)

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

    # Commands

    def _commands_step(self, frame: _Frame) -> None:
        text, at = self._text, self._at
        if found := _PLAIN.match(text, at):
            end = self._at = found.end()
            self._add(frame, Part(Kind.TEXT, found[0], False), at)
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
                self._add(frame, Part(Kind.TEXT, "#", False), at)
                self._at += 1
        else:
            self._operator(frame)

    def _operator(self, frame: _Frame) -> None:
        text, at = self._text, self._at
        found = _OPERATOR.match(text, at)
        if found is None:
            raise Unreadable(f"`{text[at]}` cannot be read")
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
                raise Unreadable(f"`{operator}` stands in no `case`")
            self._end_word(frame)
            self._sheet.operator(at, found.end(), operator, frame.run)
            frame.run = self._sheet.separate(frame.run)
        self._at = found.end()

    def _open_process(self, frame: _Frame) -> None:
        if frame.start >= 0:
            self._sheet.doubt("a process substitution inside a word")
        self._add(frame, Part(Kind.FILE, "", False), self._at)
        self._push(_Frame("commands", ")", run=self._sheet.substitute()), 2)

    def _open_parenthesis(self, frame: _Frame) -> None:
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

    def _close_parenthesis(self, frame: _Frame) -> None:
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

    def _finish_commands(self, frame: _Frame) -> None:
        if frame.heres or frame.awaits_delimiter:
            raise Unreadable("a here-document has no body")
        if frame.opened or frame.cases:
            raise Unreadable("a substitution is not balanced")
        self._stack.pop()

    def _newline(self, frame: _Frame) -> None:
        self._end_word(frame)
        frame.run = self._sheet.separate(frame.run)
        self._at += 1
        if frame.heres:
            pending, frame.heres = frame.heres, []
            if len(pending) > 1:
                raise Unreadable("it has several here-documents in one line")
            delimiter, quoted, strips = pending[0]
            self._here_document(delimiter, quoted=quoted, strips=strips)

    def _backslash(self, frame: _Frame) -> None:
        following = self._after_backslash()
        if following != "\n":
            self._add(frame, Part(Kind.TEXT, following, True), self._at)
        self._at += 1 + len(following)

    def _after_backslash(self) -> str:
        """The one character that a backslash quotes, all bytes of it."""
        found = _CHARACTER.match(self._text, self._at + 1)
        if found is None:
            raise Unreadable("it ends with a backslash")
        return found[0]

    def _single(self, frame: _Frame) -> None:
        found = _SINGLE.match(self._text, self._at)
        if found is None:
            raise Unreadable("a single quote is not closed")
        self._add(frame, Part(Kind.TEXT, found[1], True), self._at)
        self._at = found.end()

    # What may stand in any mode

    def _dollar(self, frame: _Frame) -> None:
        text, at = self._text, self._at
        self._sheet.count_operators(1)
        if (found := _NAME.match(text, at)) or (found := _BRACED.match(text, at)):
            self._add(frame, Part(Kind.VARIABLE, found[1], frame.quoted), at)
            self._at = found.end()
            return
        following = text[at + 1 : at + 2]
        if following == "(":
            self._dollar_parenthesis(frame)
        elif following == "{":
            if frame.mode == "braces":
                self._sheet.doubt("an expansion inside an expansion")
            self._add(frame, Part(Kind.EXPANSION, "", frame.quoted), at)
            self._push(_Frame("braces", "}", quoted=frame.quoted, start=at), 2)
        elif following == "[":
            raise Unreadable("`$[` is arithmetic of an old kind")
        elif following == "'" and not frame.quoted:
            self._ansi(frame)
        elif following == '"' and not frame.quoted:
            self._sheet.doubt("a translated string")
            self._add(frame, Part(Kind.TEXT, "", True), at)
            self._at += 1
        else:
            if following == "\\":
                self._sheet.doubt("a dollar sign before a backslash")
            self._add(frame, Part(Kind.TEXT, "$", True), at)
            self._at += 1

    def _dollar_parenthesis(self, frame: _Frame) -> None:
        text, at = self._text, self._at
        if text.startswith("$((", at):
            found = _ARITHMETIC.match(text, at)
            if found is not None and found[1].count("(") == found[1].count(")") and "$(" not in found[1]:
                self._add(frame, Part(Kind.NUMBER, found[1], frame.quoted), at)
                self._at = found.end()
                return
            self._sheet.doubt("arithmetic that is more than numbers and names")
        self._add(frame, Part(Kind.OUTPUT, "", frame.quoted), at)
        self._push(_Frame("commands", ")", run=self._sheet.substitute()), 2)

    def _ansi(self, frame: _Frame) -> None:
        found = _ANSI.match(self._text, self._at)
        if found is None:
            raise Unreadable("`$'` is not closed")
        decoded = decode_ansi(found[1])
        if decoded is None:
            self._sheet.doubt("an escape that is not known")
        self._add(frame, Part(Kind.TEXT, decoded or "", True), self._at)
        self._at = found.end()

    def _backtick(self, frame: _Frame) -> None:
        if frame.closer == "`":
            self._end_word(frame)
            self._finish_commands(frame)
            self._at += 1
            return
        at = self._at
        close = self._text.find("`", at + 1)
        inside = self._text[at + 1 : close]
        if close < 0:
            raise Unreadable("a backquote is not closed")
        if "\\" in inside or (frame.quoted and '"' in inside) or "#" in inside:
            self._sheet.doubt("quoting inside backquotes")
        if any(open_frame.closer == "`" for open_frame in self._stack):
            self._sheet.doubt("a backquote inside backquotes")
        self._add(frame, Part(Kind.OUTPUT, "", frame.quoted), at)
        self._push(_Frame("commands", "`", run=self._sheet.substitute()), 1)

    # Double quotes, `${…}`, here-documents

    def _double_step(self, frame: _Frame) -> None:
        text, at = self._text, self._at
        outer = self._stack[-2]
        if found := _IN_DOUBLE.match(text, at):
            self._add(outer, Part(Kind.TEXT, found[0], True), at)
            self._at = found.end()
            return
        character = text[at]
        if character == '"':
            self._stack.pop()
            if outer.mode == "commands":
                outer.parts.append(Part(Kind.TEXT, "", True))
            self._at += 1
        elif character == "\\":
            self._escaped(outer, '$`"\\')
        elif character == "$":
            self._dollar(frame)
        else:
            self._backtick(frame)

    def _escaped(self, outer: _Frame, special: str) -> None:
        following = self._after_backslash()
        if following != "\n":
            kept = following if following in special else f"\\{following}"
            self._add(outer, Part(Kind.TEXT, kept, True), self._at)
        self._at += 1 + len(following)

    def _braces_step(self, frame: _Frame) -> None:
        text, at = self._text, self._at
        if found := _IN_BRACES.match(text, at):
            self._at = found.end()
            return
        character = text[at]
        if character == "}":
            self._stack.pop()
            self._fill_expansion(frame, text[frame.start + 2 : at])
            self._at += 1
        elif character == "$":
            self._dollar(frame)
        elif character == "`":
            self._backtick(frame)
        else:
            self._sheet.doubt("quoting inside an expansion")
            if character == '"':
                self._open("double", '"', quoted=True, at=at)
            elif character == "'" and not frame.quoted:
                found = _SINGLE.match(text, at)
                if found is None:
                    raise Unreadable("a single quote is not closed")
                self._at = found.end()
            else:
                self._at += 2 if character == "\\" else 1

    def _fill_expansion(self, frame: _Frame, inside: str) -> None:
        """Give the `${…}` part its text, now that its end is known."""
        for open_frame in reversed(self._stack):
            if open_frame.mode == "commands":
                for index in range(len(open_frame.parts) - 1, -1, -1):
                    part = open_frame.parts[index]
                    if part.kind is Kind.EXPANSION and not part.text:
                        open_frame.parts[index] = Part(Kind.EXPANSION, inside or "?", frame.quoted)
                        return
                return
            if open_frame.mode != "double":
                return

    def _here_document(self, delimiter: str, *, quoted: bool, strips: bool) -> None:
        start = at = self._at
        text = self._text
        while True:
            if at >= len(text):
                raise Unreadable(f"the here-document's `{delimiter}` is missing")
            close = text.find("\n", at)
            close = len(text) if close < 0 else close
            line = text[at:close]
            if (line.lstrip("\t") if strips else line) == delimiter:
                break
            at = close + 1
        self._sheet.heres.append(Here(start, at, quoted))
        if quoted:
            self._at = close
            return
        # What is expanded in the body is scanned like the inside of double quotes; the closing line is then passed.
        self._push(_Frame("here", delimiter, quoted=True, end=at, start=close), 0)

    def _here_step(self, frame: _Frame) -> None:
        text, at = self._text, self._at
        if found := _IN_HERE.match(text, at):
            self._at = min(found.end(), frame.end)
        elif text[at] == "\\":
            self._at += 2
        elif text[at] == "$":
            self._dollar(frame)
        else:
            self._backtick(frame)

    def _leave_here(self, frame: _Frame) -> None:
        if self._at > frame.end:
            self._sheet.doubt("an expansion that goes beyond its here-document")
        self._stack.pop()
        self._at = max(self._at, frame.start)

    # Bookkeeping

    def _add(self, frame: _Frame, part: Part, at: int) -> None:
        """Add to the word that is under way; what stands inside `${…}` or a here-document belongs to none."""
        if frame.mode == "double":
            frame = self._stack[-2]
        if frame.mode != "commands":
            return
        if frame.start < 0:
            frame.start = at
        self._sheet.count_part()
        frame.parts.append(part)

    def _open(self, mode: _Mode, closer: str, *, quoted: bool, at: int) -> None:
        frame = self._stack[-1]
        if frame.mode == "commands" and frame.start < 0:
            frame.start = at
        self._push(_Frame(mode, closer, quoted=quoted), 1)

    def _push(self, frame: _Frame, length: int) -> None:
        if len(self._stack) + self._stack[-1].opened > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        self._stack.append(frame)
        self._sheet.count_operators(1)
        self._at += length

    def _end_word(self, frame: _Frame) -> None:
        if frame.start < 0:
            return
        start, parts = frame.start, tuple(frame.parts)
        frame.start = -1
        frame.parts = []
        self._sheet.word(start, self._at, parts, frame.run)
        if frame.awaits_delimiter:
            strips = frame.awaits_delimiter == "<<-"
            frame.awaits_delimiter = ""
            if any(part.kind is not Kind.TEXT for part in parts):
                raise Unreadable("the delimiter of a here-document is expanded")
            delimiter = "".join(part.text for part in parts)
            frame.heres.append((delimiter, any(part.quoted for part in parts), strips))
        elif len(parts) == 1 and not parts[0].quoted and parts[0].text in ("case", "esac"):
            self._count_case(frame, parts[0].text)

    def _count_case(self, frame: _Frame, word: str) -> None:
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

    def _end_number(self, frame: _Frame) -> None:
        """End the word before a redirection, which may be a file descriptor's number."""
        if frame.start < 0:
            return
        if len(frame.parts) == 1 and not frame.parts[0].quoted and frame.parts[0].kind is Kind.TEXT:
            text = frame.parts[0].text
            if text.isdigit() or _FD_NAME.fullmatch(text):
                self._sheet.word(frame.start, self._at, tuple(frame.parts), frame.run, "fd")
                frame.start = -1
                frame.parts = []
                return
        self._end_word(frame)
