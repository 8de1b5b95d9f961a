"""What one command touches, collected during the analysis."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..core.effects import Change, ReachesHost, ReadsPath, RunsCommand, Touch, WritesPath
from ..core.values import plain_value
from ..core.verdicts import Risk, Severity
from .analysis_budget import AnalysisBudget
from .shell_state import ShellState
from .shell_words import Word
from .word_paths import (
    ANYWHERE,
    absolute,
    depends_on_process,
    is_disk_device,
    is_endless_or_device,
    is_nothing,
    network_host,
    with_dots,
)

MAX_REASON = 240
_DESCRIPTOR = re.compile(r"[0-9]+-?|-")
EVERYTHING = "**"
"""A glob for everything below a folder."""
MAX_DEPTH = 6
"""How many levels of commands that run commands are followed."""


@plain_value
class Put:
    """What a command puts at a path besides one file of that name. The fields are those of `WritesPath`."""

    names: str = ""
    like: str = ""
    if_folder: tuple[tuple[str, Put], ...] = ()
    """By the name below the path."""


NOTHING_PUT = Put()


class Account:
    """The touches, doubts and risks of one simple command and of the commands it runs."""

    def __init__(
        self, state: ShellState, workspace: str, run: Runner, script: Runs, budget: AnalysisBudget, depth: int = 0
    ) -> None:
        self.budget = budget
        self.state = state
        self.workspace = workspace
        self.touches: list[Touch] = []
        self.doubts: list[str] = []
        self.risks: list[Risk] = []
        self.depth = depth
        self.within = ""
        """The command that runs the next one; empty at the top."""
        self._started = ""
        self._run = run
        self._script = script

    def beside(self, state: ShellState) -> Account:
        """An empty account for another command, as deep as this one."""
        other = Account(state, self.workspace, self._run, self._script, self.budget, self.depth)
        other.within = self.within
        return other

    def include(self, other: Account, touches: Sequence[Touch]) -> None:
        for touch in touches:
            self._touch(touch)
        for doubt in other.doubts:
            self.doubt(doubt)
        for risk in other.risks:
            self.add_risk(risk)

    def doubt(self, reason: str) -> None:
        shown = reason if len(reason) <= MAX_REASON else f"{reason[: MAX_REASON - 1]}…"
        if shown not in self.doubts:
            self.doubts.append(shown)

    def risk(self, kind: str, severity: Severity, message: str, *, denies: bool = False) -> None:
        self.add_risk(Risk(kind, severity, denies, message))

    def add_risk(self, risk: Risk) -> None:
        if risk not in self.risks:
            self.risks.append(risk)

    def reads(self, word: Word, *, contents: bool = True) -> None:
        """Reads what the word names; without `contents`, only names."""
        if word.text == "-" or word.is_pipe:
            return
        names = _names_meant(word) if contents else ""
        for path, way in self._ways(word):
            if is_nothing(path) and not way:
                continue
            self._mind(path, way)
            self._touch(ReadsPath(path, way, (), names, bool(names)))

    def reads_through(self, word: Word) -> None:
        """Reads everything below, including link targets."""
        for path, way in self._ways(word):
            self._mind(path, way)
            self._touch(ReadsPath(path, way, (), EVERYTHING, follows=True))

    def reads_named(self, word: Word, glob: str) -> None:
        """Reads what the glob matches below."""
        for path, way in self._ways(word):
            self._touch(ReadsPath(path, way, names=glob.strip("/")))

    def _mind(self, path: str, way: str) -> None:
        if depends_on_process(path) or depends_on_process(way):
            self.doubt(f"where {path} leads depends on the process that opens it")
        elif is_endless_or_device(path):
            self.doubt(f"{path} is a device")

    def reads_here(self, *, through: bool = False) -> None:
        """Reads the working directory; with `through`, link targets too."""
        for base in self.state.bases or (ANYWHERE,):
            self._touch(ReadsPath(base, "", (), EVERYTHING if through else "", through))

    def writes(self, word: Word, change: Change = Change.REPLACES, put: Put | None = None) -> None:
        """Writes what the word names, and what is `put` there."""
        if word.is_pipe:
            return
        certain = word.pattern or (word.text is not None and (self.state.bases or word.text.startswith("/")))
        if not certain or word.text == "":
            self.doubt(f"what {word.shown or 'it'} names is not known")
            return
        # A slash after a link follows it, whatever happens to the name; and a pattern looks into what precedes it.
        if change is Change.UNLINKS and (word.text is None or word.text.endswith("/")):
            change = Change.DELETES
        put = put or NOTHING_PUT
        names = _names_meant(word) or put.names
        for path, way in self._ways(word):
            if is_nothing(path) and not way:
                continue
            if is_disk_device(path):
                self.risk("disk", "critical", f"It writes to the device {path}.", denies=True)
            self._mind(path, way)
            inside = tuple(
                WritesPath(absolute(name, path), change, f"{way}/{name}" if way else "", (), one.names, one.like)
                for name, one in put.if_folder
            )
            self._touch(WritesPath(path, change, way, (), names, put.like, inside))

    def reaches(self, host: str) -> None:
        self._touch(ReachesHost(host, sends=True))

    def places(self, word: Word) -> list[str]:
        """The paths a word may name, for each directory the shell may be in; for a pattern, where it looks."""
        return [path for path, _ in self._ways(word)]

    def _ways(self, word: Word) -> list[tuple[str, str]]:
        """These paths, each with its original form if that contains `..`."""
        text = word.text
        if text is None:
            if not word.pattern:
                return [(ANYWHERE, "")]
            text = word.prefix[: word.prefix.rfind("/") + 1] or "."
        if not text.startswith("/") and not self.state.bases:
            return [(ANYWHERE, "")]
        return [(absolute(text, base), with_dots(text, base)) for base in self.state.bases or ("/",)]

    def redirects(self, operator: str, target: Word) -> None:
        """A redirection to or from a file."""
        if operator in ("<<", "<<-", "<<<"):
            return
        if operator in ("<&", ">&") and _DESCRIPTOR.fullmatch(target.text or ""):
            return
        shown = target.text if target.text is not None else target.prefix
        host = network_host(shown)
        if host is not None or shown.startswith(("/dev/tcp", "/dev/udp")):
            self.reaches(host or "")
            self.risk("network", "high", "It opens a network connection with the shell itself.")
            return
        if operator == "<":
            self._note_redirected_read(target)
        elif operator == "<>":
            self.writes(target)
        elif operator == "<&":
            self.doubt("a file descriptor that is not known")
        else:
            if target.pattern:
                self.doubt(f"which file {target.shown} names is not known")
            self.writes(target)

    def _note_redirected_read(self, target: Word) -> None:
        if target.text is None and not target.pattern and not target.is_pipe:
            self.doubt(f"what {target.shown} names is not known")
        self.reads(target)

    def runs(self, words: Sequence[Word]) -> None:
        """Account for another command, run by this one."""
        if self.depth >= MAX_DEPTH:
            self.doubt("it runs a command that runs a command, and so on")
        elif words:
            outer, self.within = self.within, self._started
            self.depth += 1
            self._run(words, self)
            self.depth -= 1
            self.within, self._started = outer, self.within
        else:
            self.doubt("the command it runs is not known")

    def script(self, text: str) -> None:
        """Account for a text that a shell runs."""
        if self.depth >= MAX_DEPTH or not self.budget.script(len(text)):
            self.doubt("it runs more scripts than are looked at")
            return
        outer, self.within = self.within, self._started
        self.depth += 1
        self._script(text, self)
        self.depth -= 1
        self.within = outer

    def note_start(self, words: Sequence[Word]) -> None:
        argv = tuple([word.source if word.text is None else word.text for word in words])
        self._started = " ".join(argv)
        self._touch(RunsCommand(argv, self._started, accounted=True, within=self.within))

    def _touch(self, touch: Touch) -> None:
        if not self.touches or touch not in self.touches:
            self.touches.append(touch)


def _names_meant(word: Word) -> str:
    """What a pattern matches below its folder; `./` precedes names so that they cannot be options."""
    if word.text is not None or not word.glob:
        return ""
    parts = word.glob.split("/")[word.prefix.count("/") :]
    names = "/".join("*" if part == EVERYTHING else part for part in parts)
    return names if not word.prefix else f"./{names}"


Runner: TypeAlias = Callable[[Sequence[Word], Account], None]
Runs: TypeAlias = Callable[[str, Account], None]
