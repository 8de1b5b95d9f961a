"""Paths by their text alone: nothing here looks at the disk."""

from __future__ import annotations

import posixpath
import re

ANYWHERE = "/"
"""The path for an unknown one: the whole tree."""

_SIMPLE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_NOTHING = re.compile(r"/dev/(null|stdin|stdout|stderr|fd/[0-2])|/proc/self/fd/[0-2]")
_OF_A_PROCESS = re.compile(r"/proc/[^/]+/(task/[^/]+/)?(cwd|root|fd|map_files|exe)(/.*)?|/dev/fd(/.*)?")
_NETWORK = re.compile(r"/dev/(tcp|udp)/([^/]*)/?.*")
_PROTECTED_FOLDERS = frozenset(
    {".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn", ".claude", ".ferrule", ".ssh"}
    | {".gnupg", ".aws", ".kube", ".docker", "git"}
)
_STARTUP_FILES = frozenset(
    {".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout", ".zshrc", ".zprofile", ".zshenv"}
    | {".zlogin", ".zlogout", ".profile", ".envrc", ".inputrc", ".xinitrc", ".xprofile"}
)
_PROTECTED_FILES = _STARTUP_FILES | frozenset(
    {".gitconfig", ".gitmodules", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml", ".bazelrc"}
    | {".bazelversion", ".bazeliskrc", ".pre-commit-config.yaml", "gradle-wrapper.properties", ".netrc", ".pypirc"}
    | {"maven-wrapper.properties", ".devcontainer.json", ".ripgreprc", "pyrightconfig.json", ".mcp.json"}
    | {".claude.json"}
)
_SYSTEM_FILES = re.compile(
    r"/etc/(passwd|shadow|gshadow|group|sudoers(\.d(/.*)?)?|ssh(/.*)?|pam\.d(/.*)?|crontab|cron\..*|ld\.so\.preload|hosts)"
)
_DEVICE = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|md|dm-|mapper/|loop|mem|kmem|port)[^/]*(/.*)?")


VOLUMES = ("/private/", "/System/Volumes/Data/")
"""Where macOS keeps folders that the root links to."""
_VITAL = frozenset(
    {
        "/usr/local",
        "/usr/bin",
        "/usr/sbin",
        "/usr/lib",
        "/usr/lib64",
        "/usr/libexec",
        "/usr/share",
        "/var/lib",
        "/var/log",
    }
    | {"/var/db", "/var/root", "/boot/efi", "/lib/modules", "/etc/ssh", "/etc/pam.d", "/etc/sudoers.d", "/etc/systemd"}
    | {"/System/Library", "/System/Volumes", "/System/Volumes/Data", "/Library/LaunchDaemons", "/Library/LaunchAgents"}
)
"""Folders below those of the root that a machine needs."""
_OF_A_USER = re.compile(r"/(home|Users|mnt/[a-z]/Users)/[^/]+|/mnt/[a-z](/(Windows|Users))?")


def absolute(path: str, base: str) -> str:
    """
    >>> absolute("../b", "/srv/a"), absolute("//etc/./x", "/srv")
    ('/srv/b', '/etc/x')
    """
    if _SIMPLE_NAME.fullmatch(path):
        return f"{base}/{path}" if base != "/" else f"/{path}"
    joined = posixpath.normpath(posixpath.join(base, path))
    return joined[1:] if joined.startswith("//") else joined


def with_dots(path: str, base: str) -> str:
    """The original form of a path with `..`, which start from the target of a preceding link. Empty for any other.

    >>> with_dots("link/../b", "/srv"), with_dots("a/b", "/srv")
    ('/srv/link/../b', '')
    """
    return posixpath.join(base, path) if ".." in path.split("/") else ""


def is_nothing(path: str) -> bool:
    """Whether reading or writing the path touches no file: the null device and the process's own streams."""
    return _NOTHING.fullmatch(path) is not None


def is_endless_or_device(path: str) -> bool:
    return path.startswith(("/dev/", "/proc/sysrq", "/sys/")) and not is_nothing(path)


def depends_on_process(path: str) -> bool:
    """Whether the path depends on the process that opens it, so that it is a different file for each."""
    return path.startswith(("/proc/", "/dev/fd")) and _OF_A_PROCESS.fullmatch(path) is not None


def network_host(path: str) -> str | None:
    """The host of a path that the shell treats as a connection."""
    found = _NETWORK.fullmatch(path)
    return found[2] if found else None


def is_disk_device(path: str) -> bool:
    return _DEVICE.fullmatch(path) is not None


def without_volume(path: str) -> str:
    """The common form of the path: macOS keeps folders of the root elsewhere, with links to them.

    >>> without_volume("/private/etc/hosts"), without_volume("/privateer")
    ('/etc/hosts', '/privateer')
    """
    for volume in VOLUMES if path.startswith(VOLUMES) else ():
        if path.startswith(volume):
            return path[len(volume) - 1 :]
    return path


def is_critical(path: str, *, home: str, workspace: str) -> bool:
    """Whether losing the path loses everything: the root, what is in it, the home, the workspace and its parents.

    >>> is_critical("/usr", home="/home/u", workspace="/srv/repo")
    True
    """
    path, home, workspace = without_volume(path), without_volume(home), without_volume(workspace)
    return (
        posixpath.dirname(path) == "/"
        or path in (home, posixpath.dirname(home))
        or workspace == path
        or workspace.startswith(f"{path.rstrip('/')}/")
        or path in _VITAL
        or _OF_A_USER.fullmatch(path) is not None
    )


def is_startup_file(path: str) -> bool:
    return posixpath.basename(path) in _STARTUP_FILES


def is_git_hook(path: str) -> bool:
    return "/.git/hooks" in path or "/.husky" in path


def is_protected(path: str) -> bool:
    """Whether what is written there runs later, or controls access."""
    *folders, name = path.split("/")
    if name in _PROTECTED_FILES or name in _PROTECTED_FOLDERS - {"git"} or name.startswith((".pnp.", "lefthook.")):
        return True
    return any(
        folder in _PROTECTED_FOLDERS and (folder != "git" or folders[index - 1] == ".config")
        for index, folder in enumerate(folders)
    )


def is_system_file(path: str) -> bool:
    return _SYSTEM_FILES.fullmatch(without_volume(path)) is not None
