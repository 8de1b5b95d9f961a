"""From what a person wrote to what the model reads: slash commands, and what is named with an `@`.

`/skill args`, `/mcp__server__prompt args` and the commands of Ferrule itself. A
text that begins like a path is no command; any other name that does not exist
is an error, since a misspelt command would be a paid question about nothing.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..core.calls import ToolCall, ToolOutcome
from ..core.content import Block, Text
from ..core.ports import Note
from ..core.threads import in_a_thread
from ..core.values import named_value, plain_value
from ..engine.session import Session
from ..hooks.lifecycle import Lifecycle
from ..hooks.skill_hooks import load_hooks
from ..mcp.server_context import ServerTrouble
from ..providers.asked_model import AskedModel
from ..settings.definition_files import BadPage
from ..skills.definition import SkillDefinition
from ..skills.rendering import NotRendered, Surrounding, render_skill
from ..skills.skill_catalog import Skills
from ..skills.turn_rules import KEY, NotActivated, SkillRules, no_hooks

if TYPE_CHECKING:
    from ..core.model import ModelProvider
    from ..mcp.servers import McpServers, Prompt

MOST_STACKED: Final = 6
"""Skills that one prompt may begin with."""
_COMMAND: Final = re.compile(r"\s*/([A-Za-z0-9][\w.:-]*)(?:\s+(.*))?", re.DOTALL)
_NAME: Final = re.compile(r"[\w:-]+")
"""Of what must be a command: anything else may be a path."""

PromptContent: TypeAlias = str | tuple[Block, ...]


@plain_value
class LocalAnswer:
    """The answer to a command that no model is asked about."""

    text: str


@named_value
class PreparedPrompt:
    content: PromptContent
    refused: tuple[ToolOutcome, ...] = ()
    """Calls for what the prompt names that were not allowed."""


Prepare: TypeAlias = Callable[[PromptContent, AskedModel], Awaitable[PreparedPrompt | LocalAnswer]]


class NotExpanded(Exception):
    """The command cannot be carried out. The message says why, and what to do."""


class SlashCommands:
    """Those of one session."""

    def __init__(
        self,
        session: Session,
        skills: Skills | None = None,
        servers: McpServers | None = None,
        *,
        objection: Callable[[str], str | None] = lambda path: "nobody was asked",
        open_model: Callable[[str], ModelProvider] | None = None,
    ) -> None:
        """`objection` says why a path may not be named to the model. `open_model` raises `ValueError`."""
        self._session = session
        self._skills = skills
        self._servers = servers
        self._objection = objection
        self._open_model = open_model
        self._numbers = count(1)
        self.are_off = False
        """Whether a slash at the beginning means nothing; what is named with an `@` is read all the same."""

    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.describe_all())

    def describe_all(self) -> Iterator[tuple[str, str, str]]:
        """Each with its description and an argument hint; a skill replaces a command of Ferrule of the same name."""
        if self.are_off:
            return
        for skill in self.skills():
            yield skill.name, skill.description, skill.argument_hint
        for prompt in self._servers.prompts() if self._servers else ():
            hint = " ".join(f"<{name}>" if needed else f"[{name}]" for name, needed in prompt.info.arguments)
            yield prompt.name, prompt.info.description, hint
        from .prompting.local_commands import describe_own

        taken = {skill.name for skill in self.skills()}
        yield from (one for one in describe_own() if one[0] not in taken)

    def skills(self) -> tuple[SkillDefinition, ...]:
        """Those that a person may use."""
        return tuple(skill for skill in self._skills.all.values() if skill.for_user) if self._skills else ()

    async def prepare(self, prompt: PromptContent, model: AskedModel) -> PreparedPrompt | LocalAnswer:
        """What the model reads, or the answer where it is not asked. Raises `NotExpanded`."""
        text = _only_text(prompt)
        if text is not None and (found := None if self.are_off else _COMMAND.fullmatch(text)):
            expanded = await self._expand(text, found[1], (found[2] or "").strip(), model)
            if expanded is not None:
                return expanded
        return await self._read_mentions(prompt)

    async def expand(self, text: str) -> PromptContent:
        """The text of a skill or of a server's prompt; any other text as it is. Raises `NotExpanded`."""
        found = _COMMAND.fullmatch(text)
        expanded = await self._of_others(text, found[1], (found[2] or "").strip()) if found else None
        return text if expanded is None else expanded

    async def _expand(
        self, text: str, name: str, arguments: str, model: AskedModel
    ) -> PreparedPrompt | LocalAnswer | None:
        """`None` for what is not a command."""
        content = await self._of_others(text, name, arguments)
        if content is not None:
            return PreparedPrompt(content=content)
        from .prompting.local_commands import CommandGround, NotAnswered, answer_command, prompt_for

        ground = CommandGround(
            session=self._session, model=model, open_model=self._open_model, described=self.describe_all
        )
        try:
            answer = await answer_command(name, arguments, ground)
        except NotAnswered as reason:
            raise NotExpanded(str(reason)) from None
        if answer is not None:
            return LocalAnswer(answer)
        own = prompt_for(name, arguments)
        if own is not None:
            await self._let_by_hooks(text, kind="slash_command", name=name, args=arguments, source="builtin")
            return await self._read_mentions(own)
        if not _NAME.fullmatch(name) or os.path.lexists(f"/{name}"):
            return None
        near = difflib.get_close_matches(name, self.names(), n=1)
        hint = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
        raise NotExpanded(f"Unknown command: /{name}. {hint}")

    async def _of_others(self, text: str, name: str, arguments: str) -> PromptContent | None:
        """A skill or a server's prompt; `None` if there is none of this name."""
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
            return None
        await self._let_by_hooks(text, kind="mcp_prompt", name=name, args=arguments, source=prompt.server)
        return await self._of_prompt(prompt, arguments)

    async def _read_mentions(self, prompt: PromptContent) -> PreparedPrompt:
        text = prompt if isinstance(prompt, str) else "\n".join(one.text for one in prompt if isinstance(one, Text))
        if "@" not in text:
            return PreparedPrompt(content=prompt)
        from .prompting.mentions import find_mentions, read_mentions

        names = self._servers.names if self._servers else ()
        mentions = await in_a_thread(find_mentions, text, self._session.state.cwd, names)
        if not mentions:
            return PreparedPrompt(content=prompt)
        read = await read_mentions(mentions, self._invoke, self._objection)
        asked = (Text(prompt),) if isinstance(prompt, str) else prompt
        return PreparedPrompt(content=(*asked, *read.blocks), refused=read.refused)

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


def _only_text(prompt: PromptContent) -> str | None:
    match prompt:
        case str() as text:
            return text
        case (Text(text),):
            return text
        case _:
            return None


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
