"""What a command may touch, and what this machine can hold it to.

A sandbox is a value; `Offers.jail` turns it into what the spawner enforces, or
says why this machine cannot. The quick way is Landlock with a system call
filter: it holds a command to what it may read, and keeps it from writing. Which
names it may change takes more: a layer over the workspace, from which only
declared names are carried over, or a supervisor. Where everything may be read
or written but for some paths, these are covered in a mount namespace.

What is hidden by its path is not hidden under another name of the same file (a
hard link).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...core.values import named_value
from .command import Changes, Command, CommandFailed
from .command_runner import CommandRunner
from .spawner import landlock, seccomp

if TYPE_CHECKING:
    from .spawner.protocol import Jail

READS_SINCE = 3
"""Before this version of Landlock a file that may be read could be emptied."""
TRIAL_SECONDS = 10.0
PROTECTED_FOLDERS = (
    ".git", ".config/git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn", ".claude",
    ".ferrule",
)  # fmt: skip
PROTECTED_FILES = (
    ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout",
    ".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".profile", ".envrc", ".npmrc", ".yarnrc", ".yarnrc.yml",
    ".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.cjs", "bunfig.toml", ".bazelrc", ".bazelversion", ".bazeliskrc",
    ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json",
    "gradle/wrapper/gradle-wrapper.properties", ".mvn/wrapper/maven-wrapper.properties", ".devcontainer.json",
    ".ripgreprc", "pyrightconfig.json", ".mcp.json", ".claude.json",
)  # fmt: skip
WORKTREES = ".claude/worktrees"
"""The one place below a protected folder where work is done."""


Keep: TypeAlias = Literal["", "overlay", "supervisor"]
"""How a command is held to the names it declared. Overlay: it works on a layer, and what it declared is carried over
when it ended. Supervisor: each call that changes a name is carried out for it. Empty: not possible here."""


class Profile(StrEnum):
    READ_ONLY = "read-only"
    """Writes nothing but its own temporary folder, and reaches nobody."""
    WORKSPACE_WRITE = "workspace-write"
    """Writes the workspace, its temporary folder and what was declared, but never what is protected."""
    OFF = "off"


class CannotConfine(Exception):
    """This machine cannot hold a command to its sandbox. The message says what is missing."""


@named_value
class Sandbox:
    profile: Profile
    writable: tuple[str, ...] = ()
    """Files and folders. One that does not exist grants nothing: name the folder it is to be in."""
    hidden: tuple[str, ...] = ()
    """What a rule denies to read."""
    protected: tuple[str, ...] = ()
    """What stays as it is though it lies in something writable."""
    network: bool = False
    unix_sockets: bool = False
    readable: tuple[str, ...] | None = None
    """All that may be read or executed, with what lies below; what is `hidden` in it may not. `None`: everything."""
    declared: tuple[tuple[str, bool], ...] | None = None
    """The only names that may change, each with whether all below it may as well; `None` goes by `writable`.

    Absolute, below `workspace`, with the links of their parents resolved. Missing parents may be made."""
    keep: Keep = ""
    """How declared names are held to, from `Offers.keep_for`; needed where something is declared."""
    workspace: tuple[str, ...] = ()
    """The folders in which declared names lie: the project's, and those added to it."""
    reopened: tuple[str, ...] = ()
    """Declared names that may change though they are protected: a rule spelled them."""


READ_ONLY = Sandbox(profile=Profile.READ_ONLY)
EVERYWHERE = Sandbox(profile=Profile.WORKSPACE_WRITE, writable=("/",), network=True, unix_sockets=True)
"""Nothing is kept from it but what is hidden and protected."""
OFF = Sandbox(profile=Profile.OFF)


def workspace_write(workspace: str, *more: str, keep: Keep = "overlay") -> Sandbox:
    """The workspace and `more` may be written, what is protected in them may not, whether it exists or not."""
    folders = tuple(map(os.path.realpath, (workspace, *more)))
    return Sandbox(
        profile=Profile.WORKSPACE_WRITE,
        protected=tuple(path for folder in folders for path in protected_paths_in(folder)),
        declared=tuple((folder, True) for folder in folders),
        keep=keep,
        workspace=folders,
    )


def protected_paths_in(folder: str) -> Iterator[str]:
    """The protected paths of a folder and of the folders right in it, whether they exist or not."""
    for place in (folder, *_folders_in(folder)):
        for name in (*PROTECTED_FOLDERS, *PROTECTED_FILES):
            path = os.path.join(place, name)
            if place == folder or os.path.lexists(path):
                yield path


def is_protected(path: str, folder: str) -> bool:
    """Whether the path, or a folder of it below the given one, has a protected name."""
    inside = f"/{path[len(folder) :].strip('/').casefold()}/"
    return any(f"/{name.casefold()}/" in inside for name in (*PROTECTED_FOLDERS, *PROTECTED_FILES))


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


