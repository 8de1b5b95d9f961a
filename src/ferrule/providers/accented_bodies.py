"""Chat completion requests for services that do not take all of it: each part that an accent rules out, otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ..core.model import Request, ResultTurn, Turn
from .accents import Accent
from .json_fragments import encode_json
from .openai_calls import ID_LENGTH, short_id
from .openai_wire import (
    REASONING_FIELDS,
    RETURNED,
    Content,
    OpenAiBodies,
    content_parts,
    merge_users,
    messages_of,
    tool_object,
)

if TYPE_CHECKING:
    from ..core.tool import ToolSpec

_Message = dict[str, Any]
_UNSEEN: Final = {
    "image_url": "[A picture was here. This model cannot see pictures.]",
    "file": "[A document was here. This model cannot read documents.]",
}
DONE: Final = "Done."
"""What the model is taken to have said between results and a message of the user, where one must be there."""
_CACHED: Final = {"cache_control": {"type": "ephemeral"}}
_HOW_TO_CALL: Final = """\
# Tools

You call tools in writing. To call one, end your message with this, once for each call, and write nothing after it:

<tool_call>
{"name": "NAME OF THE TOOL", "arguments": {"NAME OF A PARAMETER": "VALUE"}}
</tool_call>

The name and the arguments are one JSON object. The next message has the results, each in <tool_response>, in the \
order of the calls. Never write a <tool_response> yourself. Where you only show how a call looks, put it into a fence.

