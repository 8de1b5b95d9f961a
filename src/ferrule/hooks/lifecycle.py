"""Hooks at the turning points of a session: its start and end, a prompt, the model's last word, and the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from ..core.calls import ToolOutcome
from ..core.content import plain_text
from ..core.ports import Amendment, Proposal, TurnWords
from ..core.state import MovedTo
from .event_names import MOMENTS
from .hook import Hook
from .payloads import SessionFacts, common
from .runner import Runner

if TYPE_CHECKING:
    from .reply_parsing import HookAnswer


class AgentLifecycle:
    """Satisfies `core.ports.TurnHooks` for the session of one agent."""

    def __init__(self, told: Sequence[Lifecycle], *, agent: str, kind: str, transcript: Callable[[], str]) -> None:
        """`told` are the hooks of the session and those that the agent defines."""
        self._told = told
        self._agent = agent
        self._kind = kind
        self._transcript = transcript

    async def session_started(self, cwd: str, *, source: str = "startup", model: str = "") -> TurnWords:
        return _join([await one.agent_started(cwd, agent=self._agent, kind=self._kind) for one in self._told])

    async def session_ended(self, cwd: str, *, reason: str = "other") -> None:
        """No event: the session continues after the agent has ended."""

    async def prompt_submitted(self, cwd: str, prompt: str) -> TurnWords:
        """No event: an agent's prompt is not written by a person."""
        return TurnWords()

    async def stopping(self, cwd: str, last: str, *, blocked: int = 0) -> TurnWords:
        return _join(
            [
                await one.agent_stopping(
                    cwd, last, agent=self._agent, kind=self._kind, transcript=self._transcript(), blocked=blocked
                )
                for one in self._told
            ]
        )

    async def calls_finished(self, cwd: str, outcomes: Sequence[ToolOutcome]) -> TurnWords:
        return _join([await one.calls_finished(cwd, outcomes, **self._who) for one in self._told])

    async def compacting(self, cwd: str, *, trigger: Literal["manual", "auto"], instructions: str = "") -> TurnWords:
        return await self._tell_all("PreCompact", cwd, trigger=trigger, custom_instructions=instructions)

    async def compacted(
        self, cwd: str, *, trigger: Literal["manual", "auto"], summary: str, model: str = ""
    ) -> TurnWords:
        """No further event: only the session itself is reported as started again."""
        await self._tell_all("PostCompact", cwd, trigger=trigger, compact_summary=summary)
        return TurnWords()

    async def _tell_all(self, event: str, cwd: str, **fields: Any) -> TurnWords:
        return _join([await one.tell(event, cwd, **fields, **self._who) for one in self._told])

    @property
    def _who(self) -> dict[str, str]:
        return {"agent_id": self._agent, "agent_type": self._kind}


def _join(said: Sequence[TurnWords]) -> TurnWords:
    return TurnWords(
        context=tuple(text for one in said for text in one.context),
        blocks="\n".join(one.blocks for one in said if one.blocks),
        stops=next((one.stops for one in said if one.stops), ""),
    )


class HookMoved:
    """A step after the call. It changes nothing, but the next call waits for it, to see variables that hooks set."""

    def __init__(self, runner: Runner, scene: SessionFacts) -> None:
        self._runner = runner
        self._scene = scene

    def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> Awaitable[Amendment | None] | None:
        before = proposal.ctx.cwd
        now = next((change.path for change in outcome.changes if isinstance(change, MovedTo)), before)
        hooks = self._runner.choose("CwdChanged", "", proposal) if now != before else ()
        if not hooks:
            return None
        told = common(self._scene, "CwdChanged", now, proposal.ctx.facts.agent)
        return self._tell(hooks, told | {"old_cwd": before, "new_cwd": now})

    async def _tell(self, hooks: Sequence[Hook], payload: dict[str, Any]) -> None:
        await self._runner.ask(hooks, payload)


MOST_BLOCKS: Final = 8
"""How often in a row hooks may send the model back to work before its turn ends anyway."""


