"""What is left when the spawner is killed, or it and its owner at once: nothing, or nothing after the next start."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.host.processes import spawner_link
from ferrule.host.processes.command import CommandFailed
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.spawner import homes
from tests.host.processes.held import TARGET, furnish, held, need_layers
from tests.host.processes.shell import GENEROUS, alive_with, command, opened, unique, until
from tests.requirement import requirement


def _stray(marker: str) -> str:
    """Leaves the session, loses its parent and has nothing of its command's environment."""
    return f"env -i PATH=$PATH setsid bash -c 'exec -a {marker} sleep 1022' & sleep 0.1; echo ready; "


async def _bounded(folder: Path) -> CommandRunner:
    commands = CommandRunner(folder=folder / "output", environment=os.environ)
    if not await commands.control_groups():
        await commands.close()
        pytest.skip("no control group can be made here")
    return commands


@requirement("BASH-4")
async def test_a_killed_spawner_leaves_no_process_whatever_its_environment(tmp_path: Path) -> None:
    marker = unique()
    async with await _bounded(tmp_path) as commands:
        with pytest.raises(CommandFailed):
            await commands.run(command(_stray(marker) + "kill -9 $PPID; sleep 1022", tmp_path), timeout=GENEROUS)

        await until(lambda: not alive_with(marker))


@requirement("BASH-4")
async def test_a_spawner_that_takes_long_to_end_is_left_to_it_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning about a process that nobody waits for would be an error here, as it would be a zombie."""
    monkeypatch.setattr(spawner_link, "CLOSING_SECONDS", 0.05)
    commands = opened(tmp_path)
    ran = await commands.run(command("echo $PPID", tmp_path), timeout=GENEROUS)
    pid = int(ran.output.text())
    os.kill(pid, signal.SIGSTOP)
    try:
        await commands.close()
        del commands, ran
        gc.collect()
        assert Path(f"/proc/{pid}").exists()
    finally:
        os.kill(pid, signal.SIGCONT)

    await until(lambda: not Path(f"/proc/{pid}").exists())


BOTH = """
import asyncio, os, sys
from pathlib import Path
from ferrule.host.processes.command import Command
from ferrule.host.processes.command_runner import CommandRunner

async def main():
    commands = CommandRunner(folder=Path(sys.argv[1]), environment=os.environ)
    running = await commands.start(Command(text=sys.argv[2], cwd="/", env=dict(os.environ)))
    while not running.output.total:
        await asyncio.sleep(0.01)
    print((await commands.run(Command(text="echo $PPID", cwd="/"))).output.text().strip(), flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@requirement("BASH-4")
async def test_the_next_start_ends_what_outlived_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = unique()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with await _bounded(tmp_path):
        pass
    owner = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", BOTH, str(tmp_path), _stray(marker) + "sleep 1022"], stdout=subprocess.PIPE
    )
    with owner:
        assert owner.stdout is not None
        spawner = int(await asyncio.to_thread(owner.stdout.readline))
        os.kill(owner.pid, signal.SIGSTOP)
        os.kill(spawner, signal.SIGKILL)
        os.kill(owner.pid, signal.SIGKILL)
    (left,) = tmp_path.glob("ferrule-run-*")
    monkeypatch.setattr(homes, "NEW", -1.0)

    homes.clear_dead(str(tmp_path / "none"))

    await until(lambda: not alive_with(marker))
    await until(lambda: not left.exists())


async def test_the_folder_of_a_living_spawner_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(homes, "NEW", -1.0)
    async with opened(tmp_path) as commands:
        await commands.prepare()

        homes.clear_dead(str(tmp_path / "none"))

        assert (await commands.run(command("echo on", tmp_path))).output.text() == "on\n"
        assert len(list(tmp_path.glob("ferrule-run-*"))) == 1
    assert not list(tmp_path.glob("ferrule-*"))


async def test_spawners_that_start_at_once_all_have_their_bounds(tmp_path: Path) -> None:
    async with await _bounded(tmp_path):
        pass

    async def groups(number: int) -> int:
        async with CommandRunner(folder=tmp_path / str(number), environment=os.environ) as commands:
            return len(await commands.control_groups())

    found = await asyncio.gather(*map(groups, range(12)))

    assert len(set(found)) == 1
    assert found[0] > 0


@requirement("HELD-20")
async def test_a_held_command_ends_with_its_spawner_and_nothing_is_carried_over(tmp_path: Path) -> None:
    need_layers()
    ws, marker = furnish(tmp_path), unique()
    before = (ws / TARGET).read_text()
    async with opened(tmp_path) as commands:
        spawner = int((await commands.run(command("echo $PPID", tmp_path))).output.text())
        text = "echo new > src/x.py; setsid sleep 1022 & echo ready; sleep 1022"
        running = await commands.start(held(text, ws, [TARGET], MARKED=marker))
        await until(lambda: running.output.total)

        os.kill(spawner, signal.SIGKILL)

        with pytest.raises(CommandFailed):
            await running.wait()
        await until(lambda: not alive_with(marker))
    assert (ws / TARGET).read_text() == before


def test_a_carrying_that_was_cut_short_can_be_told(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/.ferrule-abc.tmp").write_text("half")
    names = [str(tmp_path / "ws/a"), str(tmp_path / "ws/b")]
    (tmp_path / "1.carrying").write_bytes("\0".join(["abc", *names]).encode())

    assert homes.cut_short(str(tmp_path)) == names
    assert not (tmp_path / "ws/.ferrule-abc.tmp").exists()


# Where the shell stands


FORGING = [
    "for fd in /proc/$$/fd/*; do echo /usr > $fd; done 2>/dev/null",
    "(cd /usr; for fd in {3..255}; do pwd >&$fd; done) 2>/dev/null",
    "python3 -c 'import os\nfor fd in range(3, 256):\n  try: os.write(fd, b\"/usr\\n\")\n  except OSError: pass'",
    "head -c 1000000 /dev/zero >&198",
    "bash -c 'cd /usr; echo /usr >&198'",
]


@pytest.mark.parametrize("text", FORGING)
async def test_what_a_shell_starts_cannot_say_where_it_stands(tmp_path: Path, text: str) -> None:
    (tmp_path / "in").mkdir()
    async with opened(tmp_path) as commands:
        ran = await commands.run(command(f"cd in; {text}", tmp_path), timeout=GENEROUS)

    assert ran.cwd in (str(tmp_path / "in"), None)


@pytest.mark.parametrize("most", [32, 64, 128, 198])
def test_few_descriptors_are_enough(tmp_path: Path, most: int) -> None:
    words = """
import asyncio, os, sys
from pathlib import Path
from ferrule.host.processes.command import Command
from ferrule.host.processes.command_runner import CommandRunner

async def main():
    async with CommandRunner(folder=Path(sys.argv[1]), environment=os.environ) as commands:
        for text in ("cd /usr; echo on", ": " + "x" * 200_000 + "; cd /usr; echo on"):
            ran = await commands.run(Command(text=text, cwd="/", env=dict(os.environ)))
            print(ran.output.text().strip(), ran.cwd, ran.exit_code)

asyncio.run(main())
"""
    limited = f'ulimit -n {most}; exec "$0" -c "$1" "$2"'
    done = subprocess.run(
        ["bash", "-c", limited, sys.executable, words, str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("on /usr 0\n" * 2, "")
