"""Skills as prompts. Their commands run in a session of their own, under the same rules, with nobody to ask."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from mcp import types

from ..app.slash_commands import NotExpanded, SlashCommands
from ..engine.session import Session
from ..settings.definition_files import DefinitionFiles
from ..skills.definition import SkillDefinition
from ..skills.skill_catalog import Skills
from .caller import Caller
from .sources import NoSuchPrompt

ARGUMENTS = "arguments"


class SkillPrompts:
    """Satisfies `PromptSource`. Those that only the model may use, or that define hooks, are not offered."""

    def __init__(self, pages: DefinitionFiles, open_session: Callable[[], Session]) -> None:
        self._pages = pages
        self._open = open_session

    def prompts(self) -> Sequence[types.Prompt]:
        """Looked for each time: a conversation's listing must stay as it was, a client's list must not."""
        return tuple(_entry(skill) for _, skill in sorted(Skills(self._pages).all.items()) if _is_offered(skill))

    async def prompt(self, name: str, arguments: Mapping[str, str], caller: Caller, /) -> Sequence[types.PromptMessage]:
        skills = Skills(self._pages)
        skill = skills.all.get(name)
        if skill is None or not _is_offered(skill):
            raise NoSuchPrompt(f"No prompt is named {name}.")
        async with self._open() as session:
            try:
                text = await SlashCommands(session, skills).expand(f"/{name} {_join_arguments(skill, arguments)}")
            except NotExpanded as reason:
                raise NoSuchPrompt(str(reason)) from None
        assert isinstance(text, str), "a skill is text"
        return (types.PromptMessage(role="user", content=types.TextContent(text=text)),)


def _is_offered(skill: SkillDefinition) -> bool:
    """Hooks of a skill do not run for a client, so a guard would be missing."""
    return skill.for_user and not skill.hooks


def _entry(skill: SkillDefinition) -> types.Prompt:
    named = [types.PromptArgument(name=name) for name in skill.argument_names]
    rest = types.PromptArgument(name=ARGUMENTS, description=skill.argument_hint or "The arguments of the skill.")
    return types.Prompt(name=skill.name, description=skill.description or None, arguments=named or [rest])


def _join_arguments(skill: SkillDefinition, given: Mapping[str, str]) -> str:
    """As a person would write them after the name."""
    if not skill.argument_names:
        return given.get(ARGUMENTS, "")
    return " ".join(shlex.quote(given.get(name, "")) for name in skill.argument_names)
