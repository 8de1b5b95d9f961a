"""What a command text does with git repositories, as far as a guard can restrict it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ..core.effects import ReadsPath, RunsCommand, Touch
from ..core.values import plain_value
from .analysis import Analysis, CommandReport
from .git_showing import Showing, changing_doubt, showing
from .names_only import NAMES_ONLY

_CHANGES_THE_REPOSITORY: Final = re.compile(changing_doubt("[a-z -]+"))


@plain_value
class GitUse:
    """What a whole command text does with repositories."""

    guarded: bool = False
    """Whether all of it is understood, and no git command of it shows more than a guard can leave out."""
    changes: bool = False
    shows: bool = False
    """Whether it shows contents, or compares with files that may be hidden from it."""
    folders: tuple[str, ...] = ()
    """Where its git commands run."""
    reads: tuple[str, ...] = ()
    """Files whose contents are read: by its other programs, and by git outside a repository."""


NO_GIT: Final = GitUse()


def git_use(analysis: Analysis) -> GitUse:
    """What the text does with repositories; unguarded unless every part of it is understood."""
    uses = [_use_of(report) for report in analysis.commands]
    folders = tuple(dict.fromkeys(folder for use in uses for folder in use.folders))
    told = {doubt for report in analysis.commands for doubt in report.doubts}
    understood = all(any(reason.endswith(f": {doubt}.") for doubt in told) for reason in analysis.reasons)
    return GitUse(
        guarded=understood and bool(folders) and all(use.guarded for use in uses),
        changes=any(use.changes for use in uses),
        shows=any(use.shows for use in uses),
        folders=folders,
        reads=tuple(dict.fromkeys(path for use in uses for path in use.reads)),
    )


def _use_of(report: CommandReport) -> GitUse:
    changes = (
        len(report.doubts) == 1
        and _CHANGES_THE_REPOSITORY.fullmatch(report.doubts[0]) is not None
        and report.argv[:1] == ("git",)
    )
    guarded, shows = changes or not report.doubts, False
    folders: list[str] = []
    reads = [touch.path for touch in report.by_shell if isinstance(touch, ReadsPath)]
    for argv, paths in _by_program(report.touches):
        name = argv[0].rpartition("/")[2]
        if name == "git" or name.startswith("git-"):
            folders += paths
            reads += [path for path in paths if "--no-index" in argv or "/.git/" in f"{path}/"]
            kind = Showing.CHANGES if changes else showing(argv[1:])
            guarded = guarded and argv[0] == "git" and kind is not Showing.ANYTHING
            shows = shows or kind is Showing.GUARDED or "status" in argv
        elif name not in NAMES_ONLY:
            reads += paths
    return GitUse(guarded, changes, shows, tuple(folders), tuple(reads))


def _by_program(touches: Sequence[Touch]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Each program with what it reads."""
    argv: tuple[str, ...] = ()
    paths: list[str] = []
    for touch in touches:
        if isinstance(touch, RunsCommand):
            if argv:
                yield argv, paths
            argv, paths = touch.argv, []
        elif isinstance(touch, ReadsPath):
            paths.append(touch.real or touch.path)
    if argv:
        yield argv, paths
