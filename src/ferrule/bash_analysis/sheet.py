"""Where the scanner writes down its tokens, within limits."""

from __future__ import annotations

from .tokens import Here, Scan, Token, Unreadable, WordPart

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
