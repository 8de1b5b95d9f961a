"""A decision under two hundred rules, of which most are for other tools, beside one under none."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ferrule import ToolCall
from ferrule.core.context import Facts, ToolContext
from ferrule.core.effects import Change, Effects, ReadsPath, RunsCommand, Touch, WritesPath
from ferrule.core.inputs import ToolInput
from ferrule.core.ports import Proposal
from ferrule.core.tool import AnyTool, Tool
from ferrule.core.verdicts import Behavior
from ferrule.permissions.judge import RuleJudge
from ferrule.permissions.modes import Mode
from ferrule.permissions.path_patterns import Places
from ferrule.permissions.rules import Rule, parse_rule
from ferrule.testing.doubles import NoPort
from ferrule.tools.edit import Edit
from ferrule.tools.read import Read

from .figures import Figure
from .timing import Timed, Work, interleaved

ROUNDS = 1_000
LEAST_RUNS = 10
CWD = "/srv/repo"
TARGETS = {"Read": 25.0, "Edit": 25.0, "a compound command": 100.0}


async def measure(*, runs: int) -> list[Figure]:
    places = Places(cwd=(CWD,), home=("/home/u",), roots=(CWD,))
    proposals = dict(_proposals())
    judges = {
        "two hundred rules": RuleJudge(_rules(40), Mode.DEFAULT, places),
        "two thousand rules": RuleJudge(_rules(400), Mode.DEFAULT, places),
        "no rules": RuleJudge((), Mode.DEFAULT, places),
    }
    figures: list[Figure] = []
    for name, proposal in proposals.items():
        works: dict[str, Work] = {rules: partial(_judged, judge, proposal) for rules, judge in judges.items()}
        timed = await interleaved(works, runs=max(runs, LEAST_RUNS))
        figures += [_figure(name, rules, timed) for rules in ("two hundred rules", "two thousand rules")]
    return figures


def _figure(name: str, rules: str, timed: Timed) -> Figure:
    return Figure(
        benchmark="rules",
        what=f"judge {name} under {rules}",
        value=timed.seconds[rules] / ROUNDS * 1e6,
        unit="µs",
        calibration_ms=timed.calibration * 1e3,
        beside="no rules",
        other=timed.seconds["no rules"] / ROUNDS * 1e6,
        target=TARGETS[name] if rules == "two hundred rules" else None,
    )


async def _judged(judge: RuleJudge, proposal: Proposal) -> None:
    for _ in range(ROUNDS):
        judge.judge(proposal)


def _rules(count: int) -> tuple[Rule, ...]:
    """Five kinds, so many of each; none decides the calls below but the last."""
    written: list[tuple[str, Behavior]] = []
    for n in range(count):
        written += [
            (f"Bash(tool{n} run *)", Behavior.ALLOW),
            (f"Bash(tool{n} publish *)", Behavior.DENY),
            (f"mcp__server{n}__*", Behavior.ALLOW),
            (f"Read(./private{n}/**)", Behavior.DENY) if n % 8 else (f"Read(*.secret{n})", Behavior.DENY),
            (f"Edit(src/part{n}/**)", Behavior.ALLOW),
        ]
    written += [("Edit(src/app/**)", Behavior.ALLOW), ("Bash(make *)", Behavior.ALLOW)]
    return tuple(parse_rule(text, behavior, "benchmark") for text, behavior in written)


def _proposals() -> Iterator[tuple[str, Proposal]]:
    path = f"{CWD}/src/app/models/user.py"
    yield "Read", _proposal(Read(), ReadsPath(path, path))
    yield "Edit", _proposal(Edit(), WritesPath(path, Change.REPLACES, path))
    command = Effects.of(
        RunsCommand(("cat", "a.txt"), "cat a.txt", accounted=True),
        ReadsPath(f"{CWD}/a.txt", f"{CWD}/a.txt"),
        RunsCommand(("grep", "-v", "x"), "grep -v x", accounted=True),
        RunsCommand(("sort",), "sort", accounted=True),
        RunsCommand(("tool7", "run", "it"), "tool7 run it", accounted=True),
    )
    yield "a compound command", _proposal(Command(), *command.touches)


class CommandInput(ToolInput):
    command: str = "cat a.txt | grep -v x | sort; tool7 run it"


class Command(Tool[CommandInput, str]):
    """Run a command, whose effects are known beforehand."""

    name = "Bash"
    input_model = CommandInput

    async def call(self, input: CommandInput, ctx: ToolContext) -> str:
        return ""


def _proposal(tool: AnyTool, *touches: Touch) -> Proposal:
    arguments = {"command": CommandInput().command} if tool.name == "Bash" else {"file_path": f"{CWD}/a.txt"}
    ctx = ToolContext("1", CWD, Facts(workspace=CWD), NoPort())
    return Proposal(ToolCall("1", tool.name, arguments), tool, None, arguments, Effects.of(*touches), ctx)
