"""Where the plugins are that settings enable: marketplaces and installed plugins, as far as they are on this disk.

`enabledPlugins` names plugins as `plugin@marketplace`. A marketplace is a
folder with a `.claude-plugin/marketplace.json`; which ones there are is in
`known_marketplaces.json` below `~/.claude/plugins`, which another program
keeps, and in `extraKnownMarketplaces` of the settings. Nothing is fetched.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from ..core.values import named_value
from ..host.files.text_files import NotText
from .command_files import paths_named
from .layers import Layered
from .levels import Level, Source
from .settings_loading import content_of

MANIFEST: Final = os.path.join(".claude-plugin", "plugin.json")
MARKETPLACE: Final = os.path.join(".claude-plugin", "marketplace.json")
PARTS: Final = ("skills", "commands", "agents", "outputStyles", "hooks", "mcpServers")
"""The keys of a manifest, and of a marketplace's entry, that name or hold parts of a plugin."""
ROOT: Final = re.compile(r"\$\{(?:CLAUDE|FERRULE)_PLUGIN_ROOT\}")
"""Replaced by the plugin's own folder in its hooks and servers."""
ENABLED: Final = "enabledPlugins"
MARKETPLACES: Final = "extraKnownMarketplaces"
STRICT: Final = "strictKnownMarketplaces"
"""By which an administrator chooses the marketplaces."""
MOST_FILES: Final = 2000
"""Files of a marketplace of a project that trust covers. With more it can never be trusted."""

_DEFINING: Final = (".claude-plugin", ".mcp.json", "agents", "commands", "hooks", "output-styles", "scripts", "skills")
"""What a plugin is made of, where its folder is the whole project."""
_NO_ENTRY: Final[Mapping[str, Any]] = {}
_SKIPPED: Final = frozenset({".git", "node_modules", "__pycache__"})


@named_value
class PluginPlace:
    """A plugin that is on this disk."""

    id: str
    """As settings name it."""
    path: str
    entry: Mapping[str, Any]
    """What the marketplace says about it; empty if it says nothing."""


@named_value
class PluginPlaces:
    found: tuple[PluginPlace, ...] = ()
    warnings: tuple[str, ...] = ()


def find_enabled(layered: Layered, *, cwd: str, config_folder: str) -> PluginPlaces:
    """The plugins that the settings enable, and a warning for each that is not on this disk."""
    wanted = _wanted(layered)
    if not wanted:
        return PluginPlaces()
    limit = layered.limit(STRICT)
    if limit is not None:
        words = f"`{STRICT}` is not supported by this version, so no plugin that `{ENABLED}` names is loaded."
        return PluginPlaces(warnings=(words,))
    disk = _Disk(layered, cwd, os.path.join(config_folder, "plugins"))
    found: list[PluginPlace] = []
    warnings: list[str] = []
    for id, source in sorted(wanted.items()):
        place = disk.find(id)
        if place is not None:
            found.append(place)
        else:
            warnings.append(_describe_missing(id, source))
    return PluginPlaces(found=tuple(found), warnings=tuple(warnings))


def files_of_marketplace(value: Any, cwd: str) -> set[str] | None:
    """The files that define the plugins of a marketplace in a folder: what trust in it covers.

    `None` if there are too many.
    """
    root = _folder_of(value, cwd)
    if root is None:
        return set()
    files = {os.path.join(root, MARKETPLACE)}
    for entry in _entries(root):
        path = _source_path(root, entry)
        if path is not None:
            files.update(_defining_files(path) if _is_within(cwd, path) else _files_below(path))
            files.update(_named_files(path, entry))
        if len(files) > MOST_FILES:
            return None
    return files


