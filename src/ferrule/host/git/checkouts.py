"""Which git checkout a folder belongs to, found by looking and never by running git.

Git reads the configuration of the repository it is started in, and that can
name programs to run; here nothing of a repository is believed but where it is.
"""

from __future__ import annotations

import os

from ...core.values import plain_value


@plain_value
class Checkout:
    root: str
    """The folder that holds `.git`."""
    main: str
    """The root of the main checkout, which is `root` itself unless that is a linked worktree."""


def checkout_of(folder: str) -> Checkout | None:
    """The innermost checkout around a folder: a nested repository is a checkout of its own."""
    root = os.path.realpath(folder)
    while True:
        if found := _checkout_at(root):
            return found
        above = os.path.dirname(root)
        if above == root:
            return None
        root = above


def _checkout_at(root: str) -> Checkout | None:
    entry = os.path.join(root, ".git")
    if not os.path.lexists(entry):
        return None
    if os.path.isfile(os.path.join(entry, "HEAD")):
        return Checkout(root, root)
    pointer = first_line(entry)
    if pointer is None or not pointer.startswith("gitdir: "):
        return None
    return Checkout(root, _main_of(root, os.path.join(root, pointer.removeprefix("gitdir: "))))


def _main_of(root: str, git_folder: str) -> str:
    """Only if the repository knows of the worktree as well: anybody can write a file that points at a repository."""
    back, common = (first_line(os.path.join(git_folder, name)) for name in ("gitdir", "commondir"))
    if back is None or common is None:
        return root  # a submodule, or nothing at all
    if os.path.realpath(os.path.join(git_folder, back)) != os.path.join(root, ".git"):
        return root
    above, name = os.path.split(os.path.realpath(os.path.join(git_folder, common)))
    return above if name == ".git" else root  # a bare repository has no main checkout


def first_line(path: str) -> str | None:
    """`None` where no such regular file exists."""
    text = read_small(path)
    return None if text is None else text.split("\n", 1)[0].rstrip("\r")


def read_small(path: str, most: int = 1 << 16) -> str | None:
    """The first `most` bytes of a file of git; `None` where no such regular file exists."""
    try:
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            return os.fsdecode(file.read(most))
    except (OSError, ValueError):
        return None
