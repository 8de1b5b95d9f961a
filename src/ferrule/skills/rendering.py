"""The text of a skill as it is used: arguments in their places, commands replaced by what they print.

What is a command is decided on the text as it was written. Neither an argument
nor the output of a command can become one, and each command is a call of Bash
that rules and people judge like any other.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ..core.calls import Status, ToolOutcome
from ..core.content import plain_text
from ..core.values import named_value
from .definition import SkillDefinition

MOST_COMMANDS: Final = 50
MOST_FILES: Final = 20

Invoke: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[ToolOutcome]]

_COMMAND: Final = re.compile(r"(?:^|(?<=\s))!`([^`\n]+)`|^```!\s*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_PLACE: Final = re.compile(r"\\\$|\$ARGUMENTS\[(\d+)\]|\$ARGUMENTS\b|\$(\d+)|\$\{([A-Z_]+)\}|\$([A-Za-z_]\w*)")
_CODE: Final = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_REFERENCE: Final = re.compile(r"(?:^|(?<=\s))@([^\s`@]+)")


class NotRendered(Exception):
    """A command of the skill was refused or failed, so the skill is not used. The message says which and why."""


@named_value
class Surrounding:
    """The values of variables in the text of a skill."""

    session_id: str
    project: str
    cwd: str


async def render_skill(skill: SkillDefinition, arguments: str, around: Surrounding, invoke: Invoke) -> str:
    """Raises `NotRendered`."""
    filling = _Filling(skill, arguments, around)
    parts: list[str] = []
    references: list[str] = []
    position = 0
    for number, found in enumerate(_COMMAND.finditer(skill.body)):
        text = filling.fill(skill.body[position : found.start()])
        references += _references(text, skill, around)
        if number == MOST_COMMANDS:
            raise NotRendered(f"The skill {skill.name} runs more than {MOST_COMMANDS} commands, which is the limit.")
        parts += (text, await _output(skill, filling.fill((found[1] or found[2]).strip()), invoke))
        position = found.end()
    text = filling.fill(skill.body[position:])
    references += _references(text, skill, around)
    parts.append(text)
    if arguments.strip() and not filling.took_arguments:
        parts.append(f"\n\nARGUMENTS: {arguments.strip()}")
    for path in list(dict.fromkeys(references))[:MOST_FILES]:
        parts.append(await _content(path, invoke))
    return "".join(parts).strip()


class _Filling:
    """Puts arguments and variables in their places."""

    def __init__(self, skill: SkillDefinition, arguments: str, around: Surrounding) -> None:
        self.took_arguments = False
        self._all = arguments.strip()
        try:
            self._each = shlex.split(arguments)
        except ValueError:
            self._each = arguments.split()  # an unclosed quote
        self._named = dict(zip(skill.argument_names, (*self._each, *[""] * len(skill.argument_names)), strict=False))
        folder, project = skill.folder, around.project
        self._variables = {
            f"{owner}_{name}": value
            for owner in ("CLAUDE", "FERRULE")
            for name, value in (("SESSION_ID", around.session_id), ("SKILL_DIR", folder), ("PROJECT_DIR", project))
        }

    def fill(self, text: str) -> str:
        return _PLACE.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        whole, index, variable, name = found[0], found[1] or found[2], found[3], found[4]
        if whole == r"\$":
            return "$"
        if variable is not None:
            return self._variables.get(variable, whole)
        if name is not None:
            if name not in self._named:
                return whole
            self.took_arguments = True
            return self._named[name]
        self.took_arguments = True
        if index is None:
            return self._all
        place = int(index[:6])
        return self._each[place] if place < len(self._each) else ""


async def _output(skill: SkillDefinition, command: str, invoke: Invoke) -> str:
    if not skill.may_run:
        raise NotRendered(
            f"The skill {skill.name} runs commands, and its folder is not trusted. "
            "A person can inspect it with `ferrule trust --show` and trust it with `ferrule trust`."
        )
    outcome = await invoke("Bash", {"command": command, "description": f"for the skill {skill.name}"})
    said = plain_text(outcome.content)
    if outcome.status is not Status.OK or getattr(outcome.output, "exit_code", 0):
        raise NotRendered(f"The skill {skill.name} could not be used because `{command}` failed: {said}")
    return said


def _references(text: str, skill: SkillDefinition, around: Surrounding) -> Iterator[str]:
    """Files that the text names with an `@`, outside of code. A name without a file is plain text."""
    for found in _REFERENCE.finditer(_CODE.sub("", text)):
        named = os.path.expanduser(found[1].rstrip(".,;:!?)"))
        for base in (around.cwd, skill.folder):
            path = os.path.normpath(os.path.join(base, named))
            if "\0" not in path and os.path.isfile(path):
                yield path
                break


async def _content(path: str, invoke: Invoke) -> str:
    outcome = await invoke("Read", {"file_path": path})
    return f"\n\nContent of {path}:\n{plain_text(outcome.content)}"
