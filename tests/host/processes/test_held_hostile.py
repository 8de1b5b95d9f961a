"""Commands that do more than they declared: only the declared name changes, and nothing else is read."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ferrule.host.processes.command_runner import CommandRunner
from tests.host.processes.held import SECRET, TARGET, furnish, held, need_layers, reading, seen
from tests.host.processes.shell import GENEROUS, alive_with, opened, unique, until
from tests.requirement import requirement

PY = "/usr/bin/python3"
HOSTILE = [
    "sed -i.bak s/alpha/b/ src/x.py",
    "cd src; sed -i'../docs/*.bak' s/alpha/b/ x.py",
    "sed -n 'w notes.txt' src/x.py",
    "sed -i '1e touch made-by-e' src/x.py",
    "awk '{print > \"notes.txt\"}' src/x.py",
    "cp -b -S .evil docs/a.md src/x.py",
    "cp -b -S /../../docs/a.md docs/a.md src/y.py",
    "cp docs/a.md src/",
    "cp docs/a.md dirlink/y.py",
    "cp docs/a.md outlink",
    "cp docs/a.md outdir/new",
    "cp docs/a.md src/pkg/../../notes.txt",
    "tee src/{x,y}.py < docs/a.md",
    "tee src/*.py < docs/a.md",
    "echo pwn > ../outside/secret.txt",
    'echo pwn > "$OUT/secret.txt"',
    "echo pwn >> hard.txt",
    "ln -f src/x.py src/y.py",
    'rm src/x.py; ln "$OUT/secret.txt" src/x.py && echo pwn > src/x.py',
    'rm src/x.py; ln -s "$OUT/secret.txt" src/x.py; echo pwn > src/x.py',
    "rm -rf src; ln -s ../outside src; echo pwn > src/x.py",
    "mv src src2; ln -s ../outside src; echo pwn > src/x.py",
    "rm -rf src",
    "rm -rf -- * .git",
    "find . -name '*.py' -delete",
    "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
    "git config -f .git/config core.pager evil",
    "echo evil > .bashrc",
    "chmod 777 src/y.py",
    "chmod 000 src/pkg",
    "chmod 700 src",
    "chmod 700 .",
    "touch -d 2000-01-01 src/y.py",
    "truncate -s 0 notes.txt",
    "dd if=/dev/zero of=data.json bs=1 count=1 conv=notrunc",
    "install -m 755 docs/a.md src/y.py",
    "mv src/x.py .",
    "mkfifo src/pipe",
    "rm src/x.py; mkfifo src/x.py; touch src/other",
    "mknod notes2 c 0 0 || mknod src/sda b 8 0",
    f"{PY} -c \"import os; os.setxattr('notes.txt', 'user.a', b'1'); os.utime('notes.txt', (1, 1))\"",
    f"{PY} -c \"import os; os.setxattr('src', 'user.overlay.opaque', b'y'); open('notes.txt','w')\"",
    f"{PY} -c \"import os; os.setxattr('src', 'trusted.overlay.opaque', b'y')\"; echo > notes.txt",
    f"{PY} -c \"import tarfile; t=tarfile.open('t.tar','w'); t.addfile(tarfile.TarInfo('../outside/tar')); t.close(); "
    "tarfile.open('t.tar').extractall()\"",
    'mount --bind "$OUT" src; echo pwn > src/x.py; echo pwn > notes.txt',
    'unshare -Urm sh -c "mount --bind $OUT src; echo pwn > src/x.py"; echo pwn > notes.txt',
    "umount -l . ; cd $PWD; echo pwn > notes.txt",
    'nsenter -t $TESTER -m touch "$OUT/entered"; touch notes.txt',
    'echo pwn > "/proc/$TESTER/root$OUT/secret.txt"; touch notes.txt',
    'echo pwn > "/proc/$TESTER/cwd/../outside/secret.txt"; touch notes.txt',
    'exec 3<>"$OUT/secret.txt"; echo pwn >&3',
    'exec 3<"$OUT/secret.txt"; echo pwn > /proc/self/fd/3',
    "exec 3<notes.txt; echo pwn > /proc/self/fd/3",
    "for fd in /proc/self/fd/*; do echo pwn > $fd/secret.txt; echo pwn > $fd/../outside/x.py; done; touch notes.txt",
    "(sleep 0.3; echo late > src/y.py) & echo now > src/y.py",
    "setsid nohup sh -c 'sleep 0.3; echo late > notes.txt' >/dev/null 2>&1 & echo now > notes.txt",
    f'{PY} -c "import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0:\n  time.sleep(.3); '
    "open('$OUT/late','w')\" ; touch notes.txt",
    "kill -9 $VICTIM; touch notes.txt",
    "kill -9 1 $PPID; touch notes.txt",
    f"{PY} -c \"import ctypes,os; l=ctypes.CDLL(None); print(l.ptrace(16,int(os.environ['VICTIM']),0,0)); "
    "open('notes.txt','w')\"",
    'sudo -n sh -c "echo pwn > $OUT/secret.txt" || su -c "echo pwn > $OUT/secret.txt"; touch notes.txt',
    "cp /bin/su src/su; chmod 4755 src/su",
    "cp /bin/su src/x.py; chmod 6755 src/x.py; touch notes.txt",
    f"{PY} -c \"import os; os.chroot('.'); open('/notes.txt','w')\" ; echo > notes.txt",
    'echo pwn > "$TMPDIR/../0/upper/notes.txt"; mkdir -p "$TMPDIR/../0/upper/docs"; '
    'echo pwn > "$TMPDIR/../0/upper/docs/a.md"; touch notes.txt',
    "for i in $(seq 20); do rm -rf src; ln -s ../outside src; rm src; mkdir src; done & "
    "for i in 1 2 3 4 5 6 7 8; do echo pwn > src/x.py; done",
    "cp -r . copy; rm -rf docs empty build",
    "echo x > src/x.py; mv src/x.py src/.x; mv src/y.py src/x.py",
    'for f in src/*.py; do mv "$f" "$f.old"; done',
    "cat > src/sitecustomize.py <<< evil",
    "rm -rf src; touch src",
    "rm src/x.py; mkdir src/x.py; touch src/x.py/inside",
]
CANNOT_BE_SHOWN = ("VICTIM", "kill -9 1", "fd/*", "mount ", "sudo", "chmod 700 .", "trusted.overlay", "& for i")
"""Not run without being held: they would reach this machine; or what they do is not among what is looked at."""


@pytest.fixture(params=["disk", "memory"])
def base(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    need_layers()
    furnish(tmp_path)
    (tmp_path / "temporary").mkdir()
    if request.param == "memory":
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


@pytest.fixture
async def commands(base: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommandRunner]:
    async with opened(tmp_path_factory.mktemp("output")) as commands:
        yield commands


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1020"]) as process:
        yield process
        process.kill()


def _environment(base: Path, victim: subprocess.Popen[bytes]) -> dict[str, str]:
    return {"OUT": str(base / "outside"), "TESTER": str(os.getpid()), "VICTIM": str(victim.pid)}


def _root(base: Path) -> Path:
    """What the layer lies over: the workspace, or, to have it in memory, what holds its temporary files too."""
    return base if tempfile.gettempdir() == str(base / "temporary") else base / "ws"


def _canaries(base: Path) -> dict[str, object]:
    found: dict[str, object] = {place: seen(base / place, exact=True) for place in ("ws", "outside")}
    found["ws"] = {name: facts for name, facts in seen(base / "ws", exact=True).items() if name != TARGET}
    return found | {"mode": (base / "ws").stat().st_mode}


@requirement("HELD-20")
async def test_only_the_declared_name_changes(
    commands: CommandRunner, base: Path, victim: subprocess.Popen[bytes]
) -> None:
    for text in HOSTILE:
        before = _canaries(base)
        asked = held(text, base / "ws", [TARGET], (), root=_root(base), hidden=(), **_environment(base, victim))

        ran = await commands.run(asked, timeout=GENEROUS)
        if "late" in text:
            threading.Event().wait(0.4)

        assert _canaries(base) == before, (text, ran)
        assert victim.poll() is None
        assert SECRET not in ran.output.text()
        target = base / "ws" / TARGET
        assert target.is_symlink() or not target.exists() or target.is_dir() or target.stat().st_mode & 0o7000 == 0
        _restore(target)


def _restore(target: Path) -> None:
    if target.is_dir():
        target.rmdir()
    target.unlink(missing_ok=True)
    target.write_text("alpha of src/x.py\nbeta\n")


@requirement("HELD-20")
def test_they_do_harm_when_not_held(tmp_path_factory: pytest.TempPathFactory, victim: subprocess.Popen[bytes]) -> None:
    """Otherwise the test above would show nothing."""
    harmless: list[str] = []
    for text in [one for one in HOSTILE if not any(word in one for word in CANNOT_BE_SHOWN)]:
        base = tmp_path_factory.mktemp("plain")
        ws = furnish(base)
        (base / "own/deep").mkdir(parents=True)
        before = _canaries(base)
        environment = {**os.environ, "TMPDIR": str(base / "own/deep"), **_environment(base, victim)}
        subprocess.run(
            ["bash", "-c", text], cwd=ws, env=environment, capture_output=True, check=False, timeout=GENEROUS
        )
        if _canaries(base) == before:
            harmless.append(text)
    assert harmless == []


READS = [
    'cat "$OUT/secret.txt"',
    "cat outlink",
    "cat outdir/secret.txt",
    "cat links/*",
    'cat "/proc/$TESTER/root$OUT/secret.txt"',
    'tr "\\0" "\\n" < /proc/$TESTER/environ',
    'ln "$OUT/secret.txt" s; cat s',
    'cp "$OUT/secret.txt" src/x.py; cat src/x.py',
    "cat /proc/$TESTER/cwd/../outside/secret.txt",
    'unshare -Urm cat "$OUT/secret.txt"',
    "cat .env hidden/key",
    "cd hidden && cat key",
    "cat ../ws/.env",
    "grep -r hush .",
    "exec 3< .env; cat <&3",
    f"{PY} -c 'print(open(\".env\").read())'",
    "ln .env $TMPDIR/e; cat $TMPDIR/e",
    "mv .env $TMPDIR/e; cat $TMPDIR/e",
    "cp -r . $TMPDIR/all; cat $TMPDIR/all/.env",
    "cat /dev/vda | head -c 1000000 | grep -a hush",
]


@requirement("HELD-21")
@pytest.mark.parametrize("writing", [False, True], ids=["reading", "writing"])
async def test_nothing_is_read_that_was_not_granted(
    commands: CommandRunner, base: Path, victim: subprocess.Popen[bytes], writing: bool
) -> None:
    ws = base / "ws"
    (ws / "hidden").mkdir()
    (ws / "links").mkdir()
    (ws / "links/o").symlink_to("../../outside/secret.txt")
    for name in (".env", "hidden/key"):
        (ws / name).write_text(SECRET)
    environment = _environment(base, victim) | {"MARKED": SECRET}
    for text in READS:
        asked = reading(text, ws, ws / ".env", ws / "hidden", **environment)
        if writing:
            asked = held(text, ws, [TARGET], root=_root(base), hidden=[ws / ".env", ws / "hidden"], **environment)

        ran = await commands.run(asked, timeout=GENEROUS)

        assert SECRET not in ran.output.text(), text
        assert SECRET not in (ws / TARGET).read_text()
    plain = await commands.run(reading("cat docs/a.md src/y.py", ws, ws / ".env", ws / "hidden"), timeout=GENEROUS)
    assert plain.output.text() == "alpha of docs/a.md\nbeta\nalpha of src/y.py\nbeta\n"


@requirement("HELD-20")
async def test_a_folder_swapped_by_somebody_else_leads_nowhere(commands: CommandRunner, base: Path) -> None:
    """A process outside swaps the folder for a link to canaries all the time."""
    ws, stop = base / "ws", threading.Event()
    before = seen(base / "outside", exact=True)

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):  # the folder of a declared name is made where it is missing
                (ws / "src").rename(ws / "aside")
                (ws / "src").symlink_to("../outside")
                (ws / "src").unlink()
                (ws / "aside").rename(ws / "src")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(20):
            await commands.run(held(f"echo {number} > src/x.py", ws, [TARGET], root=_root(base)), timeout=GENEROUS)
    finally:
        stop.set()
        thread.join()
    assert seen(base / "outside", exact=True) == before


@requirement("HELD-20")
async def test_a_declared_tree_with_something_protected_in_it_stays(commands: CommandRunner, base: Path) -> None:
    ws = base / "ws"
    (ws / "sub/deep/.git").mkdir(parents=True)
    (ws / "sub/first").write_text("here")

    ran = await commands.run(held("rm -rf sub; echo x > src/x.py", ws, [TARGET], ["sub"], root=_root(base)))

    assert ran.changes
    assert [path for path, _ in ran.changes.failed] == [str(ws / "sub")]
    assert (ws / "sub/first").read_text() == "here"
    assert ran.changes.done == (str(ws / TARGET),)


@requirement("HELD-20")
async def test_what_somebody_else_changed_meanwhile_stays_as_they_left_it(
    commands: CommandRunner, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ws, go = base / "ws", tmp_path_factory.mktemp("signal") / "go"
    text = "echo mine > src/x.py; echo ready; while [ ! -e $GO ]; do sleep 0.01; done"
    running = await commands.start(held(text, ws, [TARGET], root=_root(base), GO=str(go)))
    await until(lambda: running.output.total)
    (ws / TARGET).write_text("theirs")
    go.touch()

    ran = await running.wait()

    assert (ws / TARGET).read_text() == "theirs"
    assert ran.changes
    assert ran.changes.failed == ((str(ws / TARGET), "somebody else changed it meanwhile"),)


@requirement("HELD-20")
async def test_nothing_is_carried_into_a_folder_that_took_the_place_of_the_workspace(
    commands: CommandRunner, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ws, go = base / "ws", tmp_path_factory.mktemp("signal") / "go"
    text = "echo mine > src/x.py; echo ready; while [ ! -e $GO ]; do sleep 0.01; done"
    running = await commands.start(held(text, ws, [TARGET], GO=str(go)))
    await until(lambda: running.output.total)
    ws.rename(base / "aside")
    (ws / "src").mkdir(parents=True)
    go.touch()

    ran = await running.wait()

    assert not (ws / TARGET).exists()
    assert ran.changes
    assert ran.changes.failed[0][1].endswith("was moved or replaced meanwhile")


@requirement("HELD-20")
async def test_a_layer_too_deep_to_be_read_costs_the_command_and_nobody_else(
    commands: CommandRunner, base: Path
) -> None:
    ws = base / "ws"
    text = f'{PY} -c \'import os\nfor _ in range(1200): os.mkdir("d"); os.chdir("d")\'; echo new > src/x.py'
    before = seen(ws)

    ran = await commands.run(held(text, ws, [TARGET], root=_root(base)), timeout=GENEROUS)

    assert ran.changes
    assert ran.changes.failed
    assert seen(ws) == before
    again = await commands.run(held("echo new > src/x.py", ws, [TARGET], root=_root(base)), timeout=GENEROUS)
    assert again.changes
    assert again.changes.done == (str(ws / TARGET),)


async def test_one_that_is_ended_as_it_starts_does_so_at_once(commands: CommandRunner, base: Path) -> None:
    for asked in (held("sleep 1023", base / "ws", [TARGET], root=_root(base)), reading("sleep 1023", base / "ws")):
        for _ in range(4):
            running = await commands.start(asked)
            await running.end(grace=GENEROUS)

            assert (await running.wait()).signal == "SIGTERM"


@requirement("HELD-20")
async def test_one_that_does_not_end_is_killed_and_keeps_what_it_did(commands: CommandRunner, base: Path) -> None:
    marker = unique()
    text = "echo early > src/x.py; setsid sleep 1021 & sleep 1021"

    ran = await commands.run(held(text, base / "ws", [TARGET], root=_root(base), MARKED=marker), timeout=0.3)

    assert ran.timed_out
    assert not alive_with(marker)
    assert (base / "ws" / TARGET).read_text() == "early\n"


async def test_nothing_of_a_held_command_is_left(commands: CommandRunner, base: Path, tmp_path: Path) -> None:
    before = Path("/proc/self/mountinfo").read_text()

    ran = await commands.run(held("echo $TMPDIR; mkdir -m 0 $TMPDIR/closed; echo x > src/x.py", base / "ws", [TARGET]))
    folder = Path(ran.output.text().strip()).parent
    await commands.close()

    assert not folder.exists()
    assert not [name for name in os.listdir(base / "ws") if "ferrule" in name]
    assert Path("/proc/self/mountinfo").read_text() == before
