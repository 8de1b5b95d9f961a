"""Shapes of data that programs name in annotations. Nothing here decides anything: at run time they are plain dicts."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Required, TypeAlias, TypedDict

from .options import McpHttpServerConfig, McpSSEServerConfig, McpStdioServerConfig

# Servers, as `get_mcp_status` gives them

McpServerConnectionStatus: TypeAlias = Literal["connected", "failed", "needs-auth", "pending", "disabled"]


class McpSdkServerConfigStatus(TypedDict):
    type: Literal["sdk"]
    name: str


class McpClaudeAIProxyServerConfig(TypedDict):
    type: Literal["claudeai-proxy"]
    url: str
    id: str


McpServerStatusConfig: TypeAlias = (
    McpStdioServerConfig
    | McpSSEServerConfig
    | McpHttpServerConfig
    | McpSdkServerConfigStatus
    | McpClaudeAIProxyServerConfig
)


class McpToolAnnotations(TypedDict, total=False):
    readOnly: bool
    destructive: bool
    openWorld: bool


class McpToolInfo(TypedDict):
    name: str
    description: NotRequired[str]
    annotations: NotRequired[McpToolAnnotations]


class McpServerInfo(TypedDict):
    name: str
    version: str


class McpServerStatus(TypedDict):
    name: str
    status: McpServerConnectionStatus
    serverInfo: NotRequired[McpServerInfo]
    error: NotRequired[str]
    config: NotRequired[McpServerStatusConfig]
    scope: NotRequired[str]
    tools: NotRequired[list[McpToolInfo]]


class McpStatusResponse(TypedDict):
    mcpServers: list[McpServerStatus]


# The window, as `get_context_usage` gives it


class ContextUsageCategory(TypedDict):
    name: str
    tokens: int
    color: str
    isDeferred: NotRequired[bool]


class ContextUsageResponse(TypedDict):
    categories: list[ContextUsageCategory]
    totalTokens: int
    maxTokens: int
    rawMaxTokens: int
    percentage: float
    model: str
    isAutoCompactEnabled: bool
    memoryFiles: list[dict[str, Any]]
    mcpTools: list[dict[str, Any]]
    agents: list[dict[str, Any]]
    gridRows: list[list[dict[str, Any]]]
    autoCompactThreshold: NotRequired[int]
    deferredBuiltinTools: NotRequired[list[dict[str, Any]]]
    systemTools: NotRequired[list[dict[str, Any]]]
    systemPromptSections: NotRequired[list[dict[str, Any]]]
    slashCommands: NotRequired[dict[str, Any]]
    skills: NotRequired[dict[str, Any]]
    messageBreakdown: NotRequired[dict[str, Any]]
    apiUsage: NotRequired[dict[str, Any] | None]


# What stands in messages

AssistantMessageError: TypeAlias = Literal[
    "authentication_failed", "billing_error", "rate_limit", "invalid_request", "server_error", "unknown"
]
ServerToolName: TypeAlias = str
MessageOriginKind: TypeAlias = str
TaskNotificationOriginSubkind: TypeAlias = Literal["scheduled-trigger", "peer-send-message"]
TaskNotificationStatus: TypeAlias = Literal["completed", "failed", "stopped"]
TaskUpdatedStatus: TypeAlias = Literal["pending", "running", "paused", "completed", "failed", "killed"]
RateLimitStatus: TypeAlias = Literal["allowed", "allowed_warning", "rejected"]
RateLimitType: TypeAlias = Literal["five_hour", "seven_day", "seven_day_opus", "seven_day_sonnet", "overage"]
FastModeState: TypeAlias = str
FastModeDisabledReason: TypeAlias = str


class MessageOrigin(TypedDict, total=False):
    kind: Required[MessageOriginKind]
    server: str
    name: str
    body: str
    subkind: TaskNotificationOriginSubkind


class TaskUsage(TypedDict):
    total_tokens: int
    tool_uses: int
    duration_ms: int


class ModelUsage(TypedDict):
    inputTokens: int
    outputTokens: int
    cacheReadInputTokens: int
    cacheCreationInputTokens: int
    webSearchRequests: int
    costUSD: float
    contextWindow: int
    maxOutputTokens: int
    canonicalModel: NotRequired[str]
    provider: NotRequired[str]


class SystemInitMcpServer(TypedDict):
    name: str
    status: str


class SystemInitPlugin(TypedDict):
    name: str
    path: str


SystemInitPluginError: TypeAlias = dict[str, Any]


class SystemInitData(TypedDict, total=False):
    """`data` of the message `init`."""

    cwd: str
    tools: list[str]
    mcp_servers: list[SystemInitMcpServer]
    model: str
    permissionMode: str
    slash_commands: list[str]
    apiKeySource: str
    output_style: str
    agents: list[str]
    skills: list[str]
    plugins: list[SystemInitPlugin]
    session_id: str
    uuid: str
