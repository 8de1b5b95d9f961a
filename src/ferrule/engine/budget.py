"""Results of any size: a long one is saved whole, and the model gets both ends and the path."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ..core.calls import ToolOutcome
from ..core.content import Block, Text
from ..core.ports import SpillStore
from ..core.tool import AnyTool, Keep
from ..core.values import named_value, plain_value

MESSAGE_LIMIT = 200_000
PREVIEW = 2_000
LEAST_PREVIEW = 300
"""Below this a pointer to the saved result would be longer than the result."""
GAP = "\n\n"
LONGEST_CHARACTER = 64
"""Code points after which even the most decorated character may be cut."""
IN_A_THREAD = 256 * 1024
"""Longer texts are saved in a thread, so that a slow disk blocks nothing else."""


@plain_value
class Fitted:
    content: tuple[Block, ...]
    produced: int
    sent: int
    saved_to: str | None


@named_value
class Budget:
    """Limits in characters. A setting under a tool's name takes precedence over the tool's own limit."""

    spill: SpillStore | None = None
    limits: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    keep: Keep | None = None
    message_limit: int = MESSAGE_LIMIT

    def within(self, tool: AnyTool, content: tuple[Block, ...]) -> Fitted | None:
        """The content, if it is within the tool's limit."""
        limit, size = self._limit(tool), text_size(content)
        return Fitted(content, size, size, None) if limit is None or size <= limit else None

    async def fit(self, call_id: str, tool: AnyTool, content: tuple[Block, ...]) -> Fitted:
        """The content if it is within the tool's limit; otherwise its ends, with the whole saved."""
        fitted = self.within(tool, content)
        return fitted or await self._spill(call_id, content, self._limit(tool) or 0, self.keep or tool.keep)

    def _limit(self, tool: AnyTool) -> int | None:
        return self.limits.get(tool.name, tool.result_limit) if self.limits else tool.result_limit

    def holds_all(self, outcomes: Sequence[ToolOutcome]) -> bool:
        """Whether the results of one message are within their common limit."""
        return sum(text_size(outcome.content) for outcome in outcomes) <= self.message_limit

    async def share(self, outcomes: Sequence[ToolOutcome]) -> list[ToolOutcome]:
        """All results of one message share a limit as well; the largest are cut first."""
        shared = list(outcomes)
        if self.holds_all(shared):
            return shared
        sizes = [text_size(outcome.content) for outcome in shared]
        total = sum(sizes)
        preview = max(LEAST_PREVIEW, min(PREVIEW, self.message_limit // len(shared)))
        for index in sorted(range(len(shared)), key=lambda index: -sizes[index]):
            if total <= self.message_limit or sizes[index] <= preview:
                break
            shared[index] = await self._shrunk(shared[index], preview)
            total += text_size(shared[index].content) - sizes[index]
        return shared

    async def _shrunk(self, outcome: ToolOutcome, preview: int) -> ToolOutcome:
        record = outcome.record
        fitted = await self._spill(
            outcome.call.id, outcome.content, preview, "both", saved_to=record.saved_to if record else None
        )
        if record:
            record.sent_chars, record.saved_to = fitted.sent, fitted.saved_to
        return replace(outcome, content=fitted.content)

    async def _spill(
        self, call_id: str, content: tuple[Block, ...], limit: int, keep: Keep, saved_to: str | None = None
    ) -> Fitted:
        text = "\n".join(block.text for block in content if isinstance(block, Text))
        if saved_to is None:
            where, trouble = await self._save(call_id, text)
            short = Text(clip(text, limit, keep, _place(where) if where else trouble))
        else:
            where, short = saved_to, Text(_clip_again(text, limit, keep, _place(saved_to)))
        rest = tuple(block for block in content if not isinstance(block, Text))
        return Fitted((short, *rest), len(text), len(short.text), where)

    async def _save(self, call_id: str, text: str) -> tuple[str | None, str]:
        if self.spill is None:
            return None, "the rest was not kept"
        try:
            if len(text) < IN_A_THREAD:
                return self.spill.save(call_id, text), ""
            return await asyncio.to_thread(self.spill.save, call_id, text), ""
        except OSError as error:
            return None, f"the rest could not be saved: {error.strerror or error}"


def text_size(content: tuple[Block, ...]) -> int:
    size = 0
    for block in content:
        if isinstance(block, Text):
            size += len(block.text)
    return size


def clip(text: str, limit: int, keep: Keep, note: str) -> str:
    """At most `limit` characters, with the exact count of what is left out.

    >>> clip("a" * 500 + "z" * 500, 60, "both", "not saved").split()
    ['aaaaa', '[...', '990', 'characters', 'left', 'out;', 'not', 'saved', '...]', 'zzzzz']
    """
    if len(text) <= limit:
        return text
    return _ends(text, text, len(text), limit, keep, note)


def _clip_again(text: str, limit: int, keep: Keep, note: str) -> str:
    """A text that was clipped before, with the count of all that is left out by now."""
    before = re.search(re.escape(_notice(0, note)).replace("0", "([0-9,]+)", 1), text)
    if before is None:
        return clip(text, limit, keep, note)
    head, tail = text[: before.start()].removesuffix(GAP), text[before.end() :].removeprefix(GAP)
    total = len(head) + int(before[1].replace(",", "")) + len(tail)
    return _ends(head, tail, total, limit, keep, note)


def _ends(start: str, end: str, total: int, limit: int, keep: Keep, note: str) -> str:
    """The first of `start` and the last of `end`, where both belong to a text of `total` characters."""
    room = max(0, limit - len(_notice(total, note)) - 2 * len(GAP))
    head = {"head": room, "both": room - room // 2, "tail": 0}[keep]
    first = _boundary(start, min(head, len(start)), step=-1)
    last = _boundary(end, max(0, len(end) - (room - head)), step=1)
    parts = (start[:first], _notice(total - first - (len(end) - last), note), end[last:])
    return GAP.join(part for part in parts if part)


def _place(path: str) -> str:
    return f"the whole result is in {path}"


def _notice(count: int, note: str) -> str:
    return f"[... {count:,} characters left out; {note} ...]"


def _boundary(text: str, index: int, *, step: int) -> int:
    """The nearest place from `index` on that does not split what a person sees as one character."""
    for _ in range(LONGEST_CHARACTER):
        if not (0 < index < len(text) and _is_joined(text[index - 1], text[index])):
            break
        index += step
    return index


def _is_joined(before: str, after: str) -> bool:
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    return (
        unicodedata.category(after).startswith("M")
        or after == "\u200d"
        or before == "\u200d"
        or "\u1160" <= after <= "\u11ff"  # a Hangul vowel or final
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # a skin tone
        or "\U000e0020" <= after <= "\U000e007f"  # a tag
        or ("\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff")  # a flag
    )
