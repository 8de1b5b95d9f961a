"""What a service that speaks chat completions does not take, and the words in which services say so.

An accent is known from the address of a service, or learned: a request that is refused with words of the table is
sent once more without what was refused, and so are all later ones of the run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from ..core.values import named_value
from .service_errors import Trouble

SHORT_DESCRIPTION: Final = 1_024


@named_value
class Accent:
    takes_stream: bool = True
    """Whether an answer to a request with tools may be streamed."""
    takes_stream_options: bool = True
    takes_tools: bool = True
    """If not, tools are described in the system prompt, and calls and results are text."""
    takes_system: bool = True
    """If not, the system prompt is the beginning of the user's first message."""
    takes_images: bool = True
    takes_documents: bool = True
    takes_reasoning_back: bool = True
    wants_reasoning_back: bool = False
    """Whether each message with calls must have some, also one that another model wrote."""
    takes_empty_content: bool = True
    """Whether a message of calls alone may have `null` as its text."""
    takes_user_after_tool: bool = True
    takes_any_id: bool = True
    """If not, ids of calls are nine letters and digits."""
    effort: Literal["sent", "capped", "none", "omitted"] = "sent"
    """`capped`: at most `high`. `none`: that word, with all requests."""
    limit: Literal["sent", "renamed", "omitted"] = "sent"
    """The longest answer. `renamed`: by the other of its two names."""
    longest_description: int | None = None
    """Of a tool; what is beyond that goes into the system prompt."""
    marks_cache: bool = False
    """Whether the service caches only what is marked for it."""
    opens_in_thought: bool = False
    """Whether its text begins with reasoning whose opening tag is not sent."""


PLAIN: Final = Accent()

_HOSTS: Final[tuple[tuple[str, str, Mapping[str, Any]], ...]] = (
    (r"(^|\.)mistral\.ai$", "", {"takes_user_after_tool": False, "takes_any_id": False}),
    (r"(^|\.)openai\.com$", "", {"longest_description": SHORT_DESCRIPTION}),
    (r"(^|\.)openai\.azure\.com$", "", {"longest_description": SHORT_DESCRIPTION}),
    (r"(^|\.)openrouter\.ai$", r"^~?(anthropic/|google/gemini)", {"marks_cache": True}),
    ("", r"(^|[/_-])(r1|qwq|z1)([-_:.]|$)|thinking", {"opens_in_thought": True}),
)
"""Host, model, and what follows; an empty pattern is any."""

