"""Markdown with a head in YAML, as files of skills and agents are written.

Values of the head are texts, lists and mappings and nothing else: what is a
number or a boolean is for the reader of the key to say. Most heads are plain
lines, which are read without the YAML library; the outcome is the same. Many
are not quite YAML: a colon in a sentence, `tools: *`, a tab. Those are read
as their author meant them, and `HeadedText.fault` says what is wrong. Anchors
are never followed, since a few lines of them can expand to an endless structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from ...core.values import plain_value

if TYPE_CHECKING:
    from yaml import YAMLError

LONGEST_HEAD: Final = 64 << 10
"""Characters. Heads are a few lines; a parser is slow on what is made to be slow."""

_BEGIN: Final = re.compile(r"\ufeff?---[ \t]*\r?\n")
_END: Final = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_ODD: Final = re.compile(r"[\0-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that YAML refuses, or takes for the end of a line."""
_KEY: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,63}):(?: +(.*))?")
_ITEM: Final = re.compile(r"( *)- +(.+)")
_PLAIN: Final = re.compile(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`].*")
_QUOTED: Final = re.compile(r"\"([^\"\\]*)\"|'([^']*)'")
_WORDS: Final = re.compile(r"\[ ?((?:[A-Za-z0-9_./][A-Za-z0-9_./-]*, ?)*[A-Za-z0-9_./][A-Za-z0-9_./-]*) ?\]")
_HINT: Final = re.compile(r"\[[^\[\]{}\"':&*]*\] +[\[<A-Za-z].*")
"""`[file] [line]` is not YAML, but common for arguments, and there is no doubt what it means."""
_BLOCK: Final = re.compile(r"[|>]-?")
_LINE: Final = re.compile(r"^([A-Za-z][\w-]*):[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_LOOSE_KEY: Final = re.compile(r"([ \t]*)([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*))?")
_LOOSE_ITEM: Final = re.compile(r"[ \t]*-[ \t]+(.*)")
_LIMITING: Final = frozenset({"disallowed-tools", "disallowedTools", "hooks", "permissionMode", "tools"})
"""Keys that must not get lost in another one's text for a wrong indent, as the file would then allow more."""


class BadHead(ValueError):
    """The head cannot be read. The message says why, in words for whoever wrote the file."""


@plain_value
class HeadedText:
    head: Mapping[str, Any]
    body: str
    fault: str = ""
    """Why the head is not valid YAML, if so; it was read as it was meant."""

    def with_body(self, body: str) -> HeadedText:
        return HeadedText(self.head, body, self.fault)


def split_head(text: str) -> HeadedText:
    """The head and what follows it; a text without a head is all body. Raises `BadHead`.

    >>> split_head("---\\nname: x\\n---\\nDo it.").head
    {'name': 'x'}
    >>> split_head("---\\ntools: *\\n---\\n").head
    {'tools': '*'}
    """
    begin = _BEGIN.match(text)
    if begin is None:
        return HeadedText({}, text)
    end = _END.search(text, begin.end())
    if end is None:
        raise BadHead("its head has no end. Close it with a line of three hyphens")
    head, body = text[begin.end() : end.start()], text[end.end() :]
    if len(head) > LONGEST_HEAD:
        raise BadHead(f"its head is longer than {LONGEST_HEAD:,} characters")
    plain = _PlainLines(head.replace("\r\n", "\n")).read()
    return plain.with_body(body) if plain else _read_yaml(head, body)


class _PlainLines:
    """Reads heads of plain lines, lists and blocks of text as YAML does, only quicker."""

    def __init__(self, text: str) -> None:
        self._is_odd = bool(_ODD.search(text))
        self._written = text.split("\n")
        self._lines = [line.rstrip(" ") for line in self._written]
        self._at = 0
        self._fault = ""

    def read(self) -> HeadedText | None:
        """`None` where it takes more to know what YAML would say."""
        found: dict[str, str | list[str]] = {}
        while not self._is_odd and self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if not line or line[0] == "#":
                continue
            key = _KEY.fullmatch(line)
            value = self._value(key[2] or "") if key else None
            if key is None or value is None:
                return None
            found[key[1]] = value
        return None if self._is_odd else HeadedText(found, "", self._fault)

    def _value(self, said: str) -> str | list[str] | None:
        if not said:
            return self._items()
        if _BLOCK.fullmatch(said):
            return self._block(said)
        if words := _WORDS.fullmatch(said):
            return [word.strip() for word in words[1].split(",")]
        if _HINT.fullmatch(said) and " #" not in said:
            return said
        text = _text(said)
        if text is None and said == "*":
            self._note("a value begins with `*`")
            return said
        if text is None and _PLAIN.fullmatch(said) and " #" not in said:
            self._note("a value contains a colon")
            return said
        return text

    def _note(self, problem: str) -> None:
        self._fault = self._fault or f"{problem} and is not in quotes, in line {self._at + 1}"

    def _items(self) -> str | list[str] | None:
        items: list[str] = []
        indent = ""
        while self._at < len(self._lines) and (found := _ITEM.fullmatch(self._lines[self._at])):
            text = _text(found[2])
            if text is None or (items and found[1] != indent):
                return None
            indent = found[1]
            items.append(text)
            self._at += 1
        return items or ""

    def _block(self, marker: str) -> str | None:
        lines: list[str] = []
        while self._at < len(self._lines) and self._written[self._at].startswith(" "):
            lines.append(self._written[self._at])
            self._at += 1
        indent = len(lines[0]) - len(lines[0].lstrip(" ")) if lines else 0
        bare = [line[indent:] for line in lines]
        if not lines or any(not line or " " in (line[0], line[-1]) for line in bare) or not self._is_at_key():
            return None
        return (" " if marker[0] == ">" else "\n").join(bare) + ("" if marker.endswith("-") else "\n")

    def _is_at_key(self) -> bool:
        """A blank line or a comment may belong to the block, depending on what follows."""
        rest = self._lines[self._at :]
        return rest in ([], [""]) or bool(_KEY.fullmatch(rest[0]))


def _text(said: str) -> str | None:
    """What a text on one line says; `None` where it is not plainly one."""
    if quoted := _QUOTED.fullmatch(said):
        return quoted[1] or quoted[2] or ""
    plain = _PLAIN.fullmatch(said) and ": " not in said and " #" not in said and said[-1] != ":"
    return said if plain else None


def _read_yaml(text: str, body: str) -> HeadedText:
    """Strictly, then with the texts of single lines in quotes, then line by line. Raises `BadHead`."""
    head, fault = _load(text)
    if fault:
        head = _load(_LINE.sub(_quote, text))[0] or _read_lines(text)
    if head or not fault:
        return HeadedText(head, body, fault)
    raise BadHead(f"its head cannot be read: {fault}")


def _load(text: str) -> tuple[Mapping[str, Any], str]:
    """What YAML says, or why it says nothing."""
    import yaml

    class Loader(yaml.BaseLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):  # pyright: ignore[reportUnknownMemberType]
                raise yaml.MarkedYAMLError(problem="it uses an anchor, which is not supported")
            return super().compose_node(parent, index)

    quick = getattr(yaml, "CBaseLoader", Loader) if _is_shallow(text) else Loader
    try:
        head = yaml.load(text, quick)
    except yaml.YAMLError as error:
        return {}, _problem(error)
    except RecursionError:
        return {}, "it is nested too deeply"
    if head is None or head == "":
        return {}, ""
    if not isinstance(head, dict):
        return {}, "it is not a list of keys with values"
    return {str(key): value for key, value in cast(dict[Any, Any], head).items()}, ""


def _is_shallow(text: str) -> bool:
    """Whether the library's quick parser is safe with it and says the same: no anchors, no tags, little nesting."""
    odd = set("&*!%?\t") & set(text) or _ODD.search(text.replace("\r\n", "\n"))
    return not odd and len(text) < 8192 and sum(map(text.count, "[{-")) < 500


def _quote(line: re.Match[str]) -> str:
    """A colon in a sentence does not make a mapping, nor a hint in brackets a list, whatever YAML says."""
    value = line[2]
    if _QUOTED.fullmatch(value) or _WORDS.fullmatch(value) or re.fullmatch(r"[|>][+-]?", value):
        return line[0]
    value = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", " ")
    return f'{line[1]}: "{value}"'


def _read_lines(text: str) -> dict[str, Any]:
    """Each line that begins with a key is one; what follows belongs to it, as a list if it is one."""
    texts: dict[str, list[str]] = {}
    items: dict[str, list[str]] = {}
    current = ""
    for line in text.splitlines():
        key, item = _LOOSE_KEY.fullmatch(line), _LOOSE_ITEM.fullmatch(line)
        if key and (not key[1] or key[2] in _LIMITING):
            current = key[2]
            texts[current], items[current] = [_unquote(key[3] or "")], []
        elif current and item and not texts[current][0]:
            items[current].append(_unquote(item[1]))
        elif current:
            texts[current].append(line.strip())
    return {key: items[key] or "\n".join(_without_marker(lines)) for key, lines in texts.items()}


def _without_marker(lines: list[str]) -> Iterator[str]:
    yield from (line for at, line in enumerate(lines) if at or not re.fullmatch(r"[|>][+-]?", line))


def _unquote(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _problem(error: YAMLError) -> str:
    problem = getattr(error, "problem", None) or "it cannot be read"
    mark = getattr(error, "problem_mark", None)
    return f"{problem}, in line {mark.line + 2}" if mark is not None else str(problem)
