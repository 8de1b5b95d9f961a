"""Markdown with a head in YAML, as files of skills and agents are written.

Values of the head are texts, lists and mappings and nothing else: what is a
number or a boolean is for the reader of the key to say. Anchors are refused,
since a few lines of them can expand to an endless structure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from ...core.values import plain_value

if TYPE_CHECKING:
    from yaml import YAMLError

LONGEST_HEAD: Final = 64 << 10
"""Characters. Heads are a few lines; a parser is slow on what is made to be slow."""

_HEAD: Final = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PLAIN_LINE: Final = re.compile(
    r"^([A-Za-z][\w-]*):[ \t]+([^\s\"'\[{|>&*!#].*?|\[[^\]\n]*\][ \t]*[^\s#].*?)[ \t]*$", re.MULTILINE
)
"""Also one that continues after a closed bracket, as in `[file] [line]`."""


class BadHead(ValueError):
    """The head cannot be read. The message says why, in words for whoever wrote the file."""


@plain_value
class HeadedText:
    head: Mapping[str, Any]
    body: str


def split_head(text: str) -> HeadedText:
    """The head and what follows it; a text without a head is all body. Raises `BadHead`.

    >>> split_head("---\\nname: x\\n---\\nDo it.").head
    {'name': 'x'}
    """
    found = _HEAD.match(text)
    if found is None:
        if re.match(r"\ufeff?---[ \t]*\r?\n", text):
            raise BadHead("its head has no end. Close it with a line of three hyphens")
        return HeadedText({}, text)
    return HeadedText(_head(found[1]), text[found.end() :])


def _head(text: str) -> Mapping[str, Any]:
    import yaml

    class Loader(yaml.BaseLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):  # pyright: ignore[reportUnknownMemberType]
                raise BadHead("its head uses a YAML anchor, which is not supported. Write the value out")
            return super().compose_node(parent, index)

    def load(text: str) -> Any:
        return yaml.load(text, Loader)

    if len(text) > LONGEST_HEAD:
        raise BadHead(f"its head is longer than {LONGEST_HEAD:,} characters")
    try:
        try:
            head = load(text)
        except yaml.YAMLError:
            # A colon in a sentence does not make a mapping, nor a hint in brackets a list, whatever YAML says.
            head = load(_PLAIN_LINE.sub(_quote, text))
    except yaml.YAMLError as error:
        raise BadHead(f"its head is not valid YAML: {_problem(error)}") from None
    except RecursionError:
        raise BadHead("its head is nested too deeply") from None
    if head is None or head == "":
        return {}
    if not isinstance(head, dict):
        raise BadHead("its head is not a list of keys with values")
    return {str(key): value for key, value in cast(dict[Any, Any], head).items()}


def _quote(line: re.Match[str]) -> str:
    value = line[2].replace("\\", "\\\\").replace('"', '\\"')
    return f'{line[1]}: "{value}"'


def _problem(error: YAMLError) -> str:
    problem = getattr(error, "problem", None) or "it cannot be read"
    mark = getattr(error, "problem_mark", None)
    return f"{problem}, in line {mark.line + 2}" if mark is not None else str(problem)