These are the tools."""


class AccentedBodies(OpenAiBodies):
    """Encodes the whole conversation for each request, as what is sent for one turn depends on those beside it."""

    def __init__(self, model: str, *, limit_name: str, origin: str, accent: Accent) -> None:
        names = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
        super().__init__(
            model, limit_name=names[limit_name] if accent.limit == "renamed" else limit_name, origin=origin
        )
        self._accent = accent

    def body(self, request: Request) -> bytes:
        accent = self._accent
        messages = _fit_messages([one for turn in request.history for one in self._messages_of(turn)], accent)
        system = _system_text(request, accent)
        if system and accent.takes_system:
            messages.insert(0, {"role": "system", "content": system})
        elif system:
            messages = merge_users([{"role": "user", "content": system}, *messages])
        if accent.marks_cache:
            messages = _mark_cache(messages)
        body = self.head(request)
        if request.tools and accent.takes_tools:
            body["tools"] = [_fit_tool(tool, accent) for tool in request.tools]
        return encode_json({**body, "messages": messages})

    def _messages_of(self, turn: Turn) -> list[_Message]:
        """The notes of the engine belong to the results, so they may be at their end where no message may follow."""
        messages = messages_of(turn, self._origin)
        last = messages[-1] if messages else {}
        is_note = isinstance(turn, ResultTurn) and last.get("role") == "user" and isinstance(last["content"], str)
        if self._accent.takes_user_after_tool or not is_note or len(messages) == 1:
            return messages
        before = messages[-2]
        return [*messages[:-2], {**before, "content": f"{before['content']}\n\n{last['content']}".strip()}]

    def head(self, request: Request) -> dict[str, Any]:
        accent = self._accent
        head = super().head(request)
        if not accent.takes_stream and request.tools:
            head["stream"] = False
        if not (accent.takes_stream_options and head["stream"]):
            del head["stream_options"]
        if accent.limit == "omitted":
            head.pop(self._limit_name, None)
        match accent.effort:
            case "omitted":
                head.pop("reasoning_effort", None)
            case "none":
                head["reasoning_effort"] = "none"
            case "capped" if head.get("reasoning_effort") == "xhigh":
                head["reasoning_effort"] = "high"
            case _:
                pass
        return head


def _fit_messages(messages: list[_Message], accent: Accent) -> list[_Message]:
    unseen = [
        kind
        for kind, is_taken in (("image_url", accent.takes_images), ("file", accent.takes_documents))
        if not is_taken
    ]
    if unseen:
        messages = [{**message, "content": _in_words(message.get("content"), unseen)} for message in messages]
    if not accent.takes_reasoning_back:
        dropped = (*REASONING_FIELDS, *RETURNED)
        messages = [{key: value for key, value in one.items() if key not in dropped} for one in messages]
    if accent.wants_reasoning_back:
        name = REASONING_FIELDS[0]
        messages = [{name: "", **one} if one.get("tool_calls") else one for one in messages]
    if not accent.takes_tools:
        messages = _calls_as_text(messages)
    else:
        messages = [_with_short_ids(message, accent) for message in messages]
    messages = merge_users(messages)
    if not accent.takes_user_after_tool:
        messages = _user_after_assistant(messages)
    if not accent.takes_empty_content:
        messages = [{**one, "content": ""} if one.get("content") is None else one for one in messages]
    return messages


def _in_words(content: Content | None, kinds: Sequence[str]) -> Content | None:
    """The content with words in place of the parts of these kinds; plain text if nothing else is left."""
    if not isinstance(content, list):
        return content
    parts = [{"type": "text", "text": _UNSEEN[one["type"]]} if one["type"] in kinds else one for one in content]
    if any(part["type"] != "text" for part in parts):
        return parts
    return "\n\n".join(part["text"] for part in parts)


def _with_short_ids(message: _Message, accent: Accent) -> _Message:
    """With ids that the service takes. The same id always becomes the same other one."""
    if message["role"] == "tool":
        return {**message, "tool_call_id": _fit_id(message["tool_call_id"], accent)}
    if calls := message.get("tool_calls"):
        return {**message, "tool_calls": [{**call, "id": _fit_id(call["id"], accent)} for call in calls]}
    return message


def _fit_id(id: str, accent: Accent) -> str:
    is_short = len(id) == ID_LENGTH and id.isascii() and id.isalnum()
    return id if accent.takes_any_id or is_short else short_id(id)


def _user_after_assistant(messages: list[_Message]) -> list[_Message]:
    """A word of the model between results and what the user sent, which must not look like a result."""
    fitted: list[_Message] = []
    for message in messages:
        if message["role"] == "user" and fitted and fitted[-1]["role"] == "tool":
            fitted.append({"role": "assistant", "content": DONE})
        fitted.append(message)
    return fitted


def _calls_as_text(messages: list[_Message]) -> list[_Message]:
    """Calls in the text of the model, and results in that of the user."""
    names: dict[str, str] = {}
    written: list[_Message] = []
    for message in messages:
        if calls := cast(list[dict[str, Any]], message.get("tool_calls") or []):
            names |= {call["id"]: call["function"]["name"] for call in calls}
            text = "\n".join(filter(None, (message["content"], *(_call_text(call["function"]) for call in calls))))
            message = {**{key: value for key, value in message.items() if key != "tool_calls"}, "content": text}
        elif message["role"] == "tool":
            name = names.get(message["tool_call_id"], "")
            message = {"role": "user", "content": _result_text(name, str(message["content"]))}
        written.append(message)
    return written


def _call_text(function: Mapping[str, str]) -> str:
    name = encode_json(function["name"]).decode()
    return f'<tool_call>\n{{"name": {name}, "arguments": {function["arguments"]}}}\n</tool_call>'


def _result_text(name: str, text: str) -> str:
    """A result cannot end itself early and go on as the user."""
    quoted = text.replace("</tool_response", "<\\/tool_response")
    return f'<tool_response name="{name}">\n{quoted}\n</tool_response>'


def _system_text(request: Request, accent: Accent) -> str:
    parts = [request.system]
    if request.tools and not accent.takes_tools:
        parts += [_HOW_TO_CALL, *map(_tool_text, request.tools)]
    elif limit := accent.longest_description:
        rests = [(tool.name, _split_description(tool.description, limit)[1]) for tool in request.tools]
        if more := [f"## {name}\n\n{rest}" for name, rest in rests if rest]:
            parts += ["# More about the tools", *more]
    return "\n\n".join(filter(None, parts))


def _tool_text(tool: ToolSpec) -> str:
    schema = encode_json(dict(tool.input_schema)).decode()
    return f"## {tool.name}\n\n{tool.description}\n\nParameters, as a JSON schema: {schema}"


def _fit_tool(tool: ToolSpec, accent: Accent) -> dict[str, Any]:
    fitted = tool_object(tool)
    if accent.longest_description:
        function = fitted["function"]
        function["description"] = _split_description(tool.description, accent.longest_description)[0]
    return fitted


def _split_description(text: str, limit: int) -> tuple[str, str]:
    """The beginning, up to the end of a paragraph, line or sentence, and the rest.

    >>> _split_description("One sentence. Another one.", 20)
    ('One sentence.', 'Another one.')
    """
    if len(text) <= limit:
        return text, ""
    for end in ("\n\n", "\n", ". ", " "):
        at = text.rfind(end, limit // 3, limit - 1)
        if at > 0:
            at += len(end.rstrip())
            return text[:at].rstrip(), text[at:].lstrip()
    return text[:limit], text[limit:]


def _mark_cache(messages: list[_Message]) -> list[_Message]:
    """Marks on the system prompt and on the last two messages that are not the model's."""
    ours = [at for at, message in enumerate(messages) if message["role"] in ("user", "tool")][-2:]
    system = [0] if messages and messages[0]["role"] == "system" else []
    marked = list(messages)
    for at in (*system, *ours):
        parts = content_parts(marked[at]["content"])
        texts = [number for number, part in enumerate(parts) if part["type"] == "text"]
        if texts:
            parts = [{**part, **_CACHED} if number == texts[-1] else part for number, part in enumerate(parts)]
            marked[at] = {**marked[at], "content": parts}
    return marked
