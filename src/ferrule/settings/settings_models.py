"""Settings files as values.

The keys are those that users' files already have, and a few older ones. Every
key may be left out, and is then `None`, so that a layer above can distinguish
what a file sets from what it leaves to others. Unknown keys at the top are
accepted: the file may come from a newer version. Inside `permissions`, `sandbox` and
hooks they are errors, because a misspelt key there silently protects nothing;
`forbidding` says which of them matter when a file is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, Discriminator, Field, Tag

from .fields import ClosedObject, Given, Items, Named, OpenObject, Port, RuleText
from .hook_entries import HOOK_TAGS, Hooks, HooksFile
from .server_entries import SERVER_TAGS, McpFile, NamedServers, ServerMatch
from .settings_files import SettingsKind


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


ModeName: TypeAlias = Literal["default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]
Theme: TypeAlias = Literal[
    "light", "dark", "system", "auto", "light-daltonized", "dark-daltonized", "light-ansi", "dark-ansi"
]


class PreApprovalEntry(ClosedObject):
    """Web domains that are allowed without asking, and those that always need it."""

    allowed_domains: Given[Items[Named]] = Field(default=None, alias="allowed_domains")
    blocked_domains: Given[Items[Named]] = Field(default=None, alias="blocked_domains")
    auto_approve_https: Given[bool] = Field(default=None, alias="auto_approve_https")


class Permissions(ClosedObject):
    """Rules, mode and additional directories; the snake_case keys are the older names for allow and deny."""

    allow: Given[Items[RuleText]] = None
    ask: Given[Items[RuleText]] = None
    deny: Given[Items[RuleText]] = None
    default_mode: Given[ModeName] = None
    additional_directories: Given[Items[Named]] = None
    disable_bypass_permissions_mode: Given[Literal["disable"]] = None
    disable_auto_mode: Given[Literal["disable"]] = None
    allowed_tools: Given[Items[RuleText]] = Field(default=None, alias="allowed_tools")
    disabled_tools: Given[Items[RuleText]] = Field(default=None, alias="disabled_tools")
    pre_approval: Given[PreApprovalEntry] = Field(default=None, alias="pre_approval")
    protected_paths: Given[Items[Named]] = None
    unprotected_paths: Given[Items[Named]] = None
    secret_paths: Given[Items[Named]] = None
    not_secret_paths: Given[Items[Named]] = None


class PermissionsFile(Permissions):
    """A permissions.json: the content of `permissions` in a settings file, plus the domains."""

    schema_address: Given[str] = Field(default=None, alias="$schema")
    allowed_domains: Given[Items[Named]] = Field(default=None, alias="allowed_domains")
    blocked_domains: Given[Items[Named]] = Field(default=None, alias="blocked_domains")
    auto_approve_https: Given[bool] = Field(default=None, alias="auto_approve_https")


class OversizedResults(ClosedObject):
    """What happens to a tool's result that is too long to be shown in full."""

    max_chars: Given[Annotated[int, Field(ge=1)]] = Field(default=None, alias="max_chars")
    persist_dir: Given[Named] = Field(default=None, alias="persist_dir")
    truncation_strategy: Given[Literal["keep_end", "keep_start", "keep_both"]] = Field(
        default=None, alias="truncation_strategy"
    )


class StatusLine(ClosedObject):
    type: Literal["command"]
    command: str
    padding: Given[float] = None
    refresh_interval: Given[Annotated[float, Field(ge=1)]] = None
    hide_vim_mode_indicator: Given[bool] = None


class FileSuggestion(ClosedObject):
    type: Literal["command"]
    command: str


class Worktree(ClosedObject):
    base_ref: Given[Literal["fresh", "head"]] = None
    symlink_directories: Given[Items[str]] = None
    sparse_paths: Given[Items[Named]] = None
    bg_isolation: Given[Literal["worktree", "none"]] = None


def _one_or_many(value: object) -> str:
    return "<many>" if isinstance(value, list | tuple) else "<one>"


PluginSwitch: TypeAlias = Annotated[
    Annotated[bool, Tag("<one>")] | Annotated[Items[str], Tag("<many>")], Discriminator(_one_or_many)
]


class MarketplaceSource(OpenObject):
    source: Named
    path: Given[Named] = None


class Marketplace(OpenObject):
    """Where plugins are to be had. Only `directory` and `file` are read; nothing is fetched."""

    source: MarketplaceSource


Models: TypeAlias = Annotated[
    Annotated[str, Tag("<one>")] | Annotated[Items[str], Tag("<many>")], Discriminator(_one_or_many)
]


Count: TypeAlias = Annotated[int, Field(ge=1)]
Price: TypeAlias = Annotated[float, Field(ge=0)]


class ModelEntry(ClosedObject):
    """What is known of a model. Prices are dollars for a million tokens."""

    window: Given[Count] = None
    output: Given[Count] = None
    images: Given[bool] = None
    documents: Given[bool] = None
    input_price: Given[Price] = Field(default=None, alias="input_price")
    output_price: Given[Price] = Field(default=None, alias="output_price")
    cache_read_price: Given[Price] = Field(default=None, alias="cache_read_price")
    cache_write_price: Given[Price] = Field(default=None, alias="cache_write_price")
    effort: Given[Literal["low", "medium", "high", "xhigh", "max"]] = None
    wire: Given[Literal["messages", "chat", "responses"]] = None


