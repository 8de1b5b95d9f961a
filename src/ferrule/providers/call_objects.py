"""JSON objects as calls: the many names that models give to a tool and its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from ..core.json_repair import repair_object
from .written_text import TextCall

NAME_KEYS: Final = ("name", "tool_name", "tool", "function", "function_name", "action", "recipient_name")
ARGUMENT_KEYS: Final = (
    "arguments", "parameters", "args", "params", "input", "tool_input", "action_input", "tool_args", "kwargs",
)  # fmt: skip
BESIDE: Final = frozenset(
    {"id", "type", "index", "call_id", "tool_call_id", "thought", "thoughts", "reasoning", "reason", "explanation"}
)
WRAPPERS: Final = ("tool_calls", "tool_call", "function_call", "function_calls", "tool_uses", "tool_use", "tool")
_PREFIXES: Final = ("functions.", "default_api.", "tools.", "tool.", "function.")


class OfferedTools:
    """The tools that may be called, by name, with their schemas."""

    def __init__(self, tools: Mapping[str, Mapping[str, Any]]) -> None:
        self._tools = tools

    def calls_of(self, value: Any, *, is_marked: bool) -> list[TextCall] | None:
        if isinstance(value, list):
            each = [self.calls_of(item, is_marked=is_marked) for item in cast(list[Any], value)]
            return [call for calls in each for call in calls or ()] if each and all(each) else None
        if not isinstance(value, dict):
            return None
        fields = cast(dict[str, Any], value)
        for wrapper in (*WRAPPERS, "function"):
            if isinstance(fields.get(wrapper), dict | list) and not fields.keys() - {wrapper} - BESIDE - {"content"}:
                return self.calls_of(fields[wrapper], is_marked=is_marked)
        call = self._call_of(fields, is_marked=is_marked)
        return [call] if call else None

    def _call_of(self, fields: dict[str, Any], *, is_marked: bool) -> TextCall | None:
        named = [(key, known) for key in NAME_KEYS if (known := self.known(fields.get(key)))]
        if not named:
            (only,) = fields.items() if is_marked and len(fields) == 1 else (("", None),)
            name = self.known(only[0])
            return TextCall(name, cast(dict[str, Any], only[1])) if name and isinstance(only[1], dict) else None
        key, name = named[0]
        given = [one for one in ARGUMENT_KEYS if one in fields and one != key]
        rest = fields.keys() - {key, *given} - BESIDE
        properties = self.properties(name)
        if not given or (is_marked and rest and rest <= properties and given[0] in properties):
            flat = {one: value for one, value in fields.items() if one != key and one not in BESIDE - properties}
            return TextCall(name, flat) if is_marked and flat.keys() <= properties else None
        arguments = _arguments(fields[given[0]])
        if len(given) > 1 or arguments is None or "description" in rest or (rest and not is_marked):
            return None
        if arguments.get("type") == "object" and "properties" in arguments and "properties" not in properties:
            return None  # a tool is described, not called
        return TextCall(name, arguments)

    def properties(self, name: str) -> frozenset[str]:
        properties = self._tools[name].get("properties")
        return frozenset(cast(Mapping[str, Any], properties)) if isinstance(properties, Mapping) else frozenset()

    def known(self, name: Any) -> str | None:
        """The offered tool that is meant.

        >>> OfferedTools({"Read": {}}).known("functions.Read:0")
        'Read'
        """
        if not isinstance(name, str):
            return None
        short = re.sub(r":\d+$", "", name.strip())
        for prefix in ("", *_PREFIXES):
            if short.startswith(prefix) and short[len(prefix) :] in self._tools:
                return short[len(prefix) :]
        return None


def _arguments(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        return repair_object(value) if value.strip() else {}
    if value is None:
        return {}
    return cast(dict[str, Any], value) if isinstance(value, dict) else None
