"""One server: started in the background, restarted when it dies, used by whoever holds it.

One task owns the connection. It alone enters and leaves the package's contexts,
because they must be left in the task that entered them. Others wait until it
is up, and fail immediately if it is not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from .callbacks import Hooks, Kind, OnProgress, Unhurried
from .clock import EXTENDS_TO, CallClock, hold
from .config import InProcess, Relayed, Remote, ServerConfig
from .elicitation import put_to_person
from .lazy_imports import load_wire
from .listing import ListingCache, ResourceInfo, ServerListing
from .server_context import Around, PagesFirst, Phase, ServerTrouble
from .server_hold import ServerHold
from .server_process import ErrorLog
from .token_store import TokenFile

if TYPE_CHECKING:
    from .wire import Link

log = logging.getLogger(__name__)

MOST_TRIES: Final = 6
"""Consecutive failures after which a server is retried only when it is needed."""
CLOSES_WITHIN: Final = 8.0
MOST_RENEWALS: Final = 3
LULL: Final = 0.05
"""Seconds; waking up much later means that the process was busy."""
LISTS_EVERY: Final = 1.0
"""Seconds between two fetches of changed lists: a server may report changes too often."""


class ServerConnection:
    """Made without being started; `start`, or the first use, starts it."""

    def __init__(self, config: ServerConfig, around: Around, told: Callable[[ServerConnection, Kind], None]) -> None:
        """`told` is called when the server's offers have changed."""
        self.config = config
        self.phase = Phase.IDLE
        self.trouble = ""
        """Why it is down."""
        self.instructions = ""
        self._around = around
        self._timing = around.timing
        self._told = told
        self._cache = ListingCache(around.state_folder / "mcp" / "lists")
        self.listing = self._cache.load(config)
        """`None` until its offers are known."""
        self._errors = ErrorLog(around.state_folder / "mcp" / "logs" / f"{config.part or config.name}.log")
        self.hold = ServerHold(config)
        self._renewing = False
        self._owner: asyncio.Task[None] | None = None
        self._link: Link | None = None
        self._lost: str | None = None
        self._stopping = False
        self._stale: set[Kind] = set()
        self._failures = 0
        self._retry_at = 0.0
        self._clocks: set[CallClock] = set()
        self._news = asyncio.Event()
        self._wanted = asyncio.Event()
        self._moved = asyncio.Event()

    # Using it

    def start(self) -> None:
        if self._owner is None:
            self._owner = asyncio.ensure_future(self._own())

    async def call(self, tool: str, arguments: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """The result as the protocol has it. Raises `ServerTrouble`. If cancelled, the server is notified."""
        try:
            return await self._call(tool, arguments, on_progress)
        except PagesFirst as wanted:
            if not await self._has_opened(wanted.pages):
                raise
            return await self._call(tool, arguments, on_progress)

    async def _call(self, tool: str, arguments: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        link = await self._up()
        limit = self.call_limit
        clock: CallClock | None = None

        async def on_progress_note(progress: float, total: float | None, message: str | None) -> None:
            if clock is not None:
                clock.extend()
            await on_progress(progress, total, message)

        try:
            async with asyncio.timeout(limit) as timeout:
                clock = CallClock(timeout, limit)
                with self._on_the_clock(clock):
                    result = await link.call(tool, arguments, on_progress_note)
                self._failures = 0
                return result
        except TimeoutError:
            over = clock is not None and clock.is_over
            late = f"took longer than {limit * EXTENDS_TO:g} seconds" if over else f"was silent for {limit:g} seconds"
            raise ServerTrouble(
                f"`{tool}` of the server `{self.config.name}` {late}, and was cancelled. "
                "Whether it had any effect is unknown."
            ) from None
        except Exception as error:  # whatever the package raises for a server is that server's trouble
            raise await self._explain(f"`{tool}`", error) from error

    async def resources(self) -> tuple[ResourceInfo, ...]:
        """As the server has them now. Raises `ServerTrouble`."""
        link = await self._up()
        if not link.has_resources:
            return ()
        return await self._ask("a question for its resources", link.resources)

    async def read(self, uri: str) -> dict[str, Any]:
        """Raises `ServerTrouble`."""
        link = await self._up()
        return await self._ask(f"the resource {uri}", lambda: link.read(uri))

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        """Raises `ServerTrouble`."""
        link = await self._up()
        return await self._ask(f"the prompt `{name}`", lambda: link.prompt(name, arguments))

    async def ready(self) -> str:
        """Wait until it is up; the version of the protocol that it speaks. Raises `ServerTrouble`."""
        return (await self._up()).protocol

    async def close(self) -> None:
        """None of its processes runs afterwards."""
        self._stopping = True
        owner = self._owner
        if owner is None:
            self.phase = Phase.CLOSED
            return
        self._news.set()
        self._wanted.set()
        if self.phase is Phase.CONNECTING:
            owner.cancel()
        done, _ = await asyncio.wait((owner,), timeout=CLOSES_WITHIN)
        if not done:
            owner.cancel()
            await asyncio.wait((owner,), timeout=CLOSES_WITHIN)

    @property
    def call_limit(self) -> float:
        """Seconds without progress after which a call is cancelled."""
        own = self.config.timeout or self._timing.call
        return own or (300.0 if isinstance(self.config.transport, Remote) else 1800.0)

    # Waiting for it

    async def _up(self) -> Link:
        """Up, and without access to what the rules deny now. Raises `ServerTrouble`."""
        for _ in range(MOST_RENEWALS):
            link = await self._link_when_up()
            if not await self.hold.is_enough():
                self._renew()
            elif link is self._link:  # another call may have had it started again meanwhile
                return link
        raise ServerTrouble(
            f"The server `{self.config.name}` cannot be kept from what rules deny: those files change all the time. "
            "Try again when whatever changes them is done."
        )

    def _renew(self) -> None:
        """Restart it, which is not counted as a failure."""
        if self.phase is Phase.UP and self._lost is None:
            self._renewing = True
            self._lost = "it is started again, as more is kept from it now"
            self._move(Phase.CONNECTING)
            self._news.set()

    async def _link_when_up(self) -> Link:
        self.start()
        self._wanted.set()
        loop = asyncio.get_running_loop()
        if self.phase is Phase.DOWN and loop.time() >= self._retry_at:
            self._move(Phase.CONNECTING)  # the owner has been woken, and is about to
        while self.phase in (Phase.IDLE, Phase.CONNECTING):
            await self._moved.wait()
        if self._link is not None and self.phase is Phase.UP:
            return self._link
        name = self.config.name
        if self.phase is Phase.CLOSED:
            raise ServerTrouble(f"The server `{name}` was closed with its session.")
        pause = max(1, round(self._retry_at - loop.time()))
        raise ServerTrouble(
            f"The server `{name}` is down: {self.trouble}. "
            f"It will be retried in {pause} second{'s' if pause > 1 else ''}. Continue without it, or try later."
        )

    async def _ask(self, what: str, question: Callable[[], Any]) -> Any:
        try:
            async with asyncio.timeout(self.call_limit):
                return await question()
        except TimeoutError:
            raise ServerTrouble(
                f"The server `{self.config.name}` did not answer {what} within {self.call_limit:g} seconds."
            ) from None
        except Exception as error:  # whatever the package raises for a server is that server's trouble
            raise await self._explain(what, error) from error

    async def _explain(self, what: str, error: Exception) -> ServerTrouble:
        wire = await load_wire()
        name = self.config.name
        if wire.is_closed(error) or self._lost is not None:
            if self._lost is None:
                self._lose("the connection ended")
            return ServerTrouble(
                f"The server `{name}` was lost while it worked on {what}: {self._lost}. "
                "Whether it had any effect is unknown. It is being restarted."
            )
        if wire.is_stale(error):
            self._lose("it no longer knows this session")
        words = f"The server `{name}` answered {what} with an error: {wire.in_words(error)}."
        if pages := wire.pages_of(error):
            addresses = " and ".join(str(page["url"]) for page in pages)
            return PagesFirst(f"{words} A person has to open {addresses} first.", wire.code_of(error), pages)
        return ServerTrouble(words, wire.code_of(error))

    # The owner

    async def _own(self) -> None:
        if self._timing.begin_after and not isinstance(self.config.transport, InProcess | Relayed):
            await self._lull()
        loop = asyncio.get_running_loop()
        try:
            while not self._stopping:
                began = loop.time()
                self._move(Phase.CONNECTING)
                await self._once()
                if self._renewing:
                    self._renewing = False
                elif not self._stopping:
                    steady = loop.time() - began > self._timing.steady_after
                    await self._rest(0 if steady else self._failures)
        finally:  # whoever waits for it must not wait for ever
            self._move(Phase.CLOSED)

    async def _lull(self) -> None:
        """Wait until this process was idle for a while (a first request comes first), or the server is needed."""
        loop = asyncio.get_running_loop()
        ends, quiet = loop.time() + self._timing.begin_within, 0.0
        while quiet < self._timing.begin_after and loop.time() < ends and not self._wanted.is_set():
            due = loop.time() + LULL
            await self._until(self._wanted, LULL)
            quiet = quiet + LULL if loop.time() - due < LULL / 2 else 0.0

    async def _once(self) -> None:
        """One life of the server, from its start to its loss."""
        self._lost = None
        self._news.clear()
        wire = await load_wire()
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._timing.start) as timeout:
                    with self._on_the_clock(CallClock(timeout, self._timing.start)):
                        link = await stack.enter_async_context(wire.connect(self.config, self._hooks(), self._errors))
                        listing = await link.listing()
                self.instructions = link.instructions
                self._take(listing)
                self._link = link
                self._move(Phase.UP)
                stack.push_async_callback(self._following(link))
                await self._serve(link)
        except TimeoutError:
            self.trouble = f"it was not up after {self._timing.start:g} seconds{self._last_words()}"
        except Exception as error:  # whatever it is, it is this server's trouble and nobody else's
            self.trouble = self._lost or f"{wire.in_words(error)}{self._last_words()}"
        finally:
            self._link = None

    async def _serve(self, link: Link) -> None:
        """Until it is lost or no longer needed. Changed lists are fetched here."""
        loop = asyncio.get_running_loop()
        look_at = loop.time()
        while not self._stopping and self._lost is None:
            wait = look_at - loop.time() if self._stale else None
            if wait is None or wait > 0:
                await self._until(self._news, wait)
                self._news.clear()
                continue
            stale, self._stale = self._stale, set()
            look_at = loop.time() + LISTS_EVERY
            if stale & {"tools", "prompts"}:
                await self._refresh(link)
            if "resources" in stale:
                self._told(self, "resources")

    async def _refresh(self, link: Link) -> None:
        try:
            async with asyncio.timeout(self._timing.start):
                self._take(await link.listing())
        except Exception as error:  # a list that cannot be fetched is no reason to forget the one there is
            log.warning("the tools of %s stay as they were: %s", self.config.name, str(error) or type(error).__name__)

    def _following(self, link: Link) -> Callable[[], Any]:
        async def follow() -> None:
            with suppress(Exception):  # a server that tells of no changes is as good without
                await link.follow_changes(self._hooks())

        task = asyncio.ensure_future(follow())

        async def ended() -> None:
            task.cancel()
            await asyncio.wait((task,))

        return ended

    async def _rest(self, failures: int) -> None:
        self._failures = failures + 1
        pause = min(self._timing.longest_pause, self._timing.first_pause * 2**failures)
        self._retry_at = asyncio.get_running_loop().time() + pause
        self._wanted.clear()
        log.warning("the MCP server %s is down: %s", self.config.name, self.trouble)
        self._move(Phase.DOWN)
        await asyncio.sleep(0)
        await self._pause(pause)
        if self._failures >= MOST_TRIES and not self._stopping:
            self._wanted.clear()
            await self._wanted.wait()

    async def _pause(self, seconds: float) -> None:
        """The whole pause, unless the session ends: a server that keeps dying must not be started at every call."""
        ends = asyncio.get_running_loop().time() + seconds
        while not self._stopping and (left := ends - asyncio.get_running_loop().time()) > 0:
            await self._until(self._news, left)
            self._news.clear()

    async def _until(self, event: asyncio.Event, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()

    # What it hears

    def _hooks(self) -> Hooks:
        transport = self.config.transport
        url = transport.url if isinstance(transport, Remote) else ""
        return Hooks(
            server=self.config.name,
            lost=self._on_end,
            changed=self._on_change,
            tokens=TokenFile(self._around.state_folder / "mcp" / "tokens", url),
            start=self.hold.start,
            elicit=self._elicit if self._around.questioner is not None else None,
            sign_in=Unhurried(self._around.sign_in, self._clocks) if self._around.sign_in else None,
            roots=self._around.roots,
            negotiation=self._around.negotiation,
        )

    def _on_end(self, why: str) -> None:
        if not self._stopping:
            self._lose(f"{why}{self._last_words()}")

    def _lose(self, why: str) -> None:
        if self._lost is None:
            self._lost = self.trouble = why
            self._news.set()
            if self.phase is Phase.UP:
                self._retry_at = asyncio.get_running_loop().time() + self._timing.first_pause
                self._move(Phase.DOWN)

    def _on_change(self, kind: Kind) -> None:
        self._stale.add(kind)
        self._news.set()

    async def _elicit(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        assert self._around.questioner is not None, "only given if somebody can be asked"
        with hold(self._clocks):
            return await put_to_person(self._around.questioner, self.config.name, asked)

    @contextmanager
    def _on_the_clock(self, clock: CallClock) -> Generator[None]:
        self._clocks.add(clock)
        try:
            yield
        finally:
            self._clocks.discard(clock)

    async def _has_opened(self, pages: tuple[Mapping[str, Any], ...]) -> bool:
        if self._around.questioner is None:
            return False
        answers = [await self._elicit({**page, "mode": "url"}) for page in pages]
        return all(answer["action"] == "accept" for answer in answers)

    @property
    def is_awaited(self) -> bool:
        """Whether its tools are unknown, and no earlier wait for it was in vain."""
        return self.listing is None and not self._cache.was_awaited_in_vain(self.config)

    def note_in_vain(self) -> None:
        """The next start does not wait for it until it has been up."""
        self._cache.note_in_vain(self.config)

    def _take(self, listing: ServerListing) -> None:
        before, self.listing = self.listing, listing
        if listing == before:
            return
        self._cache.save(self.config, listing)
        if before is None or before.tools != listing.tools:
            self._told(self, "tools")
        if before is None or before.prompts != listing.prompts:
            self._told(self, "prompts")

    def _last_words(self) -> str:
        words = self._errors.last_words
        return f". Its last output: {words}" if words else ""

    def _move(self, phase: Phase) -> None:
        self.phase = phase
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
