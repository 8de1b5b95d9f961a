"""The read-only profile: what fails in it, and what goes on working."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.host.processes.command import Ran
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.sandbox import READ_ONLY, Offers
from ferrule.host.search.ripgrep import find_ripgrep
from tests.host.processes.shell import GENEROUS, PYTHON, command, confined, make_workspace, need_sandbox, offers, opened
from tests.requirement import requirement


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[CommandRunner]:
    need_sandbox()
    async with opened(tmp_path) as commands:
        yield commands


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


async def _ran(commands: CommandRunner, text: str, cwd: Path, **variables: str) -> Ran:
    return await commands.run(confined(text, cwd, READ_ONLY, **variables), timeout=GENEROUS)


def _state(folder: Path) -> dict[str, object]:
    """All that a command could change of a tree, but the times at which things were looked at."""
    found: dict[str, object] = {}
    for path in (folder, *folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        extra = os.listxattr(path, follow_symlinks=False)
        facts = (about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, about.st_ctime_ns, about.st_nlink)
        found[str(path)] = (*facts, content, extra)
    return found


WRITES = {
    "redirection": "echo x > new",
    "appending": "echo x >> kept.txt",
    "emptying": ": > kept.txt",
    "truncate": "truncate -s 0 kept.txt",
    "truncate by path": f"{PYTHON} 'import os; os.truncate(\"kept.txt\", 0)'",
    "python": f"{PYTHON} 'open(\"new\", \"w\")'",
    "opened both ways": "exec 9<>kept.txt && echo x >&9",
    "tee": "echo x | tee kept.txt",
    "sed": "sed -i s/kept/lost/ kept.txt",
    "dd": "dd if=/dev/zero of=kept.txt conv=notrunc count=1",
    "removing": "rm -f kept.txt",
    "removing a folder": "rmdir empty",
    "moving": "mv kept.txt moved",
    "moving over": "echo x > $TMPDIR/x && mv -f $TMPDIR/x kept.txt",
    "moving out": "mv kept.txt $TMPDIR/",
    "swapping": f"{PYTHON} 'import ctypes, os; open(os.environ[\"TMPDIR\"] + \"/x\", \"w\"); "
    "exit(ctypes.CDLL(None).renameat2(-100, os.environ[\"TMPDIR\"].encode() + b\"/x\", -100, b\"kept.txt\", 2) != 0)'",
    "hard link": "ln kept.txt hard",
    "hard link from outside": "ln kept.txt $TMPDIR/hard && echo x > $TMPDIR/hard",
    "symbolic link": "ln -s kept.txt soft",
    "through a link": "ln -s $PWD/kept.txt $TMPDIR/soft && echo x > $TMPDIR/soft",
    "through a link to a folder": "ln -s $PWD $TMPDIR/there && echo x > $TMPDIR/there/new",
    "folder": "mkdir new",
    "fifo": "mkfifo new",
    "device": "mknod new c 1 3",
    "socket": f"{PYTHON} 'import os, stat; os.mknod(\"new\", stat.S_IFSOCK)'",
    "mode": "chmod 777 kept.txt",
    "mode of an open file": f"{PYTHON} 'import os; os.fchmod(os.open(\"kept.txt\", os.O_RDONLY), 0o777)'",
    "mode by its path in proc": "exec 9< kept.txt; chmod 777 /proc/self/fd/9",
    "owner": "chown 1:1 kept.txt",
    "group of a link": "chown -h :1 kept.txt",
    "times": "touch kept.txt",
    "times long ago": "touch -d 2001-01-01 kept.txt",
    "times of a folder": f"{PYTHON} 'import os; os.utime(\"empty\", (0, 0))'",
    "attributes": f"{PYTHON} 'import os; os.setxattr(\"kept.txt\", \"user.a\", b\"b\")'",
    "flags": "chattr +d kept.txt",
    "git commit": "git -c user.name=a -c user.email=a@b commit --allow-empty -m x",
    "git add": "echo x > $TMPDIR/y; git update-index --add --cacheinfo 100644,$(git hash-object -w $TMPDIR/y),y",
    "git init": "git init sub",
    "git checkout": "git checkout -b other",
    "git configuration": "git config user.name x",
    "the way back": "cd / && echo x > $OLDPWD/new",
    "by way of proc": "echo x > /proc/self/cwd/new",
    "by the root in proc": "echo x > /proc/self/root$PWD/new",
    "in the background": "(echo x > new) & wait $!",
    "in a session of its own": "setsid -w bash -c 'echo x > new'",
    "in a new namespace": "unshare -Urm bash -c 'echo x > new'",
    "by mounting": "unshare -Urm bash -c 'mount --bind / /mnt && echo x > /mnt$PWD/new'",
    "another program's memory": "dd if=/dev/zero of=/proc/$PPID/mem count=1",
    "its own score": "echo -1000 > /proc/self/oom_score_adj",
}  # fmt: skip


@requirement("BOX-1", "BOX-2")
async def test_every_write_fails_and_changes_nothing(commands: CommandRunner, workspace: Path) -> None:
    before = _state(workspace)
    through: list[str] = []

    for way, text in WRITES.items():
        ran = await _ran(commands, text, workspace)
        if ran.exit_code == 0 or _state(workspace) != before:
            through.append(way)
            before = _state(workspace)

    assert through == []


@requirement("BOX-1")
async def test_the_writes_would_work_without_the_sandbox(commands: CommandRunner, workspace: Path) -> None:
    """The tests above cannot pass by chance: most of these succeed where nothing forbids them."""
    works: list[str] = []
    for way in ("redirection", "python", "mode of an open file", "times", "attributes", "hard link", "git init"):
        ran = await commands.run(command(WRITES[way], workspace, TMPDIR=str(workspace.parent)))
        works += [way] if ran.exit_code == 0 else []

    assert len(works) == 7


@requirement("BOX-1")
async def test_nothing_can_be_written_anywhere_else(commands: CommandRunner, workspace: Path) -> None:
    for place in ("$HOME", "/tmp", "/var/tmp", "/dev/shm", "/etc", "/proc/sys/kernel", "/sys/kernel"):
        path = f"{place}/ferrule-{os.getpid()}"

        ran = await _ran(commands, f"touch {path} || echo x > {path}", workspace)

        assert ran.exit_code != 0
        assert not os.path.exists(os.path.expandvars(path))


async def test_a_blocked_write_can_be_told(commands: CommandRunner, workspace: Path) -> None:
    ran = await _ran(commands, "echo fine; echo x > new; chmod 777 kept.txt", workspace)

    assert ran.blocked == (
        "bash: line 1: new: Permission denied",
        "chmod: changing permissions of 'kept.txt': Operation not permitted",
    )


# What goes on working


WORKS = {
    "ls": ("ls -la", "kept.txt"),
    "git log": ("git log --oneline", "first words"),
    "git status": ("git status --short --branch", "## main"),
    "git diff": ("git diff HEAD --stat; echo done", "done"),
    "find": ("find . -name '*.txt' -newermt 2001-01-01", "./kept.txt"),
    "rg": (f"{find_ripgrep(os.environ)} needle", "other.txt"),
    "sort": ("seq 60000 | sort -r -S 100K | sort -n -S 100K | tail -1", "60000"),
    "python": ("python3 -c 'import json, tempfile; print(json.dumps(sum(range(10))), tempfile.TemporaryFile())'", "45"),
    "a here-document": ("cat <<END | wc -c\n" + "x" * 1_000_000 + "\nEND", "1000001"),
    "a here-string": ("wc -c <<< hello", "6"),
    "substitution": ("diff <(echo a) <(echo a) && echo same", "same"),
    "temporary files": ("f=$(mktemp) && echo in > $f && cat $f && d=$(mktemp -d) && rmdir $d && echo out", "out"),
    "null": ("echo lost > /dev/null && ls nothing 2> /dev/null || echo quiet", "quiet"),
    "its own output": ("echo again > /dev/stdout; echo more | tee /dev/stderr", "again"),
    "jobs": ("seq 20 | xargs -P 4 -I{} bash -c 'echo {}' | sort -n | tail -1", "20"),
    "awk": ("awk '{ print length($0) }' kept.txt", "4"),
    "chance": ("head -c 4 /dev/urandom | wc -c", "4"),
    "threads": ("python3 -c 'import threading as t; x = t.Thread(target=print, args=(7,)); x.start(); x.join()'", "7"),
}


@requirement("BOX-1")
async def test_reading_goes_on_working(commands: CommandRunner, workspace: Path) -> None:
    broken: list[str] = []

    for what, (text, wanted) in WORKS.items():
        ran = await _ran(commands, text, workspace, GIT_OPTIONAL_LOCKS="0")
        if ran.exit_code != 0 or wanted not in ran.output.text():
            broken.append(f"{what}: {ran.output.text(200)}")

    assert broken == []


@pytest.mark.slow
@requirement("BOX-1")
async def test_a_large_file_can_be_sorted(commands: CommandRunner, workspace: Path) -> None:
    large = workspace / "large"
    numbers = [number * 7919 % 10**7 for number in range(10_000)]
    part = b"".join(b"%07d%s\n" % (number, b" long" * 200) for number in numbers)
    with large.open("wb") as file:
        for _ in range(500_000_000 // len(part) + 1):
            file.write(part)

    ran = await commands.run(confined("sort -S 100M large | tail -1 | cut -c1-7", workspace, READ_ONLY), timeout=100)
    large.unlink()

    assert (ran.exit_code, ran.output.text()) == (0, f"{max(numbers)}\n")


# Its temporary folder


@pytest.mark.parametrize(
    "filling",
    [
        "true",
        "touch $TMPDIR/a",
        "mkdir -p $TMPDIR/$(printf 'd/%.0s' {1..200})",
        "mkdir -m 0 $TMPDIR/closed",
        "rmdir $TMPDIR",
    ],
)
async def test_the_temporary_folder_is_private_and_goes_away(
    commands: CommandRunner, workspace: Path, filling: str
) -> None:
    ran = await _ran(commands, f"stat -c %a $TMPDIR; echo $TMPDIR; {filling}", workspace)

    mode, folder = ran.output.text().split()[:2]
    assert mode == "700"
    for _ in range(2_000):
        if not os.path.exists(folder):
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{folder} is still there")


async def test_what_was_left_behind_keeps_its_folder(commands: CommandRunner, workspace: Path) -> None:
    ran = await _ran(commands, "echo $TMPDIR; sleep 1009 &", workspace)
    folder = ran.output.text().strip()
    assert os.path.isdir(folder)

    with suppress(ProcessLookupError):
        os.kill(ran.left[0].pid, 9)

    while os.path.isdir(folder):  # noqa: ASYNC110 - removed by another process
        await asyncio.sleep(0.005)


async def test_each_command_has_a_temporary_folder_of_its_own(commands: CommandRunner, workspace: Path) -> None:
    """Though they sit in the same jail, which is entered ahead, each finds nothing of the one before."""
    folders: set[str] = set()
    for _ in range(4):
        ran = await _ran(commands, "echo $TMPDIR; ls -A $TMPDIR; : > $TMPDIR/mine; touch new", workspace)
        folders.add(ran.output.text().splitlines()[0])
        assert len(ran.output.text().splitlines()) == 2
        assert ran.blocked

    assert len(folders) == 4


# Older kernels


@requirement("BOX-3")
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
async def test_an_older_landlock_keeps_files_safe_as_well(
    commands: CommandRunner, workspace: Path, version: int
) -> None:
    if offers().landlock < version:
        pytest.skip("this kernel is older")
    older = Offers(landlock=version, filter=True)
    before = _state(workspace)

    for way in ("redirection", "emptying", "truncate", "truncate by path", "moving over", "mode", "removing", "times"):
        ran = await commands.run(replace(command(WRITES[way], workspace), jail=older.jail(READ_ONLY)))
        assert ran.exit_code != 0

    assert _state(workspace) == before
    assert ("Linux 6.2" in " ".join(older.gaps())) == (version < 3)
