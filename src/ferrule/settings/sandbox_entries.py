"""The `sandbox` block of a settings file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .fields import ClosedObject, Given, Items, Named, OpenObject, Port


class SandboxFiles(ClosedObject):
    allow_write: Given[Items[Named]] = None
    deny_write: Given[Items[Named]] = None
    deny_read: Given[Items[Named]] = None
    allow_read: Given[Items[Named]] = None
    allow_managed_read_paths_only: Given[bool] = None
    disabled: Given[bool] = None


class SandboxNetwork(ClosedObject):
    allowed_domains: Given[Items[Named]] = None
    denied_domains: Given[Items[Named]] = None
    strict_allowlist: Given[bool] = None
    allow_managed_domains_only: Given[bool] = None
    allow_unix_sockets: Given[Items[Named]] = None
    allow_all_unix_sockets: Given[bool] = None
    allow_local_binding: Given[bool] = None
    allow_mach_lookup: Given[Items[Named]] = None
    http_proxy_port: Given[Port] = None
    socks_proxy_port: Given[Port] = None
    tls_terminate: Any = None


class CredentialFile(OpenObject):
    path: Named
    mode: Literal["deny", "mask"]


class CredentialVariable(OpenObject):
    name: Named
    mode: Literal["deny", "mask"]


class SandboxCredentials(ClosedObject):
    files: Given[Items[CredentialFile]] = None
    env_vars: Given[Items[CredentialVariable]] = None


class SandboxEntry(ClosedObject):
    enabled: Given[bool] = None
    fail_if_unavailable: Given[bool] = None
    auto_allow_bash_if_sandboxed: Given[bool] = None
    allow_unsandboxed_commands: Given[bool] = None
    excluded_commands: Given[Items[str]] = None
    enabled_platforms: Given[Items[Literal["macos", "linux", "wsl", "windows"]]] = None
    filesystem: Given[SandboxFiles] = None
    network: Given[SandboxNetwork] = None
    credentials: Given[SandboxCredentials] = None
    ignore_violations: Given[Mapping[str, Items[str]]] = None
    enable_weaker_nested_sandbox: Given[bool] = None
    enable_weaker_network_isolation: Given[bool] = None
    allow_apple_events: Given[bool] = None
    bwrap_path: Given[Named] = None
    socat_path: Given[Named] = None
    ripgrep: Any = None
