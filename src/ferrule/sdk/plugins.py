"""Plugins: folders that add agents, skills, commands, hooks and servers to one conversation.

A program that names such a folder trusts its contents. Names are prefixed with
the plugin's name, so that two plugins can be used together.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from ..agents.agent_kinds import AgentKind, kind_of
from ..core.values import named_value
from ..host.files.text_files import NotText
from ..settings.definition_files import BadPage, DefinitionFiles, DefinitionFolder
from ..settings.folder_items import markdown_below
from ..settings.levels import Level, SettingsPath
from ..settings.settings_files import SettingsKind
from ..settings.settings_loading import Loaded, content_of, load_text
from ..settings.trust_items import ItemKind
from ..skills.definition import NAME
from .errors import CannotOpen

MANIFEST: Final = os.path.join(".claude-plugin", "plugin.json")
ROOT: Final = re.compile(r"\$\{(?:CLAUDE|FERRULE)_PLUGIN_ROOT\}")
"""Replaced by the plugin's own folder in its hooks and servers."""


@named_value
class Plugin:
    name: str
    path: str
    """Absolute."""

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Plugin:
        """Raises `CannotOpen`."""
        folder = os.path.abspath(os.path.expanduser(path))
        if not os.path.isdir(folder):
            raise CannotOpen(f"`plugins`: {os.fspath(path)} is not a directory.")
        said = _json(os.path.join(folder, MANIFEST)).get("name") or os.path.basename(folder)
        if not isinstance(said, str) or not NAME.fullmatch(said):
            raise CannotOpen(f"`plugins`: {said!r} is not a valid name for a plugin. Use letters, digits, `-` and `_`.")
        return cls(name=said, path=folder)

    @property
    def line(self) -> dict[str, str]:
        """For the first message of a conversation."""
        return {"name": self.name, "path": self.path}

    @property
    def shelves(self) -> tuple[DefinitionFolder, ...]:
        return (self._shelf(ItemKind.SKILL, "skills"), self._shelf(ItemKind.COMMAND, "commands"))

    def agents(self, pages: DefinitionFiles) -> Iterator[AgentKind]:
        """Raises `CannotOpen` for an invalid file."""
        shelf = self._shelf(ItemKind.AGENT, "agents")
        for path in markdown_below(shelf.path):
            try:
                kind = kind_of(pages.read(shelf, path))
            except BadPage as reason:
                raise CannotOpen(f"`plugins`: {reason}") from None
            yield replace(kind, name=f"{shelf.prefix}{kind.name}")

    def hooks(self) -> Loaded | None:
        """`None` if it has none. Raises `CannotOpen`: a hook that is left out could have forbidden something."""
        path = os.path.join(self.path, "hooks", "hooks.json")
        said = _json(path)
        if not said:
            return None
        loaded = load_text(SettingsPath(Level.COMMAND_LINE, path, SettingsKind.HOOKS), self._place(said))
        for note in (note for note in loaded.skipped if not note.is_harmless):
            raise CannotOpen(f"`plugins`: {note.fault}")
        return loaded

    def servers(self) -> str | None:
        """As the text of an `.mcp.json`; `None` if it has none."""
        said = _json(os.path.join(self.path, ".mcp.json"))
        entries = said.get("mcpServers", said)
        if not isinstance(entries, Mapping) or not entries:
            return None
        named = {f"plugin_{self.name}_{name}": entry for name, entry in cast(Mapping[str, Any], entries).items()}
        return self._place({"mcpServers": named})

    def _shelf(self, kind: ItemKind, folder: str) -> DefinitionFolder:
        return DefinitionFolder(Level.USER, kind, os.path.join(self.path, folder), f"{self.name}:")

    def _place(self, said: Any) -> str:
        path = json.dumps(self.path)[1:-1]
        return ROOT.sub(lambda _: path, json.dumps(said))


def _json(path: str) -> Mapping[str, Any]:
    """Empty if the file does not exist. Raises `CannotOpen` if it is not an object."""
    try:
        said = json.loads(content_of(path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, NotText, ValueError, RecursionError) as error:
        raise CannotOpen(f"`plugins`: {path} cannot be read: {error}.") from None
    if not isinstance(said, dict):
        raise CannotOpen(f"`plugins`: {path} is not a JSON object.")
    return cast(dict[str, Any], said)
