"""The value of a word, as far as it is certain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..core.values import plain_value
from .analysis_budget import AnalysisBudget
from .braces import TooManyWords, expand_braces, has_braces
from .quoting import from_bytes_text
from .tokens import PartKind, Token, WordPart

_GLOB = re.compile(r"[*?\[]")
_HIDDEN = re.compile(r"(^|/)\.[*?\[]")
_SPECIAL = re.compile(r"[*?\[{~]")
_ACTIVE = re.compile(r"[*?\[\\]")
_LATE_TILDE = re.compile(r"[=:]~")
"""bash expands these if the word looks like an assignment."""
_PLAIN_VALUE = re.compile(r"[^\s*?\[\]\\]*")
_BLANK = re.compile(r"[ \t\n]+")
_NUMBERS = frozenset("?#$!")
"""Parameters whose value is a number, which is never split."""
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_LENGTH = re.compile(rf"#({_NAME}|[0-9]+|[@*?])(\[[@*0-9]+\])?")
_DEFAULT = re.compile(rf"({_NAME}|[0-9]+|[@*])(:?[-+?])(.*)", re.DOTALL)
_SLICE = re.compile(rf"({_NAME}|[0-9]+|[@*]): ?(-?[0-9]+)(?::(-?[0-9]+))?")
_HARMLESS = re.compile(rf"({_NAME}|[0-9]+)(@[QUuLE]|(##?|%%?|//?|\^\^?|,,?)[^$`]*|\[[@*0-9]+\])")
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_]*")
_ASSIGNS = re.compile(r"[^=!<>]=[^=]|<<=|>>=|\+\+|--")
_INTEGER = re.compile(r"-?[0-9]{1,18}")


@plain_value
class Word:
    """One word of a command, or what is certain about it.

    >>> Word.of_text("-la").text
    '-la'
    """

    text: str | None
    """The word itself; `None` if it is not certain."""
    prefix: str = ""
    """What it certainly begins with."""
    many: bool = False
    """Whether it may be several words, or none."""
    pattern: bool = False
    """Whether it expands only to names in the place that `prefix` points to."""
    source: str = ""
    """How it is written, if its text is not certain."""
    glob: str = ""
    """For a pattern, the pattern itself, with quoted characters as one-character sets."""

    @classmethod
    def of_text(cls, text: str) -> Word:
        return cls(text, text)

    @property
    def shown(self) -> str:
        return self.source if self.text is None else self.text

    @property
    def is_pipe(self) -> bool:
        """Whether it is a process substitution and nothing more."""
        return self.prefix == "/dev/fd/" and self.source[:2] in ("<(", ">(") and self.source[-1:] == ")"

    @property
    def may_be_option(self) -> bool:
        if self.text is not None:
            return len(self.text) > 1 and self.text[0] == "-"
        return (self.many and not self.pattern) or not self.prefix or self.prefix[0] == "-"


@plain_value
class Names:
    """The values of names at one point of a command."""

    variables: Mapping[str, Word]
    home: str
    cwd: str | None
    """The working directory, if it is certain."""

    def of(self, name: str) -> Word | None:
        if name == "PWD":
            return Word.of_text(self.cwd) if self.cwd else None
        return self.variables.get(name)


class Evaluation:
    """Evaluates words, and collects what makes the command more than its words."""

    def __init__(self, names: Names, text: str, budget: AnalysisBudget) -> None:
        self._names = names
        self._text = text
        self._budget = budget
        self.doubts: list[str] = []

    def words(self, token: Token) -> list[Word]:
        """What the token becomes: one word, several for braces, none for an empty variable."""
        if len(token.parts) == 1:
            (part,) = token.parts
            if part.kind is PartKind.TEXT and (part.quoted or not _SPECIAL.search(part.text)):
                text = from_bytes_text(part.text)
                return [Word(text, text)]
        source = from_bytes_text(self._text[token.start : token.end])
        try:
            alternatives = self._alternatives(token.parts)
        except TooManyWords:
            self.doubts.append(f"the many words of {source}")
            return [Word(None, many=True, source=source)]
        return [word for parts in alternatives for word in self._word(parts, source)]

    def _alternatives(self, parts: Sequence[WordPart]) -> Sequence[Sequence[WordPart]]:
        if not has_braces(parts):
            return [parts]
        if not self._budget.words(1):
            raise TooManyWords
        alternatives = expand_braces(parts)
        if not self._budget.words(len(alternatives)):
            raise TooManyWords
        return alternatives

    def value(self, parts: Sequence[WordPart], source: str) -> Word:
        """What an assignment or a redirection makes of its word: nothing is split."""
        found = [*self._word([_quote_part(part) for part in parts], source)]
        return found[0] if len(found) == 1 else Word(None, many=True, source=source)

    def _word(self, parts: Sequence[WordPart], source: str) -> Iterator[Word]:
        if len(parts) == 1 and parts[0].kind is PartKind.VARIABLE and not parts[0].quoted:
            yield from self._bare_variable(parts[0].text, source)
            return
        building = _Building()
        for index, part in enumerate(parts):
            self._add(building, part, first=index == 0, last=index == len(parts) - 1)
        word = building.word(source)
        if word is not None:
            yield word

    def _bare_variable(self, name: str, source: str) -> Iterator[Word]:
        value = self._names.of(name)
        if name in _NUMBERS:
            yield Word(None, source=source)
        elif value is None or value.text is None:
            yield Word(None, prefix=value.prefix if value else "", many=True, source=source)
        else:
            yield from _split(value.text)

    def _add(self, building: _Building, part: WordPart, *, first: bool, last: bool) -> None:
        match part.kind:
            case PartKind.TEXT:
                text = part.text
                if first and not part.quoted and text.startswith("~"):
                    text = self._tilde(building, text, last=last)
                building.text(from_bytes_text(text), quoted=part.quoted)
            case PartKind.VARIABLE:
                building.value(self._names.of(part.text), quoted=part.quoted or part.text in _NUMBERS)
            case PartKind.EXPANSION:
                building.value(self._expansion(part.text), quoted=part.quoted and not _is_list(part.text))
            case PartKind.OUTPUT:
                building.value(None, quoted=part.quoted)
            case PartKind.FILE:
                building.value(Word(None, prefix="/dev/fd/"), quoted=True)
            case PartKind.NUMBER:
                self._arithmetic(part.text)
                building.value(None, quoted=True)

    def _tilde(self, building: _Building, text: str, *, last: bool) -> str:
        if text.startswith("~/") or (text == "~" and last):
            building.text(self._names.home, quoted=True)
            return text[1:]
        if text != "~":
            building.value(Word(None, prefix="~"), quoted=True)
        return text

    def _expansion(self, inside: str) -> Word | None:
        """The value of `${…}`; what assigns, looks through a name, or runs its value is a doubt."""
        if _LENGTH.fullmatch(inside):
            return None
        if found := _SLICE.fullmatch(inside):
            return self._slice(found[1], int(found[2]), found[3])
        if found := _DEFAULT.fullmatch(inside):
            return self._default(found[1], found[2], found[3])
        if not _HARMLESS.fullmatch(inside):
            self.doubts.append(f"the expansion ${{{from_bytes_text(inside)}}}")
        return None

    def _default(self, name: str, operator: str, other: str) -> Word | None:
        value = self._names.of(name)
        if value is None or value.text is None or any(mark in other for mark in "$`\\'\"~"):
            return None
        is_set = bool(value.text) or operator[0] != ":"
        if operator[-1] == "+":
            return Word.of_text(other if is_set else "")
        return value if is_set else Word.of_text(other)

    def _slice(self, name: str, offset: int, length: str | None) -> Word | None:
        value = self._names.of(name)
        if value is None or value.text is None or offset < 0 or (length or "0").startswith("-"):
            return None
        return Word.of_text(value.text[offset:][: int(length)] if length else value.text[offset:])

    def _arithmetic(self, expression: str) -> None:
        """A name in arithmetic is evaluated recursively, and so can run a command, unless it is a number."""
        for found in _IDENTIFIER.finditer(expression):
            value = self._names.of(found[0].lstrip("$"))
            if value is None or value.text is None or not _INTEGER.fullmatch(value.text):
                self.doubts.append(f"arithmetic with {found[0]}, whose value is not known")
        if _ASSIGNS.search(expression):
            self.doubts.append("arithmetic that assigns")


class _Building:
    """A word being assembled from its parts."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._globs: list[str] = []
        self._certain = True
        self._prefix: str | None = None
        self._many = False
        self._pattern = False
        self._quoted = False

    def text(self, text: str, *, quoted: bool) -> None:
        self._quoted = self._quoted or quoted
        if not quoted and (found := _LATE_TILDE.search(text)):
            self._freeze(text[: found.start() + 1])
            self._certain = False
            self._texts.append("\0")
        elif not quoted and (found := _GLOB.search(text)) and not (text == "[" and not self._texts):
            self._freeze(text[: found.start()])
            self._certain = False
            self._pattern = True
            self._many = True
        self._texts.append(text)
        self._globs.append(_ACTIVE.sub(r"[\g<0>]", text) if quoted else text)

    def value(self, value: Word | None, *, quoted: bool) -> None:
        self._quoted = self._quoted or quoted
        if value is not None and value.text is not None and (quoted or _PLAIN_VALUE.fullmatch(value.text)):
            self._texts.append(value.text)
            self._globs.append(_ACTIVE.sub(r"[\g<0>]", value.text))
            return
        self._freeze(value.prefix if value else "")
        self._certain = False
        if value is not None and value.pattern and quoted:
            self._pattern = not self._texts or self._pattern
            self._texts.append(value.prefix)
            self._globs.append(value.glob)
        elif not (value is not None and value.prefix == "~"):
            self._many = self._many or not quoted
            self._pattern = False
            self._texts.append("\0")  # a pattern after it has no certain place

    def _freeze(self, more: str) -> None:
        if self._prefix is None:
            self._prefix = "".join(self._texts) + more

    def word(self, source: str) -> Word | None:
        text = "".join(self._texts)
        if self._certain:
            return Word.of_text(text) if text or self._quoted else None
        # Names that contain `..`, or may be `..` themselves, have no certain place.
        unsure = text[len(self._prefix or "") :]
        pattern = self._pattern and "\0" not in text and ".." not in unsure and not _HIDDEN.search(text)
        glob = "".join(self._globs) if pattern else ""
        return Word(None, prefix=self._prefix or "", many=self._many, pattern=pattern, source=source, glob=glob)


def _split(text: str) -> Iterator[Word]:
    """The words that an unquoted variable with this value becomes."""
    for piece in _BLANK.split(text):
        if found := _ACTIVE.search(piece):
            yield Word(None, prefix=piece[: found.start()], many=True, source=piece)
        elif piece:
            yield Word.of_text(piece)


def _is_list(inside: str) -> bool:
    return "[@]" in inside or inside.startswith(("@", "!"))


def _quote_part(part: WordPart) -> WordPart:
    if part.kind is PartKind.TEXT and "~" in part.text:
        return part
    return WordPart(part.kind, part.text, True)
