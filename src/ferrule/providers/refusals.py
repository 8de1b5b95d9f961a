"""What services say when a conversation is too long for a model, or holds a picture that it cannot see.

Each has words of its own, and some of them are on no page of documentation. tests/providers/refusals.json has them.
"""

from __future__ import annotations

import re

_CONTEXT = r"context[ _-]?(?:length|window|size|limit)|model length|prompt length|token limit|max(?:imum)? length"
_TOO_LONG = (
    r"(?:prompt|inputs?|conversation|messages|request)(?: \([^)]*\))? (?:is|are|was) too (?:long|large)"
    r"|prompt too (?:long|large)|too many (?:input )?tokens(?!.{0,5} please wait)"
    r"|input tokens exceed|token count exceeds"
    rf"|(?:exceed\w*|(?:longer|larger|greater) than|too (?:large|long|big) for).{{0,60}}?(?:{_CONTEXT})"
    rf"|(?:{_CONTEXT}).{{0,60}}?(?:exceed|overflow|is \d|of \d|of only \d|: \d|is too)"
    r"|context_length_exceeded|context_window_exceeded|ContextWindowExceeded|exceed_context_size"
    r"|prompt_tokens_exceeded|tokens_limit_reached|request_too_large|context the overflows"
    r"|reduce (?:the length of|your (?:prompt|input|message))|reduce the input token count|shorter or fewer inputs"
    r"|maximum number of (?:input )?tokens|input token count.{0,40}(?:exceed|only supports)"
    r"|exceeds? the (?:maximum|limit|configured limit|total tokens?).{0,40}tokens|token count of \d+ exceeds"
    r"|tokens? .{0,20}cannot exceed the total tokens? limit|max(?:imum)? tokens of \d+ exceeded"
    r"|`?inputs`? (?:tokens \+|must have less than)|prompt_tokens.{0,20}must be less than"
    r"|range of input length should be|exceed max message tokens|body too large for .{0,60}tokens"
    r"|number of input and maximum output tokens"
)
_ABOUT_ANSWERS = (
    r"maximum allowed number of output tokens|at most \d+ (?:completion|output) tokens|string_above_max_length"
)
"""A request that asks for too long an answer. No shorter conversation cures it."""
_NEVER_FITS = r"request too large|must be reduced in order to run"
_REQUESTED = r"limit:? (\d+).{0,40}requested:? (\d+)"
_WINDOWS = (
    r"> ?(\d+)",
    r"<= ?(\d+)",
    r"\[\d+, ?(\d+)\]",
    r"context length of \S+ is (\d+)",
    r"n_ctx\W{0,4}(\d+)",
    rf"(?:{_CONTEXT}|max_(?:model|seq)_len|tokens allowed|tokens? limit)(?! by\b| exceeds)\D{{0,40}}?(\d{{3,}})",
    r"(?:supports? up to|less than|max size:|maximum is|limit is|limit of|tokens of) (\d+)",
    r"limit:? (\d+)",
    r"(\d+)(?: tokens?)? (?:maximum|max)\b",
)
LEAST = 512
"""No model has a smaller window: such a number is something else."""

_IMAGES = (
    r"image_url|image input|input image|image content|multi-?modal|many-image|image dimensions|image exceeds"
    r"|too many images|\d+ images?\b|image\(s\)"
    r"|(?:process|decode|support\w*|invalid|accept\w*).{0,30}\b(?:image|picture|vision)"
    r"|\b(?:image|vision)s?\b.{0,40}(?:not (?:supported|enabled|allowed|available)|unsupported)"
    r"|PDF pages|PDF specified|process (?:the )?PDF|document\w* .{0,20}not supported|content.{0,20}must be a string"
)


def is_overflow(status: int, words: str) -> bool:
    """Whether a response with this status says that the conversation is too long.

    >>> is_overflow(429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000.")
    True
    >>> is_overflow(429, "Rate limit reached (TPM): Limit 30000, Used 29000, Requested 4500. Try again in 7s.")
    False
    """
    if status == 413:
        return True
    if status == 429:
        asked = _find(_REQUESTED, words)
        return bool(_find(_NEVER_FITS, words)) or (asked is not None and int(asked[2]) > int(asked[1]))
    if status not in (400, 422) and status < 500:
        return False
    return bool(_find(_TOO_LONG, words)) and not _find(_ABOUT_ANSWERS, words)


def window_in(words: str) -> int | None:
    """The number of tokens that the model can read, in such words.

    >>> window_in("prompt is too long: 215000 tokens > 200000 maximum"), window_in("Input is too long.")
    (200000, None)
    """
    plain = re.sub(r"(?<=\d)[,_](?=\d{3}\b)", "", words)
    for pattern in _WINDOWS:
        found = _find(pattern, plain)
        if found is not None and int(found[1]) >= LEAST:
            return int(found[1])
    return None


def is_about_images(status: int, words: str) -> bool:
    """Whether it is a picture or a document that such a response is about."""
    return (status in (400, 404, 415, 422) or status == 500) and bool(_find(_IMAGES, words))


def _find(pattern: str, words: str) -> re.Match[str] | None:
    """Compiled when a service has refused something: few runs need it."""
    return re.search(pattern, words, re.IGNORECASE)
