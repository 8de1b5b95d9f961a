"""The files that decide what Ferrule may do, as protected paths: the environment determines where they are."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from ..settings.levels import CONFIG_VARIABLE
from ..settings.settings_files import MANAGED_FOLDERS, NAMES
from ..settings.trust_items import is_below
from .protected import PathLists

_CONFIG_PARTS: Final = (
    *NAMES, ".claude.json", "CLAUDE.md", "agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills",
)  # fmt: skip
"""The files in the user's own folder that decide or run. `~/.claude` itself is protected by its name."""


def with_deciding_files(lists: PathLists, state_folder: str, environment: Mapping[str, str]) -> PathLists:
    """With the trust store and the rest of the state folder, a moved config folder, and the managed settings."""
    paths = dict.fromkeys(form for path in _paths(state_folder, environment) for form in (path, os.path.realpath(path)))
    return replace(lists, run_later=(*lists.run_later, *map(glob.escape, paths)))


def deciding_files_in(folder: str, state_folder: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Those below a folder, as patterns for a sandbox that may write it."""
    real = os.path.realpath(folder)
    paths = (os.path.realpath(path) for path in _paths(state_folder, environment))
    return tuple(glob.escape(path) for path in paths if is_below(path, real))


def _paths(state_folder: str, environment: Mapping[str, str]) -> Iterator[str]:
    yield os.path.abspath(state_folder)
    yield from MANAGED_FOLDERS
    moved = environment.get(CONFIG_VARIABLE, "")
    if os.path.isabs(moved):
        yield from (os.path.join(moved, part) for part in _CONFIG_PARTS)
