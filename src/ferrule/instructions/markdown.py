"""Instruction files as text: comments taken out, imports found, front matter read. No disk."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.values import plain_value

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:\\ |[^\s`])+)")
_TRAILING = ".,;:!?)]}>'\""


@plain_value
class FrontMatter:
    """What precedes the text of a rule."""

    paths: tuple[str, ...]
    body: str
    fault: str = ""
    """Why it could not be understood, if so."""


def without_comments(text: str) -> str:
    """Without HTML comments that begin a line; those in code stay, as they are shown and not meant.

    >>> without_comments("a\\n<!-- for people -->\\nb\\n")
    'a\\nb\\n'
    """
    kept: list[str] = []
    inside = False
    for line, in_code in _lines(text):
        if in_code and not inside:
            kept.append(line)
            continue
        rest, inside = _without_comment(line, inside)
        if rest is not None:
            kept.append(rest)
    return "".join(kept)


def _without_comment(line: str, inside: bool) -> tuple[str | None, bool]:
    """What is left of a line, `None` for nothing, and whether a comment continues after it."""
    if not inside and not line.lstrip().startswith("<!--"):
        return line, False
    start = 0 if inside else line.index("<!--")
    end = line.find("-->", start)
    if end < 0:
        return None, True
    rest = line[end + 3 :]
    if not rest.strip():
        return None, False
    return _without_comment(rest, inside=False)


def imports(text: str) -> list[str]:
    """The paths that the text imports with `@path`, in order; those in code are only shown.

    >>> imports("See @docs/a.md and `@b.md`, or mail me@example.com.")
    ['docs/a.md']
    """
    found: dict[str, None] = {}
    for line, in_code in _lines(text):
        if not in_code and "@" in line:
            for match in _IMPORT.finditer(_SPAN.sub(lambda span: " " * len(span[0]), line)):
                found[match[1].replace("\\ ", " ")] = None
    return list(found)


def readings(path: str) -> Iterator[str]:
    """The path as written, and without the punctuation of the sentence it ends.

    >>> list(readings("a.md)."))
    ['a.md).', 'a.md']
    """
    yield path
    shorter = path.rstrip(_TRAILING)
    if shorter and shorter != path:
        yield shorter


def front_matter(text: str) -> FrontMatter:
    """Of a rule file: only `paths` is used, as a list or as one comma-separated text.

    >>> front_matter("---\\npaths: src/**\\n---\\nBe careful.\\n").paths
    ('src/**',)
    """
    if not text.startswith("---\n"):
        return FrontMatter((), text)
    head, found, body = text[4:].partition("\n---\n")
    if not found:
        if not text.rstrip("\n").endswith("\n---"):
            return FrontMatter((), text, "its front matter has no end")
        head, body = text[4:].rstrip("\n").removesuffix("\n---"), ""
    lines = head.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("paths:"):
            return _paths(line.removeprefix("paths:").strip(), lines[number + 1 :], body)
    return FrontMatter((), body)


def _paths(value: str, following: list[str], body: str) -> FrontMatter:
    if not value:
        items: list[str] = []
        for line in following:
            if not line.strip().startswith("- "):
                break
            items.append(line.strip().removeprefix("- "))
    else:
        items = _split(value.removeprefix("[").removesuffix("]") if value.startswith("[") else _unquote(value))
    paths = tuple(filter(None, (_unquote(item.strip()) for item in items)))
    return FrontMatter(paths, body, "" if paths else "its `paths` could not be read")


def _split(text: str) -> list[str]:
    """At commas that are not in braces: `*.{ts,tsx}` is one pattern."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line with its end, and whether it is in a fenced block or is the edge of one."""
    fence = ""
    for line in text.splitlines(keepends=True):
        match = _FENCE.match(line)
        if fence:
            yield line, True
            if match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        else:
            fence = match[1] if match else ""
            yield line, bool(match)
