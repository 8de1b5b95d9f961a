"""Held commands of an ordinary user, of root without capabilities, and where there are no user namespaces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ferrule
from tests.host.processes.held import SECRET, furnish, need_layers, seen
from tests.requirement import requirement

PYTHON = "/usr/bin/python3"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
WITHOUT_NAMESPACES = (
    *NOBODY, "unshare", "-Ur", "bash", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "bash",
    *POWERLESS,
)  # fmt: skip
"""Only the root of a user namespace can forbid more of them, so an ordinary user becomes that, without its powers."""

PROGRAM = """
import asyncio, json, os, sys
from dataclasses import replace
from pathlib import Path
from ferrule.host.processes.command import Command
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.sandbox import CannotConfine, Profile, Sandbox, try_sandbox, try_workspace

HOSTILE = (
    "echo pwn > notes.txt; rm -rf docs; mkdir -p .husky a; echo x > .husky/h; chmod 700 .; chmod 000 src/pkg; "
    "echo pwn > ../outside/x.py; echo pwn > outlink; cp /bin/su src/x.py; chmod 6755 src/x.py; ln -s / a/b; "
    "unshare -Urm sh -c 'mount --bind ../outside src; echo pwn > src/x.py'; chmod 000 docs2; mkdir -m 0 closed; id -u"
)
READS = (
    "cat docs/a.md; cat ../outside/secret.txt outlink .env hidden/key; cat $TESTER/environ $TESTER/maps; "
    "ls $TESTER/fd; echo x > notes.txt; echo x > $TMPDIR/own && cat $TMPDIR/own; grep CapEff /proc/self/status"
)

async def main(base):
    ws = base / "ws"
    readable = ("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", "/sys", str(ws))
    env = {"PATH": os.environ["PATH"], "TESTER": f"/proc/{os.getpid()}"}
    found = {}
    async with CommandRunner(folder=base / "output", environment=os.environ) as commands:
        offers = await try_workspace(commands, await try_sandbox(commands), str(ws))
        found["offers"] = [offers.reads, offers.keep_for(str(ws), background=False), offers.trouble]
        found["of others"] = offers.keep_for(str(ws), background=False, names=[str(ws / "theirs/new")])
        reading = Sandbox(profile=Profile.READ_ONLY, readable=readable, declared=(),
                          hidden=(str(ws / ".env"), str(ws / "hidden")))
        ran = await commands.run(Command(text=READS, cwd=str(ws), env=env, jail=offers.jail(reading)))
        found["read"] = ran.output.text()
        if keep := offers.keep_for(str(ws), background=False):
            writing = replace(reading, profile=Profile.WORKSPACE_WRITE, declared=((str(ws / "src/x.py"), False),),
                              keep=keep, workspace=(str(ws),))
            ran = await commands.run(Command(text=HOSTILE, cwd=str(ws), env=env, jail=offers.jail(writing)))
            found["written"] = [ran.changes.done, ran.changes.dropped, ran.changes.failed, ran.output.text()]
    found["left"] = sorted(os.listdir(base))
    print(json.dumps(found))

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture
def base() -> Iterator[Path]:
    """A workspace of the ordinary user's own, where that user can reach it."""
    need_layers()
    if os.geteuid() != 0 or not shutil.which("setpriv") or not os.path.exists(PYTHON):
        pytest.skip("this needs root, to become somebody else, and a Python that everybody may run")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="held-") as folder:
        ws = furnish(Path(folder))
        (ws / "hidden").mkdir()
        for name in (".env", "hidden/key"):
            (ws / name).write_text(SECRET)
        yield Path(folder)


def _give(base: Path, user: int) -> None:
    for path in (base, *base.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def _found(base: Path, become: tuple[str, ...]) -> dict[str, Any]:
    environment = {
        "PATH": os.defpath, "PYTHONPATH": str(Path(ferrule.__file__).parent.parent), "TMPDIR": str(base),
        "OWN_SECRET": SECRET,
    }  # fmt: skip
    done = subprocess.run(
        [*become, PYTHON, "-c", PROGRAM, str(base)], env=environment, capture_output=True, text=True, check=False
    )
    if "No module named" in done.stderr or "Permission denied" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"that Python cannot read Ferrule, or be started so: {done.stderr.splitlines()[-1]}")
    assert done.stderr == ""
    return json.loads(done.stdout)


def _reading_is_held(found: dict[str, Any], powers: int = 0) -> None:
    lines = found["read"].splitlines()
    assert lines[:2] == ["alpha of docs/a.md", "beta"]
    assert SECRET not in found["read"]
    assert "x" in lines, "its own temporary folder can be written"
    assert int(lines[-1].split()[1], 16) & ~powers == 0


def _canaries(base: Path) -> dict[str, object]:
    inside = {name: facts for name, facts in seen(base / "ws", exact=True).items() if name != "src/x.py"}
    return {"ws": inside, "outside": seen(base / "outside", exact=True), "mode": (base / "ws").stat().st_mode}


@requirement("HELD-20", "HELD-21")
@pytest.mark.parametrize(("become", "user"), [((), 0), (NOBODY, 65534)], ids=["root", "ordinary user"])
def test_names_and_reading_are_held(base: Path, become: tuple[str, ...], user: int) -> None:
    _give(base, user)
    (base / "ws/theirs").mkdir()
    os.chown(base / "ws/theirs", user, 4711)
    before = _canaries(base)

    found = _found(base, become)

    assert found["offers"] == [True, "overlay", []]
    assert found["of others"] == ("overlay" if user == 0 else "supervisor")
    _reading_is_held(found, powers=0x3F if user == 0 else 0)
    done, dropped, failed, output = found["written"]
    assert (done, failed, output.splitlines()[-1]) == ([str(base / "ws/src/x.py")], [], str(user))
    assert str(base / "ws/notes.txt") in dropped
    assert (base / "ws/src/x.py").stat().st_mode & 0o7000 == 0
    assert _canaries(base) == before
    assert found["left"] == ["outside", "ws"], "its temporary folders are gone"


@requirement("HELD-21")
@pytest.mark.parametrize(
    ("become", "user"), [(POWERLESS, 0), (WITHOUT_NAMESPACES, 65534)], ids=["root without powers", "no namespaces"]
)
def test_reading_is_held_where_no_layer_can_be_had(base: Path, become: tuple[str, ...], user: int) -> None:
    _give(base, user)

    found = _found(base, become)

    reads, keep, trouble = found["offers"]
    assert (reads, keep) == (True, "supervisor")
    assert "Operation not permitted" in " ".join(trouble) or "No space left" in " ".join(trouble)
    _reading_is_held(found)
