"""git without the programs that a repository's configuration names, by its environment alone.

git takes settings from GIT_CONFIG_COUNT and its companions over those of any
file, and hands them on to what it starts. Some settings have fixed names;
filters and drivers have names that anybody can choose, so the configured names
are listed first. Listing runs nothing of the repository's.

What it costs: a file that a clean filter would have changed (git-lfs) may show
as modified, and changes inside submodules are not looked at.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Mapping

LISTING_SECONDS = 10.0

PLAIN_DIFF = (
    'plain() { printf "diff --git a/%s b/%s\\n" "$1" "$1"; '
    'diff -u --label "a/$1" --label "b/$1" -- "$2" "$5"; true; }; plain'
)
"""Replaces an external diff, since git does not accept an empty one: shows what git would show without it."""

ALWAYS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "log.showSignature": "false",
    "protocol.ext.allow": "never",
    "diff.ignoreSubmodules": "dirty",
}
WHERE_CONFIGURED = (
    (r"filter\..+\.(clean|smudge|process)", ""),
    (r"filter\..+\.required", "false"),
    (r"diff\.external|diff\..+\.command", PLAIN_DIFF),
    (r"diff\..+\.textconv", "cat"),
    (r"submodule\..+\.ignore", "dirty"),
    (r"merge\..+\.driver|(diff|merge)tool\..+\.cmd", "false"),
    (r"pager\..+", "false"),
    (r"interactive\.difffilter", "cat"),
    (r"(core|sequence)\.editor|core\.alternaterefscommand|trailer\..+\.(command|cmd)", "true"),
    (r"core\.askpass|browser\..+\.(cmd|path)", "false"),
    (r"core\.sshcommand", "ssh"),
    (r"core\.gitproxy|credential\.(.+\.)?helper|remote\..+\.vcs|gpg\.ssh\.defaultkeycommand", ""),
    (r"remote\..+\.uploadpack", "git-upload-pack"),
    (r"remote\..+\.receivepack", "git-receive-pack"),
    (r"gpg\.(openpgp\.)?program", "gpg"),
    (r"gpg\.x509\.program", "gpgsm"),
    (r"gpg\.ssh\.program", "ssh-keygen"),
    (r"tar\..+\.command", "gzip -cn"),
    (r"man\.viewer|man\..+\.(cmd|path)", "man"),
)
"""Settings that name a program, as git lists them, and what each is set to instead."""

FIXED = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
DROPPED = re.compile(
    r"GIT_(EXTERNAL_DIFF|CONFIG_PARAMETERS|SSH|SSH_COMMAND|PROXY_COMMAND|TRACE.*|CONFIG_(COUNT|KEY_\d+|VALUE_\d+))"
    r"|RIPGREP_CONFIG_PATH"
)
"""What names programs or files to write from the outside; settings given this way are taken up again."""


class CannotList(Exception):
    """git did not list its configuration, so it is not known what it would run."""


async def reading_environment(environment: Mapping[str, str], *folders: str) -> dict[str, str]:
    """`environment` for a command that only reads and may call git in these folders. Raises `CannotList`."""
    program = shutil.which("git", path=environment.get("PATH", os.defpath))
    if program is None:
        return neutralise(environment, ())
    quiet = neutralise(environment, ())
    listed = await asyncio.gather(*(_configured_programs(program, folder, quiet) for folder in dict.fromkeys(folders)))
    return neutralise(environment, {key for keys in listed for key in keys})


def neutralise(environment: Mapping[str, str], configured: Iterable[str]) -> dict[str, str]:
    """
    >>> neutralise({}, ["filter.lfs.clean"])["GIT_CONFIG_KEY_6"]
    'filter.lfs.clean'
    """
    settings = [*_settings_in(environment), *ALWAYS.items()]
    for key in sorted(configured):
        lowered = _normalise_key(key)
        settings += [(key, value) for pattern, value in WHERE_CONFIGURED if re.fullmatch(pattern, lowered, re.DOTALL)]
    numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        numbered |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    kept = {name: value for name, value in environment.items() if not DROPPED.fullmatch(name)}
    return kept | FIXED | numbered


def _settings_in(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """What the environment already sets this way; a later setting overrides an earlier one."""
    count = environment.get("GIT_CONFIG_COUNT", "")
    pairs = (
        (environment.get(f"GIT_CONFIG_KEY_{number}"), environment.get(f"GIT_CONFIG_VALUE_{number}"))
        for number in range(int(count) if count.isdecimal() and len(count) < 5 else 0)
    )
    return [(key, value) for key, value in pairs if key and value is not None]


def _normalise_key(key: str) -> str:
    """The first and the last part are the same in any case; what is between is a name."""
    first, _, rest = key.partition(".")
    middle, dot, last = rest.rpartition(".")
    return f"{first.lower()}.{middle}{dot}{last.lower()}"


async def _configured_programs(program: str, folder: str, environment: Mapping[str, str]) -> set[str]:
    keys = await _list_settings((program, "-C", folder, "config"), environment)
    modules = os.path.join(_top(folder), ".gitmodules")
    if os.path.isfile(modules):
        for key in await _list_settings((program, "config", "--file", modules), environment):
            if (lowered := _normalise_key(key)).startswith("submodule."):
                keys.add(f"{lowered.rpartition('.')[0]}.ignore")
    return keys


async def _list_settings(command: tuple[str, ...], environment: Mapping[str, str]) -> set[str]:
    process = await asyncio.create_subprocess_exec(
        *command, "--list", "--name-only", "-z", env=environment, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(LISTING_SECONDS):
            output, words = await process.communicate()
    except TimeoutError:
        raise CannotList(f"git did not list its configuration within {LISTING_SECONDS:g} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise CannotList(f"git could not list its configuration: {words.decode('utf-8', 'replace').strip()}")
    return {os.fsdecode(key) for key in output.split(b"\0") if key}


def _top(folder: str) -> str:
    """The nearest folder above that is a checkout; the folder itself where none is."""
    place = os.path.abspath(folder)
    while not os.path.exists(os.path.join(place, ".git")):
        if (above := os.path.dirname(place)) == place:
            return folder
        place = above
    return place
