"""The supervisor for whoever runs Ferrule: root, root without capabilities, an ordinary user, no user namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import ferrule
from tests.host.processes.holding import need_supervisor
from tests.requirement import requirement

PYTHON = "/usr/bin/python3"
NO_POWERS = ("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all")
ORDINARY = ("--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
USERS = {
    "root": (),
    "root without capabilities": ("setpriv", *NO_POWERS),
    "an ordinary user": ("setpriv", *ORDINARY),
}
NO_NAMESPACES = ("unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh")

PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from ferrule.host.processes.command import Command
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.sandbox import Profile, Sandbox, try_sandbox

async def main(home):
    work = home / "work"
    work.mkdir()
    for name in ("declared", "other"):
        (work / name).write_text("as it was\\n")
    declared = ((str(work / "declared"), False), (str(work / "deep/new"), False))
    sandbox = Sandbox(profile=Profile.READ_ONLY, declared=declared, keep="supervisor", workspace=(str(work),))
    text = (
        "sed -i s/was/is/ declared; chmod 600 declared; touch -d @5 declared; mkdir -p deep; echo x > deep/new; "
        "echo x > other; chmod 777 other; touch -d @5 other; rm other; mv declared other; ln other twin; touch ../out"
    )
    async with CommandRunner(folder=home / "output", environment=os.environ) as commands:
        offers = await try_sandbox(commands)
        print(offers.supervisor, offers.keep_for(str(work), background=True))
        env = {"PATH": os.defpath}
        ran = await commands.run(Command(text=text, cwd=str(work), env=env, jail=offers.jail(sandbox)))
        print(*sorted(os.path.relpath(path, work) for path in ran.changes.done))
        print(*sorted(os.path.relpath(path, work) for path in ran.changes.refused))
    found = os.stat(work / "declared")
    print(oct(found.st_mode), int(found.st_mtime), (work / "declared").read_text().strip())
    print(oct(os.stat(work / "other").st_mode), (work / "other").read_text().strip())
    print(*sorted(os.listdir(work)), *sorted(os.listdir(home)))

os.umask(0o022)
asyncio.run(main(Path(sys.argv[1])))
"""


@requirement("HELD-22")
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("namespaces", [True, False], ids=["with namespaces", "without namespaces"])
def test_a_command_is_held_for_every_kind_of_user(user: str, namespaces: bool) -> None:
    need_supervisor()
    if os.geteuid() != 0 or not shutil.which("setpriv") or not os.path.exists(PYTHON):
        pytest.skip("this needs root, to become somebody else, and a Python that everybody may run")
    home = Path(f"/var/tmp/ferrule-users-{os.getpid()}-{list(USERS).index(user)}-{namespaces}")
    home.mkdir()
    os.chown(home, *((65534, 65534) if user == "an ordinary user" else (0, 0)))
    become = USERS[user]
    if not namespaces:  # only root of one can forbid more of them; an ordinary user becomes that
        become = (*become, *NO_NAMESPACES) if user == "an ordinary user" else (*NO_NAMESPACES, *become)

    done = subprocess.run(
        [*become, PYTHON, "-c", PROGRAM, str(home)],
        env={"PATH": os.defpath, "PYTHONPATH": str(Path(ferrule.__file__).parent.parent), "TMPDIR": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )

    shutil.rmtree(home)
    if "No module named" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip(f"that Python cannot read Ferrule: {done.stderr.splitlines()[-1]}")
    assert (done.stdout.splitlines(), done.stderr) == (
        [
            "True supervisor",
            "declared deep deep/new",
            "../out other",
            "0o100600 5 as it is",
            "0o100644 as it was",
            "declared deep other work",
        ],
        "",
    )
