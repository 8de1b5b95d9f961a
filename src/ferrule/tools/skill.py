"""Use a skill."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from ..core.calls import Status
from ..core.content import Block, Line, Text, View, plain_text
from ..core.context import ToolContext
from ..core.effects import ChangesState, Effects
from ..core.inputs import ToolInput
from ..core.state import StateSet
from ..core.tool import Alias, Result, ToolError, guide_listing, load_guide
from ..core.values import plain_value
from ..settings.definition_files import BadPage
from ..skills.definition import SkillDefinition as Definition
from ..skills.rendering import NotRendered, Surrounding, render_skill
from ..skills.skill_catalog import NoSuchSkill, Skills
from ..skills.turn_rules import KEY, NotActivated, SkillRules, TurnRules, no_hooks
from . import NO_SKILLS, BuiltinTool, Services


class SkillInput(ToolInput):
    skill: str = Field(min_length=1, max_length=200, description="The name of the skill.")
    args: str = Field(default="", max_length=20_000, description="The arguments of the skill.")


@plain_value
class SkillUsed:
    name: str
    folder: str
    text: str
    """What the model reads: the skill's text, or the answer of the agent that carried it out."""
    by_agent: bool = False


class Skill(BuiltinTool[SkillInput, SkillUsed]):
    name = "Skill"
    description = load_guide(__file__)
    hint = "use a skill by name"
    input_model = SkillInput
    needs = "skills"
    choices = "Skills"
    aliases = (Alias("skill"),)
    result_limit = 100_000
    keep = "head"

    def __init__(self, skills: Skills | None = None, rules: TurnRules | None = None) -> None:
        """Without `rules` a skill allows nothing that was not allowed before, and one with hooks is not used."""
        self._skills = skills
        self._rules = rules

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.skills, services.skill_rules)

    def unavailable(self) -> str | None:
        return None if self._skills and self._skills.all else NO_SKILLS

    def guide(self) -> str:
        listed = self._skills.list_for_model() if self._skills else ""
        return guide_listing(self.description, self.choices, listed)

    def effects(self, input: SkillInput, ctx: ToolContext) -> Effects:
        """Nothing itself: whatever it runs is judged as its own call."""
        known = self._skills.all.get(_name(input)) if self._skills else None
        if known is None or known.forks or not (known.allowed or known.disallowed or known.hooks):
            return Effects.of()
        return Effects.of(ChangesState(KEY))

    async def call(self, input: SkillInput, ctx: ToolContext) -> SkillUsed | Result[SkillUsed]:
        skill = self._read(_name(input))
        facts = ctx.facts
        rules = SkillRules.of(skill, facts.agent)
        around = Surrounding(session_id=facts.session_id, project=facts.workspace, cwd=ctx.cwd)
        try:
            if self._rules is None or not rules:
                for hooks in rules.hooks:
                    no_hooks(hooks)
                return await self._use(skill, input, around, ctx)
            with self._rules.during(facts.agent, ctx.call_id, rules):
                used = await self._use(skill, input, around, ctx)
        except (NotRendered, NotActivated) as reason:
            raise ToolError(str(reason)) from None
        if used.by_agent:
            return used
        saved = rules.as_state(facts.turn, self._rules.of_turn(facts.agent))
        return Result(used, changes=(StateSet(KEY, saved),))

    async def _use(self, skill: Definition, input: SkillInput, around: Surrounding, ctx: ToolContext) -> SkillUsed:
        text = await render_skill(skill, input.args, around, ctx.invoke)
        if not skill.forks:
            return SkillUsed(skill.name, skill.folder, text)
        asked = {"description": f"skill {skill.name}"[:80], "prompt": text}
        chosen = {"subagent_type": skill.agent, "model": skill.model}
        outcome = await ctx.invoke("Agent", {**asked, **{key: value for key, value in chosen.items() if value}})
        if outcome.status is not Status.OK:
            raise ToolError(f"The agent for the skill {skill.name} failed: {plain_text(outcome.content)}")
        return SkillUsed(skill.name, skill.folder, plain_text(outcome.content), by_agent=True)

    def _read(self, name: str) -> Definition:
        try:
            skill = self._at.read(name)
        except NoSuchSkill as error:
            raise ToolError(str(error.args[0])) from None
        except BadPage as error:
            raise ToolError(f"{error}. Correct the file, or continue without the skill.") from None
        if not skill.for_model:
            raise ToolError(f"Only a person may use the skill {name}. Ask them to write `/{name}`.")
        return skill

    @property
    def _at(self) -> Skills:
        assert self._skills is not None, "a tool without skills is off"
        return self._skills

    def to_model(self, output: SkillUsed) -> tuple[Block, ...]:
        if output.by_agent:
            return (Text(output.text),)
        return (Text(f'<skill name="{output.name}" folder="{output.folder}">\n{output.text}\n</skill>'),)

    def describe(self, input: SkillInput) -> str:
        return f"Skill {_name(input)} {' '.join(input.args.split())[:60]}".rstrip()

    def show_result(self, input: SkillInput, output: SkillUsed) -> View:
        return Line(f"carried out by an agent: {output.name}" if output.by_agent else f"loaded {output.name}")


def _name(input: SkillInput) -> str:
    return input.skill.strip().lstrip("/")
