"""The entry point: what a command would do, derived from its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from ..core.effects import Effects, Opaque, RunsCommand, Touch, describe_touch
from ..core.values import plain_value
from ..core.verdicts import Risk
from .account import Account
from .analysis_budget import AnalysisBudget
from .command_effects import run, surroundings
from .risks import look_at_fetched_code, look_at_pipe, look_at_touches, look_blindly
from .shell_state import ShellState
from .shell_words import Word
from .syntax import Simple, parse_command
from .tokens import Unreadable
from .walk import walk_syntax
from .word_paths import absolute


def explain_analysis(analysis: Analysis) -> list[str]:
    """Lines that describe what would happen, command by command, and why to ask.

    >>> from .analysis import analyse
    >>> print(*explain_analysis(analyse("cat a; rm b", cwd="/srv", home="/home/u")), sep="\\n")
    This changes something.
    cat a
      reads /srv/a
    rm b
      removes /srv/b
    Risk (medium): It removes /srv/b.
    """
    lines = [_verdict(analysis)]
    for report in analysis.commands:
        lines.append(_one_line(report.source))
        for touch in report.touches:
            if isinstance(touch, Opaque):
                continue
            if isinstance(touch, RunsCommand):
                if touch.argv != report.argv:
                    lines.append(f"  {describe_touch(touch)}")
            else:
                lines.append(f"  {describe_touch(touch)}")
        lines.extend(f"  not known: {doubt}" for doubt in report.doubts)
    of_commands = {doubt for report in analysis.commands for doubt in report.doubts}
    lines.extend(reason for reason in analysis.reasons if not any(reason.endswith(f"{one}.") for one in of_commands))
    lines.extend(_risk_line(risk) for risk in analysis.risks)
    return lines


def _verdict(analysis: Analysis) -> str:
    if analysis.effects.unknown:
        return "What this does is not known for certain."
    return "This only looks." if analysis.effects.read_only else "This changes something."


def _risk_line(risk: Risk) -> str:
    denied = ", denied" if risk.denies else ""
    return f"Risk ({risk.severity}{denied}): {risk.message}"


def _one_line(source: str) -> str:
    line = " ".join(source.split())
    return line if len(line) <= 100 else f"{line[:99]}…"


NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


@plain_value
class CommandReport:
    """One simple command: its text, what it touches, what is unknown about it."""

    source: str
    argv: tuple[str, ...]
    touches: tuple[Touch, ...]
    doubts: tuple[str, ...]
    by_shell: tuple[Touch, ...] = ()
    """The touches by the shell itself: its redirections, and unknown effects outside the program."""


@plain_value
class Analysis:
    """Everything known about a command before it runs."""

    effects: Effects
    risks: tuple[Risk, ...]
    reasons: tuple[str, ...]
    """Why some effects are unknown; empty if all are known."""
    commands: tuple[CommandReport, ...]


class Analyse(Protocol):
    """Reads off a command's text what it would do."""

    def __call__(self, command: str, /, *, cwd: str, home: str) -> Analysis: ...


def analyse(command: str, *, cwd: str, home: str, variables: Mapping[str, str] = NO_VARIABLES) -> Analysis:
    """What running `bash -c command` in `cwd` would touch. Never raises, and never looks at the disk.

    >>> analyse("ls | wc -l", cwd="/srv", home="/home/u").effects.read_only
    True
    >>> analyse("ls > x", cwd="/srv", home="/home/u").effects.read_only
    False
    """
    known = {name: Word.of_text(value) for name, value in variables.items()}
    cwd = absolute(cwd, "/")
    state = ShellState((cwd,), {"HOME": Word.of_text(home), **known}, home)
    account = Account(state, cwd, run, _script, AnalysisBudget())
    reports, understood = _read(command, account)
    effects = Effects(_order_touches(reports, understood))
    if account.doubts and not effects.unknown:
        effects = Effects((Opaque(), *effects.touches))
    return Analysis(effects, tuple(_by_severity(account.risks)), tuple(account.doubts), tuple(reports))


def _order_touches(reports: Sequence[CommandReport], understood: bool) -> tuple[Touch, ...]:
    """What the shell itself does, then each program with what it does.

    A rule for a program covers what follows it, never a redirection. `Opaque`
    is what belongs to no program: a text that could not be parsed, a variable or
    a target outside the program.
    """
    by_shell = dict.fromkeys(touch for report in reports for touch in report.by_shell)
    if not understood:
        by_shell[Opaque()] = None
    by_programs = dict.fromkeys(
        tuple(touch for touch in report.touches if touch not in report.by_shell) for report in reports
    )
    return (*by_shell, *(touch for touches in by_programs for touch in touches))


def _read(command: str, account: Account) -> tuple[list[CommandReport], bool]:
    """Adds what a text does to the account. Returns a report on each command, and whether the text was understood."""
    try:
        syntax = parse_command(command)
    except Unreadable as reason:
        account.doubt(f"The command cannot be read: {reason}.")
        account.risk("unreadable", "medium", f"The command cannot be read: {reason}.")
        look_blindly(command, account)
        return [], False
    simples, doubts = walk_syntax(syntax, account.state, account.budget)
    for doubt in (*syntax.doubts, *doubts):
        account.doubt(f"Not understood: {doubt}.")
    if syntax.doubts:
        look_blindly(command, account)
    if not simples:
        account.doubt("The command is empty.")
    understood = bool(simples) and not (syntax.doubts or doubts)
    reports = [_report(simple, simples, account) for simple in simples]
    _look_at_bombs(simples, account)
    names = [simple.words[0].text for simple in simples if simple.words]
    look_at_fetched_code(names, account)
    return reports, understood


def _report(simple: Simple, among: Sequence[Simple], account: Account) -> CommandReport:
    own = account.beside(simple.state)
    surroundings(simple, own)
    by_shell = (*own.touches, Opaque()) if own.doubts else tuple(own.touches)
    if simple.words:
        run(simple.words, own, functions=simple.state.functions)
    look_at_touches(own)
    if simple.words and simple.piped_from:
        before = [among[index].words[0].text or "" for index in simple.piped_from if among[index].words]
        look_at_pipe(before, own)
    for risk in own.risks:
        account.add_risk(risk)
    for doubt in own.doubts:
        account.doubt(f"`{_short(simple.source)}`: {doubt}.")
    argv = tuple(word.shown for word in simple.words)
    return CommandReport(simple.source, argv, _honest(own), tuple(own.doubts), by_shell)


def _honest(own: Account) -> tuple[Touch, ...]:
    """The touches; if something is unknown, no program is marked as accounted for."""
    if not own.doubts:
        return tuple(own.touches)
    return tuple(replace(touch, accounted=False) if isinstance(touch, RunsCommand) else touch for touch in own.touches)


def _script(text: str, account: Account) -> None:
    """Account for a text that a command hands to a shell."""
    inner = account.beside(account.state)
    reports, _ = _read(text, inner)
    account.include(inner, [touch for report in reports for touch in report.touches])


def _look_at_bombs(simples: Sequence[Simple], account: Account) -> None:
    for simple in simples:
        name = simple.words[0].text if simple.words else None
        if name in simple.state.functions and simple.piped_from and simple.state.in_function:
            account.risk("fork-bomb", "critical", "A function that starts itself twice fills the machine.", denies=True)


def _by_severity(risks: Sequence[Risk]) -> list[Risk]:
    order = ("critical", "high", "medium", "low")
    return sorted(risks, key=lambda risk: order.index(risk.severity))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"
