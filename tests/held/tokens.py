"""Secrets that can be recognised."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Iterator
from uuid import uuid4


class Tokens:
    """A word for each secret, and where it can be recognised again."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    def of(self, name: str) -> str:
        return self._words.setdefault(name, f"CANARY{uuid4().hex}")

    def know(self, name: str, word: str) -> None:
        self._words[name] = word

    def found(self, text: str) -> set[str]:
        """Which of them a text gives away: as it is, backwards, in hexadecimal, in base64, or broken up."""
        joined = "".join(text.split())
        lower = joined.lower()
        return {
            f"read {name}"
            for name, word in self._words.items()
            if base64.b64encode(word.encode())[:40].decode() in joined or any(form in lower for form in _forms(word))
        }


def _forms(word: str) -> Iterator[str]:
    word = word.lower()
    yield word
    yield word[::-1]
    yield codecs.encode(word, "rot13")
    yield word.encode().hex()
    yield word.upper().encode()[:6].hex() + word.encode()[6:].hex()
