"""The workspace-write profile, and what is hidden or protected: held by a mount namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import ferrule
from ferrule.host.processes.command import Ran
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.sandbox import (
    OFF,
    READ_ONLY,
    CannotConfine,
    Offers,
    Profile,
    Sandbox,
    protected_paths_in,
    try_sandbox,
    workspace_write,
)
from tests.host.processes.shell import GENEROUS, PYTHON, confined, make_workspace, need_mounts, offers, opened
from tests.requirement import requirement


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[CommandRunner]:
    need_mounts()
    async with opened(tmp_path) as commands:
        yield commands


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = make_workspace(tmp_path / "work")
    (folder / ".vscode").mkdir()
    (folder / ".vscode/settings.json").write_text("{}")
    (folder / ".envrc").write_text("safe")
    (folder / "package/.husky").mkdir(parents=True)
    (folder / "package/.husky/pre-commit").write_text("safe")
    return folder


async def _ran(commands: CommandRunner, text: str, cwd: Path, sandbox: Sandbox) -> Ran:
    return await commands.run(confined(text, cwd, sandbox), timeout=GENEROUS)


def _hiding(*paths: Path) -> Sandbox:
    return Sandbox(profile=Profile.READ_ONLY, hidden=tuple(map(str, paths)))


# What may be written


@requirement("BOX-3")
async def test_work_in_the_workspace_goes_on(commands: CommandRunner, workspace: Path) -> None:
    works = (
        "echo x > new && chmod +x new && mv new newer && touch -d 2001-01-01 newer && mkdir d && mv newer d && rm -r d",
        f'{PYTHON} \'import os; os.setxattr("kept.txt", "user.a", b"b")\'',
        "ln kept.txt hard && ln -s kept.txt soft && rm hard soft",
        "tar c kept.txt | tar x -C empty && cp -a kept.txt empty/again",
        "cat kept.txt > $TMPDIR/copy && mv $TMPDIR/copy copied",
        f"{sys.executable} -c 'import multiprocessing as m; m.Lock(); print(1)'",
        "git status --short && git diff --stat",
    )

    for text in works:
        ran = await _ran(commands, text, workspace, workspace_write(str(workspace)))

        assert (ran.exit_code, ran.output.text()) == (0, ran.output.text().replace("denied", ""))


@requirement("BOX-3")
async def test_nothing_else_can_be_written(commands: CommandRunner, workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("as it was")
    facts = outside.stat()
    attempts = (
        f"echo x > {outside}",
        f"chmod 777 {outside}",
        f"touch {outside}",
        f"rm -f {outside}",
        f"mv {outside} .",
        f"ln {outside} inside && echo x > inside",
        f"ln -s {outside} link && echo x > link",
        f'{PYTHON} \'import os; os.setxattr("{outside}", "user.a", b"b")\'',
        f"umount {workspace}; echo x > {outside}",
        f"mount -o remount,rw / ; echo x > {outside}",
        "touch $HOME/.bashrc-ferrule",
        "touch /var/tmp/ferrule-x /dev/shm/../ferrule-x",
    )

    for text in attempts:
        assert (await _ran(commands, text, workspace, workspace_write(str(workspace)))).exit_code != 0

    after = outside.stat()
    assert (after.st_ctime_ns, after.st_mode, outside.read_text()) == (facts.st_ctime_ns, facts.st_mode, "as it was")


@requirement("BOX-3")
async def test_what_was_declared_can_be_written_and_its_neighbours_cannot(
    commands: CommandRunner, workspace: Path, tmp_path: Path
) -> None:
    for name in ("declared.txt", "neighbour.txt"):
        (tmp_path / name).write_text("old")
    sandbox = Sandbox(profile=Profile.WORKSPACE_WRITE, writable=(str(tmp_path / "declared.txt"),))

    ran = await _ran(
        commands, "echo new > ../declared.txt; echo new > ../neighbour.txt; echo x > here", workspace, sandbox
    )

    assert [(tmp_path / name).read_text() for name in ("declared.txt", "neighbour.txt")] == ["new\n", "old"]
    assert not (workspace / "here").exists()
    assert ran.exit_code != 0


async def test_a_link_put_in_place_of_a_writable_folder_grants_nothing(commands: CommandRunner, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "build").mkdir()
    asked = confined("echo x > target/through; echo x > build/through", tmp_path, Sandbox(
        profile=Profile.WORKSPACE_WRITE, writable=(str(tmp_path / "build"),)
    ))  # fmt: skip
    (tmp_path / "build").rmdir()
    (tmp_path / "build").symlink_to("target")

    with pytest.raises(Exception, match="Too many levels of symbolic links"):
        await commands.run(asked)

    assert not (tmp_path / "target/through").exists()


# What is protected


@requirement("BOX-4")
async def test_protected_paths_cannot_be_written(commands: CommandRunner, workspace: Path) -> None:
    attempts = (
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "git -c user.name=a -c user.email=a@b commit --allow-empty -m x",
        "mv .git .got",
        "rm -rf .vscode",
        "echo x > .vscode/settings.json",
        "echo x > .envrc",
        "rm -f .envrc",
        "mv kept.txt .envrc",
        "ln -f kept.txt .envrc",
        "chmod 777 .envrc",
        "echo x > package/.husky/pre-commit",
        "umount .git; touch .git/x",
    )

    for text in attempts:
        assert (await _ran(commands, text, workspace, workspace_write(str(workspace)))).exit_code != 0

    assert (workspace / ".envrc").read_text() == "safe"
    assert (workspace / "package/.husky/pre-commit").read_text() == "safe"
    assert (workspace / ".vscode/settings.json").read_text() == "{}"
    assert not (workspace / ".git/x").exists()


@requirement("BOX-4")
async def test_a_protected_path_that_does_not_exist_is_never_made(commands: CommandRunner, workspace: Path) -> None:
    text = (
        "echo '{}' > .mcp.json; mv package gone; mkdir -p package/.husky a/b/.GIT; echo x > package/.husky/h;"
        "echo x > a/b/.GIT/config; echo x > kept.txt; mkdir .Vscode2 .idea; touch .Vscode2/fine"
    )

    ran = await _ran(commands, text, workspace, workspace_write(str(workspace)))

    assert ran.changes
    assert str(workspace / ".mcp.json") in ran.changes.dropped
    assert not any((workspace / name).exists() for name in (".mcp.json", ".idea", "a/b/.GIT", "gone/.husky"))
    assert (workspace / "package/.husky/pre-commit").read_text() == "safe"
    assert (workspace / "kept.txt").read_text() == "x\n"
    assert (workspace / ".Vscode2/fine").exists()


async def test_worktrees_in_a_protected_folder_can_be_written(commands: CommandRunner, workspace: Path) -> None:
    (workspace / ".claude/worktrees/one").mkdir(parents=True)
    text = "echo x > .claude/worktrees/one/made; echo x > .claude/settings.json"

    ran = await _ran(commands, text, workspace, workspace_write(str(workspace)))

    assert (workspace / ".claude/worktrees/one/made").exists()
    assert not (workspace / ".claude/settings.json").exists()
    assert ran.exit_code != 0


def test_the_protected_paths_are_known(workspace: Path) -> None:
    found = {os.path.relpath(path, workspace) for path in protected_paths_in(str(workspace))}

    assert {".git", ".config/git", ".bashrc", ".mcp.json", "package/.husky", ".claude"} <= found
    assert "kept.txt" not in found


# What is hidden


@requirement("BOX-4")
async def test_what_is_hidden_cannot_be_read(commands: CommandRunner, workspace: Path, tmp_path: Path) -> None:
    (workspace / "secrets").mkdir()
    (workspace / "secrets/key").write_text("hush-hush")
    (workspace / ".env").write_text("hush-hush")
    (workspace / "link").symlink_to("secrets/key")
    sandbox = _hiding(workspace / "secrets", workspace / ".env")
    attempts = (
        "cat .env secrets/key link",
        "grep -r hush . ",
        "cd secrets && cat key",
        "ls -R secrets | grep key",
        f"cat /proc/$PPID/root/{workspace}/.env /proc/$PPID/cwd/{workspace}/.env",
        f"cat /proc/{os.getpid()}/root/{workspace}/.env /proc/1/root/{workspace}/.env",
        "umount .env; umount -l secrets; cat .env secrets/key",
        "unshare -Urm bash -c 'umount .env; umount -l secrets; cat .env secrets/key'",
        "unshare -Urm bash -c 'mkdir $TMPDIR/m; mount --bind / $TMPDIR/m && cat $TMPDIR/m/$PWD/.env'",
        "nsenter -t $PPID -m cat $PWD/.env",
    )

    for text in attempts:
        ran = await _ran(commands, text, workspace, sandbox)
        assert "hush-hush" not in ran.output.text().replace("grep", "")
        assert ran.exit_code != 0

    plain = await _ran(commands, "cat kept.txt; cat .env", workspace, READ_ONLY)
    assert plain.output.text() == "kept\nhush-hush", "it is only hidden where it is asked for"


@requirement("BOX-4")
async def test_what_is_hidden_is_hidden_from_what_may_write_around_it(commands: CommandRunner, workspace: Path) -> None:
    (workspace / ".env").write_text("hush-hush")
    hiding = replace(workspace_write(str(workspace)), hidden=(f"{workspace}/.env",))

    ran = await _ran(commands, "cat .env; echo x > .env; mv .env env; rm -f .env; cat .env env", workspace, hiding)

    assert "hush" not in ran.output.text()
    assert (workspace / ".env").read_text() == "hush-hush"


@requirement("BOX-4")
async def test_even_the_folder_of_the_temporary_files_can_be_hidden(commands: CommandRunner, workspace: Path) -> None:
    above = Path(tempfile.gettempdir())
    (workspace / ".env").write_text("hush-hush")

    ran = await _ran(commands, f"ls -A {above}; cat {workspace}/.env", Path("/"), _hiding(workspace / ".env", above))

    assert "hush" not in ran.output.text()
    assert ran.exit_code != 0


@requirement("BOX-4")
async def test_root_cannot_read_past_the_covers_from_the_disk(commands: CommandRunner, workspace: Path) -> None:
    disks = [str(path) for path in Path("/dev").iterdir() if path.is_block_device()]
    if os.geteuid() != 0 or not disks:
        pytest.skip("this needs root and a disk")
    (workspace / ".env").write_text("hush-hush")
    reading = f"head -c 1 {disks[0]} | wc -c; head -c 1 /dev/zero | wc -c; echo x > /dev/null"

    hiding = await _ran(commands, reading, workspace, _hiding(workspace / ".env"))

    assert hiding.output.text().split()[-2:] == ["0", "1"]
    assert hiding.exit_code == 0


async def test_the_covers_leave_no_trace(commands: CommandRunner, workspace: Path) -> None:
    before = Path("/proc/self/mountinfo").read_text()

    await _ran(commands, "true", workspace, workspace_write(str(workspace)))

    assert Path("/proc/self/mountinfo").read_text() == before


# What the machine offers


@requirement("BOX-3")
async def test_what_the_machine_offers_is_tried(tmp_path: Path) -> None:
    async with opened(tmp_path) as commands:
        found = await try_sandbox(commands)

    assert found == offers()
    assert found.confines or found.trouble


@requirement("BOX-3", "BOX-4")
def test_a_machine_that_cannot_confine_says_so(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.touch()
    nothing = Offers(trouble=("Landlock is not in this kernel.",))
    no_mounts = Offers(landlock=7, filter=True, trouble=("unshare: Operation not permitted",))

    with pytest.raises(CannotConfine, match=r"Landlock is not in this kernel\."):
        nothing.jail(READ_ONLY)
    with pytest.raises(CannotConfine, match=r"hidden must be covered, .* unshare: Operation not permitted"):
        no_mounts.jail(_hiding(hidden))
    with pytest.raises(CannotConfine, match=r"unshare: Operation not permitted"):
        no_mounts.jail(workspace_write(str(tmp_path), keep=no_mounts.keep_for(str(tmp_path), background=False)))

    assert nothing.jail(OFF) is None
    assert (jail := no_mounts.jail(READ_ONLY)) is not None
    assert (jail["mounts"], jail["metadata"]) == (False, False)
    assert nothing.gaps() == ("Commands cannot be confined.",)
    assert len(no_mounts.gaps()) == 1


# As somebody else


ORDINARY = """
import asyncio, os, sys
from dataclasses import replace
from pathlib import Path
from ferrule.host.processes.command import Command
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.sandbox import Profile, Sandbox, try_sandbox, workspace_write

