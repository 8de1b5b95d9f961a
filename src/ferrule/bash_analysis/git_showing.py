"""What a git command may show of the files in a repository.

A rule about a path is also about its versions in the repository. Names,
commit messages and object ids are not the contents of a file; a patch is.
This
module decides, by their words, which of the commands that show contents can be
kept from showing those of some paths; `host/git_guard` enforces it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final


class Showing(Enum):
    NAMES = "names"
    """Names, ids, messages: no contents."""
    GUARDED = "guarded"
    """Contents, of which those of some paths can be left out."""
    CHANGES = "changes"
    """It changes the repository or the checkout, and prints no contents."""
    ANYTHING = "anything"


_NAMES: Final = frozenset(
    {"status", "branch", "tag", "remote", "rev-parse", "rev-list", "ls-files", "ls-tree", "describe", "config"}
    | {"version", "symbolic-ref", "for-each-ref", "show-ref", "name-rev", "merge-base", "cherry", "show-branch"}
    | {"check-ignore", "check-attr", "check-mailmap", "check-ref-format", "count-objects", "var", "verify-pack"}
)
_NAMES_OF_TWO_WORDS: Final = frozenset(
    {
        ("worktree", "list"),
        ("submodule", "status"),
        ("sparse-checkout", "list"),
        ("notes", "list"),
        ("bisect", "log"),
        ("rerere", "status"),
    }
)
_LOGS: Final = frozenset({"log", "reflog", "shortlog", "whatchanged", "stash"})
_GUARDED: Final = frozenset(
    {"show", "diff", "diff-tree", "diff-index", "diff-files", "range-diff", "grep", "blame", "annotate"}
)
_PATCH: Final = re.compile(
    r"-[A-Za-z]*[puULSGcmWB].*|--(patch|unified|binary|pickaxe|word-diff|color-words|remerge-diff|diff-merges|ext-diff)"
    r".*|--cc|--dd|--check|--function-context|--full-diff",
    re.DOTALL,
)
"""With these a log shows contents, or selects commits by them."""
_RAW: Final = re.compile(r".*%\(raw.*", re.DOTALL)
_VERBOSE: Final = re.compile(r"-[A-Za-z]*v.*|--verbose", re.DOTALL)
_SHOWING_NAMES: Final = {"status": _VERBOSE, "tag": _RAW, "branch": _RAW, "for-each-ref": _RAW}
"""With these even commands that list names show contents."""
_PAST_PATHSPECS: Final = re.compile(
    r"--(full-diff|stdin|submodule=.*|follow|literal-pathspecs|recurse-submodules)", re.DOTALL
)
"""What shows more than the paths that a command is restricted to."""
_EVERY_REFERENCE: Final = re.compile(
    r"--(all|branches|tags|remotes|glob|reflog|walk-reflogs)(=.*)?|-[a-z]*g", re.DOTALL
)
"""A reference may point to a file's contents, which `show` prints and `log` does not."""
_RANGE_OF_LINES: Final = re.compile(r"-L.*", re.DOTALL)
_BATCH: Final = re.compile(r"--(batch|batch-command|textconv|filters|batch-all-objects)(=.*)?", re.DOTALL)
_ABOUT_AN_OBJECT: Final = frozenset({"-t", "-s", "-e", "--batch-check"})


def changing_doubt(name: str) -> str:
    """The doubt about a known git command that changes something.

    >>> changing_doubt("commit")
    'git commit changes the repository'
    """
    return f"git {name} changes the repository"


def showing(words: Sequence[str]) -> Showing:
    """What the words after `git` may show, provided that the analysis knows their options.

    >>> showing(["log", "--oneline"]), showing(["-C", "sub", "log", "-p"]), showing(["archive", "HEAD"])
    (<Showing.NAMES: 'names'>, <Showing.GUARDED: 'guarded'>, <Showing.ANYTHING: 'anything'>)
    """
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] == "-C" else 1
    flags, rest = words[:at], list(words[at:])
    if not rest:
        return Showing.NAMES
    found = _showing_of(rest[0], rest[1:])
    if found is Showing.GUARDED and any(_PAST_PATHSPECS.fullmatch(word) for word in (*flags, *rest)):
        return Showing.ANYTHING
    return found


def _showing_of(name: str, rest: Sequence[str]) -> Showing:
    if name in _NAMES or (name, *rest[:1]) in _NAMES_OF_TWO_WORDS:
        showing_names = _SHOWING_NAMES.get(name)
        shows = showing_names is not None and any(map(showing_names.fullmatch, rest))
        return Showing.ANYTHING if shows else Showing.NAMES
    if name in _LOGS and (name != "stash" or rest[:1] == ["list"]):
        if not any(map(_PATCH.fullmatch, rest)):
            return Showing.NAMES
        takes_paths = name != "stash" and not any(map(_RANGE_OF_LINES.fullmatch, rest))
        return Showing.GUARDED if takes_paths else Showing.ANYTHING
    if name == "cat-file":
        return _showing_of_cat_file(rest)
    if name == "show" and any(map(_EVERY_REFERENCE.fullmatch, rest)):
        return Showing.ANYTHING
    if name in ("show", "diff-tree") and any(map(_RANGE_OF_LINES.fullmatch, rest)):
        return Showing.ANYTHING
    return Showing.GUARDED if name in _GUARDED else Showing.ANYTHING


def _showing_of_cat_file(rest: Sequence[str]) -> Showing:
    if any(map(_BATCH.fullmatch, rest)):
        return Showing.ANYTHING
    return Showing.NAMES if any(word.partition("=")[0] in _ABOUT_AN_OBJECT for word in rest) else Showing.GUARDED
