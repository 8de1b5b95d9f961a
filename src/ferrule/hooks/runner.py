"""Running the hooks of one moment: all of them at once, none of them able to break anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, cast

from ..core.ports import Note, Proposal
from ..engine.error_outcomes import end
from .hook import Books, Function, Hook, HookBook, Payload

if TYPE_CHECKING:  # loaded with the first hook that runs
    from .reply_parsing import HookAnswer
    from .worker import Worker


class Runner:
    """Runs hooks for one session. Whoever opens the session closes it, which ends background hooks."""

    def __init__(self, book: Books, worker: Callable[[], Worker]) -> None:
        """`book` is asked at each moment, so that hooks may change while the session lasts.

        `worker` returns the same one each time. It is called only if a hook is to be run.
        """
        self._book = book
        self._worker = worker
        self._beside = set[asyncio.Task[None]]()
        self._news: list[Note] = []
        self._over = set[Hook]()
        """Hooks that run once and have run; shared with the copies for agents that are hooks."""

    def without_agents(self) -> Runner:
        """The same without hooks that are agents. This runner ends the background hooks."""
        book, other = self._book, copy(self)

        def without(agent: str, chain: Sequence[str] | None) -> HookBook:
            return book(agent, chain).without_agents()

        other._book = without
        return other

    def choose(
        self, event: str, subject: str = "", proposal: Proposal | None = None, *, agent: str = "main"
    ) -> tuple[Hook, ...]:
        """For a call, or for another event of an agent."""
        facts = proposal.ctx.facts if proposal is not None else None
        book = self._book(facts.agent, facts.chain) if facts is not None else self._book(agent, None)
        return book.choose(event, subject, proposal)

    def at_once(self, hooks: Sequence[Hook], payload: Payload) -> list[HookAnswer] | None:
        """The answers, if nothing has to be awaited."""
        if not all(isinstance(hook.work, Function) and not hook.work.waits for hook in hooks):
            return None
        called = self._worker().call
        return [called(hook, cast(Function, hook.work), payload) for hook in self._due(hooks)]

    async def ask(self, hooks: Sequence[Hook], payload: Payload) -> list[HookAnswer]:
        """The answers in the order of the hooks. Background hooks give none."""
        due = self._due(hooks)
        for hook in due:
            if hook.beside:
                self._start_beside(hook, payload)
        waited = [hook for hook in due if not hook.beside]
        if len(waited) == 1:
            return [await self._worker().ask(waited[0], payload)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._worker().ask(hook, payload)) for hook in waited]
        return [task.result() for task in tasks]

    def start(self, hooks: Sequence[Hook], payload: Payload) -> None:
        """Run them all in the background: nobody waits for an answer."""
        for hook in self._due(hooks):
            self._start_beside(hook, payload)

    def _due(self, hooks: Sequence[Hook]) -> Sequence[Hook]:
        """Without those that run once and have run. The rest are marked now, in case another call comes first."""
        if not any(hook.once for hook in hooks):
            return hooks
        due = [hook for hook in hooks if hook not in self._over]
        self._over.update(hook for hook in due if hook.once)
        return due

    @property
    def busy(self) -> bool:
        """Whether any hook still runs in the background."""
        return bool(self._beside)

    async def notes(self, agent: str, /) -> tuple[Note, ...]:
        """Messages of background hooks. Satisfies `core.ports.NoteSource`."""
        news = tuple(self._news)
        self._news.clear()
        return news

    async def close(self) -> None:
        for task in tuple(self._beside):
            await end(task, grace=10.0)

    # Beside the session

    def _start_beside(self, hook: Hook, payload: Payload) -> None:
        task = asyncio.create_task(self._ran_beside(hook, payload))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _ran_beside(self, hook: Hook, payload: Payload) -> None:
        answer = await self._worker().ask(hook, payload)
        refused = answer.permission == "deny" or answer.blocks
        words = [answer.context, answer.reason if hook.rewakes and refused else ""]
        self._news += (Note("hook", f"{hook.label}: {word}") for word in words if word)
