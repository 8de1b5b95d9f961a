"""What each settings key may do in an untrusted folder.

Such a folder can only narrow: what is allowed, where requests go, who decides
and what runs is at most what it would be without its files. A key that can only
narrow applies at once. Everything else waits for trust, and so does any key that
is not in this table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from .settings_entries import Key

Narrowing: TypeAlias = bool | frozenset[Any]
"""Whether the key narrows; a set holds the only values that do."""

NARROWS: Final = True
WAITS: Final = False
_ON: Final[Narrowing] = frozenset({True})
_OFF: Final[Narrowing] = frozenset({False})

_MODE: Final = "permissions.defaultMode"
STRICTER_THAN: Final[Mapping[str, frozenset[str]]] = {
    "default": frozenset({"default", "manual", "acceptEdits", "bypassPermissions"}),
    "manual": frozenset({"default", "manual", "acceptEdits", "bypassPermissions"}),
    "dontAsk": frozenset({"default", "manual", "acceptEdits", "auto", "dontAsk", "bypassPermissions"}),
    "plan": frozenset({"plan", "bypassPermissions"}),
}
"""For each mode, the modes that it can replace without allowing more.

`auto` is in few of them, as its classifier also refuses. `plan` is not
stricter than `default`: if the machine has a sandbox, it runs commands with
unknown effects without asking, confined to reading.
"""

KEYS: Final[Mapping[str, Narrowing]] = {
    "$schema": NARROWS,
    "agent": WAITS,
    "allowManagedHooksOnly": WAITS,
    "allowManagedInputChangesOnly": WAITS,
    "allowManagedMcpServersOnly": WAITS,
    "allowManagedPermissionRulesOnly": WAITS,
    "allowedHttpHookUrls": WAITS,
    "allowedMcpServers": WAITS,
    "apiKey": WAITS,
    "apiKeyHelper": WAITS,
    "askUserQuestionTimeout": WAITS,
    "availableModels": WAITS,
    "claudeMdExcludes": WAITS,
    "cleanupPeriodDays": WAITS,
    "conciseResults": WAITS,
    "concurrentMcpServers": WAITS,
    "customApiUrl": WAITS,
    "defaultShell": WAITS,
    "deniedMcpServers": NARROWS,
    "description": NARROWS,
    "disableAllHooks": WAITS,
    "disableBundledSkills": WAITS,
    "disableSkillShellExecution": _ON,
    "disabledMcpjsonServers": NARROWS,
    "effortLevel": WAITS,
    "enableAllProjectMcpServers": WAITS,
    "enabledMcpjsonServers": WAITS,
    "enabledPlugins": WAITS,
    "env": WAITS,
    "extraKnownMarketplaces": WAITS,
    "fallbackModel": WAITS,
    "features": WAITS,
    "fileCheckpointingEnabled": WAITS,
    "fileSuggestion": WAITS,
    "hooks": WAITS,
    "httpHookAllowedEnvVars": WAITS,
    "mcpServers": WAITS,
    "model": WAITS,
    "models": WAITS,
    "otelHeadersHelper": WAITS,
    "outputStyle": WAITS,
    "oversized_results.max_chars": WAITS,
    "oversized_results.persist_dir": WAITS,
    "oversized_results.truncation_strategy": WAITS,
    "permissions.$schema": NARROWS,
    "permissions.additionalDirectories": WAITS,
    "permissions.allow": WAITS,
    "permissions.allowed_domains": WAITS,
    "permissions.allowed_tools": WAITS,
    "permissions.ask": NARROWS,
    "permissions.auto_approve_https": WAITS,
    "permissions.blocked_domains": NARROWS,
    "permissions.defaultMode": NARROWS,  # as far as `STRICTER_THAN` says
    "permissions.deny": NARROWS,
    "permissions.disableAutoMode": NARROWS,
    "permissions.disableBypassPermissionsMode": NARROWS,
    "permissions.disabled_tools": NARROWS,
    "permissions.notSecretPaths": WAITS,
    "permissions.pre_approval.allowed_domains": WAITS,
    "permissions.pre_approval.auto_approve_https": WAITS,
    "permissions.pre_approval.blocked_domains": NARROWS,
    "permissions.protectedPaths": NARROWS,
    "permissions.secretPaths": NARROWS,
    "permissions.unprotectedPaths": WAITS,
    "plansDirectory": WAITS,
    "readReminder": WAITS,
    "readReminderOffFor": WAITS,
    "readTokens": WAITS,
    "respectGitignore": _ON,
    "sandbox.allowAppleEvents": WAITS,
    "sandbox.allowUnsandboxedCommands": _OFF,
    "sandbox.autoAllowBashIfSandboxed": _OFF,
    "sandbox.bwrapPath": WAITS,
    "sandbox.credentials.envVars": WAITS,
    "sandbox.credentials.files": WAITS,
    "sandbox.enableWeakerNestedSandbox": WAITS,
    "sandbox.enableWeakerNetworkIsolation": WAITS,
    "sandbox.enabled": WAITS,
    "sandbox.enabledPlatforms": WAITS,
    "sandbox.excludedCommands": WAITS,
    "sandbox.failIfUnavailable": _ON,
    "sandbox.filesystem.allowManagedReadPathsOnly": WAITS,
    "sandbox.filesystem.allowRead": WAITS,
    "sandbox.filesystem.allowWrite": WAITS,
    "sandbox.filesystem.denyRead": NARROWS,
    "sandbox.filesystem.denyWrite": NARROWS,
    "sandbox.filesystem.disabled": WAITS,
    "sandbox.ignoreViolations": WAITS,
    "sandbox.network.allowAllUnixSockets": WAITS,
    "sandbox.network.allowLocalBinding": WAITS,
    "sandbox.network.allowMachLookup": WAITS,
    "sandbox.network.allowManagedDomainsOnly": WAITS,
    "sandbox.network.allowUnixSockets": WAITS,
    "sandbox.network.allowedDomains": WAITS,
    "sandbox.network.deniedDomains": NARROWS,
    "sandbox.network.httpProxyPort": WAITS,
    "sandbox.network.socksProxyPort": WAITS,
    "sandbox.network.strictAllowlist": WAITS,
    "sandbox.network.tlsTerminate": WAITS,
    "sandbox.ripgrep": WAITS,
    "sandbox.socatPath": WAITS,
    "shellSnapshot": WAITS,
    "simpleMode": WAITS,
    "skillListingBudgetFraction": WAITS,
    "skillListingMaxDescChars": WAITS,
    "skillOverrides": WAITS,
    "smallModel": WAITS,
    "statusLine": WAITS,
    "tellChangedFiles": WAITS,
    "theme": NARROWS,
    "trustedMcpServers": WAITS,
    "worktree.baseRef": WAITS,
    "worktree.bgIsolation": WAITS,
    "worktree.sparsePaths": WAITS,
    "worktree.symlinkDirectories": WAITS,
}


def is_stricter(mode: str, others: Iterable[str]) -> bool:
    """Whether a mode allows no more than any of the others."""
    return all(other in STRICTER_THAN.get(mode, ()) for other in others)


def narrows(key: Key, value: Any) -> bool:
    """Whether this value can only narrow. For a mode, use `is_stricter`.

    >>> narrows(("sandbox", "enabled"), True), narrows(("permissions", "deny"), "Bash"), narrows(("tomorrow",), 1)
    (False, True, False)
    """
    known = KEYS.get(".".join(key), WAITS)
    if isinstance(known, frozenset):
        return isinstance(value, bool) and value in known
    return known


def in_words(key: str) -> str:
    """How the key is treated before the folder is trusted, as text for a person.

    >>> in_words("model"), in_words("respectGitignore")
    ('waits', '`true` narrows, `false` waits')
    """
    if key == _MODE:
        return "narrows if stricter than the mode it replaces, otherwise waits"
    known = KEYS[key]
    if isinstance(known, frozenset):
        good = "true" if True in known else "false"
        return f"`{good}` narrows, `{'false' if good == 'true' else 'true'}` waits"
    return "narrows" if known else "waits"
