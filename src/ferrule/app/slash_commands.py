"""Slash commands: `/skill args`, and `/mcp__server__prompt args`."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..core.calls import ToolCall, ToolOutcome
from ..core.content import Block
from ..core.ports import Note
from ..engine.session import Session
from ..hooks.lifecycle import Lifecycle
from ..hooks.skill_hooks import load_hooks
from ..mcp.server_context import ServerTrouble
from ..settings.definition_files import BadPage
from ..skills.definition import SkillDefinition
from ..skills.rendering import NotRendered, Surrounding, render_skill
from ..skills.skill_catalog import Skills
from ..skills.turn_rules import KEY, NotActivated, SkillRules, no_hooks

if TYPE_CHECKING:
    from ..mcp.servers import McpServers, Prompt

MOST_STACKED: Final = 6
"""Skills that one prompt may begin with."""
_COMMAND: Final = re.compile(r"\s*/([A-Za-z0-9][\w.:-]*)(?:\s+(.*))?", re.DOTALL)

Expand: TypeAlias = Callable[[str], Awaitable["str | tuple[Block, ...]"]]


class NotExpanded(Exception):
    """The command cannot be carried out. The message says why, and what to do."""


class SlashCommands:
    """Those of one session. A text that begins with a slash and names none of them is an ordinary prompt."""

    def __init__(self, session: Session, skills: Skills | None = None, servers: McpServers | None = None) -> None:
        self._session = session
        self._skills = skills
        self._servers = servers
        self._numbers = count(1)

    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.describe_all())

    def describe_all(self) -> Iterator[tuple[str, str, str]]:
        """Each with its description and an argument hint."""
        for skill in self.skills():
            yield skill.name, skill.description, skill.argument_hint
        for prompt in self._servers.prompts() if self._servers else ():
            hint = " ".join(f"<{name}>" if needed else f"[{name}]" for name, needed in prompt.info.arguments)
            yield prompt.name, prompt.info.description, hint

    def skills(self) -> tuple[SkillDefinition, ...]:
        """Those that a person may use."""
        return tuple(skill for skill in self._skills.all.values() if skill.for_user) if self._skills else ()

    async def expand(self, text: str) -> str | tuple[Block, ...]:
        """What the model reads instead of the text. Raises `NotExpanded`."""
        found = _COMMAND.fullmatch(text)
        if found is None:
            return text
        name, arguments = found[1], (found[2] or "").strip()
        known = {skill.name: skill for skill in self.skills()}
        if name in known:
            names, arguments = _split_stack(name, arguments, known.keys())
            for one in names:
                source = known[one].level.name.lower()
                await self._let_by_hooks(text, kind="slash_command", name=one, args=arguments, source=source)
            return await self._of_skills(names, arguments)
        prompts = self._servers.prompts() if self._servers else ()
        prompt = next((prompt for prompt in prompts if prompt.name == name), None)
        if prompt is None:
            return text
        await self._let_by_hooks(text, kind="mcp_prompt", name=name, args=arguments, source=prompt.server)
        return await self._of_prompt(prompt, arguments)

    async def _let_by_hooks(
        self, text: str, *, kind: Literal["slash_command", "mcp_prompt"], name: str, args: str, source: str
    ) -> None:
        hooks = self._session.hooks
        if not isinstance(hooks, Lifecycle):
            return
        said = await hooks.prompt_expanding(
            self._session.state.cwd, text, kind=kind, name=name, args=args, source=source
        )
        if said.stops or said.blocks:
            raise NotExpanded(said.stops or said.blocks)
        for context in said.context:
            self._session.note(Note("hook", context))

    async def _of_skills(self, names: list[str], arguments: str) -> str:
        """The rules of each hold while its text is made, and those of all for the turn that follows."""
        values, turn = self._session.state.values, self._session.turn
        texts: list[str] = []
        for_turn: Mapping[str, Any] | None = None
        for name in names:
            skill = self._read(name)
            rules = self._rules_of(skill)
            if rules or KEY in values:
                values[KEY] = rules.as_state(turn, None)
            texts.append(await self._render(skill, arguments))
            for_turn = rules.as_state(turn + 1, for_turn)
        if KEY in values:
            values[KEY] = for_turn
        return "\n\n".join(texts)

    def _rules_of(self, skill: SkillDefinition) -> SkillRules:
        rules = SkillRules.of(skill)
        try:
            for hooks in rules.hooks:
                load_hooks(hooks, self._session.workspace) if self._session.hooks else no_hooks(hooks)
        except NotActivated as reason:
            raise NotExpanded(str(reason)) from None
        return rules

    def _read(self, name: str) -> SkillDefinition:
        assert self._skills is not None, "the skill was found in it"
        try:
            return self._skills.read(name)
        except BadPage as reason:
            raise NotExpanded(str(reason)) from None

    async def _render(self, skill: SkillDefinition, arguments: str) -> str:
        session = self._session
        around = Surrounding(session_id=session.id, project=session.workspace, cwd=session.state.cwd)
        try:
            text = await render_skill(skill, arguments, around, self._invoke)
        except NotRendered as reason:
            raise NotExpanded(str(reason)) from None
        return _for_agent(skill, text) if skill.forks else text

    async def _invoke(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        (outcome,) = await self._session.run([ToolCall(f"command_{next(self._numbers)}", name, arguments)])
        return outcome

    async def _of_prompt(self, prompt: Prompt, text: str) -> tuple[Block, ...]:
        assert self._servers is not None, "the prompt is of one of them"
        try:
            result = await self._servers.get(prompt.server).prompt(prompt.info.name, _by_name(prompt, text))
        except ServerTrouble as trouble:
            raise NotExpanded(str(trouble)) from None
        from ..mcp.results import answer_of

        content = [message["content"] for message in result.get("messages") or ()]
        return (await asyncio.to_thread(answer_of, {"content": content}, self._servers.files)).blocks


def _split_stack(name: str, arguments: str, known: Collection[str]) -> tuple[list[str], str]:
    """The skills that are named one after another, and what is left for all of them to work on.

    >>> _split_stack("a", "/b /c x", {"a", "b"})
    (['a', 'b'], '/c x')
    """
    names = [name]
    while len(names) < MOST_STACKED and (found := _COMMAND.fullmatch(arguments)) and found[1] in known:
        names.append(found[1])
        arguments = (found[2] or "").strip()
    return names, arguments


def _by_name(prompt: Prompt, text: str) -> dict[str, str]:
    """Arguments by position; the last one takes the rest. Raises `NotExpanded` if a required one is missing."""
    try:
        given = shlex.split(text)
    except ValueError:
        given = text.split()  # a quote that nobody closed
    names = [name for name, _ in prompt.info.arguments]
    if names and len(given) > len(names):
        given[len(names) - 1 :] = [" ".join(given[len(names) - 1 :])]
    taken = dict(zip(names, given, strict=False))
    missing = [name for name, required in prompt.info.arguments if required and name not in taken]
    if missing:
        usage = " ".join((f"/{prompt.name}", *(f"<{name}>" for name in names)))
        raise NotExpanded(f"/{prompt.name} needs {', '.join(missing)}. Write: {usage}")
    return taken


def _for_agent(skill: SkillDefinition, text: str) -> str:
    kind = f" of the kind {skill.agent}" if skill.agent else ""
    return f"Have an agent{kind} do what follows, with the Agent tool, and give me its answer.\n\n{text}"