class _Disk:
    """What the other program keeps about plugins, read once."""

    def __init__(self, layered: Layered, cwd: str, folder: str) -> None:
        self._layered = layered
        self._cwd = cwd
        self._folder = folder
        self._installed = _member(_read(os.path.join(folder, "installed_plugins.json")), "plugins")
        self._known = _read(os.path.join(folder, "known_marketplaces.json"))

    def find(self, id: str) -> PluginPlace | None:
        name, _, market = id.partition("@")
        root = self._marketplace(market) if market else None
        entry = next((one for one in _entries(root) if one.get("name") == name), _NO_ENTRY) if root else _NO_ENTRY
        paths = (
            *self._install_paths(id),
            *([path] if root and entry and (path := _source_path(root, entry)) else []),
            *(_versions(os.path.join(self._folder, "cache", market, name)) if market else ()),
        )
        path = next((path for path in paths if os.path.isdir(path)), None)
        return PluginPlace(id=id, path=path, entry=entry) if path else None

    def _install_paths(self, id: str) -> Iterator[str]:
        """An older file has one installation of a plugin, a newer one a list, each for all projects or for one."""
        said = self._installed.get(id)
        every = cast(list[Any], said) if isinstance(said, list) else [said]
        kept = [cast(Mapping[str, Any], one) for one in every if isinstance(one, Mapping)]
        own = [one for one in kept if one.get("projectPath") == self._cwd]
        for one in (*own, *(one for one in kept if not one.get("projectPath"))):
            if isinstance(path := one.get("installPath"), str) and os.path.isabs(path):
                yield path

    def _marketplace(self, name: str) -> str | None:
        """One that the user has goes first: a project cannot put its own in its place."""
        known = _member(self._known, name).get("installLocation")
        places = (
            known if isinstance(known, str) and os.path.isabs(known) else None,
            os.path.join(self._folder, "marketplaces", name) if _is_plain(name) else None,
            self._extra(name),
        )
        return next((place for place in places if place and os.path.isdir(place)), None)

    def _extra(self, name: str) -> str | None:
        """A relative path of settings that apply in every folder would mean whatever the current one has there."""
        extra = self._layered.value(MARKETPLACES, name)
        if extra is None:
            return None
        is_for_here = extra.source.level.in_folder or extra.source.level is Level.COMMAND_LINE
        return _folder_of(extra.value, self._cwd if is_for_here else None)


def _wanted(layered: Layered) -> dict[str, Source]:
    """A list holds versions; which one is there was decided when it was installed."""
    by_version = {
        key[1]: items[0].source for key, items in layered.lists.items() if key[0] == ENABLED and len(key) == 2
    }
    said = {key[1]: one for key, one in layered.values.items() if key[0] == ENABLED and len(key) == 2}
    switched_on = {id: one.source for id, one in said.items() if one.value is True}
    return {**{id: source for id, source in by_version.items() if id not in said}, **switched_on}


def _describe_missing(id: str, source: Source) -> str:
    if "@" not in id:
        return f"{source}: `{ENABLED}`: {id!r} is ignored. Write it as plugin@marketplace."
    market = id.partition("@")[2]
    return (
        f"{source}: `{ENABLED}`: the plugin {id} is not loaded: it is not installed, and the marketplace "
        f"{market} is not a folder on this machine that has it. Install it, or name its folder with --plugin-dir."
    )


def _folder_of(value: Any, cwd: str | None) -> str | None:
    """The folder of a marketplace by its entry in the settings, if that says where on this disk it is.

    Without a `cwd`, relative paths are ignored.
    """
    source = _member(value, "source")
    path = source.get("path")
    if source.get("source") not in ("directory", "file") or not isinstance(path, str) or not path:
        return None
    path = os.path.expanduser(path)
    if cwd is None and not os.path.isabs(path):
        return None
    folder = os.path.normpath(os.path.join(cwd or "/", path))
    is_file = source.get("source") == "file" or folder.endswith(".json")
    return folder.removesuffix(MARKETPLACE).rstrip("/") or "/" if is_file else folder


