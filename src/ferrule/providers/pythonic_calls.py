"""Calls in the form of Python: `[Read(path="a"), Grep(pattern="b")]`. They are read, never run."""

from __future__ import annotations

import ast
import re
from typing import Any, Final, TypeAlias

PythonCall: TypeAlias = tuple[str, dict[str, Any]]
LONGEST: Final = 200_000
_JSON_NAMES: Final = {"true": True, "false": False, "null": None}
_TOKENS: Final = re.compile(
    r"\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[()\[\]{}]|[^()\[\]{}\"']+",
    re.DOTALL,
)
_BEGINNING: Final = re.compile(r"\[?\s{0,50}[\w.]+\(")
_CLOSING: Final = {")": "(", "]": "[", "}": "{"}


def read_python_calls(text: str, at: int) -> tuple[list[PythonCall], int] | None:
    """The calls that begin there, one or a list, and where they end. `None` unless all arguments are named values.

    >>> read_python_calls('[Read(path="a", lines=3)] and more', 0)
    ([('Read', {'path': 'a', 'lines': 3})], 25)
    """
    end = _end_of(text, at) if _BEGINNING.match(text, at) else None
    if end is None:
        return None
    try:
        tree = ast.parse(text[at:end].strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes = tree.elts if isinstance(tree, ast.List) else [tree]
    calls = [_call(node) for node in nodes]
    found = [call for call in calls if call is not None]
    return (found, end) if found and len(found) == len(calls) else None


def _end_of(text: str, at: int) -> int | None:
    """Where the bracket that opens first is closed again."""
    open_brackets: list[str] = []
    last = at + LONGEST
    while at < last and (token := _TOKENS.match(text, at)) is not None:
        at = token.end()
        if token[0] in ("(", "[", "{"):
            open_brackets.append(token[0])
        elif token[0] in _CLOSING:
            if not open_brackets or open_brackets.pop() != _CLOSING[token[0]]:
                return None
            if not open_brackets:
                return at
    return None


def _call(node: ast.expr) -> PythonCall | None:
    """The name and the arguments; of `print(call)` the inner one, and of `name.call(...)` the name."""
    if not isinstance(node, ast.Call):
        return None
    name = ast.unparse(node.func)
    if name == "print" and len(node.args) == 1 and not node.keywords:
        return _call(node.args[0])
    if not re.fullmatch(r"[\w.]+", name):
        return None
    try:
        if len(node.args) == 1 and isinstance(node.args[0], ast.Dict) and not node.keywords:
            return name, _value(node.args[0])
        if node.args:
            return None
        arguments = {keyword.arg or "": _value(keyword.value) for keyword in node.keywords}
    except (ValueError, TypeError):
        return None
    return None if "" in arguments else (name.removesuffix(".call"), arguments)


def _value(node: ast.expr) -> Any:
    """Raises `ValueError` or `TypeError` for anything but a literal."""
    match node:
        case ast.Name(id) if id in _JSON_NAMES:
            return _JSON_NAMES[id]
        case ast.List(items) | ast.Tuple(items):
            return [_value(item) for item in items]
        case ast.Dict(keys, values):
            return {_key(key): _value(value) for key, value in zip(keys, values, strict=True)}
        case _:
            value = ast.literal_eval(node)
            if not isinstance(value, str | int | float | bool | None):
                raise TypeError("not a JSON value")
            return value


def _key(node: ast.expr | None) -> str:
    key = _value(node) if node is not None else None
    if not isinstance(key, str):
        raise TypeError("a key that is not a text")
    return key