@named_value
class Offers:
    """What was tried on this machine and worked."""

    landlock: int = 0
    """The version of Landlock; 0 where it does not confine."""
    filter: bool = False
    """Whether system calls can be refused."""
    mounts: bool = False
    """Whether paths can be covered."""
    trouble: tuple[str, ...] = ()
    """Why something above is missing."""
    overlays: frozenset[str] = frozenset()
    """The workspaces where a layer was tried and worked."""
    tried_workspaces: frozenset[str] = frozenset()
    """All where it was tried: see `try_workspace`."""
    supervisor: bool = False
    """Whether calls that change a name can be carried out for a command."""

    @property
    def confines(self) -> bool:
        return self.landlock > 0 and self.filter

    @property
    def reads(self) -> bool:
        """Whether a command can be held to what it may read."""
        return self.landlock >= READS_SINCE and self.filter

    def keep_for(self, workspace: str, *, background: bool, names: Iterable[str] = ()) -> Keep:
        """How these names, declared below the workspace, are held to; a layer is of no use before the command ended."""
        if not self.reads:
            return ""
        root = os.path.realpath(workspace)
        if not background and root in self.overlays and not any(_is_of_others(name, root) for name in names):
            return "overlay"
        return "supervisor" if self.supervisor else ""

    def gaps(self) -> tuple[str, ...]:
        """What a confined command can still do here that it should not."""
        if not self.confines:
            return ("Commands cannot be confined.",)
        reads = "A confined command can read all that this user can: holding it to less needs Linux 6.2."
        covers = "Nothing can be hidden in what a command may read, or protected in what it may write."
        return (reads,) * (not self.reads) + (covers,) * (not self.mounts)

    def jail(self, sandbox: Sandbox) -> Jail | None:
        """What the spawner is to enforce; `None` for a sandbox that is off. Raises `CannotConfine`."""
        if sandbox.profile is Profile.OFF:
            return None
        if not self.confines:
            raise CannotConfine("; ".join(self.trouble) or "This machine offers no sandbox.")
        if sandbox.readable is not None and not self.reads:
            raise CannotConfine(f"Landlock {self.landlock} cannot hold a command to what it may read (Linux 6.2 can).")
        if sandbox.declared and not sandbox.keep:
            raise CannotConfine("; ".join(self.trouble) or "Nothing here can hold a command to the names it declared.")
        keep = sandbox.keep if sandbox.declared else ""
        writable = [os.path.realpath(path) for path in sandbox.writable] if _may_write(sandbox) and not keep else []
        hidden = _existing(sandbox.hidden)
        protected = [path for path in _existing(sandbox.protected) if _is_below(path, writable)]
        covered = [] if keep else protected if sandbox.readable is not None and not writable else hidden + protected
        if not self.mounts and covered:
            raise CannotConfine(
                f"{covered[0]} must be covered, but mounts cannot be made here: {'; '.join(self.trouble)}"
            )
        return {
            "mounts": self.mounts and not keep and bool(covered or writable),
            "writable": writable,
            "hidden": hidden,
            "protected": [*map(_resolve, sandbox.protected)] if keep else protected,
            "reopened": [
                *(path for folder in sandbox.workspace if os.path.isdir(path := os.path.join(folder, WORKTREES))),
                *sandbox.reopened,
            ],
            "metadata": bool(keep) or (self.mounts and bool(writable)),
            "network": sandbox.network,
            "unix_sockets": sandbox.unix_sockets,
            "landlock": self.landlock,
            "readable": _readable(sandbox, keep, hidden),
            "declared": None if sandbox.declared is None else list(sandbox.declared),
            "keep": keep,
            "workspace": [os.path.realpath(path) for path in sandbox.workspace] if keep else [],
            "protected_names": [*PROTECTED_FOLDERS, *PROTECTED_FILES] if keep else [],
        }


async def try_sandbox(commands: CommandRunner) -> Offers:
    """What this machine offers, by trying it: commands that must fail are run, and must fail."""
    version = landlock.version()
    if not version:
        return Offers(trouble=("Landlock is not in this kernel, or is switched off (Linux 5.13 has it).",))
    if not seccomp.is_supported():
        return Offers(trouble=(f"System calls are not known for {os.uname().machine}.",))
    async with commands.temporary_folder() as folder:
        offers = Offers(landlock=version, filter=True)
        if trouble := await _failure(commands, offers, READ_ONLY, Path(folder)):
            return Offers(trouble=(f"Landlock and the system call filter do not confine: {trouble}",))
        offers = await _with_supervisor(commands, offers, Path(folder))
        secret = Path(folder, "secret")
        secret.write_text("open")
        covering = Sandbox(profile=Profile.WORKSPACE_WRITE, writable=(folder,), protected=(str(secret),))
        if trouble := await _failure(commands, replace(offers, mounts=True), covering, Path(folder)):
            return replace(offers, trouble=(*offers.trouble, f"Mount namespaces do not work: {trouble}"))
    return replace(offers, mounts=True)


