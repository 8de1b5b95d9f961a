"""The specifier between the parentheses of a rule, by the kind of tool it names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, TypeAlias

from ..core.values import plain_value
from ..core.verdicts import Behavior
from .domains import DomainPattern, why_no_domain
from .path_patterns import PathForm, path_form, why_no_path
from .patterns import TextPattern
from .tool_names import CANONICAL, MCP

COMMAND_TOOLS: Final = frozenset({"Bash", "PowerShell", "Monitor"})
FOLDING: Final = frozenset({"PowerShell"})
"""Shells that ignore case."""
READING: Final = "Read"
WRITING: Final = "Edit"
PATH_TOOLS: Final = frozenset({"Write", "MultiEdit", "NotebookEdit", "Glob", "Grep", "LSP"})
"""Tools whose paths `Read` and `Edit` rules cover; a path rule under their own name can only restrict them."""
NAMED_BY: Final = {"Agent": ("subagent_type",), "Skill": ("skill", "args")}
"""Tools that a rule distinguishes by the name of what they start, and the parameters that contain it."""
PRIMARY: Final = frozenset({"command", "file_path", "path", "notebook_path", "url"})
"""Parameters that other forms cover, in tools whose forms are known."""

_ARGUMENT: Final = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_-]*):(?P<value>.*)", re.DOTALL)
_DOMAIN: Final = "domain:"


@plain_value
class WholeTool:
    """The tool, whatever its arguments."""


@plain_value
class OfCommand:
    pattern: TextPattern


@plain_value
class OfPath:
    path: PathForm
    tool_only: bool = False
    """Whether it covers only the calls of its own tool."""


@plain_value
class OfHost:
    pattern: DomainPattern


@plain_value
class OfName:
    """The name of an agent or a skill, with its arguments."""

    parameters: tuple[str, ...]
    pattern: TextPattern

    def names(self, values: Sequence[object], behavior: Behavior) -> bool:
        """Whether it matches a call with these parameter values.

        A rule that restricts `deploy` does so whatever its arguments; one that
        allows it allows it only without arguments, and `deploy *` with any.
        """
        called = " ".join(word for value in values if isinstance(value, str) and (word := value.strip())).lstrip("/")
        if self.pattern.matches(called):
            return bool(called)
        takes_more = len(self.parameters) > 1 and behavior is not Behavior.ALLOW
        return takes_more and self.pattern.matches(called.partition(" ")[0])


@plain_value
class OfArgument:
    """One parameter, as the model wrote it."""

    name: str
    pattern: TextPattern


@plain_value
class OwnWords:
    """A specifier that only the tool itself can interpret."""


Form: TypeAlias = WholeTool | OfCommand | OfPath | OfHost | OfName | OfArgument | OwnWords


class NoForm(ValueError):
    """A specifier that cannot be used; the message completes "the rule ..."."""


def forms_of(tool: str, specifier: str | None, behavior: Behavior) -> tuple[Form, ...]:
    """What the rule matches; any one of the forms is enough. Raises `NoForm`."""
    if specifier is None or specifier in ("", "*"):
        return (WholeTool(),)
    if not specifier.strip():
        raise NoForm("has only spaces in its parentheses. Write the tool's name alone, or what it should match")
    tool = CANONICAL.get(tool, tool)
    argument = _argument(specifier, tool) if behavior is not Behavior.ALLOW else None
    more: tuple[Form, ...] = (argument,) if argument is not None else ()
    if tool in COMMAND_TOOLS:
        return (OfCommand(TextPattern(unescape(specifier), ignore_case=tool in FOLDING)), *more)
    if tool in (READING, WRITING) or tool in PATH_TOOLS:
        return (*_of_path(tool, specifier, behavior), *more)
    if tool == "WebFetch":
        return _of_host(specifier, behavior, more)
    if tool in NAMED_BY:
        return (OfName(NAMED_BY[tool], TextPattern(unescape(specifier).strip().lstrip("/"))), *more)
    if tool == "WebSearch" and not more:
        raise NoForm("has a specifier, but WebSearch does not accept one. Write `WebSearch`")
    return (OwnWords(), *more)


def unescape(specifier: str) -> str:
    r"""Without the backslashes that only escape parentheses.

    >>> unescape(r"echo \(\*\)")
    'echo (\\*)'
    """
    return re.sub(r"\\([()])", r"\1", specifier)


def _argument(specifier: str, tool: str) -> OfArgument | None:
    found = _ARGUMENT.fullmatch(specifier)
    if found is None or (not tool.startswith(MCP) and (found["name"] in PRIMARY or found["name"] == "domain")):
        return None
    # The value is a plain glob: "any arguments" has no meaning for it.
    value = found["value"]
    return OfArgument(found["name"], TextPattern(f"{value}*" if value.endswith(" *") else value))


def _of_path(tool: str, specifier: str, behavior: Behavior) -> tuple[Form, ...]:
    text = unescape(specifier)
    why = why_no_path(text)
    if why is not None:
        raise NoForm(why)
    if tool in PATH_TOOLS and behavior is Behavior.ALLOW:
        better = READING if tool in ("Glob", "Grep", "LSP") else WRITING
        raise NoForm(f"allows paths of {tool}, which is never asked about. Write `{better}({specifier})`")
    if behavior is Behavior.ALLOW:
        return (OfPath(path_form(text, allows=True), tool in PATH_TOOLS),)
    return tuple(OfPath(path_form(one, allows=False), tool in PATH_TOOLS) for one in _spellings(text))


def _spellings(path: str) -> tuple[str, ...]:
    """Both Unicode normal forms of the text: file systems may treat them as the same name."""
    if path.isascii():
        return (path,)
    return tuple(dict.fromkeys((path, unicodedata.normalize("NFC", path), unicodedata.normalize("NFD", path))))


def _of_host(specifier: str, behavior: Behavior, more: tuple[Form, ...]) -> tuple[Form, ...]:
    if not specifier.startswith(_DOMAIN):
        if more:
            return more
        raise NoForm(f"names no domain. Write `WebFetch(domain:{specifier.removeprefix('https://')})`")
    domain = specifier.removeprefix(_DOMAIN)
    why = why_no_domain(domain, allows=behavior is Behavior.ALLOW)
    if why is not None:
        raise NoForm(why)
    return (WholeTool(),) if domain.strip() == "*" else (OfHost(DomainPattern(domain)),)
