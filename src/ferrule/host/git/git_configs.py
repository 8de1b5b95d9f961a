"""The user's own configuration files of git, with those that they include: git ends where it cannot read one.

Only what the user's files name is followed. A repository's configuration can
name any file, so it is not trusted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

MOST_FILES: Final = 32
LARGEST: Final = 1 << 20
"""Bytes of one file that are looked at."""
_SECTION: Final = re.compile(r"\s*\[\s*([A-Za-z0-9.-]+)")
_FILES: Final = re.compile(
    r"""\s*(path|excludesfile|attributesfile|template|allowedsignersfile|mailmap|file)\s*=\s*"?([^"\n]*)""",
    re.IGNORECASE,
)
_NAMING: Final = frozenset({"include", "includeif", "core", "commit", "gpg", "mailmap"})
"""Sections in which such a key names a file that git reads by itself."""


def user_git_files(environment: Mapping[str, str], home: str) -> tuple[str, ...]:
    """Those that exist."""
    found: dict[str, None] = {}
    waiting = [path for path in _first(environment, home) if path]
    while waiting and len(found) < MOST_FILES:
        path = waiting.pop(0)
        if path in found or not os.path.isfile(path):
            continue
        found[path] = None
        waiting += _names_in(path, home)
    return tuple(found)


def _first(environment: Mapping[str, str], home: str) -> Iterator[str]:
    own = os.path.join(environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git")
    chosen = environment.get("GIT_CONFIG_GLOBAL")
    yield from (chosen,) if chosen else (os.path.join(home, ".gitconfig"), os.path.join(own, "config"))
    yield environment.get("GIT_CONFIG_SYSTEM", "")
    yield os.path.join(own, "ignore")
    yield os.path.join(own, "attributes")


def _names_in(path: str, home: str) -> Iterator[str]:
    """What the file includes, and the lists that it names."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(LARGEST)
    except OSError:
        return
    section = ""
    for line in text.splitlines():
        if head := _SECTION.match(line):
            section = head[1].lower().partition(".")[0]
            line = line.partition("]")[2]
        if section in _NAMING and (named := _FILES.match(line)):
            value = re.split(r"\s[#;]", named[2])[0].strip()
            if value.startswith("~/"):
                value = os.path.join(home, value[2:])
            if value and not value.startswith("~"):
                yield os.path.normpath(os.path.join(os.path.dirname(path), value))
