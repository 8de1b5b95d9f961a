"""Commands that do more than they declared: under the supervisor nothing changes but the one declared name."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.host.processes.command import Ran
from ferrule.host.processes.command_runner import CommandRunner
from tests.host.processes.holding import furnish, held_sandbox, need_supervisor, run_unheld, snapshot, supervised
from tests.host.processes.shell import GENEROUS, alive_with, confined, opened, unique, until
from tests.requirement import requirement

PY = "/usr/bin/env python3 -I -S -c"
DECLARED = "src/main.py"
HOSTILE = [
    "sed -i.bak s/one/b/ src/main.py",
    "cd src; sed -i'../docs/*.bak' s/one/b/ main.py",
    "sed -n 'w notes.txt' src/main.py",
    "sed -i '1e touch by-sed' src/main.py",
    "awk '{print > \"notes.txt\"}' src/main.py",
    "cp -b -S .evil docs/guide.md src/main.py",
    "cp -b -S /../../docs/guide.md docs/guide.md src/util.py",
    "cp docs/guide.md src/",
    "cp docs/guide.md folder/util.py",
    "cp docs/guide.md away",
    "cp docs/guide.md far/fresh",
    "cp docs/guide.md src/deep/../../notes.txt",
    "tee src/{main,util}.py < docs/guide.md",
    "echo pwn > ../outside/canary.txt",
    'echo pwn > "$OUT/canary.txt"',
    "echo pwn >> twin.txt",
    "chmod 777 twin.txt; touch -d 2000-01-01 twin.txt; truncate -s 0 twin.txt; echo > notes.txt",
    "ln -f src/main.py src/util.py",
    'rm src/main.py; ln "$OUT/canary.txt" src/main.py && echo pwn > src/main.py; echo > src/util.py',
    'rm src/main.py; ln -s "$OUT/canary.txt" src/main.py; echo pwn > src/main.py',
    "rm src/main.py; ln src/util.py src/main.py; echo pwn > src/main.py; chmod 777 src/main.py; echo > notes.txt",
    "ln src/util.py src/t; echo pwn > src/t; mv src/t src/main.py; echo pwn > src/main.py; echo > notes.txt",
    "rm -rf src; ln -s ../outside src; echo pwn > src/main.py",
    "mv src src2; ln -s ../outside src; echo pwn > src/main.py",
    "rm -rf -- * .git",
    "find . -name '*.py' -delete",
    "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
    "git config -f .git/config core.pager evil",
    "echo evil > .bashrc",
    "mkdir -p src/.vscode && echo evil > src/.vscode/tasks.json && mv src/.vscode src/.idea; echo > notes.txt",
    "chmod 777 src/util.py",
    "chmod 000 src/deep",
    "chmod 700 src",
    "chmod -R 700 .",
    "chown 12345 src/util.py || touch notes.txt",
    "touch -d 2000-01-01 src/util.py",
    "touch -h -d 2000-01-01 alias.py",
    "truncate -s 0 notes.txt",
    "dd if=/dev/zero of=table.json bs=1 count=1 conv=notrunc",
    "install -m 755 docs/guide.md src/util.py",
    "mv src/main.py .",
    "mkfifo src/pipe",
    "mknod fresh c 1 3 || mknod src/sda b 8 0 || touch notes.txt",
    "mkdir src/box && cp -r docs src/box/ && mv src/box .",
    f"{PY} \"import os; os.setxattr('notes.txt', 'user.a', b'1')\" ; touch notes.txt",
    f"{PY} \"import os; os.utime(os.open('notes.txt', 0), (1, 1))\"",
    f"{PY} \"import os; os.fchmod(os.open('notes.txt', 0), 0o777)\"",
    f"{PY} \"import os; os.fchown(os.open('src', 0), 1, 1)\"; touch notes.txt",
    f"{PY} \"import os; d = os.open('docs', 0); os.rename('guide.md', 'g', src_dir_fd=d, dst_dir_fd=d)\"",
    f"{PY} \"import os; os.fchdir(os.open('docs', 0)); open('guide.md', 'w')\"",
    f"{PY} \"import os; os.link(f'/proc/self/fd/{{os.open('src', os.O_TMPFILE | 1)}}', 'named')\"; touch notes.txt",
    'unshare -Urm sh -c "mount --bind $OUT src; echo pwn > src/main.py"; echo pwn > notes.txt',
    "unshare -U chmod 777 notes.txt; unshare -U touch notes.txt; unshare -Urpf touch notes.txt",
    'echo pwn > "/proc/$TESTER/root$OUT/canary.txt"; touch notes.txt',
    'echo pwn > "/proc/$TESTER/cwd/notes.txt"; touch notes.txt',
    'exec 3<>"$OUT/canary.txt"; echo pwn >&3',
    "exec 3<notes.txt; echo pwn > /proc/self/fd/3; echo pwn > /dev/fd/3; chmod 777 /proc/self/fd/3",
    "ln -s /proc/self $TMPDIR/me; exec 3<notes.txt; echo pwn > $TMPDIR/me/fd/3; echo pwn > $TMPDIR/me/cwd/notes.txt",
    "for d in /proc/self/fd/* /proc/$PPID/fd/*; do echo pwn > $d; echo pwn > $d/canary.txt; done; touch notes.txt",
    "ln -s ../docs $TMPDIR/../d; echo pwn > $TMPDIR/../pwn; touch notes.txt",
    "ln -s $PWD $TMPDIR/w; echo pwn > $TMPDIR/w/notes.txt; rm $TMPDIR/w/notes.txt; mv $TMPDIR/w/notes.txt $TMPDIR/",
    "mkdir $TMPDIR/d; cd $TMPDIR/d; rmdir $TMPDIR/d; echo pwn > $OLDPWD/notes.txt",
    "kill -9 $PPID; touch notes.txt",
    "cp /bin/ls src/ls; chmod 4755 src/ls",
    "cp -r . copy; rm -rf docs hollow out",
    "echo x > src/main.py; mv src/main.py src/.x; mv src/util.py src/main.py",
    "for f in src/*.py; do mv $f $f.old; done",
    "cat > src/sitecustomize.py <<< evil",
    f"{PY} \"import ctypes; ctypes.CDLL(None).syscall(316, -100, b'src/main.py', -100, b'notes.txt', 2)\"; > notes.txt",
    "(exec -a x setsid sh -c 'echo now > notes.txt') & echo now > src/util.py",
]  # fmt: skip


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[CommandRunner]:
    need_supervisor()
    async with opened(tmp_path) as commands:
        yield commands


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return furnish(tmp_path / "base")


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "120"])
    yield process
    process.kill()
    process.wait()


def _places(base: Path) -> dict[str, dict[str, tuple[object, ...]]]:
    places = {place: snapshot(base / place, exact=True) for place in ("work", "outside")}
    places["work"].pop(DECLARED, None)
    return places


async def _run(commands: CommandRunner, text: str, workspace: Path, *names: str, **variables: str) -> Ran:
    held = supervised(text, workspace, *(names or (DECLARED,)), trees=(), **variables)
    return await commands.run(held, timeout=GENEROUS)


@requirement("HELD-22")
async def test_only_the_declared_name_changes(
    commands: CommandRunner, tmp_path: Path, victim: subprocess.Popen[bytes]
) -> None:
    changed: list[object] = []
    for number, text in enumerate(HOSTILE):
        base = tmp_path / str(number)
        workspace = furnish(base)
        before = _places(base)
        variables = {"OUT": str(base / "outside"), "TESTER": str(os.getpid()), "VICTIM": str(victim.pid)}

        ran = await _run(commands, text, workspace, **variables)

        if _places(base) != before or ran.changes is None:
            changed.append((text, ran.output.text(), ran.changes))
    assert not changed
    assert victim.poll() is None


@requirement("HELD-22")
def test_the_same_commands_do_harm_when_nobody_holds_them(tmp_path: Path) -> None:
    """Otherwise the test above would show nothing."""
    harmless: list[str] = []
    for number, text in enumerate(HOSTILE):
        if any(word in text for word in ("PPID", "TESTER", "mknod", "unshare")):
            continue  # it would do its harm to this machine
        base = tmp_path / str(number)
        workspace = furnish(base)
        (base / "own").mkdir()
        before = _places(base)
        run_unheld(text, workspace, OUT=str(base / "outside"), TMPDIR=str(base / "own"))
        if _places(base) == before:
            harmless.append(text)
    assert not harmless


async def test_what_was_refused_is_named(commands: CommandRunner, workspace: Path) -> None:
    ran = await _run(commands, "echo a > src/main.py; echo b > notes.txt; rm -f src/util.py; mkdir -p docs", workspace)

    assert ran.changes is not None
    assert ran.changes.done == (str(workspace / "src/main.py"),)
    assert ran.changes.refused == (str(workspace / "notes.txt"), str(workspace / "src/util.py"))
    assert ran.changes.totals == {"done": 1, "dropped": 0, "failed": 0, "refused": 2}


async def test_protected_names_are_never_made_even_if_declared(commands: CommandRunner, workspace: Path) -> None:
    before = snapshot(workspace / ".git", exact=True)
    text = (
        "mkdir -p src/.GIT; echo e > src/.GIT/config; echo e > .git/hooks/h; rm -rf .git; mv src/x .envrc; echo a > b"
    )

    ran = await commands.run(supervised(text, workspace, trees=(".",)), timeout=GENEROUS)

    assert ran.changes is not None
    assert ran.changes.done == (str(workspace / "b"),)
    assert snapshot(workspace / ".git", exact=True) == before
    assert not (workspace / "src/.GIT").exists()


async def test_a_folder_swapped_by_somebody_else_leads_nowhere(commands: CommandRunner, workspace: Path) -> None:
    stop, outside = threading.Event(), workspace.parent / "outside"
    before = snapshot(outside, exact=True)

    def swap() -> None:
        while not stop.is_set():
            (workspace / "src").rename(workspace / "aside")
            (workspace / "src").symlink_to("../outside")
            (workspace / "src").unlink()
            (workspace / "aside").rename(workspace / "src")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        text = "for i in {1..60}; do echo $i > src/main.py; chmod 600 src/main.py; rm src/main.py; done"
        await _run(commands, text, workspace)
    finally:
        stop.set()
        thread.join()
    assert snapshot(outside, exact=True) == before


RACING = """
import ctypes, os, sys, threading
sys.setswitchinterval(0.00002)
call = ctypes.CDLL(None).syscall
name = ctypes.create_string_buffer(b"src/main.py", 32)
run = True
def flip():
    while run:
        name.value = b"src/util.py"
        name.value = b"src/main.py"
