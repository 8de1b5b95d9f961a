"""Temporary names of supervised commands: removed at the end, and found again after those who made them were killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.processes.spawner.temporaries import TemporaryNames, remove_left_behind
from tests.host.processes.holding import furnish, need_supervisor, snapshot, supervised
from tests.host.processes.shell import GENEROUS, opened, until
from tests.requirement import requirement

DIES_AT_ONCE = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.host.processes.holding import supervised
from tests.host.processes.shell import opened, until

async def main(folder, workspace):
    async with opened(folder) as commands:
        text = "mkdir -p src/.box/deep; touch src/.box/deep/file src/.name; echo x > src/main.py; sleep 60"
        await commands.start(supervised(text, workspace, "src/main.py"))
        await until(lambda: (workspace / "src/main.py").read_text() == "x\\n")
        os.kill((await commands._spawner()).pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
"""


def _make(path: Path, names: TemporaryNames) -> None:
    names.announce(os.fsencode(path))
    path.touch()
    names.add(os.fsencode(path), path.lstat())


def test_what_was_made_is_removed_and_nothing_else(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work, work / "box"):
        folder.mkdir()
    names = TemporaryNames(str(home), 1)
    for name in ("made", "replaced", "kept", "gone"):
        _make(work / name, names)
    names.add(os.fsencode(work / "box"), (work / "box").lstat())
    (work / "box/sub").mkdir()
    (work / "box/sub/file").touch()
    (work / "box/sub").chmod(0)
    names.forget(os.fsencode(work / "kept"))
    (work / "gone").unlink()
    (work / "replaced").rename(work / "elsewhere")
    (work / "replaced").write_text("somebody else's")

    assert names.remove_all() == []

    assert sorted(path.name for path in work.iterdir()) == ["elsewhere", "kept", "replaced"]
    assert list(home.iterdir()) == []


def test_the_list_alone_is_enough_to_remove_them(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    names = TemporaryNames(str(home), 1)
    for name in ("made", "replaced", "kept"):
        _make(work / name, names)
    names.forget(os.fsencode(work / "kept"))
    (work / "replaced").unlink()
    (work / "replaced").write_text("somebody else's")
    names.announce(os.fsencode(work / "just made"))
    (work / "just made").touch()
    names.announce(os.fsencode(work / "filled"))
    (work / "filled").write_text("by somebody else")
    names.announce(os.fsencode(work / "never made"))

    remove_left_behind(str(home))

    assert sorted(path.name for path in work.iterdir()) == ["filled", "kept", "replaced"]
    assert list(home.iterdir()) == []


def test_the_list_of_a_command_that_makes_names_for_ever_stays_short(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    names = TemporaryNames(str(home), 1)
    _make(work / "first", names)
    for number in range(12_000):
        path = os.fsencode(work / f"{number:0200}")
        names.announce(path)
        names.add(path, work.lstat())
        names.forget(path)

    assert (home / "temporaries-1").stat().st_size < 2_000_000
    remove_left_behind(str(home))
    assert list(work.iterdir()) == []


@given(st.binary(max_size=200))
def test_a_list_that_makes_no_sense_removes_nothing(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as home:
        Path(home, "temporaries-1").write_bytes(content + b"\0nonsense\0-1 x 3 4 name\0" + content)
        Path(home, "temporaries-x").write_bytes(content)

        remove_left_behind(home)

        assert os.listdir(home) == ["temporaries-x"]


@requirement("HELD-22")
async def test_the_next_start_removes_what_killed_processes_left(tmp_path: Path) -> None:
    need_supervisor()
    workspace = furnish(tmp_path / "base")
    before = snapshot(workspace)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = (sys.executable, "-c", DIES_AT_ONCE, str(tmp_path), str(workspace))
    died = await asyncio.create_subprocess_exec(*arguments, env=environment)
    assert await asyncio.wait_for(died.wait(), GENEROUS) == -signal.SIGKILL
    assert (workspace / "src/.name").exists()

    async with opened(tmp_path) as commands:
        await commands.run(supervised("true", workspace, "src/main.py"))
        await until(lambda: not (workspace / "src/.name").exists())

        before.pop("src/main.py")
        await until(lambda: {**snapshot(workspace), "src/main.py": None} == {**before, "src/main.py": None})
