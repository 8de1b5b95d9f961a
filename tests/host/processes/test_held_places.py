"""Workspaces in odd places: on an overlay, with something mounted below, with odd names, and several at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.host.processes.sandbox import Profile, Sandbox, try_workspace
from tests.host.processes.held import SYSTEM, furnish, need_layers
from tests.host.processes.shell import GENEROUS, command, offers, opened
from tests.requirement import requirement

PROGRAM = """
import asyncio, json, os, sys
from pathlib import Path
from ferrule.host.processes.command import Command
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.sandbox import Profile, Sandbox, try_sandbox, try_workspace

async def main(ws):
    async with CommandRunner(folder=Path(sys.argv[2]), environment=os.environ) as commands:
        offers = await try_workspace(commands, await try_sandbox(commands), str(ws))
        box = Sandbox(profile=Profile.WORKSPACE_WRITE, declared=((str(ws / "a"), False), (str(ws / "m"), True)),
                      keep=offers.keep_for(str(ws), background=False), workspace=(str(ws),))
        text = "chmod 640 a; echo new > a; rm kept; echo x > m/x; cat a m/y"
        ran = await commands.run(Command(text=text, cwd=str(ws), env=dict(os.environ), jail=offers.jail(box)))
        print(json.dumps([ran.output.text(), ran.changes.done, ran.changes.dropped, ran.changes.failed]))

asyncio.run(main(Path(sys.argv[1])))
"""
MOUNTS = {
    "an overlay": 'mkdir l u w; mount -t overlay o -o lowerdir=l,upperdir=u,workdir=w "$ws"',
    "a mount below": 'mkdir -p "$ws/m"; mount -t tmpfs t "$ws/m"; echo y > "$ws/m/y"',
    "an odd name": "true",
}


@requirement("HELD-20")
@pytest.mark.parametrize("place", MOUNTS)
def test_a_workspace_may_lie_anywhere(tmp_path: Path, place: str) -> None:
    need_layers()
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("this needs root, to mount something")
    ws = tmp_path / ("ws, with: odd\n#letters" if place == "an odd name" else "ws")
    ws.mkdir()
    script = (
        f'set -e; ws="$3"; cd "$1"; {MOUNTS[place]}; mkdir -p "$ws/tmp"; echo old > "$ws/a"; echo k > "$ws/kept"; '
        'TMPDIR="$ws/tmp" "$2" -c "$4" "$ws" "$1/output"; cat "$ws/a" "$ws/kept"; ls -A "$ws"; ls -A "$ws/tmp"'
    )

    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script, "bash", str(tmp_path), sys.executable, str(ws), PROGRAM],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stderr == ""
    first, *rest = done.stdout.splitlines()
    output, changed, dropped, failed = json.loads(first)
    assert (changed, dropped, failed) == ([str(ws / "a")], [str(ws / "kept")], [])
    assert "new" in output
    assert ("y" in output.splitlines()) == (place == "a mount below")
    assert rest == ["new", "k", "a", "kept", *(["m"] if place == "a mount below" else []), "tmp"]


@requirement("HELD-20")
async def test_several_folders_are_held_at_once(tmp_path: Path) -> None:
    need_layers()
    first, second = furnish(tmp_path / "1"), furnish(tmp_path / "2")
    sandbox = Sandbox(
        profile=Profile.WORKSPACE_WRITE,
        readable=(*SYSTEM, str(first), str(second)),
        declared=((str(first / "notes.txt"), False), (str(second / "docs"), True)),
        keep="overlay",
        workspace=(str(first), str(second), str(second / "docs")),
    )
    text = (
        f"echo 1 > notes.txt; echo 1 > data.json; cd {second}; rm -r docs; mkdir docs; cp {first}/run.sh docs; rm *.txt"
    )
    async with opened(tmp_path) as commands:
        ran = await commands.run(replace(command(text, first), jail=offers().jail(sandbox)), timeout=GENEROUS)

    assert ran.changes
    assert {*ran.changes.done} == {str(first / "notes.txt"), str(second / "docs/run.sh"), str(second / "docs/a.md")}
    assert {*ran.changes.dropped} == {
        str(first / "data.json"), str(second / "hard.txt"), str(second / "notes.txt"),
    }  # fmt: skip
    assert os.listdir(second / "docs") == ["run.sh"]


async def test_the_whole_file_system_is_no_workspace(tmp_path: Path) -> None:
    need_layers()
    async with opened(tmp_path) as commands:
        found = await try_workspace(commands, offers(), "/")
        again = await try_workspace(commands, found, "/")

    assert "/" not in found.overlays
    assert found.keep_for("/", background=False) == ("supervisor" if found.supervisor else "")
    assert "no layer can be laid over the whole file system" in found.trouble[-1]
    assert again is found, "it is tried once for each workspace"