async def _with_supervisor(commands: CommandRunner, offers: Offers, folder: Path) -> Offers:
    """The same offers, with whether a supervisor can hold a command to one declared name."""
    if not offers.reads:
        return offers
    declared = folder / "declared"
    sandbox = Sandbox(
        profile=Profile.READ_ONLY, declared=((str(declared), False),), keep="supervisor", workspace=(str(folder),)
    )
    trouble = await _failure(commands, offers, sandbox, folder, DECLARED=str(declared))
    if not trouble and not declared.exists():
        trouble = "a name that was declared could not be written."
    if trouble:
        return replace(offers, trouble=(f"Calls cannot be supervised: {trouble}",))
    return replace(offers, supervisor=True)


async def try_workspace(commands: CommandRunner, offers: Offers, workspace: str) -> Offers:
    """The same offers, with whether a layer can be laid over this workspace. Nothing in it changes."""
    root = os.path.realpath(workspace)
    if not offers.reads or root in offers.tried_workspaces:
        return offers
    trouble = await _layer_trouble(commands, offers, root)
    return replace(
        offers,
        tried_workspaces=offers.tried_workspaces | {root},
        overlays=offers.overlays if trouble else offers.overlays | {root},
        trouble=(*offers.trouble, *([trouble] if trouble else [])),
    )


async def _layer_trouble(commands: CommandRunner, offers: Offers, root: str) -> str:
    """Why no layer can be laid over the folder; empty if one can."""
    target = os.path.join(root, f".ferrule-try-{os.urandom(6).hex()}")
    declared = ((f"{target}-declared", False),)
    sandbox = Sandbox(profile=Profile.WORKSPACE_WRITE, declared=declared, keep="overlay", workspace=(root,))
    command = Command(text='echo x > "$TARGET"', cwd=root, env={"TARGET": target}, jail=offers.jail(sandbox))
    try:
        ran = await commands.run(command, timeout=TRIAL_SECONDS)
    except CommandFailed as error:
        return f"No layer can be laid over {root}: {error}"
    holds = ran.exit_code == 0 and ran.changes == Changes(dropped=(target,), totals={"dropped": 1})
    return "" if holds and not os.path.lexists(target) else f"A layer over {root} does not hold what is written there."


async def _failure(commands: CommandRunner, offers: Offers, sandbox: Sandbox, folder: Path, **variables: str) -> str:
    """What went wrong: where it could not be set up, or where a write got through. Empty if nothing."""
    target = folder / "secret"
    target.write_text("closed")
    text = 'echo through > "$TARGET"; chmod 777 "$TARGET"; echo "$(< "$TARGET")"; echo ok > "${DECLARED:-$TMPDIR/own}"'
    env = {"PATH": os.defpath, "TARGET": str(target), **variables}
    mode = target.stat().st_mode
    try:
        command = Command(text=text, cwd=str(folder), env=env, jail=offers.jail(sandbox))
        ran = await commands.run(command, timeout=TRIAL_SECONDS)
    except CommandFailed as error:
        return str(error)
    if target.read_text() != "closed" or target.stat().st_mode != mode:
        return "a write that had to fail went through."
    return "" if ran.exit_code == 0 and "closed" in ran.output.text() else ran.output.text().strip()


def _readable(sandbox: Sandbox, keep: Keep, hidden: list[str]) -> list[str] | None:
    """A supervised command has no covers, so what is hidden from it is left out of what it may read."""
    if sandbox.readable is None:
        return ["/"] if keep == "supervisor" and hidden else None
    return _existing(sandbox.readable)


def _may_write(sandbox: Sandbox) -> bool:
    return sandbox.profile is Profile.WORKSPACE_WRITE


def _existing(paths: Iterable[str]) -> list[str]:
    return [real for path in paths if os.path.lexists(real := os.path.realpath(path))]


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _is_of_others(path: str, root: str) -> bool:
    """Whether an ordinary user's layer cannot take it: in it no other user or group has a number."""
    own = os.geteuid(), os.getegid()
    while own[0] and path.startswith(root + "/"):
        try:
            found = os.lstat(path)
        except OSError:
            found = None
        if found is not None and (found.st_uid, found.st_gid) != own:
            return True
        path = os.path.dirname(path)
    return False


def _resolve(path: str) -> str:
    """With the links of its parents resolved; the name itself need not exist."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
