"""Calls that a model wrote into its text, because its service or its template did not make calls of them.

Pure: text and offered tools in, text and calls out. Only tools that were offered are called. What has a mark of
its own (`<tool_call>`, `[TOOL_CALLS]` and the like) is a call wherever it is, except in code that the model shows:
a fence, or backticks in a line. JSON or Python without such a mark, also in a fence, is a call only as the last
thing of a message, and not where the words before it speak of an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ..core.values import plain_value
from .text_call_forms import OPENERS, SECTIONS, FormReader
from .written_text import TextCall

Piece: TypeAlias = str | TextCall

MOST_PLACES: Final = 200
"""Where a call may begin, in one message. More of them are a text about something else."""
_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^\n`]*)(?:\n|\Z)", re.MULTILINE)
_SHOWN: Final = frozenset({"", "json", "jsonc", "json5"})
"""Fences that may hold a call as well as anything else."""
_FOR_CALLS: Final = re.compile(r"tool[_-]?(call|code|use)s?|function[_-]?calls?|action")
_EXAMPLE: Final = re.compile(
    r"\bexample|\be\.g\.|\bfor instance|\bsuch as\b|\bwould\b|\bcould\b|\bmight\b|\blooks? like\b|\blike this\b"
    r"|\bformat|\bsyntax|\bschema\b|\bsample|\bdemonstrat|\billustrat|\bhypothetical|\btemplate|\bplaceholder"
    r"|\bdocument(s|ed|ation)\b|\binstead of\b|\bdo(es)? not (run|call|execute)|\bdon't (run|call|execute)|\bshaped\b",
    re.IGNORECASE,
)
_INVENTED: Final = re.compile(r"\s*(?:Observation:|<tool_response|<function_results?|<tool_result|\[TOOL_RESULTS\])")
"""A result that the model made up. What it does next rests on that, so it is not carried out."""
_QUOTED_LINE: Final = re.compile(r"\s*>(?!>>)")


@plain_value
class _Found:
    calls: list[TextCall]
    end: int


def find_text_calls(text: str, tools: Mapping[str, Mapping[str, Any]], *, is_cut: bool = False) -> list[Piece]:
    """The text with the calls in it; the text alone if there are none. `tools` are schemas by name.

    `is_cut` says that the end is missing: a call that is not complete is not completed then.

    >>> find_text_calls('Sure. <tool_call>{"name": "Read", "arguments": {"path": "a"}}</tool_call>', {"Read": {}})
    ['Sure. ', TextCall(name='Read', arguments={'path': 'a'})]
    """
    pieces: list[Piece] = []
    end = 0
    for start, found in _Scanner(text, FormReader(text, tools, may_close=not is_cut)).calls():
        pieces += [SECTIONS.sub("", text[end:start]), *found.calls]
        end = found.end
    pieces.append(text[end:])
    return [piece for piece in pieces if not isinstance(piece, str) or piece.strip()] or [text]


class _Scanner:
    """Walks through a text: what comes first, a fence, a mark, or a line that begins like a call."""

    def __init__(self, text: str, forms: FormReader) -> None:
        self._text = text
        self._forms = forms

    def calls(self) -> Iterator[tuple[int, _Found]]:
        at = 0
        patterns = (self._forms.openers, _FENCE, self._forms.bare)
        next_of = [pattern.search(self._text) for pattern in patterns]
        for _ in range(MOST_PLACES):
            for number, pattern in enumerate(patterns):
                if (one := next_of[number]) and one.start() < at:
                    next_of[number] = pattern.search(self._text, at)
            mark, fence, bare = next_of
            first = min((one.start() for one in next_of if one), default=-1)
            if first < 0:
                return
            if fence and fence.start() == first:
                found, next_at = self._fence(fence)
            elif mark and mark.start() == first:
                found, next_at = self._mark(mark)
            else:
                assert bare is not None
                found, next_at = self._bare(bare.end()), bare.end()
            if found:
                yield first, found
                if _INVENTED.match(self._text, found.end):
                    return
                at = found.end
            else:
                at = max(next_at, first + 1)

    def _mark(self, mark: re.Match[str]) -> tuple[_Found | None, int]:
        if self._is_quoted(mark.start()):
            return None, mark.end()
        read = self._forms.marked(mark)
        if read is None:
            return None, self._forms.after_openers(mark.end())
        calls, end = read
        if self._is_in_a_sentence(mark.start(), end) or (mark["react"] and self._is_example(mark.start())):
            return None, end
        return _Found(calls, end), end

    def _bare(self, at: int) -> _Found | None:
        """Only at the end of the text."""
        read = self._forms.bare_calls(at)
        if read is None or self._is_example(at):
            return None
        calls, end = read[0], self._forms.after_closers(read[1])
        return None if self._text[end:].strip() else _Found(calls, end)

    def _fence(self, fence: re.Match[str]) -> tuple[_Found | None, int]:
        """What is in it, and where it ends. One that does not end goes on to the end of the text."""
        closing = re.compile(rf"^[ \t]*{re.escape(fence[1])}[`~]*[ \t]*(?:\n|\Z)", re.MULTILINE)
        closed = closing.search(self._text, fence.end())
        inner_end, end = closed.span() if closed else (len(self._text), len(self._text))
        language = fence[2].strip().split(" ")[0]
        is_for_calls = _FOR_CALLS.fullmatch(language.lower()) or language in self._forms.tools
        is_last = not self._text[end:].strip() or bool(_INVENTED.match(self._text, end))
        if not is_last or not (is_for_calls or language.lower() in _SHOWN) or self._is_example(fence.start()):
            return None, end
        read = self._forms.fenced(fence.end(), inner_end, language)
        return (_Found(read, end), end) if read else (None, end)

    def _is_example(self, at: int) -> bool:
        """Whether the paragraph before it speaks of an example."""
        before = self._text[:at].rstrip()
        return bool(_EXAMPLE.search(before[before.rfind("\n\n") + 1 :]))

    def _is_quoted(self, at: int) -> bool:
        """In backticks, or in a line that quotes."""
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return line.count("`") % 2 == 1 or bool(_QUOTED_LINE.match(line))

    def _is_in_a_sentence(self, start: int, end: int) -> bool:
        """With words before and after it in its line: a sentence about a call."""
        before = self._text[self._text.rfind("\n", 0, start) + 1 : start]
        after = self._text[end:].partition("\n")[0]
        is_words = bool(after.strip()) and OPENERS.match(after.lstrip()) is None and not _INVENTED.match(after)
        return bool(before.strip()) and is_words
