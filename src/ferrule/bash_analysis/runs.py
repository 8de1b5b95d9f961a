"""Parses runs of tokens as simple commands: assignments, words, redirections."""

from __future__ import annotations

import re
from collections import defaultdict

from .analysis_budget import AnalysisBudget
from .quoting import from_bytes_text
from .shell_state import ShellState
from .shell_words import Evaluation, Word
from .syntax import Redirection, Simple, Syntax
from .tokens import PartKind, Token, WordPart

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^]]*\])?(\+?)=")

_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "select", "in", "case", "esac", "{"}
    | {"}", "!", "function"}
)
_SEPARATORS = frozenset({"|", "|&", "&&", "||", ";", "&", ";;", ";&", ";;&", "(", ")", "(("})


class Runs:
    """The runs of one syntax. What cannot be parsed with certainty is added to `doubts`."""

    def __init__(self, syntax: Syntax, doubts: list[str], budget: AnalysisBudget) -> None:
        self._budget = budget
        self.doubts = doubts
        self._text = syntax.text
        self._runs: dict[int, list[Token]] = defaultdict(list)
        self._visited: set[int] = set()
        for token in syntax.scan.tokens if not syntax.scan.substitutions else syntax.in_order():
            self._runs[token.run].append(token)

    def visit(self, run: int) -> None:
        """Marks the run as read."""
        self._visited.add(run)

    def left_over(self) -> bool:
        """Whether some run that is more than keywords was never read."""
        return any(
            run not in self._visited and any(self._is_content(token) for token in tokens)
            for run, tokens in self._runs.items()
        )

    def simple(self, run: int, start: int, state: ShellState, piped_from: tuple[int, ...]) -> Simple | None:
        """The simple command of a run, from `start` on."""
        self._visited.add(run)
        reading = _Reading(Evaluation(state.names, self._text, self._budget), self._text, self.doubts)
        begun = False
        for token in self._runs[run]:
            is_word = not token.operator
            if not begun and is_word and self._is_keyword(token):
                continue
            if token.start < start:
                # Only keywords precede a command, and the name of a function that `function` defines.
                if self._text[self._runs[run][0].start :][:8] != "function":
                    self.doubts.append("where a command begins")
                continue
            begun = True
            if token.operator not in _SEPARATORS:
                reading.take(token)
        if not begun:
            self.doubts.append("a keyword where a command is expected")
        return reading.simple(state, piped_from)

    def _is_keyword(self, token: Token) -> bool:
        parts = token.parts
        return len(parts) == 1 and not parts[0].quoted and parts[0].text in _KEYWORDS

    def _is_content(self, token: Token) -> bool:
        return token.operator not in _SEPARATORS and not self._is_keyword(token)


class _Reading:
    """One simple command being assembled from its tokens."""

    def __init__(self, evaluation: Evaluation, text: str, doubts: list[str]) -> None:
        self._evaluation = evaluation
        self._text = text
        self._doubts = doubts
        self._words: list[Word] = []
        self._assignments: list[tuple[str, Word]] = []
        self._redirections: list[Redirection] = []
        self._number: Token | None = None
        self._operator: Token | None = None
        self._first = self._last = -1

    def take(self, token: Token) -> None:
        if self._first < 0:
            self._first = token.start
        self._last = token.end
        if self._operator is not None:
            self._redirect(self._operator, token)
        elif token.operator == "fd":
            self._number = token
        elif token.operator:
            self._operator = token
        elif self._words:
            self._words.extend(self._evaluation.words(token))
        elif not self._assign(token):
            if any(part.kind is not PartKind.TEXT for part in token.parts):
                self._doubts.append(f"the name of the program, {self._source(token)}")
            self._words.extend(self._evaluation.words(token))

    def simple(self, state: ShellState, piped_from: tuple[int, ...]) -> Simple | None:
        self._doubts.extend(self._evaluation.doubts)
        if self._operator is not None:
            self._doubts.append("a redirection to nothing")
        if self._first < 0:
            return None
        source = from_bytes_text(self._text[self._first : self._last])
        words, assignments, redirections = tuple(self._words), tuple(self._assignments), tuple(self._redirections)
        return Simple(words, assignments, redirections, state, source, piped_from)

    def _redirect(self, operator: Token, target: Token) -> None:
        if target.operator:
            self._doubts.append("a redirection to nothing")
        number = self._text[self._number.start : self._number.end] if self._number else ""
        self._operator = self._number = None
        if operator.operator in ("<<", "<<-"):
            return
        found = self._evaluation.words(target)
        word = found[0] if len(found) == 1 else Word(None, many=True, source=self._source(target))
        self._redirections.append(Redirection(operator.operator, number, word))

    def _assign(self, token: Token) -> bool:
        """Takes the token as an assignment, if it is one."""
        first = token.parts[0]
        if first.quoted or "=" not in first.text:
            return False
        found = ASSIGNMENT.match(first.text) if first.kind is PartKind.TEXT else None
        if found is None:
            return False
        name, subscript, adds = found.groups()
        rest = [part for part in token.parts[1:] if part.text or part.kind is not PartKind.TEXT]
        if first.text[found.end() :]:
            rest.insert(0, WordPart(PartKind.TEXT, first.text[found.end() :], False))
        value = self._evaluation.value(rest, f"${name}") if rest else Word.of_text("")
        if subscript or adds:
            self._doubts.append("an assignment to part of a variable")
        if subscript or adds or value.many:
            value = Word(None, source=f"${name}")
        self._assignments.append((name, value))
        return True

    def _source(self, token: Token) -> str:
        return from_bytes_text(self._text[token.start : token.end])
