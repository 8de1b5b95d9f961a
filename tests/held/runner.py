"""Run the attacks, and say which canary noticed what.

A program of its own, for other users and in a room of its own:
`python -m tests.held.runner FOLDER reading --every 5`. The answer is one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ferrule.app.build import Settings, open_session
from ferrule.cli.main import hide_arguments
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import plain_text
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode

from .attacks import Attack, attacks
from .canaries import INHERITED, TARGET, Canaries, compiled
from .lying import declaring_read, declaring_write

PATIENCE = 10.0
"""Seconds that no attack takes unless it hangs."""
NOT_RUN = "The command was not run"
LATE = 0.35
"""Seconds after which a late attack, which waits for 0.2, would have done its harm."""


@dataclass
class Report:
    ran: int = 0
    seconds: float = 0.0
    hits: dict[str, list[str]] = field(default_factory=dict)
    """By attack: what it touched or read."""
    refused: dict[str, str] = field(default_factory=dict)
    """Attacks that did not run, and what was said: they show nothing."""
    harmless: dict[str, str] = field(default_factory=dict)
    """Without the sandbox: attacks that their canary did not notice, and their output."""
    commands: dict[str, str] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    """Those that took longest."""


def found_words(base: Path) -> dict[str, str]:
    """Secrets that this process was started with, and what `guard` has put in the place of /etc/shadow."""
    words = {
        "ferrule's environment": os.environ["ANTHROPIC_API_KEY"],
        "ferrule's arguments": sys.argv[-1].removeprefix("--word="),
    }
    with suppress(OSError):
        words["/etc/shadow"] = (base / "shadow").read_text().strip()
    return words


def chosen(how: str, every: int, first: int, only: str) -> list[Attack]:
    """Where nothing may be written, neighbours are no more than other files."""
    there = [attack for attack in attacks() if how != "reading" or not attack.beside]
    return [attack for attack in there[first::every] if only in attack.id or only in attack.command]


def plainly(base: Path, picked: Sequence[Attack]) -> Report:
    """Without any sandbox, so that each is seen to do its harm."""
    report = Report()
    canaries = Canaries(base, compiled(base), found_words(base))
    for attack in picked:
        if attack.untried:
            continue
        own = Path(tempfile.mkdtemp(dir=base))
        begun = time.monotonic()
        output = _plain_output(attack.command, base, {**canaries.environment, "TMPDIR": str(own)})
        if attack.late:
            time.sleep(LATE)
        hits = canaries.hits(output, declared=False)
        report.times[attack.id] = time.monotonic() - begun
        report.ran += 1
        if not any(hit == attack.hits or hit.startswith((f"{attack.hits}/", f"{attack.hits}.")) for hit in hits):
            report.harmless[attack.id] = f"{attack.command} -> {sorted(hits)}: {output[-300:]}"
        if hits:
            canaries.restore(hits)
        _sweep(own)
    canaries.close()
    return report


def _sweep(own: Path) -> None:
    """End what an attack left, known by its temporary folder, and remove that."""
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdecimal() and f"TMPDIR={own}".encode() in Path(f"/proc/{name}/environ").read_bytes():
                os.kill(int(name), signal.SIGKILL)
    subprocess.run(["rm", "-rf", str(own)], check=False, stderr=subprocess.DEVNULL)


def _plain_output(command: str, base: Path, environment: dict[str, str]) -> str:
    """By way of a file, as what it leaves in the background keeps a pipe open."""
    with tempfile.TemporaryFile() as file:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=base / "ws",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
        file.seek(0)
        return file.read().decode(errors="replace")


async def held(base: Path, picked: Sequence[Attack], how: str, *, may_link: bool) -> Report:
    """In a session whose analysis lies: for `reading` it declares a read of the workspace, else a write of one file."""
    canaries = Canaries(base, compiled(base), found_words(base))
    leave_open(canaries.tokens.of("inherited"))
    os.environ.update(canaries.environment)
    mode = Mode.DEFAULT if how == "reading" else Mode.ACCEPT_EDITS
    report = Report()
    async with lying_session(base, mode, reads=how == "reading") as session:
        holding = Holding(session, canaries, report, how, may_link)
        await holding.check_that_commands_run()
        late = [attack for attack in picked if attack.late]
        if not await holding.tried(late):
            for attack in late:
                await holding.tried([attack])
        for attack in picked:
            if not attack.late:
                await holding.tried([attack])
        await holding.check_that_commands_run()
    report.ran = len(picked)
    canaries.close()
    return report


@dataclass
class Holding:
    """Attacks in one session, and what becomes of them."""

    session: Session
    canaries: Canaries
    report: Report
    how: str
    may_link: bool

    async def check_that_commands_run(self) -> None:
        """Otherwise nothing that is held would show anything."""
        text = 'cat README.md && echo own > "$TMPDIR/f" && cat "$TMPDIR/f"'
        writes = self.how != "reading"
        harmless = Attack("harmless", f"{text}; echo new > src/target.txt" if writes else text, "")
        _, output = await self._output(harmless)
        assert "plain text of README.md" in output, output
        assert "own" in output, output
        assert self.canaries.hits("", declared=False) == ({f"changed {TARGET}"} if writes else set()), output
        self.canaries.reset_target()

    async def tried(self, together: Sequence[Attack]) -> bool:
        """Whether nothing was touched or read; if something was, it is reported of a single attack."""
        begun = time.monotonic()
        said: list[str] = []
        for attack in together:
            status, output = await self._output(attack)
            said.append(output)
            if status is Status.DENIED or NOT_RUN in output:
                self.report.refused[attack.id] = output[:300]
        if any(attack.late for attack in together):
            await asyncio.sleep(LATE)
        hits = self.canaries.hits("\n".join(said), declared=self.how != "reading", may_link=self.may_link)
        if len(together) == 1:
            (attack,) = together
            self.report.times[attack.id] = time.monotonic() - begun
            if hits:
                self.report.hits[attack.id] = sorted(hits)
                self.report.commands[attack.id] = attack.command
        if hits:
            self.canaries.restore(hits)
        elif self.how != "reading":
            self.canaries.reset_target()
        return not hits

    async def _output(self, attack: Attack) -> tuple[Status, str]:
        background = self.how == "background"
        arguments = {"command": attack.command, "timeout": round(PATIENCE * 1000), "run_in_background": background}
        (outcome,) = await self.session.run([ToolCall(attack.id, "Bash", arguments)])
        output = plain_text(outcome.content)
        if background and (task := re.search(r"in the background as (\S+)\.", output)):
            waiting = {"task_id": task[1], "block": True, "timeout": round(PATIENCE * 1000)}
            (more,) = await self.session.run([ToolCall(f"{attack.id}-output", "TaskOutput", waiting)])
            output += plain_text(more.content)
        for saved in re.findall(r"bytes (?:are|is) in (\S+)\.", output):
            output += Path(saved).read_text(errors="replace")
        return outcome.status, output


def leave_open(word: str) -> None:
    """A descriptor that every process would inherit which does not take care."""
    with tempfile.TemporaryFile() as file:
        file.write(word.encode())
        os.dup2(file.fileno(), INHERITED, inheritable=True)


def lying_session(base: Path, mode: Mode, *, reads: bool) -> Session:
    analyse = declaring_read(f"{base}/ws") if reads else declaring_write(str(base / TARGET))
    return open_session(Settings(cwd=f"{base}/ws", mode=mode, state_folder=base / "state"), analyse=analyse)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("how", choices=("plainly", "reading", "writing", "background"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--may-link", action="store_true", help="a supervisor may give files further names")
    parser.add_argument("--word", help="a secret among the arguments of this process")
    options = parser.parse_args()
    if not options.word:
        word = os.environ.pop("HELD_ARGUMENT")
        os.execv(sys.executable, [sys.executable, "-m", "tests.held.runner", *sys.argv[1:], f"--word={word}"])
    if options.how != "plainly":
        hide_arguments()  # as the program does
    picked = chosen(options.how, options.every, options.first, options.only)
    begun = time.monotonic()
    if options.how == "plainly":
        report = plainly(options.folder, picked)
    else:
        report = asyncio.run(held(options.folder, picked, options.how, may_link=options.may_link))
    report.seconds = time.monotonic() - begun
    report.times = dict(sorted(report.times.items(), key=lambda item: -item[1])[:25])
    print(json.dumps(asdict(report)))


if __name__ == "__main__":
    main()