class SettingsFile(OpenObject):
    """A settings.json or settings.local.json."""

    schema_address: Given[str] = Field(default=None, alias="$schema")

    permissions: Given[Permissions] = None
    allow_managed_permission_rules_only: Given[bool] = None
    sandbox: Given[SandboxEntry] = None
    env: Given[Mapping[str, str]] = None

    hooks: Given[Hooks] = None
    disable_all_hooks: Given[bool] = None
    allow_managed_hooks_only: Given[bool] = None
    allow_managed_input_changes_only: Given[bool] = Field(
        default=None, description="Whether only hooks of managed settings may change the input of a call."
    )
    allowed_http_hook_urls: Given[Items[Named]] = None
    http_hook_allowed_env_vars: Given[Items[Named]] = None

    mcp_servers: NamedServers = Field(default_factory=dict)
    trusted_mcp_servers: Given[Items[Named]] = Field(
        default=None, description="Servers whose own word on what their tools do is believed."
    )
    concurrent_mcp_servers: Given[Items[Named]] = Field(
        default=None, description="Servers whose calls may run side by side."
    )
    enable_all_project_mcp_servers: Given[bool] = None
    enabled_mcpjson_servers: Given[Items[Named]] = None
    disabled_mcpjson_servers: Given[Items[Named]] = None
    allowed_mcp_servers: Given[Items[ServerMatch]] = None
    denied_mcp_servers: Given[Items[ServerMatch]] = None
    allow_managed_mcp_servers_only: Given[bool] = None

    model: Given[str] = None
    small_model: Given[str] = Field(
        default=None, description="For small questions: about a web page, or about a call in auto mode."
    )
    models: Given[Mapping[str, ModelEntry]] = Field(
        default=None, description="Facts of models by their names, where they are not known or not right."
    )
    available_models: Given[Items[str]] = None
    fallback_model: Given[Models] = None
    effort_level: Given[Literal["low", "medium", "high", "xhigh"]] = None
    agent: Given[Named] = None
    output_style: Given[str] = None
    api_key: Given[str] = None
    api_key_helper: Given[Named] = None
    custom_api_url: Given[str] = None
    otel_headers_helper: Given[Named] = None

    enabled_plugins: Given[Mapping[str, PluginSwitch]] = Field(
        default=None, description="`plugin@marketplace` and whether it is loaded, if it is on this machine."
    )
    extra_known_marketplaces: Given[Mapping[str, Marketplace]] = None

    skill_overrides: Given[Mapping[str, Literal["on", "name-only", "user-invocable-only", "off"]]] = None
    skill_listing_budget_fraction: Given[Annotated[float, Field(gt=0, le=1)]] = None
    skill_listing_max_desc_chars: Given[Annotated[int, Field(ge=1)]] = None
    disable_skill_shell_execution: Given[bool] = None
    disable_bundled_skills: Given[bool] = None

    cleanup_period_days: Given[Annotated[int, Field(ge=1)]] = None
    file_checkpointing_enabled: Given[bool] = None
    oversized_results: Given[OversizedResults] = Field(default=None, alias="oversized_results")
    read_tokens: Given[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="What one page of a file that Read shows may cost, in tokens."
    )
    read_reminder: Given[str] = Field(
        default=None, description="What Read says below the text of a file; empty for nothing."
    )
    read_reminder_off_for: Given[Items[Named]] = Field(
        default=None, description="Models for which it says nothing there."
    )
    tell_changed_files: Given[bool] = Field(
        default=None,
        description="Whether the model is told when a file that it has seen was changed.",
    )
    concise_results: Given[bool] = Field(
        default=None,
        description="Whether the model reads relative paths, and no diff where a change was made as asked.",
    )
    simple_mode: Given[bool] = Field(
        default=None, description="Whether Bash, Edit and Read are the only built-in tools."
    )
    features: Given[Items[Named]] = Field(default=None, description="Switches of tools that are off by default.")
    shell_snapshot: Given[bool] = Field(
        default=None, description="Whether commands have the functions and aliases of the user's own shell."
    )
    plans_directory: Given[str] = None
    claude_md_excludes: Given[Items[Named]] = None
    respect_gitignore: Given[bool] = None
    worktree: Given[Worktree] = None
    default_shell: Given[Literal["bash", "powershell"]] = None

    theme: Given[Theme] = None
    status_line: Given[StatusLine] = None
    file_suggestion: Given[FileSuggestion] = None
    ask_user_question_timeout: Given[Literal["60s", "5m", "10m"]] = None


MODELS: Final[Mapping[SettingsKind, type[BaseModel]]] = {
    SettingsKind.SETTINGS: SettingsFile,
    SettingsKind.HOOKS: HooksFile,
    SettingsKind.PERMISSIONS: PermissionsFile,
    SettingsKind.MCP: McpFile,
}

TAGS: Final = frozenset({"<one>", "<many>"}) | HOOK_TAGS | SERVER_TAGS
"""Names of alternatives, which appear in the location of an error and not in the file."""
