"""Scans expansions: variables, substitutions, double quotes, here-documents."""

from __future__ import annotations

import re

from .cursor import Cursor, Frame
from .quoting import decode_ansi
from .tokens import Here, PartKind, Unreadable, WordPart

_IN_DOUBLE = re.compile(r"""[^$`"\\]+""")
_IN_BRACES = re.compile(r"""[^$`"'\\{}]+""")
_IN_HERE = re.compile(r"[^$`\\]+")
_SINGLE = re.compile(r"'([^']*)'")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_NAME = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!_-])")
_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])\}")
_CLOSED = re.compile(r"[ \t\n]*\)")
_ARITHMETIC = re.compile(r"\$\(\(([A-Za-z0-9_ \t+*/%<>=!&|?:,$()-]*?)\)\)")


class Expansions(Cursor):
    """What a dollar sign, a backquote or a double quote begins, and the bodies of here-documents."""

    def _dollar(self, frame: Frame) -> None:
        text, at = self._text, self._at
        self._sheet.count_operators(1)
        if (found := _NAME.match(text, at)) or (found := _BRACED.match(text, at)):
            self._add(frame, WordPart(PartKind.VARIABLE, found[1], frame.quoted), at)
            self._at = found.end()
            return
        following = text[at + 1 : at + 2]
        if following == "(":
            self._dollar_parenthesis(frame)
        elif following == "{":
            if frame.mode == "braces":
                self._sheet.doubt("an expansion inside an expansion")
            self._add(frame, WordPart(PartKind.EXPANSION, "", frame.quoted), at)
            self._push(Frame("braces", "}", quoted=frame.quoted, start=at), 2)
        elif following == "[":
            raise Unreadable("`$[` is an obsolete form of arithmetic")
        elif following == "'" and not frame.quoted:
            self._ansi(frame)
        elif following == '"' and not frame.quoted:
            self._sheet.doubt("a translated string")
            self._add(frame, WordPart(PartKind.TEXT, "", True), at)
            self._at += 1
        else:
            if following == "\\":
                self._sheet.doubt("a dollar sign before a backslash")
            self._add(frame, WordPart(PartKind.TEXT, "$", True), at)
            self._at += 1

    def _dollar_parenthesis(self, frame: Frame) -> None:
        text, at = self._text, self._at
        if text.startswith("$((", at):
            found = _ARITHMETIC.match(text, at)
            if found is not None and found[1].count("(") == found[1].count(")") and "$(" not in found[1]:
                self._add(frame, WordPart(PartKind.NUMBER, found[1], frame.quoted), at)
                self._at = found.end()
                return
            self._sheet.doubt("arithmetic that is more than numbers and names")
        self._add(frame, WordPart(PartKind.OUTPUT, "", frame.quoted), at)
        self._push(Frame("commands", ")", run=self._sheet.substitute()), 2)

    def _ansi(self, frame: Frame) -> None:
        found = _ANSI.match(self._text, self._at)
        if found is None:
            raise Unreadable("`$'` is not closed")
        decoded = decode_ansi(found[1])
        if decoded is None:
            self._sheet.doubt("an escape that is not known")
        self._add(frame, WordPart(PartKind.TEXT, decoded or "", True), self._at)
        self._at = found.end()

    def _backtick(self, frame: Frame) -> None:
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
        self._add(frame, WordPart(PartKind.OUTPUT, "", frame.quoted), at)
        self._push(Frame("commands", "`", run=self._sheet.substitute()), 1)

    def _double_step(self, frame: Frame) -> None:
        text, at = self._text, self._at
        outer = self._stack[-2]
        if found := _IN_DOUBLE.match(text, at):
            self._add(outer, WordPart(PartKind.TEXT, found[0], True), at)
            self._at = found.end()
            return
        character = text[at]
        if character == '"':
            self._stack.pop()
            if outer.mode == "commands":
                outer.parts.append(WordPart(PartKind.TEXT, "", True))
            self._at += 1
        elif character == "\\":
            self._read_escape(outer, '$`"\\')
        elif character == "$":
            self._dollar(frame)
        else:
            self._backtick(frame)

    def _read_escape(self, outer: Frame, special: str) -> None:
        following = self._after_backslash()
        if following != "\n":
            kept = following if following in special else f"\\{following}"
            self._add(outer, WordPart(PartKind.TEXT, kept, True), self._at)
        self._at += 1 + len(following)

    def _braces_step(self, frame: Frame) -> None:
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

    def _fill_expansion(self, frame: Frame, inside: str) -> None:
        """Give the `${…}` part its text, now that its end is known."""
        for open_frame in reversed(self._stack):
            if open_frame.mode == "commands":
                for index in range(len(open_frame.parts) - 1, -1, -1):
                    part = open_frame.parts[index]
                    if part.kind is PartKind.EXPANSION and not part.text:
                        open_frame.parts[index] = WordPart(PartKind.EXPANSION, inside or "?", frame.quoted)
                        return
                return
            if open_frame.mode != "double":
                return

    def _here_document(self, delimiter: str, *, quoted: bool, strips: bool) -> None:
        start = at = self._at
        begins = False
        text = self._text
        while True:
            if at >= len(text):
                raise Unreadable(f"the here-document's `{delimiter}` is missing")
            close = text.find("\n", at)
            close = len(text) if close < 0 else close
            line = text[at:close].lstrip("\t") if strips else text[at:close]
            if line == delimiter:
                break
            begins = begins or line.startswith(delimiter)
            at = close + 1
        ends_it = self._stack[-1].closer == ")" and _CLOSED.match(text, close)
        if len(self._stack) > 1 and (begins or not ends_it):
            # There bash treats keywords as commands after one, and `EOF)` as its end.
            self._sheet.doubt("where a here-document inside a substitution ends")
        self._sheet.heres.append(Here(start, at, quoted))
        if quoted:
            self._at = close
            return
        # What is expanded in the body is scanned like the inside of double quotes; the closing line is then skipped.
        self._push(Frame("here", delimiter, quoted=True, end=at, start=close), 0)

    def _here_step(self, frame: Frame) -> None:
        text, at = self._text, self._at
        if found := _IN_HERE.match(text, at):
            self._at = min(found.end(), frame.end)
        elif text[at] == "\\":
            self._at += 2
        elif text[at] == "$":
            self._dollar(frame)
        else:
            self._backtick(frame)

    def _leave_here(self, frame: Frame) -> None:
        if self._at > frame.end:
            self._sheet.doubt("an expansion that goes beyond its here-document")
        self._stack.pop()
        self._at = max(self._at, frame.start)
