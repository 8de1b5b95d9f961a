"""Our tools in somebody else's loop: definitions for a request, and one call that carries out a response."""

from __future__ import annotations

import inspect
import itertools
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from ..app.build import Settings, open_session
from ..core.calls import ToolCall, ToolOutcome
from ..core.effects import describe_touch
from ..core.ports import Proposal
from ..core.tool import AnyTool, ToolSpec
from ..core.verdicts import Behavior, Verdict
from ..engine.session import Session
from ..permissions.modes import Mode
from ..permissions.rules import parse_rules
from .dialects import Dialect, definition, parse_response, results

Family: TypeAlias = Literal["anthropic", "openai", "openai-responses"]


@dataclass(frozen=True, slots=True)
class Question:
    """A call that needs approval before it runs."""

    tool: str
    arguments: Mapping[str, Any]
    would: str
    """What the call would do: the paths, hosts and commands that it touches."""


Answer: TypeAlias = bool | str
"""Yes, no, or no with a reason for the model."""
Ask: TypeAlias = Callable[[Question], Answer | Awaitable[Answer]]


class Toolbox:
    """One session's worth of tools. A context manager: leaving it ends whatever its calls left running.

    >>> async def loop(client: Any, messages: list[Any]) -> Any:
    ...     async with Toolbox(cwd="project", allow=["Edit"]) as toolbox:
    ...         while True:
    ...             tools = toolbox.definitions("anthropic")
    ...             response = await client.messages.create(messages=messages, tools=tools)
    ...             if not (turns := await toolbox.execute(response)):
    ...                 return response
    ...             messages += turns
    """

    def __init__(
        self,
        *,
        cwd: str | os.PathLike[str] | None = None,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        mode: Mode | str = Mode.DEFAULT,
        ask: Ask | None = None,
        tools: Iterable[AnyTool] = (),
        builtin: bool = True,
        settings: Settings | None = None,
    ) -> None:
        """`allow` and `deny` are rules as users write them; without `ask`, a call that needs approval is refused.

        `settings` is for everything else; other arguments take precedence.
        Raises `RuleError` for an invalid rule.
        """
        base = settings or Settings()
        rules = (*parse_rules(deny, Behavior.DENY, "deny"), *parse_rules(allow, Behavior.ALLOW, "allow"))
        chosen = replace(
            base,
            cwd=base.cwd if cwd is None else os.path.abspath(cwd),
            rules=(*base.rules, *rules),
            mode=base.mode if settings is not None and mode is Mode.DEFAULT else Mode(mode),
        )
        approver = AskingApprover(ask) if ask is not None else None
        self.session: Session = open_session(chosen, tools=tools, approver=approver, builtin=builtin)
        self._numbers = itertools.count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.close()

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools for the next request; grows when the model finds deferred tools."""
        return self.session.registry.pool.specs_for_request(self.session.state.found_tools)

    def definitions(self, family: Family) -> list[dict[str, Any]]:
        """For the `tools` of the next request. Raises `ValueError` for a name that the service would not accept."""
        dialect = Dialect(family)
        specs = self.specs()
        if bad := [spec.name for spec in specs if not _NAME.fullmatch(spec.name)]:
            raise ValueError(
                f"{', '.join(bad)}: a name may have 64 letters, digits, `_` or `-` there. Rename the tool."
            )
        return [definition(spec, dialect) for spec in specs]

    async def execute(self, response: Any) -> list[dict[str, Any]]:
        """Carry out the calls of a response; return the turns to add to the conversation, its own first.

        Empty when the response asks for nothing: the loop is over. Calls run
        at once as far as they do not conflict, results keep the calls' order,
        and whatever goes wrong in a call is a result that says so.
        """
        asked = parse_response(response)
        if not asked.calls:
            return []
        outcomes = await self.session.run(asked.calls)
        return [*asked.turns, *results(asked.dialect, outcomes, await self._notes())]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """One call, for frameworks that parse calls themselves."""
        (outcome,) = await self.session.run([ToolCall(f"toolbox-{next(self._numbers)}", name, arguments)])
        return outcome

    async def _notes(self) -> Sequence[str]:
        """Tasks that ended, files that somebody else changed: notes that our own loop also gives the model."""
        agent = self.session.agent
        return [str(note) for source in self.session.note_sources for note in await source.notes(agent)]


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class AskingApprover:
    """A function as an approver. It satisfies `core.ports.Approver`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
        would = "; ".join(describe_touch(touch) for touch in proposal.effects.touches) or "touches nothing"
        said = self._ask(Question(proposal.tool.name, proposal.arguments, would))
        answer = await said if inspect.isawaitable(said) else said
        if answer is True:
            return Verdict(behavior=Behavior.ALLOW, source="user", reason="it was allowed when asked")
        reason = answer if isinstance(answer, str) and answer else "it was refused when asked"
        return Verdict(behavior=Behavior.DENY, source="user", reason=reason)
