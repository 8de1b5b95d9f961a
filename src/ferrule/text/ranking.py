"""Which of several short texts fit a query best, by the words they share.

A rare word says more than a common one, a word in a weightier field more than
one in another, and each further time a word occurs says less (BM25 over fields).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

SATURATION: Final = 1.2
LENGTH: Final = 0.5
"""How much the length of a field lowers the weight of each of its words."""

Fields: TypeAlias = Sequence[tuple[str, float]]
"""Texts with their weights, in the same order for each document."""

_PART: Final = re.compile(r"[^\W_]+")
_PIECE: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_ENDINGS: Final = ("ing", "ies", "es", "ed", "s")


def rank_documents(query: str, documents: Mapping[str, Fields]) -> list[str]:
    """The names of the documents that share a word with the query, best first; of equals, by name.

    >>> rank_documents("edit notebooks", {"A": [("Read", 3), ("a page", 1)], "B": [("Edit", 3), ("a notebook", 1)]})
    ['B']
    """
    wanted = set(words(query))
    counted = {name: [(Counter(words(text)), weight) for text, weight in fields] for name, fields in documents.items()}
    rarity = {word: _rarity(word, counted) for word in wanted}
    usual = _usual_lengths(counted)
    scores = {
        name: sum(rarity[word] * _worth(word, fields, usual) for word in wanted) for name, fields in counted.items()
    }
    return sorted((name for name, score in scores.items() if score > 0), key=lambda name: (-scores[name], name))


def words(text: str) -> list[str]:
    """Lower-case words without their endings; `NotebookEdit` and `mcp__a__read_file` are several.

    >>> words("NotebookEdit read_files")
    ['notebook', 'edit', 'notebookedit', 'read', 'fil']
    """
    found: list[str] = []
    for part in _PART.findall(text):
        pieces = _PIECE.findall(part)
        found += (_stem(piece.lower()) for piece in pieces)
        if len(pieces) > 1:
            found.append(part.lower())
    return found


def _stem(word: str) -> str:
    """Crude, and the same for the query and what it is compared with."""
    for ending in _ENDINGS:
        if len(word) > len(ending) + 2 and word.endswith(ending):
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if len(word) > 3 else word


_Counted: TypeAlias = Mapping[str, list[tuple["Counter[str]", float]]]


def _rarity(word: str, counted: _Counted) -> float:
    holding = sum(any(word in counts for counts, _ in fields) for fields in counted.values())
    return math.log(1 + (len(counted) - holding + 0.5) / (holding + 0.5))


def _usual_lengths(counted: _Counted) -> list[float]:
    columns = zip(*([counts.total() for counts, _ in fields] for fields in counted.values()), strict=True)
    return [max(1.0, sum(column) / len(column)) for column in columns]


def _worth(word: str, fields: list[tuple[Counter[str], float]], usual: list[float]) -> float:
    found = sum(
        weight * counts[word] / (1 - LENGTH + LENGTH * counts.total() / length)
        for (counts, weight), length in zip(fields, usual, strict=True)
    )
    return found / (SATURATION + found)
