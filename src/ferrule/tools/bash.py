"""Run a command in a shell."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Self

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from ..bash_analysis.analysis import Analyse, Analysis
from ..bash_analysis.analysis import analyse as analyse_command
from ..bash_analysis.git_use import git_use
from ..core.content import Block, Terminal, Text, View
from ..core.context import ToolContext
from ..core.effects import CWD, ChangesState, Effects, Opaque, ReadsState, Touch
from ..core.inputs import ToolInput
from ..core.state import MovedTo
from ..core.tool import Alias, Keep, Result, ToolError, guide_listing, load_guide
from ..core.values import plain_value
from ..core.verdicts import Confinement, Grants, Verdict, of_risks
from ..host.files.ledger import Ledgers
from ..host.git.git_places import with_repositories
from ..host.processes.background_tasks import TaskState
from ..host.processes.change_words import (
    describe_changes,
    describe_left_behind,
    describe_output,
    explain_blocked,
    name_some,
    without_refusals,
)
from ..host.processes.command import Command, CommandFailed, Ran
from ..host.processes.command_limits import CommandLimits
from ..host.processes.declared_writes import hidden_in_passing
from ..host.processes.line_filter import BadPattern
from ..host.processes.running_command import Running
from ..host.processes.sandbox import CannotConfine
from ..host.processes.session_shell import Shell
from . import BASH_LIMIT, NO_SHELL, BuiltinTool, Services

USUAL = CommandLimits()
ABOUT_IT = 1_000
"""Characters of the limit that are for what is said about the output."""
MOVERS = frozenset({"cd", "pushd", "popd"})
MEANS_NO = frozenset({"grep", "egrep", "fgrep", "rg", "diff", "cmp", "test", "[", "[[", "pgrep", "zgrep"})
"""Programs whose exit code 1 is an answer, not a failure."""
SEARCHES = frozenset({"grep", "egrep", "fgrep", "rg", "zgrep"})
"""Programs that skip a file they cannot read, and report it with exit code 2."""
GIT_MEANS_NO = frozenset({"diff", "grep"})
WAITS = frozenset({"sleep", "echo", "printf", "true", ":", "wait", "date"})
"""A command of nothing but these only waits: going on with it gains nothing."""
READS_TASKS = "TaskOutput"
"""The tool that shows what a command in the background prints."""


class BashInput(ToolInput):
    command: str = Field(min_length=1, description="The command, as it would be typed.")
    timeout: int | None = Field(
        default=None,
        ge=1,
        description=f"Time limit in milliseconds: {USUAL.usual_ms:,} by default, at most {USUAL.most_ms:,}.",
    )
    description: str | None = Field(default=None, description="What it does, in five to ten words.")
    run_in_background: bool = Field(
        default=False, description="Whether to run it in the background and return its id at once."
    )
    ready_pattern: str | None = Field(
        default=None,
        min_length=1,
        description="In the background: first wait until a line of its output matches this regular expression.",
    )
    dangerously_disable_sandbox: SkipJsonSchema[bool] = Field(default=False, alias="dangerouslyDisableSandbox")


@plain_value
class CommandRan:
    """A command that ended, well or not."""

    command: str
    output: str
    exit_code: int | None
    """`None` where a signal ended it, or where it continues in the background."""
    notes: tuple[str, ...] = ()
    task: str = ""
    """The id under which it continues."""


class Bash(BuiltinTool[BashInput, CommandRan]):
    name = "Bash"
    description = load_guide(__file__)
    hint = "run a shell command"
    input_model = BashInput
    needs = "shell"
    choices = "Time limits in this session, which replace those above"
    aliases = (Alias("run_shell", scale={"timeout": 1000}),)
    result_limit = BASH_LIMIT

    def __init__(
        self,
        shell: Shell | None = None,
        *,
        home: str | None = None,
        analyse: Analyse | None = None,
        follow_git: Callable[[Sequence[Touch]], Iterable[Touch]] = with_repositories,
        limits: CommandLimits | None = None,
        limit: int = BASH_LIMIT,
        keep: Keep | None = None,
        ledgers: Ledgers | None = None,
    ) -> None:
        """`analyse` may be replaced: its result is never trusted where nobody approved the command.

        The model gets at most `limit` characters, of the output what `keep` says, or both ends, or the end of what
        failed; a file has all of it.

        `follow_git` adds to the touches of commands what git reads that lies elsewhere.
        """
        self._shell = shell
        self._follow_git = follow_git
        self._limits = limits or USUAL
        self._shown = max(limit // 2, limit - ABOUT_IT)
        self._keep: Keep | None = keep
        self._ledgers = ledgers or Ledgers()
        home = home or os.path.expanduser("~")
        self._analysed = lru_cache(maxsize=64)(partial(analyse or analyse_command, home=home))

    @classmethod
    def from_services(cls, services: Services) -> Self:
        shell, limits = services.get_shell(), services.command_limits
        return cls(
            shell,
            analyse=services.analyse,
            limits=limits,
            limit=services.bash_limit,
            keep=services.bash_keep,
            ledgers=services.files.ledgers,
        )

    def unavailable(self) -> str | None:
        return None if self._shell else NO_SHELL

    def guide(self) -> str:
        return guide_listing(self.description, self.choices, "" if self._limits is USUAL else str(self._limits))

    def effects(self, input: BashInput, ctx: ToolContext) -> Effects:
        analysis = self.analyse(input, ctx)
        touches = [*self._follow_git(analysis.effects.touches), ReadsState(CWD)]
        if any(report.argv[:1] and report.argv[0] in MOVERS for report in analysis.commands):
            touches.append(ChangesState(CWD))
        if input.dangerously_disable_sandbox:
            touches.append(Opaque())
        return Effects(tuple(touches))

    async def opinion(self, input: BashInput, ctx: ToolContext) -> Verdict | None:
        return of_risks(self.analyse(input, ctx).risks)

    def check(self, input: BashInput, ctx: ToolContext) -> None:
        if not input.command.strip():
            raise ToolError("`command` is empty. Give the command to run.")
        if input.ready_pattern is not None and not input.run_in_background:
            raise ToolError("`ready_pattern` is for commands with `run_in_background`. Set that, or leave it out.")

    async def call(self, input: BashInput, ctx: ToolContext) -> CommandRan | Result[CommandRan]:
        try:
            await self._at.prepare()
            command = replace(await self._command(input, ctx), kept_if_over=self._shown)
            if input.run_in_background:
                return await self._left_to_run(input, command)
            return await self._ran(input, command, ctx)
        except CannotConfine as reason:
            raise ToolError(f"The command was not run because it cannot be sandboxed here: {reason}") from None
        except (CommandFailed, BadPattern) as error:
            raise ToolError(str(error)) from None

    @property
    def _at(self) -> Shell:
        assert self._shell is not None, "a tool without a shell is off"
        return self._shell

    def analyse(self, input: BashInput, ctx: ToolContext) -> Analysis:
        """What the command would do. The last ones are remembered."""
        return self._analysed(input.command, cwd=ctx.cwd)

    def confinement(
        self, input: BashInput, ctx: ToolContext, effects: Effects, verdict: Verdict | None
    ) -> Confinement | None:
        """What a command is confined to under this verdict; `None` where it may do all that this user may.

        An approved command is confined to what rules allow, and to reading if that is all it does; any other to
        what it declared.
        """
        if verdict is not None and not verdict.approved:
            return _confinement_needed(verdict, effects, ctx, lasts=input.run_in_background)
        needed = verdict.needs_confinement if verdict else None
        if self._only_reads(input, ctx):
            return Confinement(unreadable=needed.unreadable if needed else (), read_only=True)
        needed = replace(needed, grants=None) if needed else None
        return needed if needed is not None and _holds_something(needed) else None

    def _only_reads(self, input: BashInput, ctx: ToolContext) -> bool:
        return self.analyse(input, ctx).effects.read_only and not input.dangerously_disable_sandbox

    async def _command(self, input: BashInput, ctx: ToolContext) -> Command:
        effects = ctx.effects or self.effects(input, ctx)
        needed = self.confinement(input, ctx, effects, ctx.verdict)
        if needed is None:
            return self._at.plain(input.command, ctx.cwd)
        if ctx.verdict is None or ctx.verdict.approved:
            return await self._is_approved(input, ctx, needed)
        analysis = self.analyse(input, ctx)
        repositories = tuple(_repositories(analysis, ctx.cwd))
        return await self._at.hold_to_grants(
            input.command, ctx.cwd, needed, effects, repositories=repositories, git=git_use(analysis)
        )

    async def _is_approved(self, input: BashInput, ctx: ToolContext, needed: Confinement) -> Command:
        analysis = self.analyse(input, ctx)
        if self._only_reads(input, ctx):
            repositories = tuple(_repositories(analysis, ctx.cwd))
            return await self._at.reading(
                input.command,
                ctx.cwd,
                repositories=repositories,
                unreadable=needed.unreadable,
                git=git_use(analysis),
            )
        if not self._at.confines(needed) and _by_person(ctx):
            return self._at.plain(input.command, ctx.cwd)
        return await self._at.confine(
            input.command, ctx.cwd, needed, git=git_use(analysis), lasts=input.run_in_background
        )

    # Beside the conversation

    async def _left_to_run(self, input: BashInput, command: Command) -> CommandRan:
        background = self._at.background
        id = await background.start(command)
        if input.ready_pattern is None:
            return CommandRan(input.command, "", None, (_in_background(id),), id)
        seconds = self._seconds(input)
        line = await background.ready(id, input.ready_pattern, seconds)
        news = await background.output(id)
        if news.status.state is not TaskState.RUNNING:
            how = f"exit code {news.status.exit_code}" if news.status.signal is None else news.status.signal
            raise ToolError(f"{news.text}\nIt ended ({how}) before a line matched `{input.ready_pattern}`.".lstrip())
        note = f"Ready: {line}" if line else f"No line matched `{input.ready_pattern}` within {seconds:g} s."
        return CommandRan(input.command, news.text, None, (note, _in_background(id)), id)

    # In the conversation

    async def _ran(self, input: BashInput, command: Command, ctx: ToolContext) -> CommandRan | Result[CommandRan]:
        seconds = self._seconds(input)
        running = await self._at.commands.start(
            command, on_output=lambda text: ctx.report(Terminal(input.command, text))
        )
        kept, started = False, time.time()
        try:
            ran, ended_because = await running.within(seconds), ""
            if ran is None and not (ended_because := self._why_ended(input, running, ctx)):
                kept = True
                return self._move_to_background(input, command, running, seconds)
            if ran is None:
                await running.end(timed_out=True)
                ran = await running.wait()
        finally:
            if not kept:
                await asyncio.shield(_end(running))
            if not self._only_reads(input, ctx):
                self._ledgers.of(ctx.facts.agent).note_command(started, time.time())
        return self._report(input, command, ran, ended_because, ctx)

    def _seconds(self, input: BashInput) -> float:
        return min(input.timeout or self._limits.usual_ms, self._limits.most_ms) / 1000

    def _why_ended(self, input: BashInput, running: Running, ctx: ToolContext) -> str:
        """Why a command whose time is up does not continue in the background; empty where it does."""
        ended = f"It was ended after {self._seconds(input):g} s, its time limit{_if_in_seconds(input)}"
        analysis = self.analyse(input, ctx)
        programs = {os.path.basename(report.argv[0]) for report in analysis.commands if report.argv}
        if running.output.is_capped:
            return f"{ended}."
        if programs and programs <= WAITS and analysis.effects.read_only:
            return f"{ended}: it only waits."
        if "git" in programs:
            return f"{ended}: git in the background would keep its locks. Set a longer `timeout` (milliseconds)."
        if not any(spec.name == READS_TASKS for spec in ctx.facts.tools):
            return f"{ended}: nothing runs in the background here. Set a longer `timeout` (milliseconds)."
        return ""

    def _move_to_background(self, input: BashInput, command: Command, running: Running, seconds: float) -> CommandRan:
        id = self._at.background.adopt(running)
        so_far = running.output.snapshot(keep_if_over=self._shown).text(self._shown, self._keep or "both")
        note = f"It was not done after {seconds:g} s{_if_in_seconds(input)} and continues. {_in_background(id)}"
        late = ("What it changes is there when it has ended.",) if _works_on_a_layer(command) else ()
        return CommandRan(input.command, so_far, None, (note, *late), id)

    def _report(
        self, input: BashInput, command: Command, ran: Ran, ended_because: str, ctx: ToolContext
    ) -> Result[CommandRan]:
        moved, stayed = _new_directory(ran, ctx)
        hidden = _left_out(command, ctx)
        is_answer = self._means_no(input, ran.exit_code or 0, ctx, passed_over=bool(hidden))
        failed = ran.timed_out or ran.exit_code is None or (ran.exit_code != 0 and not is_answer)
        output = ran.output.text(self._shown, self._keep or ("tail" if failed else "both")).rstrip("\n")
        said = without_refusals(output, hidden) if hidden else output
        passed, output = said != output, said
        notes = (
            *describe_output(ran),
            *describe_left_behind(ran.left),
            *describe_changes(ran.changes),
            *(command.notes or _about_hidden(hidden, ctx)),
            *(explain_blocked(command, ran, ctx.verdict) if not hidden or "Permission denied" in output else ()),
            *stayed,
            *((f"The working directory is now {ran.cwd}.",) if moved else ()),
        )
        changes = (moved,) if moved else ()
        if ran.timed_out:
            raise ToolError(_join(output, ended_because, *notes))
        if ran.exit_code is None:
            raise ToolError(_join(output, f"It was ended by {ran.signal}.", *notes), changes=changes)
        if ran.exit_code and not (passed or is_answer):
            signal = f", its program was ended by {ran.signal}" if ran.signal else ""
            raise ToolError(_join(output, f"Exit code {ran.exit_code}{signal}.", *notes), changes=changes)
        if ran.changes is not None and (ran.changes.dropped or ran.changes.failed):
            raise ToolError(_join(output, *notes), changes=changes)  # it took for done what was not kept
        return Result(CommandRan(input.command, output, ran.exit_code, notes), changes=changes)

    def _means_no(self, input: BashInput, code: int, ctx: ToolContext, *, passed_over: bool) -> bool:
        """Whether the exit code is an answer: 1 for "no", or 2 where a search was kept from a hidden file."""
        commands = self.analyse(input, ctx).commands
        argv = commands[-1].argv if commands else ()
        name = argv[0].rpartition("/")[2] if argv else ""
        if code == 2 and passed_over:
            return name in SEARCHES
        if code != 1 or not commands:
            return False
        return name in MEANS_NO or (name == "git" and any(word in GIT_MEANS_NO for word in argv[1:2]))

    # What is reported

    def to_model(self, output: CommandRan) -> tuple[Block, ...]:
        code = f"Exit code {output.exit_code}." if output.exit_code else ""
        shown = output.output or ("" if output.task else "(no output)")
        return (Text(_join(shown, code, *output.notes)),)

    def describe(self, input: BashInput) -> str:
        line = " ".join((input.description or input.command).split())
        return f"Bash {line}" if len(line) <= 80 else f"Bash {line[:79]}…"

    def show_call(self, input: BashInput) -> View:
        return Terminal(input.command, "")

    def show_result(self, input: BashInput, output: CommandRan) -> View:
        return Terminal(input.command, _join(output.output, *output.notes), output.exit_code)


def _if_in_seconds(input: BashInput) -> str:
    """A hint where the time limit was probably meant in seconds."""
    meant = input.timeout
    return f" (`timeout` is in milliseconds: {1000 * meant:,} for {meant} s)" if meant and meant < 1000 else ""


def _repositories(analysis: Analysis, cwd: str) -> Iterator[str]:
    """Where git may look, for a command that calls it."""
    if not any(os.path.basename(run.argv[0]) == "git" for run in analysis.effects.commands if run.argv):
        return
    yield cwd
    for touch in analysis.effects.reads:
        folder = touch.path if os.path.isdir(touch.path) else os.path.dirname(touch.path)
        if os.path.isdir(folder):
            yield folder


def _confinement_needed(verdict: Verdict, effects: Effects, ctx: ToolContext, *, lasts: bool) -> Confinement:
    """What the verdict wants enforced. Where it says nothing, the effects; where these are not known, the workspace."""
    needed = verdict.needs_confinement or Confinement()
    if needed.grants is None:
        declares = not effects.unknown and needed.writable is None
        needed = replace(needed, grants=Grants.for_effects(effects, lasts=lasts) if declares else Grants(lasts=lasts))
    if effects.unknown and needed.writable is None and not needed.read_only:
        needed = replace(needed, writable=(ctx.facts.workspace or ctx.cwd, *ctx.facts.added_directories))
    return needed


def _holds_something(needed: Confinement) -> bool:
    return needed.writable is not None or any(
        (needed.unreadable, needed.unwritable, needed.unreachable, needed.read_only)
    )


def _by_person(ctx: ToolContext) -> bool:
    """Whether a person agreed. Where nothing can confine it, that was the question."""
    return ctx.verdict is not None and ctx.verdict.source == "user"


def _works_on_a_layer(command: Command) -> bool:
    return command.jail is not None and command.jail["keep"] == "overlay"


async def _end(running: Running) -> None:
    if not running.done:
        await running.end()
    running.output.close()


def _new_directory(ran: Ran, ctx: ToolContext) -> tuple[MovedTo | None, tuple[str, ...]]:
    """The new working directory, if it is one that the session may work in."""
    if ran.cwd is None or ran.cwd == ctx.cwd:
        return None, ()
    roots = (ctx.facts.workspace, *ctx.facts.added_directories)
    if any(ran.cwd == root or ran.cwd.startswith(root.rstrip("/") + "/") for root in map(os.path.realpath, roots)):
        return MovedTo(ran.cwd), ()
    return None, (f"It ended in {ran.cwd}, outside of the workspace; the working directory is {ctx.cwd} again.",)


def _left_out(command: Command, ctx: ToolContext) -> tuple[str, ...]:
    """What it skipped because it may hold secrets or is denied."""
    if command.jail is None or command.jail["readable"] is None or ctx.effects is None:
        return ()
    return hidden_in_passing(ctx.effects, command.jail["hidden"])


def _about_hidden(hidden: tuple[str, ...], ctx: ToolContext) -> Iterator[str]:
    if hidden:
        yield f"left out: {name_some(tuple(os.path.relpath(path, ctx.cwd) for path in hidden))}"


def _in_background(id: str) -> str:
    return f"It runs in the background as {id}. TaskOutput shows what it prints, KillShell ends it."


def _join(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
