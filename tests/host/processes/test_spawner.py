"""Nothing outlives its owner: what the spawner is, and what is left when something dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.host.processes import spawner_link
from ferrule.host.processes.command import ProcessLimits
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.spawner.protocol import Frames, pack
from tests.host.processes.shell import GENEROUS, alive_with, command, opened, unique, until
from tests.requirement import requirement

OWNER = """
import asyncio, os, sys
from pathlib import Path
from ferrule.host.processes.command import Command
from ferrule.host.processes.command_runner import CommandRunner

async def main():
    commands = CommandRunner(folder=Path(sys.argv[1]), environment=os.environ)
    for text in sys.argv[2:]:
        await commands.start(Command(text=text, cwd=sys.argv[1], env=dict(os.environ)))
    print("ready", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""
CLINGING = (
    "sleep 1005 & sleep 1005",
    "(setsid nohup sleep 1005 > /dev/null 2>&1 &)",
    "trap '' TERM HUP INT; (trap '' HUP; sleep 1005 & disown; setsid sleep 1005 & wait)",
    "yes > /dev/null",
    "cat /dev/zero",
    "tail -f /dev/null & wait",
    "env -i PATH=$PATH setsid bash -c 'sleep 1005 & exec -a LAST sleep 1005'",
    "kill -STOP $$",
    "f() { [ $1 -gt 0 ] || { sleep 1005; return; }; f $(($1-1)) & f $(($1-1)) & wait; }; f 5",
)


@requirement("BASH-4")
def test_nothing_is_left_after_the_owner_was_killed(tmp_path: Path) -> None:
    marker = unique()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), *CLINGING],
        env={**os.environ, "MARKED": marker, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        _wait(lambda: len(alive_with(marker)) > 40)
        below = _descendants(owner.pid)

        owner.send_signal(signal.SIGKILL)
        owner.wait()
        began = time.monotonic()
        _wait(lambda: not alive_with(marker) and not any(_alive(pid) for pid in below))

        assert time.monotonic() - began < 2, "the requirement's own bound, a hundred times what it takes"
    assert len(below) > 40
    _wait(lambda: not list(tmp_path.glob("ferrule-*")))


@requirement("BASH-4")
def test_a_fork_of_the_owner_that_lives_on_keeps_nothing_alive(tmp_path: Path) -> None:
    marker = unique()
    forking = OWNER.replace("    print(", "    os.fork() or __import__('time').sleep(1000)\n    print(")
    owner = subprocess.Popen(
        [sys.executable, "-c", forking, str(tmp_path), "sleep 1019"], env={**os.environ, "MARKED": marker}, stdout=-1
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        _wait(lambda: _shells(marker))

        owner.send_signal(signal.SIGKILL)
        owner.wait()

        _wait(lambda: not _shells(marker))
        for pid in alive_with(marker):
            os.kill(pid, signal.SIGKILL)


def _shells(marker: str) -> list[int]:
    return [pid for pid in alive_with(marker) if b"sleep 1019" in _command_line(pid)[:20]]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it ended meanwhile
        return b""


@requirement("BASH-4")
async def test_nothing_is_left_after_the_session(tmp_path: Path) -> None:
    marker = unique()
    async with opened(tmp_path) as commands:
        for text in CLINGING:
            await commands.start(command(text, tmp_path, MARKED=marker))
        await until(lambda: len(alive_with(marker)) > 40)

    assert not alive_with(marker)


async def test_the_embedding_program_adopts_nobody(tmp_path: Path, others: list[int]) -> None:
    async with opened(tmp_path) as commands:
        await commands.run(command("(setsid sleep 1006 &)", tmp_path))
        (child,) = _new_children(others)

        assert _children(child), "the spawner has what was left behind"


async def test_the_spawner_tells_its_children_nothing_of_ferrule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-ferrule-itself")
    async with CommandRunner(folder=tmp_path, environment=os.environ) as commands:
        ran = await commands.run(command("tr '\\0' '\\n' < /proc/$PPID/environ; ls /proc/$PPID/fd", tmp_path))

    assert "PATH=" in ran.output.text()
    assert "key-of-ferrule" not in ran.output.text()


async def test_an_interrupt_from_the_terminal_does_not_reach_it(tmp_path: Path, others: list[int]) -> None:
    async with opened(tmp_path) as commands:
        await commands.run(command("true", tmp_path))
        (spawner,) = _new_children(others)

        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            os.kill(spawner, number)

        assert (await commands.run(command("echo on", tmp_path))).output.text() == "on\n"
        assert _new_children(others) == [spawner]
        assert os.getsid(spawner) == spawner != os.getsid(0)


async def test_a_spawner_that_is_told_to_end_ends_all_first(tmp_path: Path, others: list[int]) -> None:
    marker = unique()
    async with opened(tmp_path) as commands:
        await commands.start(command("sleep 1007", tmp_path, MARKED=marker))
        await until(lambda: alive_with(marker))
        (spawner,) = _new_children(others)

        os.kill(spawner, signal.SIGTERM)

        await until(lambda: not alive_with(marker))
        assert (await commands.run(command("echo on", tmp_path))).output.text() == "on\n"


async def test_a_forerunner_that_was_killed_is_replaced(tmp_path: Path, others: list[int]) -> None:
    limited = replace(command("echo on", tmp_path), limits=ProcessLimits(open_files=100))
    async with opened(tmp_path) as commands:
        await commands.run(limited)
        (spawner,) = _new_children(others)
        await until(lambda: _children(spawner))
        first = _children(spawner)

        os.kill(first[0], signal.SIGKILL)

        await until(lambda: _children(spawner) not in ([], first))
        assert (await commands.run(limited)).output.text() == "on\n"


async def test_a_spawner_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawner_link, "PACKAGE_HOME", str(tmp_path))
    async with opened(tmp_path) as commands:
        with pytest.raises(Exception, match="No module named 'spawner'"):
            await commands.run(command("true", tmp_path), timeout=GENEROUS)


def test_the_spawner_imports_nothing_of_ferrule() -> None:
    listed = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import sys; sys.path.append(sys.argv[1]); import spawner.serving; "
         "print(*sys.modules)", spawner_link.PACKAGE_HOME],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip

    assert "spawner.launching" in listed
    heavy = {"typing", "re", "json", "dataclasses", "asyncio", "subprocess", "pydantic", "ferrule"}
    assert not heavy & set(listed)


def test_frames_survive_any_cut() -> None:
    messages = [pack({"do": "end", "id": number, "grace": 0.5}) for number in range(3)]
    frames = Frames()

    found = [message["id"] for byte in b"".join(messages) for message in frames.feed(bytes([byte]))]

    assert found == [0, 1, 2]


def _wait(true: object, seconds: float = GENEROUS) -> None:
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.005)


@pytest.fixture
def others() -> list[int]:
    """Children that this process has from elsewhere."""
    return _children(os.getpid())


def _new_children(others: list[int]) -> list[int]:
    return [child for child in _children(os.getpid()) if child not in others]


def _children(pid: int) -> list[int]:
    return [
        int(child) for task in os.listdir(f"/proc/{pid}/task")
        for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()
    ]  # fmt: skip


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in _children(pid):
        found += [child, *_descendants(child)]
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