async def main(home):
    (home / "work/.git").mkdir(parents=True)
    (home / "secret").write_text("hush-hush")
    env = {"PATH": os.environ["PATH"]}
    async with CommandRunner(folder=home / "output", environment=os.environ) as commands:
        offers = await try_sandbox(commands)
        print(offers.confines, offers.mounts, offers.trouble)
        sandbox = workspace_write(str(home / "work"))
        hiding = replace(sandbox, hidden=(str(home / "secret"),))
        text = "id -u; echo x > made && chmod 600 made && echo made; touch ../out; touch .git/x; cat ../secret; " \\
               "umount ../secret; unshare -Urm bash -c 'umount ../secret; cat ../secret'; kill -0 $PPID; " \\
               "grep CapEff /proc/self/status"
        ran = await commands.run(Command(text=text, cwd=str(home / "work"), env=env, jail=offers.jail(hiding)))
        print(ran.output.text())
    print(*sorted(os.listdir(home)))

asyncio.run(main(Path(sys.argv[1])))
"""


@requirement("BOX-3", "BOX-4")
def test_an_ordinary_user_is_confined_alike(tmp_path: Path) -> None:
    """In a user namespace, since only root may make mounts without one."""
    need_mounts()
    python = "/usr/bin/python3"
    if os.geteuid() != 0 or not shutil.which("setpriv") or not os.path.exists(python):
        pytest.skip("this needs root, to become somebody else, and a Python that everybody may run")
    home = Path(f"/var/tmp/ferrule-ordinary-{os.getpid()}")
    home.mkdir()
    os.chown(home, 65534, 65534)
    become = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
    done = subprocess.run(
        [*become, python, "-c", ORDINARY, str(home)],
        env={"PATH": os.defpath, "PYTHONPATH": str(Path(ferrule.__file__).parent.parent), "TMPDIR": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    shutil.rmtree(home)
    if "No module named" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip(f"that Python cannot read Ferrule: {done.stderr.splitlines()[-1]}")

    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "True True ()"
    assert lines[1:3] == ["65534", "made"]
    assert "hush" not in done.stdout
    assert "touch: cannot touch '../out': Read-only file system" in lines
    assert "touch: cannot touch '.git/x': Read-only file system" in lines
    assert lines[-3].split() == ["CapEff:", "0" * 16]
    assert lines[-1] == "secret work", "its temporary folders are gone"