def _entries(root: str) -> list[Mapping[str, Any]]:
    plugins: Any = _read(os.path.join(root, MARKETPLACE)).get("plugins")
    every = cast(list[Any], plugins) if isinstance(plugins, list) else []
    base = _member(_read(os.path.join(root, MARKETPLACE)), "metadata").get("pluginRoot")
    return [
        {**cast(Mapping[str, Any], one), **({"pluginRoot": base} if isinstance(base, str) else {})}
        for one in every
        if isinstance(one, Mapping)
    ]


def _source_path(root: str, entry: Mapping[str, Any]) -> str | None:
    """`None` for a plugin that is elsewhere, or that would lead out of its marketplace."""
    source: Any = entry.get("source")
    if isinstance(source, Mapping) and cast(Mapping[str, Any], source).get("source") in ("local", "directory"):
        source = cast(Mapping[str, Any], source).get("path")
    if not isinstance(source, str):
        return None
    for base in (entry.get("pluginRoot", ""), ""):
        path = os.path.normpath(os.path.join(root, base, source))
        if os.path.isdir(path) and _is_within(os.path.realpath(path), os.path.realpath(root)):
            return path
    return None


def _is_within(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")


def _is_plain(name: str) -> bool:
    return bool(name) and "/" not in name and name not in (".", "..")


def _versions(folder: str) -> list[str]:
    """The versions in the cache, the newest first."""
    try:
        names = os.listdir(folder) if ".." not in folder.split("/") else []
        return sorted((os.path.join(folder, name) for name in names), key=os.path.getmtime, reverse=True)
    except OSError:
        return []


def _defining_files(path: str) -> Iterator[str]:
    for name in _DEFINING:
        one = os.path.join(path, name)
        yield from _files_below(one) if os.path.isdir(one) else [one]


def _named_files(path: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """What the parts of a plugin name, wherever in the plugin it is: files, folders, and programs of its commands."""
    found = [os.path.join(path, "hooks", "hooks.json"), os.path.join(path, ".mcp.json")]
    texts: list[str] = []
    for said in (_read(os.path.join(path, MANIFEST)), entry):
        texts += (text for key in PARTS for text in texts_in(said.get(key)))
    for text in texts:
        place = os.path.normpath(os.path.join(path, ROOT.sub(".", text)))
        if os.path.isdir(place) and place != path and _is_within(place, path):
            yield from _files_below(place)
        found.append(place)
    texts += (text for file in found if file.endswith(".json") for text in texts_in(_read(file)))
    for text in texts:
        command = ROOT.sub(lambda _: path, text)
        yield from paths_named(command, (path,), path, lambda one: _is_within(one, path))


def _files_below(folder: str) -> Iterator[str]:
    """Through links too: what is read through one is a part of the plugin. Folders count as files for the limit."""
    left = MOST_FILES
    for path, folders, names in os.walk(folder, followlinks=True):
        here = os.path.realpath(path)
        inner = (name for name in sorted(folders) if name not in _SKIPPED)
        folders[:] = [name for name in inner if not _is_within(here, os.path.realpath(os.path.join(path, name)))]
        for name in (*names, *folders):
            yield os.path.join(path, name)
            left -= 1
            if left < 0:
                return


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    match value:
        case str():
            yield value
        case dict():
            for inner in cast(dict[str, Any], value).values():
                yield from texts_in(inner)
        case list():
            for inner in cast(list[Any], value):
                yield from texts_in(inner)
        case _:
            pass


def _read(path: str) -> Mapping[str, Any]:
    """Empty if it is not there or not JSON: whatever is wrong with it is for the program whose file it is."""
    try:
        said = json.loads(content_of(path))
    except (OSError, NotText, ValueError, RecursionError):
        return {}
    return cast(Mapping[str, Any], said) if isinstance(said, dict) else {}


def _member(value: Any, key: str) -> Mapping[str, Any]:
    found = cast(Mapping[str, Any], value).get(key) if isinstance(value, Mapping) else None
    return cast(Mapping[str, Any], found) if isinstance(found, Mapping) else {}
