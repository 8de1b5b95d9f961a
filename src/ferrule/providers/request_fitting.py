"""A request as its model can take it, whatever the API: words in the place of what it cannot see.

The conversation keeps pictures and documents, so that another model may see them.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, assert_never

from ..core.content import Block, Document, Image, Text
from ..core.model import AssistantTurn, ModelFacts, Request, ResultTurn, Turn, UserTurn

MOST_KEPT: Final = 256
"""Turns with pictures that are kept in their new form, so that each request begins with the same bytes."""


class RequestFitting:
    """Turns are recognized by identity: they never change."""

    def __init__(self) -> None:
        self._fitted: dict[tuple[int, bool, bool], tuple[Turn, Turn]] = {}

    def fit(self, request: Request, facts: ModelFacts) -> Request:
        limit = min(request.max_tokens or facts.most_output, facts.most_output)
        if request.max_tokens is not None or facts.states_output:
            request = replace(request, max_tokens=limit)
        if request.effort is None and facts.effort is not None:
            request = replace(request, effort=facts.effort)
        if facts.takes_images and facts.takes_documents:
            return request
        history = [self._turn(turn, facts) for turn in request.history]
        return replace(request, history=history)

    def _turn(self, turn: Turn, facts: ModelFacts) -> Turn:
        if not any(not _is_taken(block, facts) for block in _blocks_of(turn)):
            return turn
        key = (id(turn), facts.takes_images, facts.takes_documents)
        if key not in self._fitted:
            if len(self._fitted) >= MOST_KEPT:
                del self._fitted[next(iter(self._fitted))]
            self._fitted[key] = turn, _with_words(turn, facts)  # the turn is kept, so that its id stays its own
        return self._fitted[key][1]


def has_images(turns: Sequence[Turn]) -> bool:
    return any(isinstance(block, Image) for turn in turns for block in _blocks_of(turn))


def words_for(block: Image | Document) -> str:
    """What the model reads in its place.

    >>> words_for(Document("application/pdf", "AAAA" * 1000, "report.pdf"))
    '[the document report.pdf of 3,000 bytes, which this model cannot read]'
    """
    if isinstance(block, Document):
        named = f"the document {block.title}" if block.title else "a document"
        return f"[{named} of {len(block.base64) * 3 // 4:,} bytes, which this model cannot read]"
    size = _size(block)
    return f"[an image{f' of {size[0]}x{size[1]} pixels' if size else ''}, which this model cannot see]"


def _size(image: Image) -> tuple[int, int] | None:
    from ..host.documents.images import BadImage, size_of

    try:
        return size_of(b64decode(image.base64))
    except (BadImage, BadBase64, ValueError):
        return None


def _is_taken(block: Block, facts: ModelFacts) -> bool:
    match block:
        case Text():
            return True
        case Image():
            return facts.takes_images
        case Document():
            return facts.takes_documents
        case _:
            assert_never(block)


def _blocks_of(turn: Turn) -> Sequence[Block]:
    match turn:
        case UserTurn(content):
            return content
        case ResultTurn(results):
            return [block for result in results for block in result.content]
        case AssistantTurn():
            return ()


def _with_words(turn: Turn, facts: ModelFacts) -> Turn:
    match turn:
        case UserTurn(content):
            return UserTurn(_replace_blocks(content, facts))
        case ResultTurn(results, messages):
            return ResultTurn(
                tuple(replace(one, content=_replace_blocks(one.content, facts)) for one in results), messages
            )
        case AssistantTurn():
            return turn


def _replace_blocks(blocks: tuple[Block, ...], facts: ModelFacts) -> tuple[Block, ...]:
    return tuple(
        block if isinstance(block, Text) or _is_taken(block, facts) else Text(words_for(block)) for block in blocks
    )