class Lifecycle:
    """Each method runs the hooks of one event and returns what they say. Satisfies `core.ports.TurnHooks`."""

    def __init__(self, runner: Runner, scene: SessionFacts, look: Callable[[], None] = lambda: None) -> None:
        """`look` is called before each event, to see whether hooks have changed."""
        self._runner = runner
        self._scene = scene
        self._look = look

    async def session_started(self, cwd: str, *, source: str = "startup", model: str = "") -> TurnWords:
        return await self.tell("SessionStart", cwd, source=source, **({"model": model} if model else {}))

    async def session_ended(self, cwd: str, *, reason: str = "other") -> None:
        await self.tell("SessionEnd", cwd, reason=reason)

    async def prompt_submitted(self, cwd: str, prompt: str) -> TurnWords:
        return await self.tell("UserPromptSubmit", cwd, prompt=prompt)

    async def prompt_expanding(
        self, cwd: str, prompt: str, *, kind: Literal["slash_command", "mcp_prompt"], name: str, args: str, source: str
    ) -> TurnWords:
        """A slash command is about to become a prompt."""
        return await self.tell(
            "UserPromptExpansion",
            cwd,
            expansion_type=kind,
            command_name=name,
            command_args=args,
            command_source=source,
            prompt=prompt,
        )

    async def stopping(self, cwd: str, last: str, *, blocked: int = 0) -> TurnWords:
        """The model is done. A block sends it back to work, but not forever: `blocked` is the number so far."""
        said = await self.tell(
            "Stop",
            cwd,
            stop_hook_active=blocked > 0,
            last_assistant_message=last,
            background_tasks=[],
            session_crons=[],
        )
        return said if blocked < MOST_BLOCKS else said.without_block()

    async def calls_finished(self, cwd: str, outcomes: Sequence[ToolOutcome], **agent: str) -> TurnWords:
        """Of all calls of a message; `agent` says whose, where it is not the session's own."""
        if not self._runner.choose("PostToolBatch", agent=agent.get("agent_id", "main")):
            return TurnWords()  # what is told can be long
        calls = [
            {
                "tool_name": outcome.call.name,
                "tool_input": dict(outcome.call.arguments),
                "tool_use_id": outcome.call.id,
                "tool_response": plain_text(outcome.content),
            }
            for outcome in outcomes
        ]
        return await self.tell("PostToolBatch", cwd, tool_calls=calls, **agent)

    async def agent_started(self, cwd: str, *, agent: str, kind: str) -> TurnWords:
        return await self.tell("SubagentStart", cwd, agent_id=agent, agent_type=kind)

    async def agent_stopping(
        self, cwd: str, last: str, *, agent: str, kind: str, transcript: str = "", blocked: int = 0
    ) -> TurnWords:
        said = await self.tell(
            "SubagentStop",
            cwd,
            agent_id=agent,
            agent_type=kind,
            agent_transcript_path=transcript,
            stop_hook_active=blocked > 0,
            last_assistant_message=last,
            background_tasks=[],
            session_crons=[],
        )
        return said if blocked < MOST_BLOCKS else said.without_block()

    async def compacting(self, cwd: str, *, trigger: Literal["manual", "auto"], instructions: str = "") -> TurnWords:
        return await self.tell("PreCompact", cwd, trigger=trigger, custom_instructions=instructions)

    async def compacted(
        self, cwd: str, *, trigger: Literal["manual", "auto"], summary: str, model: str = ""
    ) -> TurnWords:
        """Then the session is reported as started again, and what those hooks say is returned."""
        await self.tell("PostCompact", cwd, trigger=trigger, compact_summary=summary)
        return await self.session_started(cwd, source="compact", model=model)

    async def tell(self, event: str, cwd: str, /, **fields: Any) -> TurnWords:
        """Any event, with its fields in addition to the common ones."""
        self._look()
        subject = str(fields.get(MOMENTS[event].matched_on, ""))
        hooks = self._runner.choose(event, subject, agent=fields.get("agent_id", "main"))
        if not hooks:
            return TurnWords()
        payload = common(self._scene, event, cwd) | fields
        return _collect(await self._runner.ask(hooks, payload))


def _collect(answers: Sequence[HookAnswer]) -> TurnWords:
    blocks = [f"{answer.hook.label}: {answer.reason}" for answer in answers if answer.blocks]
    return TurnWords(
        context=tuple(f"{answer.hook.label}: {answer.context}" for answer in answers if answer.context),
        blocks="\n".join(blocks),
        stops=next((answer.stops for answer in answers if answer.stops is not None), ""),
    )
