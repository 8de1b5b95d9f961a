"""Programs with channels, kept from some paths: for root, an ordinary user, and where no mounts can be made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ferrule
from tests.host.processes.test_held_users import NOBODY, POWERLESS, PYTHON, WITHOUT_NAMESPACES
from tests.requirement import requirement

PROGRAM = """
import asyncio, json, os, sys
from pathlib import Path
from ferrule.core.verdicts import Confinement
from ferrule.host.processes.piped_process import Program
from ferrule.host.processes.session_shell import Shell

TEXT = "read line; echo heard $line; cat open secrets/key fixed; echo x > fixed; echo x > made; echo done >&2; id -u"

async def main(base):
    shell = Shell(base / "output", environment=os.environ)
    needed = Confinement(unreadable=(f"{base}/secrets/**",), unwritable=(f"{base}/secrets/**", f"{base}/fixed"))
    await shell.offers()
    found = {"held": shell.confines(needed)}
    if found["held"]:
        hold = await shell.hold_for(str(base), needed)
        program = Program(path="/bin/bash", argv=("bash", "-c", TEXT), cwd=str(base), env={"PATH": os.defpath})
        child = await shell.start_program(program, hold)
        child.stdin.write(b"me\\\\n")
        found["said"] = (await child.stdout.read(-1)).decode() if await child.stdin.drain() is None else ""
        found["errors"] = (await child.stderr.read(-1)).decode()
        async with asyncio.timeout(60):
            while child.returncode is None:  # its pipes are closed a moment before it has ended
                await asyncio.sleep(0.005)
        await child.kill()
        found["ended"] = [child.returncode, child.trouble]
        child.release()
    await shell.close()
    print(json.dumps(found))

asyncio.run(main(Path(sys.argv[1])))
""".replace("\\\\n", "\\n")


@pytest.fixture
def base() -> Iterator[Path]:
    if os.geteuid() != 0 or not shutil.which("setpriv") or not os.path.exists(PYTHON):
        pytest.skip("this needs root, to become somebody else, and a Python that everybody may run")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="held-") as folder:
        place = Path(folder)
        (place / "secrets").mkdir()
        for name, content in (("secrets/key", "hush\n"), ("fixed", "as it was\n"), ("open", "for all\n")):
            (place / name).write_text(content)
        yield place


def _found(base: Path, become: tuple[str, ...]) -> dict[str, Any]:
    if "--reuid=65534" in become:
        for path in (base, *base.rglob("*")):
            os.chown(path, 65534, 65534)
    libraries = f"{Path(ferrule.__file__).parent.parent}:{sysconfig.get_path('purelib')}"
    environment = {"PATH": os.defpath, "PYTHONPATH": libraries, "TMPDIR": str(base), "HOME": str(base)}
    done = subprocess.run(
        [*become, PYTHON, "-c", PROGRAM, str(base)], env=environment, capture_output=True, text=True, check=False
    )
    if "No module named" in done.stderr or "Permission denied" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"that Python cannot read Ferrule, or be started so: {done.stderr.splitlines()[-1]}")
    assert done.stderr == ""
    return json.loads(done.stdout)


@requirement("HELD-6")
@pytest.mark.parametrize("become", [(), NOBODY, POWERLESS], ids=["root", "an ordinary user", "root without powers"])
def test_a_program_with_channels_is_kept_from_paths_and_from_nothing_else(base: Path, become: tuple[str, ...]) -> None:
    found = _found(base, become)
    if not found["held"]:
        pytest.skip("no mounts can be made here")

    said = found["said"].splitlines()
    assert said[:2] == ["heard me", "for all"]
    assert said[-1] == ("65534" if "--reuid=65534" in become else "0")
    assert "hush" not in found["said"]
    assert "as it was" in found["said"]
    assert found["errors"].endswith("done\n")
    assert found["ended"] == [0, ""]
    assert (base / "fixed").read_text() == "as it was\n"
    assert (base / "made").read_text() == "x\n"


@requirement("HELD-6")
def test_where_no_mounts_can_be_made_nothing_is_said_to_be_kept_from_a_program(base: Path) -> None:
    assert _found(base, WITHOUT_NAMESPACES) == {"held": False}
