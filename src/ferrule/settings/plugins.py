"""Plugins: folders that add agents, skills, commands, output styles, hooks and servers to a session.

Whoever names a plugin trusts its contents as they are when the session
starts: a person with `--plugin-dir`, a program, or settings that count. Names
are prefixed with the plugin's name, so that two plugins can be used together.
A file of it that cannot be used is left out with a warning. Hooks are another
matter: one that cannot be read could have forbidden something.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from ..core.values import named_value
from ..host.files.text_files import NotText
from .definition_files import DefinitionFolder
from .heads import NAME
from .layers import Layered
from .levels import Level, SettingsPath, Source, surroundings
from .marketplaces import MANIFEST, PARTS, ROOT, PluginPlace, find_enabled
from .settings_files import SettingsKind
from .settings_loading import Loaded, Skipped, content_of, load_text
from .trust_items import ItemKind, is_below

_FOLDERS: Final = (
    (ItemKind.SKILL, "skills", "skills"),
    (ItemKind.COMMAND, "commands", "commands"),
    (ItemKind.AGENT, "agents", "agents"),
    (ItemKind.STYLE, "output-styles", "outputStyles"),
)
"""The folder of each kind, and the key for more of them."""


class PluginError(ValueError):
    """The plugin cannot be used. The message names it and says why."""


@named_value
class Plugin:
    name: str
    path: str
    """Absolute."""
    said: Mapping[str, Any]
    """Its manifest, with what its marketplace says about it."""
    level: Level = Level.COMMAND_LINE
    """Of its hooks and servers."""
    has_servers: bool = True
    """Whether its servers are among the settings."""

    @property
    def line(self) -> dict[str, str]:
        """For the first message of a conversation."""
        return {"name": self.name, "path": self.path}

    @property
    def shelves(self) -> tuple[DefinitionFolder, ...]:
        return tuple(
            DefinitionFolder(Level.USER, kind, path, f"{self.name}:", self.path)
            for kind, folder, key in _FOLDERS
            for path in dict.fromkeys((os.path.join(self.path, folder), *self._paths(key)))
        )

    @property
    def warnings(self) -> Iterator[str]:
        """Of paths in its manifest that cannot be used."""
        for _, _, key in _FOLDERS:
            for said in _texts(self.said.get(key)):
                if self._inside(said) is None:
                    yield f"the plugin {self.name}: `{key}`: {said} is outside the plugin, and so ignored."

    def load_hooks(self) -> Iterator[Loaded]:
        """Raises `PluginError` where they are named and cannot be found."""
        for path, said in self._parts("hooks", os.path.join("hooks", "hooks.json")):
            hooks = said if "hooks" in said else {"hooks": said}
            at = SettingsPath(self.level, path, SettingsKind.HOOKS)
            yield load_text(at, self._place(_with_root(hooks, self.path)))

    def load_servers(self) -> Iterator[Loaded]:
        """Those of its `.mcp.json` and of its manifest."""
        if not self.has_servers:
            return
        for path, said in self._parts("mcpServers", ".mcp.json"):
            entries = said.get("mcpServers", said)
            if isinstance(entries, Mapping) and entries:
                every = cast(Mapping[str, Any], entries)
                named = {f"plugin_{self.name}_{name}": entry for name, entry in every.items()}
                at = SettingsPath(self.level, path, SettingsKind.MCP)
                yield load_text(at, self._place({"mcpServers": named}))

    def _parts(self, key: str, usual: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Objects in the usual file, in further files and in the manifest itself, with where each is."""
        files = [os.path.join(self.path, usual)]
        said = self.said.get(key)
        for one in cast(list[Any], said) if isinstance(said, list) else [said]:
            if isinstance(one, Mapping):
                yield os.path.join(self.path, MANIFEST), cast(Mapping[str, Any], one)
            elif isinstance(one, str):
                path = self._inside(one)
                if path is None or not os.path.isfile(path):
                    raise PluginError(f"the plugin {self.name}: `{key}`: {one} is not a file of the plugin.")
                files.append(path)
        for path in dict.fromkeys(files):
            if found := _read_object(path):
                yield path, found

    def _paths(self, key: str) -> Iterator[str]:
        for said in _texts(self.said.get(key)):
            if path := self._inside(said):
                yield path

    def _inside(self, path: str) -> str | None:
        found = os.path.normpath(os.path.join(self.path, ROOT.sub(".", path)))
        real, root = os.path.realpath(found), os.path.realpath(self.path)
        return found if real == root or is_below(real, root) else None

    def _place(self, said: Any) -> str:
        path = json.dumps(self.path)[1:-1]
        return ROOT.sub(lambda _: path, json.dumps(said))


def read_plugin(folder: str | os.PathLike[str], *, place: PluginPlace | None = None) -> Plugin:
    """`place` says that settings enable it. Raises `PluginError`."""
    path = os.path.abspath(os.path.expanduser(folder))
    if not os.path.isdir(path):
        raise PluginError(f"the plugin {os.fspath(folder)} is not a directory.")
    entry: Mapping[str, Any] = place.entry if place else {}
    manifest = _read_object(os.path.join(path, MANIFEST))
    name: Any = manifest.get("name") or entry.get("name") or os.path.basename(path)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise PluginError(f"{path}: {name!r} is not a valid name for a plugin. Use letters, digits, `-` and `_`.")
    level = Level.USER if place else Level.COMMAND_LINE
    return Plugin(name=name, path=path, said=_join(manifest, entry), level=level)


