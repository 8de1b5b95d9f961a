"""The forms in which models write calls into text: which marks begin one, and how what follows is read.

A form is a mark, then one of a few kinds of content: JSON, a name with JSON, elements with parameters, Python.
Any mark may be followed by any content, because models mix them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from ..core.json_repair import NotRepairable, read_value, repair_object
from ..core.text_arguments import read_by_schema
from .call_objects import ARGUMENT_KEYS, BESIDE, NAME_KEYS, WRAPPERS, OfferedTools
from .pythonic_calls import read_python_calls
from .written_text import TextCall

Read: TypeAlias = tuple[list[TextCall], int]
"""Calls, and where they end."""

_TAG = r"(?:[A-Za-z]+:)?(?:[a-z]+_)?(?:tool|function)_?(?:calls?|use|code)"
OPENERS: Final = re.compile(
    r"(?P<react>^[ \t]*\**(?:Action|Tool(?: name| call)?|Function(?: call)?)\**:\**)|<tools>"
    rf"|<\|?{_TAG}\|?>|<{_TAG}\s+name=[\"'](?P<attribute>[\w.-]+)[\"']\s*>"
    r"|<[|\uff5c]tool[_▁]calls?[_▁](?:section[_▁])?(?:begin|start)[|\uff5c]>(?:\s*function<[|\uff5c]tool[_▁]sep[|\uff5c]>)?"
    r"|<\uff5cDSML\uff5cfunction_calls>|<\|python_tag\|>|\[TOOL_CALLS?\]|<\|START_ACTION\|>|<\|action_start\|>|<\|plugin\|>"
    r"|<\|assistant\|>\n?(?=\w)|<start_function_call>|<\|tools_prefix\|>|\bfunctools(?=\[)"
    r"|(?:<\|start\|>)?(?:assistant)?(?:<\|channel\|>)?(?:commentary|analysis|final)?[ ]*\bto=functions\."
    r"|(?:<\|start\|>assistant|<\|channel\|>(?:commentary|analysis))[ ]+to="
    r"|(?:<\|from\|>assistant\s*)?<\|recipient\|>[ ]*|^>>>(?=[\w.]+\n)"
    r"|(?=<(?:\uff5cDSML\uff5c)?(?:[a-z]+:)?(?:function(?:=|\s+name=)|invoke\s+name=))",
    re.MULTILINE | re.IGNORECASE,
)
_CLOSER = (
    rf"</(?:\uff5cDSML\uff5c)?(?:{_TAG}|function|invoke|parameter|[a-z]+:(?:function|invoke|parameter)|tools)>|<\|/{_TAG}\|>|<{_TAG}\|>"
    r"|<[|\uff5c]tool[_▁]calls?[_▁](?:section[_▁])?end[|\uff5c]>|<[|\uff5c]end[_▁]of[_▁]sentence[|\uff5c]>|</s>"
    r"|<\|(?:eom_id|eot_id|call|end|stop|im_end|END_ACTION|action_end|observation|user|tools_suffix|end_of_text|endoftext|return)\|>"
    r"|<end_function_call>|\[/TOOL_CALLS?\]"
)
CLOSERS: Final = re.compile(rf"\s*(?:{_CLOSER})", re.IGNORECASE)
_END: Final = re.compile(rf"\s*(?:{_CLOSER}|\Z)", re.IGNORECASE)
SECTIONS: Final = re.compile(r"^>>>all\n|<\|from\|>assistant\s*<\|recipient\|>all\s*<\|content\|>")
"""What a model that sorts its own text puts before the part for the user."""

_SEPARATORS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\[CALL_ID\]\s*[\w-]+",
        r"\[ARGS\]",
        r"<[|\uff5c]?tool[_▁](?:sep|call[_▁]argument[_▁]begin)[|\uff5c]?>",
        r"<\|channel\|>\s*\w*",
        r"<\|constrain\|>\s*\w*",
        r"<\|(?:message|content)\|>",
        r"\**Action[ _]?Input\**:\**",
        r"(?:arguments|parameters|args|params|input)\s*[:=](?=\s*[{`])",
        r"(?:json|code)\b(?=\s*[{<])",
        r"[:*]",
    )
)
MOST_CLOSERS: Final = 8
_OPEN_FENCE: Final = re.compile(r"`{3,}(?:json|python|tool_call|tool_code)?[ \t]*\n?")
_CLOSE_FENCE: Final = re.compile(r"\s*`{3,}")
_BLANK: Final = re.compile(r"\s*")
_NEXT_OBJECT: Final = re.compile(r"\s*[;,]?\s*(?=\{)")
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*(?::\d+)?")
_QUOTED_NAME: Final = re.compile(r"[`*\"']{1,3}([A-Za-z_][\w.-]*)[`*\"']{1,3}")
_COLON: Final = re.compile(r":\s*(?=[{\[])")
_ELEMENT: Final = re.compile(
    r"<(?:\uff5cDSML\uff5c)?(?:[a-z]+:)?(function|invoke)(?:=|\s+name=)[\"']?([\w.-]+)[\"']?(?:\s*>|(?=\s*\{))",
    re.IGNORECASE,
)
_ELEMENT_END: Final = re.compile(r"\s*</(?:\uff5cDSML\uff5c)?(?:[a-z]+:)?(?:function|invoke)>", re.IGNORECASE)
_PARAMETER: Final = re.compile(
    r"\s*<(?:\uff5cDSML\uff5c)?(?:[a-z]+:)?parameter(?:=|\s+name=)[\"']?([\w.-]+)[\"']?(?:\s+string=\"(\w+)\")?\s*>",
    re.IGNORECASE,
)
_AFTER_VALUE = r"(?=\s*(?:<(?:\uff5cDSML\uff5c)?(?:[a-z]+:)?parameter[=\s]|</|\Z))"
_VALUE_ENDS: Final = (
    re.compile(rf"</(?:\uff5cDSML\uff5c)?(?:[a-z]+:)?parameter>{_AFTER_VALUE}", re.IGNORECASE),
    re.compile(r"(?=<parameter[=\s]|</function>|</invoke>)", re.IGNORECASE),
)
_KEY: Final = re.compile(r"\s*<(?:[a-z]+_)?arg_key>\s*([\w.-]+)\s*</(?:[a-z]+_)?arg_key>\s*<(?:[a-z]+_)?arg_value>")
_KEY_END: Final = re.compile(r"</(?:[a-z]+_)?arg_value>(?=\s*(?:<(?:[a-z]+_)?arg_key>|</?(?:[a-z]+_)?tool_call>|\Z))")
_NAMED: Final = re.compile(r"<(name|tool_name|function_name|function|tool)>\s*([\w.-]+)\s*</\1>\s*")
_GIVEN: Final = re.compile(r"<(arguments|parameters|args|params|input|tool_input)>")
_GEMMA: Final = re.compile(r"call:([\w.-]+)\s*\{")
_GEMMA_TEXT: Final = re.compile(r"<escape>(.*?)<escape>|<\|\"\|>(.*?)<\|\"\|>", re.DOTALL)

_LIKE_A_CALL: Final = re.compile(
    rf"[\[\s]{{0,20}}\{{\s*[\"'“]?(?:{'|'.join((*NAME_KEYS, *ARGUMENT_KEYS, *WRAPPERS, *BESIDE))})\b"
)


class FormReader:
    """Reads the calls of one text. What cannot be a call of an offered tool is `None`."""

    def __init__(self, text: str, tools: Mapping[str, Mapping[str, Any]], *, may_close: bool = True) -> None:
        self._text = text
        self.tools = tools
        self._offered = OfferedTools(tools)
        self._may_close = may_close
        self._closers: list[int] | None = None
        names = "|".join(map(re.escape, tools)) or "(?!)"
        self._named_element = re.compile(rf"<({names})>\s*(?=<|\{{|</)")
        self.openers = re.compile(f"{OPENERS.pattern}|(?=<(?:{names})>)", OPENERS.flags)
        self.bare = re.compile(
            rf"^[ \t]*(?=[{{\[])|\A\s*(?=(?:print\()?(?:{names})\()|^[ \t]*(?=(?:{names})\n?[ \t]*\{{)", re.MULTILINE
        )

    def marked(self, mark: re.Match[str]) -> Read | None:
        """What follows a mark. Marks inside each other begin one call, or several."""
        at = mark.end()
        if name := mark["attribute"]:
            known = self._offered.known(name)
            read = self._arguments_of(known, at) if known else None
        else:
            read = self._content(self.after_openers(at))
        if read is None:
            return None
        calls, end = read
        while (another := self._another(end)) is not None:
            calls, end = [*calls, *another[0]], another[1]
        return calls, self.after_closers(end)

    def after_openers(self, at: int) -> int:
        while (inner := OPENERS.match(self._text, self._skip(at))) and inner.end() > inner.start():
            at = inner.end()
        return at

    def _another(self, at: int) -> Read | None:
        """One more call after the same mark: objects and calls in Python may follow each other."""
        if more := _NEXT_OBJECT.match(self._text, at):
            return self._json(more.end(), is_marked=True)
        found = _NAME.match(self._text, self._skip(at))
        is_call = found and self._offered.known(found[0]) and self._text[found.end() : found.end() + 1] == "("
        return self._python(found.start()) if found and is_call else None

    def after_closers(self, at: int) -> int:
        while closer := CLOSERS.match(self._text, at):
            at = closer.end()
        return at

    def bare_calls(self, at: int) -> Read | None:
        """JSON objects, a list of calls, or a name with its arguments, without a mark."""
        calls: list[TextCall] = []
        while (read := self._bare_one(at)) is not None:
            calls += read[0]
            end = read[1]
            at = len(self._text) - len(self._text[end:].lstrip(" \t\r\n;,"))
            if at >= len(self._text):
                return calls, end
        return (calls, self._end_before(at)) if calls else None

    def fenced(self, start: int, end: int, language: str) -> list[TextCall] | None:
        """The calls that a fence consists of."""
        inner = self._text[start:end].strip()
        if language in self.tools:
            arguments = repair_object(inner, may_close=self._may_close)
            return None if arguments is None else [TextCall(language, arguments)]
        reader = FormReader(inner, self.tools, may_close=self._may_close)
        if language.lower() in ("", "json", "jsonc", "json5"):
            read = reader.bare_calls(0) if inner[:1] in ("{", "[") else None
        elif (mark := OPENERS.match(inner)) and mark.end() > 0:
            read = reader.marked(mark)
        else:
            read = reader.bare_calls(0) or reader._content(0)
        return read[0] if read and not inner[read[1] :].strip() else None

    def _bare_one(self, at: int) -> Read | None:
        if self._text[at : at + 1] in ("{", "["):
            read = self._json(at, is_marked=False) if _LIKE_A_CALL.match(self._text, at) else None
            return read or (self._python(at) if self._text[at] == "[" else None)
        found = _NAME.match(self._text, at)
        if found and self._offered.known(found[0]) and re.compile(r"\n?[ \t]*\{").match(self._text, found.end()):
            return self._after_name(found, found[0])
        return self._python(at)

    def _end_before(self, at: int) -> int:
        return len(self._text[:at].rstrip(" \t\n;,"))

    def _content(self, at: int) -> Read | None:
        at = self._skip(at)
        fence = _OPEN_FENCE.match(self._text, at)
        at = self._skip(fence.end()) if fence else at
        if colon := _COLON.match(self._text, at):
            at = colon.end()
        read = self._content_of(at)
        if read and fence and (closed := _CLOSE_FENCE.match(self._text, read[1])):
            return read[0], closed.end()
        return read

    def _content_of(self, at: int) -> Read | None:
        text = self._text
        if element := _ELEMENT.match(text, at):
            known = self._offered.known(element[2])
            return self._arguments_of(known, element.end()) if known else None
        if named := _NAMED.match(text, at):
            return self._named(named)
        if element := self._named_element.match(text, at):
            return self._children(element[1], element.end(), f"</{element[1]}>")
        if gemma := _GEMMA.match(text, at):
            return self._gemma(gemma)
        if text[at : at + 1] in ("{", "["):
            return self._json(at, is_marked=True) or (self._python(at) if text[at] == "[" else None)
        if quoted := _QUOTED_NAME.match(text, at):
            return self._after_name(quoted, quoted[1])
        if found := _NAME.match(text, at):
            return self._after_name(found, found[0])
        return None

    def _after_name(self, found: re.Match[str], name_text: str) -> Read | None:
        """A name, then marks between it and its arguments, then these."""
        name = self._offered.known(name_text)
        if name is None or self._text[found.end() : found.end() + 1] == "(":
            return self._python(found.start())
        at = self._after_separators(found.end())
        fence = _OPEN_FENCE.match(self._text, at)
        at = self._skip(fence.end()) if fence else at
        read = self._arguments_of(name, at)
        if read and fence and (closed := _CLOSE_FENCE.match(self._text, read[1])):
            return read[0], closed.end()
        return read

    def _after_separators(self, at: int) -> int:
        at = self._skip(at)
        while found := next((one for mark in _SEPARATORS if (one := mark.match(self._text, at))), None):
            at = self._skip(found.end())
        return at

    def _arguments_of(self, name: str, at: int) -> Read | None:
        at = self._skip(at)
        if self._text[at : at + 1] in ("{", '"'):
            return self._object(name, at)
        if _KEY.match(self._text, at):
            return self._pairs(name, at)
        if _PARAMETER.match(self._text, at):
            return self._parameters(name, at)
        if found := _ELEMENT_END.match(self._text, at):
            return [TextCall(name, {})], found.end()
        return ([TextCall(name, {})], at) if _END.match(self._text, at) and self._is_complete(at) else None

    def _is_complete(self, at: int) -> bool:
        return self._may_close or at < len(self._text)

    def _object(self, name: str, at: int) -> Read | None:
        value, end = self._value(at)
        if isinstance(value, str):
            value = repair_object(value)
        if not isinstance(value, dict):
            return None
        extra = re.compile(r"\}+(?=\s*(?:<|\Z))").match(self._text, end)
        return [TextCall(name, cast(dict[str, Any], value))], extra.end() if extra else end

    def _json(self, at: int, *, is_marked: bool) -> Read | None:
        value, end = self._value(at)
        calls = self._offered.calls_of(value, is_marked=is_marked)
        extra = re.compile(r"[\]}]+(?=\s*(?:<|\Z))").match(self._text, end)
        return (calls, extra.end() if extra else end) if calls else None

    def _value(self, at: int) -> tuple[Any, int]:
        """`None` if nothing certain begins there."""
        try:
            return read_value(self._text, at, may_close=self._may_close)
        except (NotRepairable, RecursionError):
            pass
        if not self._may_close:
            return None, at
        # A bracket may be missing before the mark that ends the call.
        if self._closers is None:
            self._closers = [closer.start() for closer in CLOSERS.finditer(self._text)]
        first = bisect_left(self._closers, at)
        for end in self._closers[first : first + MOST_CLOSERS]:
            try:
                value, value_end = read_value(self._text[at:end])
            except (NotRepairable, RecursionError):
                continue
            return (value, end) if at + value_end == end else (None, at)
        return None, at

    def _parameters(self, name: str, at: int) -> Read | None:
        """`<parameter=NAME>VALUE</parameter>`, up to the end of the element."""
        values: dict[str, Any] = {}
        while found := _PARAMETER.match(self._text, at):
            ends = (pattern.search(self._text, found.end()) for pattern in _VALUE_ENDS)
            end = next((one for one in ends if one), None)
            if end is None or found[1] in values:
                return None
            text = _inner(self._text[found.end() : end.start()])
            values[found[1]] = _json_or_text(text) if found[2] == "false" else text
            at = end.end()
        if closed := _ELEMENT_END.match(self._text, at):
            at = closed.end()
        elif not (_END.match(self._text, at) and self._is_complete(self._skip(at))):
            return None
        return [self._typed(name, values)], at

    def _pairs(self, name: str, at: int) -> Read | None:
        """`<arg_key>NAME</arg_key><arg_value>VALUE</arg_value>`"""
        values: dict[str, Any] = {}
        while found := _KEY.match(self._text, at):
            end = _KEY_END.search(self._text, found.end())
            if end is None or found[1] in values:
                return None
            values[found[1]] = _inner(self._text[found.end() : end.start()])
            at = end.end()
        is_ended = _END.match(self._text, at) or OPENERS.match(self._text, self._skip(at))
        return ([self._typed(name, values)], at) if is_ended and self._is_complete(self._skip(at)) else None

    def _named(self, named: re.Match[str]) -> Read | None:
        """`<name>NAME</name><arguments>…</arguments>`"""
        name, given = self._offered.known(named[2]), _GIVEN.match(self._text, named.end())
        if name is None:
            return None
        if given is None:
            return self._arguments_of(name, named.end())
        closer = f"</{given[1]}>"
        at = self._skip(given.end())
        read = self._object(name, at) if self._text[at : at + 1] == "{" else self._children(name, at, closer)
        if read is None:
            return None
        end = self._skip(read[1])
        return read[0], end + len(closer) if self._text.startswith(closer, end) else read[1]

    def _children(self, name: str, at: int, closer: str) -> Read | None:
        """An element for each parameter: `<path>a</path>`. The names must be those of the tool's schema."""
        at = self._skip(at)
        if self._text[at : at + 1] == "{":
            read = self._object(name, at)
            is_closed = read and self._text.startswith(closer, self._skip(read[1]))
            return (read[0], self._skip(read[1]) + len(closer)) if read and is_closed else None
        values: dict[str, Any] = {}
        properties = self._offered.properties(name)
        while found := re.compile(r"\s*<([\w.-]+)>").match(self._text, at):
            ends = rf"</{re.escape(found[1])}>(?=\s*(?:<[\w.-]+>|{re.escape(closer)}))"
            end = re.compile(ends).search(self._text, found.end())
            if end is None or found[1] in values or found[1] not in properties:
                return None
            values[found[1]] = _inner(self._text[found.end() : end.start()])
            at = end.end()
        at = self._skip(at)
        return ([self._typed(name, values)], at + len(closer)) if self._text.startswith(closer, at) else None

    def _gemma(self, found: re.Match[str]) -> Read | None:
        name = self._offered.known(found[1])
        end = re.compile(r"\}(?=\s*(?:<end_function_call>|<tool_call\|>|<start_function_call>|\Z))").search(
            self._text, found.end()
        )
        if name is None or end is None:
            return None
        body = _GEMMA_TEXT.sub(
            lambda text: json.dumps(text[1] or text[2] or ""), self._text[found.end() - 1 : end.end()]
        )
        arguments = repair_object(body, may_close=False)
        return None if arguments is None else ([TextCall(name, arguments)], end.end())

    def _python(self, at: int) -> Read | None:
        read = read_python_calls(self._text, at)
        if read is None:
            return None
        calls = [(self._offered.known(name), arguments) for name, arguments in read[0]]
        known = [TextCall(name, arguments) for name, arguments in calls if name is not None]
        return (known, read[1]) if known and len(known) == len(calls) else None

    def _typed(self, name: str, values: dict[str, Any]) -> TextCall:
        return TextCall(name, read_by_schema(values, self.tools[name]))

    def _skip(self, at: int) -> int:
        found = _BLANK.match(self._text, at)
        return found.end() if found else at


def _inner(text: str) -> str:
    """Without the line breaks that templates put after the opening and before the closing tag.

    Where only the last one is there, it belongs to a text of several lines.
    """
    if text[:1] in ("\n", "\r"):
        text = text.removeprefix("\r").removeprefix("\n")
        return text.removesuffix("\n").removesuffix("\r")
    return text if "\n" in text.rstrip("\r\n") else text.rstrip("\r\n")


def _json_or_text(text: str) -> Any:
    try:
        value, end = read_value(text, may_close=False)
    except NotRepairable:
        return text
    return value if not text[end:].strip() else text
