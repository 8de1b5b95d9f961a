"""What a person should see before approving, and what nobody may approve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from ..core.effects import RunsCommand, WritesPath
from ..core.verdicts import Severity
from .account import Account
from .shell_words import Word
from .word_paths import is_critical, is_disk_device, is_git_hook, is_protected, is_startup_file, is_system_file

MAX_BLIND = 1_000_000
MAX_REMOVALS = 50

_REMOVING = re.compile(r"\brm[ \t]+[^;&|\n()`]{1,200}")
_QUOTES = re.compile(r"[\"'\\]")
_RECURSIVE = re.compile(r"-[A-Za-z]*[rR][A-Za-z]*|--recursive")
_FORMATTING = re.compile(r"mkfs(\..*)?|wipefs|s?fdisk|parted|mkswap|blkdiscard|badblocks|cryptsetup|[pv][vg]remove")
_FOR_ALL = re.compile(r"[0-7]?[0-7]{2}[2367]|.*[oa]=?\+?[rx]*w.*|\+[rwx]*w[rwx]*")
_STOPPING = frozenset({"shutdown", "reboot", "halt", "poweroff", "init", "telinit"})
_SYSTEM = {
    "insmod": ("kernel", "It loads code into the kernel."),
    "modprobe": ("kernel", "It loads code into the kernel."),
    "rmmod": ("kernel", "It removes code from the kernel."),
    "sysctl": ("kernel", "It may change how the kernel behaves."),
    "crontab": ("schedule", "It changes what runs later by itself."),
    "at": ("schedule", "It makes a command run later by itself."),
    "visudo": ("privilege", "It changes who has administrator rights."),
    "usermod": ("privilege", "It changes an account."),
    "useradd": ("privilege", "It creates an account."),
    "passwd": ("privilege", "It changes a password."),
    "setenforce": ("defences", "It turns off a protection of the system."),
    "ufw": ("defences", "It changes the firewall."),
    "iptables": ("defences", "It changes the firewall."),
    "nft": ("defences", "It changes the firewall."),
    "mount": ("system", "It changes what is mounted in the file system."),
    "umount": ("system", "It changes what is mounted in the file system."),
    "systemctl": ("system", "It controls the services of the system."),
    "service": ("system", "It controls the services of the system."),
    "kill": ("processes", "It ends processes."),
    "pkill": ("processes", "It ends processes by their name."),
    "killall": ("processes", "It ends processes by their name."),
    "terraform": ("infrastructure", "It may change infrastructure."),
    "kubectl": ("infrastructure", "It may change a cluster."),
    "helm": ("infrastructure", "It may change a cluster."),
    "aws": ("infrastructure", "It may change what runs in the cloud."),
    "gcloud": ("infrastructure", "It may change what runs in the cloud."),
    "az": ("infrastructure", "It may change what runs in the cloud."),
    "nc": ("network", "It opens a network connection."),
    "ncat": ("network", "It opens a network connection."),
    "socat": ("network", "It opens a network connection."),
    "scp": ("network", "It copies files to or from another machine."),
    "rsync": ("network", "It may copy files to another machine, or delete some."),
    "ssh": ("network", "It runs commands on another machine."),
    "docker": ("containers", "It controls containers, which may contain or change anything."),
    "podman": ("containers", "It controls containers, which may contain or change anything."),
    "fallocate": ("resources", "It may fill the disk."),
    "tar": ("archive", "It may write files wherever the archive specifies."),
    "unzip": ("archive", "It may write files wherever the archive specifies."),
    "history": ("traces", "It may change the record of commands."),
}
_DESTROYING = re.compile(
    r"\b(destroy|delete|drop\s+(database|table|schema)|truncate\s+table|purge|terminate-instances)\b", re.IGNORECASE
)
_QUOTING = frozenset({"grep", "rg", "echo", "printf", "git", "find"})
_INTERPRETERS = frozenset(
    {
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "fish",
        "python",
        "python3",
        "node",
        "perl",
        "ruby",
        "php",
        "eval",
        "source",
        ".",
    }
)
_CODE = frozenset({"python", "python3", "node", "perl", "ruby", "php", "deno", "bun"})
_DESTRUCTIVE_CODE = re.compile(r"rmtree|rm\s+-\w*[rf]|unlink|removedirs|rmSync|rmdir|shred|mkfs|os\.remove")
_FETCHING = frozenset({"curl", "wget", "fetch", "lynx", "aria2c", "http", "nc", "ncat", "socat"})
_TAKEOVER = frozenset({"base64", "xxd", "openssl", "rev", "gunzip", "zcat", "tr"})


def look(words: Sequence[Word], account: Account) -> None:
    """Adds the risks of running these words."""
    name = (words[0].text or "").rpartition("/")[2]
    rest = words[1:]
    if name in ("rm", "rmdir", "unlink", "shred"):
        _removal(name, rest, account)
    elif name in ("chmod", "chown", "chgrp"):
        _permissions(name, rest, account)
    elif name == "dd":
        _dd(rest, account)
    elif name == "mv":
        _move(rest, account)
    elif _FORMATTING.fullmatch(name):
        account.risk("disk", "critical", f"{name} destroys what is on a disk.", denies=True)
    elif name in _STOPPING or (name == "systemctl" and _names(rest, "poweroff", "reboot", "halt", "isolate", "kexec")):
        account.risk("shutdown", "high", "It stops the machine.")
    elif name == "kill" and _names(rest[1:], "-1"):  # before a process, -1 is a signal
        account.risk("processes", "critical", "It ends every process of this user.")
    elif name in _CODE and _names(rest, "-c", "-e", "-p", "--eval", "-r"):
        _code(name, rest, account)
    elif name in _SYSTEM:
        kind, message = _SYSTEM[name]
        account.risk(kind, "medium", message)
    if name not in _QUOTING and _DESTROYING.search(" ".join(word.text or "" for word in rest)):
        account.risk("destruction", "high", f"{name} is asked to destroy something.")


def look_blindly(text: str, account: Account) -> None:
    """Looks for removals in a text that cannot be parsed, so that a quote cannot hide what nobody may approve."""
    for found in islice(_REMOVING.finditer(text[:MAX_BLIND]), MAX_REMOVALS):
        words = _QUOTES.sub("", found[0]).split()[1:]
        _removal("rm", [_guess_path(word, account.state.home) for word in words], account)


def _guess_path(word: str, home: str) -> Word:
    """What a word most likely names; a pattern for everything in a directory is treated as the directory."""
    named = re.sub(r"^~(?=/|$)|\$\{?HOME\b\}?", lambda _: home, word)
    return Word.of_text(re.sub(r"(^|/)\*$", r"\1.", named))


def look_at_pipe(before: Sequence[str], account: Account) -> None:
    """Adds the risk of an interpreter that runs what comes out of a pipe."""
    name = next((one for one in _names_of_started(account) if one in _INTERPRETERS), "")
    if not name:
        return
    if any(one in _FETCHING for one in before):
        account.risk("remote-code", "critical", f"{name} runs what is fetched from the network.")
    elif before:
        severity: Severity = "high" if any(one in _TAKEOVER for one in before) else "medium"
        account.risk("piped-code", severity, f"{name} runs what comes out of a pipe.")


def _names_of_started(account: Account) -> list[str]:
    return [touch.argv[0].rpartition("/")[2] for touch in account.touches if isinstance(touch, RunsCommand)]


def look_at_fetched_code(names: Sequence[str | None], account: Account) -> None:
    """Adds the risk of a command whose own words come from the network."""
    if any(risk.kind == "remote-code" for risk in account.risks):
        return
    if any(name in _FETCHING for name in names) and any(name is None or name in _INTERPRETERS for name in names):
        account.risk("remote-code", "critical", "It runs what is fetched from the network.")


def look_at_touches(account: Account) -> None:
    """Adds the risks of what is written where."""
    for touch in account.touches:
        if not isinstance(touch, WritesPath):
            continue
        path = touch.path
        if is_system_file(path):
            account.risk(
                "system-file", "critical", f"It writes {path}, which controls access to this machine.", denies=True
            )
        elif path.startswith("/proc/sysrq"):
            account.risk("kernel", "critical", "It tells the kernel to act at once.", denies=True)
        elif is_startup_file(path):
            account.risk("startup-file", "high", f"It writes {path}, which every new shell runs.")
        elif is_git_hook(path):
            account.risk("hook", "high", f"It writes {path}, which git runs.")
        elif "/.ssh" in path:
            account.risk("keys", "high", f"It writes {path}, which decides who may log in.")
        elif is_protected(path):
            account.risk("protected-path", "medium", f"It writes {path}, which is protected.")


def _removal(name: str, words: Sequence[Word], account: Account) -> None:
    recursive = any(_RECURSIVE.fullmatch(word.text or "") for word in words)
    for word in words:
        if word.text is not None and word.may_be_option:
            continue
        if word.text is None and not word.pattern:
            severity: Severity = "high" if recursive else "medium"
            if not word.prefix and word.source.rstrip("*").endswith("/"):
                account.risk("critical-removal", "critical", f"{word.shown} may be everything.")
            account.risk("removal", severity, f"It removes what {word.shown} names, which is not known.")
            continue
        for path in account.places(word):
            if is_critical(path, home=account.state.home, workspace=account.workspace) and _takes_all(
                word, recursive=recursive or path != account.workspace
            ):
                account.risk("critical-removal", "critical", f"It removes {_show(word, path)}.")
            elif is_disk_device(path):
                account.risk("disk", "critical", f"It removes {path}.", denies=True)
            elif recursive or word.pattern:
                account.risk("removal", "high", f"It removes {_show(word, path)} and all below it.")
            else:
                account.risk("removal", "medium", f"It removes {_show(word, path)}.")


def _takes_all(word: Word, *, recursive: bool) -> bool:
    """Whether a pattern names everything in its directory, or a word the directory itself."""
    if word.pattern:
        name = word.source.rpartition("/")[2].strip("\"'")
        return recursive and name in ("*", ".*", "{,.}*", "?*", ".[!.]*", "…")
    return word.text is not None


def _show(word: Word, path: str) -> str:
    return word.source if word.pattern else path


def _permissions(name: str, words: Sequence[Word], account: Account) -> None:
    recursive = any(_RECURSIVE.fullmatch(word.text or "") for word in words)
    wide = any(_FOR_ALL.fullmatch((word.text or "")[:40]) for word in words)
    for word in words:
        if word.text is None or word.may_be_option:
            continue
        for path in account.places(word):
            if recursive and is_critical(path, home=account.state.home, workspace=account.workspace):
                denies = name != "chmod" or wide
                severity: Severity = "critical" if denies else "high"
                account.risk("permissions", severity, f"It changes the rights of all below {path}.", denies=denies)
    if wide and name == "chmod":
        account.risk("permissions", "high", "It makes files writable for everybody.")
    elif any(re.search(r"[ug+]\+?s|[2-7][0-7]{3}", word.text or "") for word in words[:2]) and name == "chmod":
        account.risk("permissions", "medium", "It may give a program other rights.")


def _code(name: str, words: Sequence[Word], account: Account) -> None:
    text = " ".join(word.text if word.text is not None else word.source for word in words)
    if _DESTRUCTIVE_CODE.search(text):
        account.risk("code", "high", f"{name} runs code that seems to delete files.")
    else:
        account.risk("code", "medium", f"{name} runs code that is not analysed.")


def _dd(words: Sequence[Word], account: Account) -> None:
    for word in words:
        if (word.text or word.prefix).startswith("of="):
            target = Word.of_text(word.text[3:]) if word.text else Word(None)
            account.writes(target)
            for path in account.places(target):
                if is_disk_device(path):
                    account.risk("disk", "critical", f"dd overwrites {path}.", denies=True)


def _move(words: Sequence[Word], account: Account) -> None:
    for word in words[:-1]:
        if word.text is None or word.may_be_option:
            continue
        for path in account.places(word):
            if is_critical(path, home=account.state.home, workspace=account.workspace):
                account.risk("critical-removal", "critical", f"It moves {path} away.")


def _names(words: Sequence[Word], *names: str) -> bool:
    return any(word.text in names for word in words)
