"""Branch, latest commits and changed files of a checkout, read from its files.

Git itself is never started: it reads the repository's configuration, and
that can name programs to run.
"""

from __future__ import annotations

import os
import re
import struct
from typing import Final

from ..core.values import named_value
from ..host.git.checkouts import checkout_of, first_line, read_small
from .git_index import Changed, find_changed_files
from .git_objects import Objects, UnreadableObject

COMMITS: Final = 5
_NAME: Final = re.compile(r"[0-9a-f]{40}")
_DEEPEST: Final = 5
MOST_PACKED: Final = 1 << 20
"""Bytes of packed references that are looked through."""
_SUBJECT: Final = 100


@named_value
class GitFacts:
    root: str
    branch: str | None
    """`None` where no branch is checked out."""
    commits: tuple[str, ...] = ()
    """The latest first: the short name and the first line of each."""
    changed: Changed | None = None
    """`None` where it is not known."""


def git_facts(folder: str) -> GitFacts | None:
    """`None` outside of a checkout. What cannot be read is left out; nothing here raises."""
    checkout = checkout_of(folder)
    if checkout is None:
        return None
    own = _git_folder(checkout.root)
    common = _common_folder(own)
    head = first_line(os.path.join(own, "HEAD")) or ""
    return GitFacts(
        root=checkout.root,
        branch=_branch_in(head),
        commits=_commits(common, _commit_of(head, own, common)),
        changed=find_changed_files(checkout.root, os.path.join(own, "index")),
    )


def checked_out_branch(folder: str) -> str:
    """Empty outside of a checkout, and where no branch is checked out."""
    checkout = checkout_of(folder)
    head = first_line(os.path.join(_git_folder(checkout.root), "HEAD")) if checkout else None
    return _branch_in(head or "") or ""


def _branch_in(head: str) -> str | None:
    return head.removeprefix("ref: ").removeprefix("refs/heads/") if head.startswith("ref: ") else None


def _git_folder(root: str) -> str:
    entry = os.path.join(root, ".git")
    pointer = first_line(entry) if os.path.isfile(entry) else None
    return os.path.join(root, pointer.removeprefix("gitdir: ")) if pointer else entry


def _common_folder(own: str) -> str:
    shared = first_line(os.path.join(own, "commondir"))
    return os.path.normpath(os.path.join(own, shared)) if shared else own


def _commit_of(head: str, own: str, common: str) -> str | None:
    """What HEAD, or the branch it names, points at."""
    for _ in range(_DEEPEST):
        if not head.startswith("ref: "):
            return head if _NAME.fullmatch(head) else None
        reference = head.removeprefix("ref: ")
        if ".." in reference.split("/") or reference.startswith("/"):
            return None
        loose = first_line(os.path.join(own, reference)) or first_line(os.path.join(common, reference))
        head = loose or _find_packed_reference(os.path.join(common, "packed-refs"), reference) or ""
    return None


def _find_packed_reference(path: str, reference: str) -> str | None:
    for line in (read_small(path, MOST_PACKED) or "").split("\n"):
        name, _, known = line.partition(" ")
        if known == reference:
            return name
    return None


def _commits(common: str, name: str | None) -> tuple[str, ...]:
    found: list[str] = []
    try:
        objects = Objects(os.path.join(common, "objects"))
        while name is not None and len(found) < COMMITS:
            head, _, message = objects.commit(name).partition(b"\n\n")
            subject = message.decode("utf-8", "replace").strip().split("\n", 1)[0]
            found.append(f"{name[:7]} {subject[:_SUBJECT]}".rstrip())
            parents = [line[7:] for line in head.decode("ascii", "replace").split("\n") if line.startswith("parent ")]
            name = parents[0] if parents and _NAME.fullmatch(parents[0]) else None
    except (UnreadableObject, OSError, ValueError, IndexError, struct.error):
        pass  # a shallow clone ends somewhere; a broken repository is no reason not to work
    return tuple(found)