def load_all_plugins(
    layered: Layered,
    cwd: str,
    folders: Iterable[str | os.PathLike[str]],
    without_servers: Iterable[str | os.PathLike[str]] = (),
) -> tuple[tuple[Plugin, ...], tuple[Loaded, ...], tuple[str, ...]]:
    """The plugins of these folders and of the settings, their hooks and servers as settings, and warnings.

    Raises `PluginError`.
    """
    enabled = find_enabled(layered, cwd=cwd, config_folder=surroundings(cwd, os.environ).config_folder)
    plugins, warnings = load_plugins(folders, enabled.found, without_servers=without_servers)
    return plugins, entries_of_plugins(plugins, cwd), (*enabled.warnings, *warnings)


def load_plugins(
    folders: Iterable[str | os.PathLike[str]],
    enabled: Iterable[PluginPlace] = (),
    *,
    without_servers: Iterable[str | os.PathLike[str]] = (),
) -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
    """The plugins of these folders, then those that settings enable, and warnings.

    Raises `PluginError` for a folder; what settings enable and cannot be used is a warning.
    """
    found = {plugin.name: plugin for plugin in map(read_plugin, folders)}
    found |= {one.name: replace(one, has_servers=False) for one in map(read_plugin, without_servers)}
    warnings: list[str] = []
    for place in enabled:
        try:
            plugin = read_plugin(place.path, place=place)
        except PluginError as error:
            warnings.append(f"the plugin {place.id} is not loaded: {error}")
            continue
        found.setdefault(plugin.name, plugin)
    return tuple(found.values()), (*warnings, *(words for plugin in found.values() for words in plugin.warnings))


def entries_of_plugins(plugins: Iterable[Plugin], cwd: str) -> tuple[Loaded, ...]:
    """Their hooks and servers, and the protection of their files, as settings. Raises `PluginError`.

    What cannot be read of a plugin that a person or a program has named is an
    error. Of one that settings enable it is like a broken file of settings.
    """
    entries: list[Loaded] = []
    for plugin in plugins:
        for kind, load in ((SettingsKind.HOOKS, plugin.load_hooks), (SettingsKind.MCP, plugin.load_servers)):
            try:
                loaded = [*load()]
            except PluginError as error:
                if plugin.level is Level.COMMAND_LINE:
                    raise
                loaded = [_unreadable(plugin, kind, str(error))]
            for note in (note for one in loaded for note in one.skipped if not note.is_harmless):
                if plugin.level is Level.COMMAND_LINE:
                    raise PluginError(f"the plugin {plugin.name}: {note.fault}")
            entries += loaded
        if is_below(plugin.path, cwd):
            protecting = {"permissions": {"protectedPaths": [plugin.path]}}
            entries.append(Loaded(SettingsPath(plugin.level, plugin.path, SettingsKind.SETTINGS), protecting))
    return tuple(entries)


def _unreadable(plugin: Plugin, kind: SettingsKind, words: str) -> Loaded:
    at = SettingsPath(plugin.level, plugin.path, kind)
    may_forbid = kind is SettingsKind.HOOKS
    return Loaded(at, None, (Skipped(Source(at.level, at.path), (), words, may_forbid=may_forbid),))


def _join(manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """What a marketplace says about the parts of a plugin is in addition to its manifest."""
    joined = dict(manifest)
    for key in PARTS:
        both = [one for said in (manifest.get(key), entry.get(key)) if said for one in _as_list(said)]
        if both:
            joined[key] = both
    return joined


def _as_list(said: Any) -> list[Any]:
    return cast(list[Any], said) if isinstance(said, list) else [said]


def _texts(said: Any) -> Iterator[str]:
    """Paths: one, a list, or an object of commands by name, each with its `source`."""
    for one in _as_list(said):
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            for inner in cast(Mapping[str, Any], one).values():
                source: Any = cast(Mapping[str, Any], inner).get("source") if isinstance(inner, Mapping) else None
                if isinstance(source, str):
                    yield source


def _with_root(said: Any, root: str) -> Any:
    """Programs that a hook starts find the folder in their environment."""
    match said:
        case list():
            return [_with_root(one, root) for one in cast(list[Any], said)]
        case dict():
            held = {key: _with_root(one, root) for key, one in cast(dict[str, Any], said).items()}
            if isinstance(command := held.get("command"), str) and not {"args", "shell"} & held.keys():
                held["command"] = f"export CLAUDE_PLUGIN_ROOT={shlex.quote(root)}; {command}"
            return held
        case _:
            return said


def _read_object(path: str) -> Mapping[str, Any]:
    """Empty if the file does not exist. Raises `PluginError` if it is not an object."""
    try:
        said = json.loads(content_of(path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, NotText, ValueError, RecursionError) as error:
        raise PluginError(f"{path} cannot be read: {error}.") from None
    if not isinstance(said, dict):
        raise PluginError(f"{path} is not a JSON object.")
    return cast(dict[str, Any], said)
