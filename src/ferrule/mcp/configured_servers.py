"""Which servers are configured: those in the settings that may be started.

The highest level that names a server defines all of it. A project's entries
have passed `settings.trust_items` before, and every entry the checks of
`settings.settings_loading`, so no further checks are made. Every server that is left out
is named in a warning, with the place that defines it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from typing import Any, Final

from ..core.values import plain_value
from ..settings.layers import Layered
from ..settings.levels import Level, Source
from ..settings.settings_entries import Entry
from ..settings.settings_files import PROJECT_SERVERS
from .config import Remote, ServerConfig, Stdio, Transport
from .naming import server_parts

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Expansion:
    """Inserts the values, and remembers names without value and default: those stay as they are written.

    >>> expansion = Expansion({"HOST": "a.test"})
    >>> expansion("https://${HOST}:${PORT:-80}/${PATH_TO}"), expansion.unset
    ('https://a.test:80/${PATH_TO}', ['PATH_TO'])
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.unset: list[str] = []

    def __call__(self, text: str) -> str:
        return _VARIABLE.sub(self._value, text)

    def each(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {key: self(text) for key, text in texts.items()}

    def _value(self, found: re.Match[str]) -> str:
        name, default = found.groups()
        if name in self._environment and (self._environment[name] or default is None):
            return self._environment[name]
        if default is not None:
            return default
        if name not in self.unset:
            self.unset.append(name)
        return found[0]


PROJECT_VARIABLES: Final = ("CLAUDE_PROJECT_DIR", "FERRULE_PROJECT_DIR")
_GIVEN: Final = (Level.COMMAND_LINE, Level.MANAGED)
"""Levels that apply when only given servers are used."""


@plain_value
class Configured:
    servers: tuple[ServerConfig, ...] = ()
    warnings: tuple[str, ...] = ()


def read_configured(layered: Layered, *, cwd: str, environment: Mapping[str, str], strict: bool = False) -> Configured:
    """`strict` leaves those of the command line and of the managed files."""
    warnings: list[str] = []
    named = {name: found for name, found in layered.servers.items() if not strict or found.source.level in _GIVEN}
    kept = {name: found for name, found in named.items() if _is_wanted(name, found, layered, warnings)}
    parts = server_parts(kept)
    trusted, concurrent = _names(layered, "trustedMcpServers"), _names(layered, "concurrentMcpServers")
    expansion_of = {**dict.fromkeys(PROJECT_VARIABLES, cwd), **environment}
    servers: list[ServerConfig] = []
    for name, found in kept.items():
        entry = found.value
        expansion = Expansion(expansion_of)
        transport = _transport(entry, expansion, cwd)
        if transport is None:
            warnings.append(f"{_place(name, found.source)}: WebSocket servers are not supported. Use `http` or `sse`.")
            continue
        if isinstance(transport, Remote) and not transport.url.startswith(("http://", "https://")):
            warnings.append(f"{_place(name, found.source)}: `url` must begin with http:// or https://.")
            continue
        if expansion.unset:
            unset = ", ".join(expansion.unset)
            warnings.append(f"{_place(name, found.source)}: not set, and so left as written: {unset}.")
        if _is_ruled_out(name, transport, layered, warnings, found.source):
            continue
        servers.append(
            ServerConfig(
                name=name,
                transport=transport,
                part=parts[name],
                origin=str(found.source),
                timeout=entry["timeout"] / 1000 if "timeout" in entry else None,
                always_load=entry.get("alwaysLoad") is True,
                trusted=name in trusted,
                concurrent=name in concurrent,
            )
        )
    return Configured(tuple(servers), tuple(warnings))


def _transport(entry: Mapping[str, Any], expand: Expansion, cwd: str) -> Transport | None:
    """`None` for an unsupported transport."""
    kind = entry.get("type", "stdio")
    if kind == "stdio":
        args = tuple(expand(argument) for argument in entry.get("args", ()))
        return Stdio(expand(entry["command"]), args, expand.each(entry.get("env", {})), cwd)
    if kind == "ws":
        return None
    oauth = entry.get("oauth", {})
    return Remote(
        kind="sse" if kind == "sse" else "http",
        url=expand(entry["url"]),
        headers=expand.each(entry.get("headers", {})),
        headers_helper=entry.get("headersHelper"),
        client_id=oauth.get("clientId"),
        callback_port=oauth.get("callbackPort"),
        scopes=oauth.get("scopes"),
    )


def _is_wanted(name: str, found: Entry, layered: Layered, warnings: list[str]) -> bool:
    """Whether no list of names leaves it out. These lists apply to .mcp.json only."""
    if not found.source.path.endswith(f"/{PROJECT_SERVERS}"):
        return True
    if name in _names(layered, "disabledMcpjsonServers"):
        return False
    enabled, every = _names(layered, "enabledMcpjsonServers"), layered.value("enableAllProjectMcpServers")
    if name in enabled or not enabled or (every is not None and every.value is True):
        return True
    warnings.append(f"{_place(name, found.source)}: not started, as `enabledMcpjsonServers` does not name it.")
    return False


def _is_ruled_out(name: str, transport: Transport, layered: Layered, warnings: list[str], source: Source) -> bool:
    denied = next((rule for rule in layered.items("deniedMcpServers") if _matches(rule.value, name, transport)), None)
    allowed = layered.limit("allowedMcpServers")
    if denied is not None:
        warnings.append(f"{_place(name, source)}: not started, as `deniedMcpServers` in {denied.source} names it.")
    elif allowed is not None and not any(_matches(rule.value, name, transport) for rule in allowed):
        warnings.append(f"{_place(name, source)}: not started, as `allowedMcpServers` does not name it.")
    else:
        return False
    return True


def _matches(rule: Mapping[str, Any], name: str, transport: Transport) -> bool:
    """
    >>> _matches({"serverUrl": "https://*.test/*"}, "x", Remote("http", "https://a.test/mcp"))
    True
    """
    if "serverName" in rule:
        return rule["serverName"] == name
    if "serverCommand" in rule:
        return isinstance(transport, Stdio) and list(rule["serverCommand"]) == [transport.command, *transport.args]
    return isinstance(transport, Remote) and fnmatch.fnmatchcase(transport.url, rule["serverUrl"])


def _names(layered: Layered, key: str) -> frozenset[str]:
    return frozenset(item.value for item in layered.items(key))


def _place(name: str, source: Source) -> str:
    return f"{source}: `mcpServers.{name}`"