_ALTERNATE = r"roles must alternate|alternating roles"
_REFUSED = r"not (permitted|supported|allowed)|unsupported|unrecognized|unknown|unexpected|extra_forbidden"
CAUSES: Final[tuple[tuple[str, Mapping[str, Any]], ...]] = (
    (r"stream_options", {"takes_stream_options": False}),
    (
        r"tools? (use )?(is |are )?not supported (in|with|when|for) stream|tools? (use )?in streaming mode"
        r"|tools? with stream|stream.{0,30}(not supported|unsupported).{0,40}tool|'stream' does not support true",
        {"takes_stream": False},
    ),
    (r"function tools with reasoning_effort are not supported", {"effort": "none"}),
    (r"effort.{0,120}(xhigh|'max')|(xhigh|'max').{0,80}effort", {"effort": "capped"}),
    (r"reasoning.?effort|does not support thinking|think value", {"effort": "omitted"}),
    (
        r"after role '?tool|role 'user' after",
        {"takes_user_after_tool": False, "takes_any_id": False},
    ),
    (r"reasoning_content.{0,80}(must|needs? to|should) be passed back", {"wants_reasoning_back": True}),
    (
        r"length of 9|length 9\b|alphanumeric strings with length|tool_call.{0,60}(pattern|too long|maximum length)"
        r"|tool_use\.id|tool_call_id.{0,60}(pattern|too long|maximum length)",
        {"takes_any_id": False},
    ),
    (
        r"description.{0,80}(too long|maximum length|at most|exceeds|string_above_max)"
        r"|string_above_max_length.{0,120}description",
        {"longest_description": SHORT_DESCRIPTION},
    ),
    (
        r"^(?!.*passed back).*?("
        rf"(reasoning_content|reasoning_details|thinking_blocks|\breasoning\b).{{0,80}}({_REFUSED})"
        rf"|({_REFUSED}).{{0,60}}(reasoning_content|reasoning_details|thinking_blocks|'reasoning')"
        r"|(do not|don't|should not|must not|cannot).{0,40}reasoning_content)",
        {"takes_reasoning_back": False},
    ),
    (
        r"does not support (the )?image|image.{0,40}(not supported|unsupported|not enabled|not allowed)|image_url"
        r"|support image|not a multimodal|0 image|multimodal (data|requests)|vision.{0,30}not|mmproj|no vision"
        r"|data required for image|images? (is|are) not|'content' field that is text",
        {"takes_images": False},
    ),
    (
        r"variant `file`|value: 'file'|type 'file'|content type.{0,20}\bfile\b|file.{0,30}not supported"
        r"|pdf.{0,40}support",
        {"takes_documents": False},
    ),
    (
        r"content.{0,60}(null\b|nonetype|none is not|field required|is required)|null.{0,30}content",
        {"takes_empty_content": False},
    ),
    (
        r"support(s|ing)? (the )?(native )?(tools?\b|function.?call)|param: tools|--jinja|enable-auto-tool-choice"
        r"|(tool|function)[ _-]?(call(ing|s)?|use|choice)`? (is|are) (not|un)|`?tools`? (is|are) not"
        rf"|['\"\.]tools?['\"],?.{{0,40}}({_REFUSED})|(argument|parameter)s?( supplied)?: '?(tools|functions)\b"
        r"|roleenum\.tool|role '?tool'? (is )?not|variant `tool`|'system', 'user' or 'assistant'",
        {"takes_tools": False},
    ),
    (
        rf"system role|system (message|instruction|prompt)s? (is|are) not|developer instruction|role.{{0,60}}'system'"
        rf"|role '?system'? (is )?not|(?<!optional system message, conversation ){_ALTERNATE}",
        {"takes_system": False},
    ),
    (_ALTERNATE, {"takes_tools": False}),
    (r"content.{0,40}(must be|should be|expected) (a |an? valid )?string", {"takes_images": False}),
    (
        r"'max_tokens' is not supported|use 'max_completion_tokens'|max_completion_tokens.{0,80}"
        rf"({_REFUSED})|({_REFUSED}).{{0,60}}max_completion_tokens",
        {"limit": "renamed"},
    ),
    (
        r"max(_completion|_output)?_tokens.{0,60}(too large|too high|less than|at most|exceed|valid range|maximum)",
        {"limit": "omitted"},
    ),
)
"""What services say, and what to do about it. The first row that says something new is used."""
_STATUSES: Final = frozenset({400, 404, 405, 415, 422, 500, 501})


def accent_for(host: str, model: str) -> Accent:
    """What is known before the first request.

    >>> accent_for("api.mistral.ai", "devstral").takes_user_after_tool
    False
    """
    accent = PLAIN
    for host_pattern, model_pattern, change in _HOSTS:
        if re.search(host_pattern, host.lower()) and re.search(model_pattern, model.lower()):
            accent = replace(accent, **change)
    return accent


def learn_accent(accent: Accent, trouble: Trouble) -> Accent | None:
    """The accent that the refusal asks for; `None` if it names no cause, or one that is heeded already."""
    if trouble.status not in _STATUSES or trouble.kind not in ("request", "overload"):
        return None
    for pattern, change in CAUSES:
        if re.search(pattern, trouble.said, re.IGNORECASE | re.DOTALL):
            changed = replace(accent, **change)
            if changed != accent:
                return changed
    return None
