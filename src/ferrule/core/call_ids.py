"""Ids of calls, each once in a conversation.

Services refuse a conversation with two calls of one id, and keep refusing it
for as long as it is kept. Models behind other services give the same id twice,
give none, or count anew in every message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from .model import AssistantTurn, Turn

_ODD = re.compile(r"[^a-zA-Z0-9_-]")


def narrow_id(text: str) -> str:
    """As the service with the narrowest alphabet takes it.

    >>> narrow_id("a.b"), narrow_id("")
    ('a_b', '_')
    """
    return _ODD.sub("_", text) or "_"


class CallIds:
    """The ids that a conversation has used. Two that would be one on the wire are the same."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self._taken = {narrow_id(call.id) for turn in turns if isinstance(turn, AssistantTurn) for call in turn.calls}

    def claim(self, given: str) -> str:
        """The id itself if it is free, otherwise a new one. It is taken from then on."""
        id = given
        while not id or narrow_id(id) in self._taken:
            id = f"call_{os.urandom(9).hex()}"
        self._taken.add(narrow_id(id))
        return id
