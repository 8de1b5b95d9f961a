"""Blocks sent to the model, and views shown to people. Plain data, no markup.

Both unions are closed: whoever draws a `View` or sends a `Block` matches over
all of it, so a new member is a type error until every frontend handles it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, assert_never

from .values import plain_value


@plain_value
class Text:
    text: str


@plain_value
class Image:
    media_type: str
    base64: str


@plain_value
class Document:
    media_type: str
    base64: str
    title: str = ""


Block: TypeAlias = Text | Image | Document


@plain_value
class Line:
    """One line; longer text is the frontend's to fold."""

    text: str


@plain_value
class Markdown:
    text: str


@plain_value
class Code:
    text: str
    path: str = ""
    first_line: int = 1


@plain_value
class Diff:
    """A change of one file, as a unified diff."""

    path: str
    patch: str


@plain_value
class Listing:
    """Some of `total` things."""

    items: tuple[str, ...]
    total: int


@plain_value
class Terminal:
    command: str
    output: str
    exit_code: int | None = None


@plain_value
class TodoItem:
    text: str
    state: Literal["pending", "in_progress", "completed"]


@plain_value
class Todo:
    items: tuple[TodoItem, ...]


@plain_value
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@plain_value
class Picture:
    """A small picture, and how large the whole one is in pixels."""

    media_type: str
    base64: str
    width: int
    height: int


View: TypeAlias = Line | Markdown | Code | Diff | Listing | Terminal | Todo | Table | Picture


def wire(block: Block) -> dict[str, Any]:
    """The block as the Anthropic Messages API writes it, safe to encode as UTF-8.

    >>> wire(Text("hi"))
    {'type': 'text', 'text': 'hi'}
    """
    match block:
        case Text(text):
            return {"type": "text", "text": encodable(text)}
        case Image(media_type, data):
            return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
        case Document(media_type, data, title):
            source = {"type": "base64", "media_type": media_type, "data": data}
            return {"type": "document", "source": source, **({"title": encodable(title)} if title else {})}
        case _:
            assert_never(block)


def encodable(text: str) -> str:
    """Lone surrogates (from undecodable bytes) become U+FFFD; everything else stays."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def join_halves(text: str) -> str:
    """Two halves of one character that came in two pieces become that character; a lone half stays.

    >>> join_halves("\\ud83d" + "\\ude00") == "\U0001f600", join_halves("\\ud83d") == "\\ud83d"
    (True, True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def plain_text(blocks: tuple[Block, ...]) -> str:
    """The text of the blocks, with a bracketed word for what is not text."""
    return "\n".join(b.text if isinstance(b, Text) else f"[{b.media_type}]" for b in blocks)
