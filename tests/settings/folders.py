"""A home, a project and managed folders of their own, with real settings files in them."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferrule.core.verdicts import Behavior
from ferrule.settings.layers import BEHAVIORS, Layered, merge_entries
from ferrule.settings.levels import SettingsContext, settings_paths, surroundings
from ferrule.settings.reload import LiveSettings
from ferrule.settings.settings_entries import entries_of
from ferrule.settings.settings_loading import load
from ferrule.settings.trust_store import TrustStore


@dataclass(frozen=True, slots=True)
class Folders:
    root: Path

    @classmethod
    def made(cls, root: Path) -> Folders:
        folders = cls(root)
        for folder in (folders.home, folders.project, folders.managed, folders.own_managed):
            folder.mkdir(parents=True, exist_ok=True)
        return folders

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def managed(self) -> Path:
        return self.root / "etc" / "claude-code"

    @property
    def own_managed(self) -> Path:
        return self.root / "etc" / "ferrule"

    @property
    def store(self) -> TrustStore:
        return TrustStore(self.root / "state")

    def around(self, cwd: Path | None = None, **environment: str) -> SettingsContext:
        return surroundings(
            str(cwd or self.project),
            {"HOME": str(self.home), **environment},
            managed_folders=(str(self.managed), str(self.own_managed)),
        )

    def live(self, cwd: Path | None = None, *, trusting: bool = False) -> LiveSettings:
        return LiveSettings(self.around(cwd), self.store, trusting=trusting)

    def all_of_it(self, cwd: Path | None = None) -> Layered:
        """As if everything were trusted."""
        loaded = [load(place) for place in settings_paths(self.around(cwd))]
        return merge_entries(
            (entry for one in loaded for entry in entries_of(one)), (note for one in loaded for note in one.skipped)
        )

    def trust(self, cwd: Path | None = None) -> None:
        """What `ferrule trust` does."""
        live = self.live(cwd)
        live.trust(live.current().standing.items)


def put(path: Path, content: Any) -> Path:
    """A file of JSON, or of text that is given as such."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def rules(layered: Layered, behavior: Behavior) -> list[str]:
    return [rule.value for rule in layered.rules if BEHAVIORS[rule.key] is behavior]


def allow(*texts: str) -> dict[str, Any]:
    return {"permissions": {"allow": list(texts)}}


def deny(*texts: str) -> dict[str, Any]:
    return {"permissions": {"deny": list(texts)}}


def hook(command: str, event: str = "PreToolUse", matcher: str = "Bash") -> dict[str, Any]:
    return {"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}}


def git(folder: Path, *arguments: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=folder, check=True, capture_output=True
    )