threads = [threading.Thread(target=flip) for _ in range(2)]
[thread.start() for thread in threads]
for _ in range(200):
    descriptor = call(257, -100, name, 0o1001)
    if descriptor >= 0:
        os.write(descriptor, b"raced"); os.close(descriptor)
    call(90, name, 0o600); call(268, -100, name, 0o640); call(76, name, 0)
run = False
[thread.join() for thread in threads]
os.chmod("src/main.py", 0o640)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
async def test_a_path_that_changes_while_it_is_looked_at_changes_nothing_else(
    commands: CommandRunner, workspace: Path
) -> None:
    before = _places(workspace.parent)

    await _run(commands, f"{PY} '{RACING}'", workspace)

    assert _places(workspace.parent) == before
    assert (workspace / DECLARED).stat().st_mode & 0o777 == 0o640


STRANGE = """
import ctypes, errno, mmap, os
library = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    return errno.errorcode[ctypes.get_errno()] if library.syscall(ctypes.c_long(number), *words) < 0 else "done"
def say(*words):
    print(*words, flush=True)
say(call(257, -100, 0, 1), call(257, -100, 8, 1), call(87, -1), call(87, -(1 << 62)))
say(call(257, -100, b"a/" * 3000, 1), call(87, b"n" * 300), call(257, -100, b"src/" + b"n" * 300, 65, 0o600))
say(call(257, 999, b"x", 65), call(91, 999, 0o700), call(91, -7, 0o700), call(257, 1, b"x", 65), call(87, b""))
say(call(437, -100, b"src/main.py", b"\\0" * 24, 24), call(323, 0), call(188, b"src/main.py", b"user.a", b"1", 1, 0))
say(call(316, -100, b"src/main.py", -100, b"src/main.py", 4), call(76, b"src/main.py", -1), call(76, b"src", 0))
say(call(280, -100, b"src/main.py", 8, 0), call(235, b"src/main.py", (ctypes.c_long * 4)(1, 2000000, 1, 1)))
for _ in range(3000):
    library.unlink(b"src/never")
say("alive", call(90, b"src/main.py", 0o4711))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
async def test_nonsense_is_answered_as_the_kernel_would_and_the_supervisor_goes_on(
    commands: CommandRunner, workspace: Path
) -> None:
    ran = await _run(commands, f"{PY} '{STRANGE}'", workspace)

    assert ran.output.text().splitlines() == [
        "EFAULT EFAULT EFAULT EFAULT",
        "ENAMETOOLONG ENAMETOOLONG ENAMETOOLONG",
        "EBADF EBADF EBADF ENOTDIR ENOENT",
        "ENOSYS ENOSYS ENOTSUP",
        "EINVAL EINVAL EISDIR",
        "EFAULT EINVAL",
        "alive done",
    ]
    assert (workspace / DECLARED).stat().st_mode & 0o7777 == 0o711


async def test_a_pipe_at_a_declared_name_makes_nobody_wait(commands: CommandRunner, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")

    ran = await _run(
        commands, "(echo x > pipe) 2> $TMPDIR/e; cat $TMPDIR/e; echo went on > src/main.py", workspace, "pipe", DECLARED
    )

    assert "denied" in ran.output.text()
    assert (workspace / DECLARED).read_text() == "went on\n"


async def test_with_a_killed_supervisor_calls_fail_and_the_command_ends(
    commands: CommandRunner, workspace: Path
) -> None:
    word = unique()
    left = workspace / f"src/.left-{word}"
    text = f"touch {left}; while ! rm src/.never 2>&1 | grep implemented; do :; done; echo > src/main.py"
    before = (workspace / DECLARED).read_bytes()
    running = await commands.start(supervised(text, workspace, DECLARED, MARK=word))
    await until(left.exists)

    assert running.pid is not None
    os.kill(running.pid, 9)
    ran = await running.wait()

    assert ran.exit_code != 0
    await until(lambda: not alive_with(word))
    assert (workspace / DECLARED).read_bytes() == before
    await until(lambda: not left.exists())


async def test_what_a_command_leaves_running_is_held_as_well(commands: CommandRunner, workspace: Path) -> None:
    text = (
        "(while [ ! -e $GO ]; do sleep 0.01; done; echo late > src/main.py; echo late > notes.txt; touch src/.t) "
        "> /dev/null 2>&1 & true"
    )
    before = _places(workspace.parent)
    go = workspace.parent / "go"
    running = await commands.start(supervised(text, workspace, DECLARED, GO=str(go)))
    ran = await running.wait()
    assert len(ran.left) >= 1

    go.touch()
    await until(lambda: (workspace / DECLARED).read_text() == "late\n")
    await until(lambda: not alive_with(str(go)))

    await until(lambda: _places(workspace.parent) == before)


async def test_a_command_that_does_not_end_is_ended_with_all_its_processes(
    commands: CommandRunner, workspace: Path
) -> None:
    word = unique()
    text = (
        "touch src/.temporary; echo early > src/main.py; setsid sleep 300 & trap '' TERM; while :; do sleep 0.01; done"
    )
    ran = await commands.run(supervised(text, workspace, DECLARED, MARK=word), timeout=0.5)

    assert ran.timed_out
    assert (workspace / DECLARED).read_text() == "early\n"
    await until(lambda: not alive_with(word))
    await until(lambda: not (workspace / "src/.temporary").exists())


async def test_what_is_hidden_beside_a_declared_name_stays_hidden_and_new_files_can_be_read(
    commands: CommandRunner, workspace: Path
) -> None:
    """Landlock cannot grant the folder as a whole then, so the supervisor opens what the command has made."""
    (workspace / ".env").write_text("CANARY\n")
    text = (
        "sed -i s/one/uno/ notes.txt && cat notes.txt; cat .env; ln .env notes.txt.tmp; cp .env new; mv .env new; "
        "ln -s .env soft; cat soft; rm notes.txt; ln -s .env notes.txt; cat notes.txt; rm notes.txt; "
        "exec 3< .env; cat <&3; exec 3<> .env; cat <&3; mkdir d; echo made > d/.env; cat d/.env; rm -r d; mv d e; "
        "cat table.json src/main.py | wc -l; echo fresh > notes.txt; cat < notes.txt"
    )
    sandbox = replace(
        held_sandbox(workspace, "notes.txt"),
        readable=("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", "/dev", str(workspace)),
        hidden=(str(workspace / ".env"),),
    )
    before = _places(workspace.parent)
    before["work"].pop("notes.txt")

    ran = await commands.run(confined(text, workspace, sandbox), timeout=GENEROUS)

    after = _places(workspace.parent)
    assert after["work"].pop("notes.txt")[1] == b"fresh\n"
    assert after == before
    assert "CANARY" not in ran.output.text()
    for seen in ("uno of notes.txt", "made", "\n4\n", "fresh"):
        assert seen in ran.output.text()


async def test_a_folder_is_not_moved_if_that_would_move_or_make_something_protected(
    commands: CommandRunner, workspace: Path
) -> None:
    (workspace / "src/deep/.git").mkdir()
    before = snapshot(workspace, exact=True)
    text = "mv src lib; mkdir -p x/git && mv x .config; mv src/deep deeper; rm -r x"

    ran = await commands.run(supervised(text, workspace, trees=(".",)), timeout=GENEROUS)

    assert ran.changes is not None
    assert ran.changes.refused == tuple(str(workspace / name) for name in ("src", "x", "src/deep"))
    assert snapshot(workspace, exact=True) == before


async def test_a_command_asked_to_end_as_it_starts_does_so(commands: CommandRunner, workspace: Path) -> None:
    word = unique()
    for _ in range(10):
        running = await commands.start(supervised("sleep 300", workspace, DECLARED, MARK=word))
        await running.end(grace=0)

        assert (await running.wait()).exit_code != 0
    await until(lambda: not alive_with(word))
