"""Every name, field and default that programs written for the Claude Agent SDK may rely on, as data."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, Final

import pytest

from ferrule.compat import claude_agent_sdk
from ferrule.compat.claude_agent_sdk import types

from ..requirement import requirement

PACKAGE: Final = [
    "AgentDefinition",
    "AssistantMessage",
    "BackgroundTaskSummary",
    "BaseHookInput",
    "CLIConnectionError",
    "CLIJSONDecodeError",
    "CLINotFoundError",
    "CanUseTool",
    "CanUseToolShadowedWarning",
    "ClaudeAgentOptions",
    "ClaudeSDKClient",
    "ClaudeSDKError",
    "ContentBlock",
    "ContextUsageCategory",
    "ContextUsageResponse",
    "ConversationResetMessage",
    "CwdChangedHookSpecificOutput",
    "DeferredToolUse",
    "EffortLevel",
    "ElicitationHookSpecificOutput",
    "ElicitationResultHookSpecificOutput",
    "FastModeDisabledReason",
    "FastModeState",
    "FileChangedHookSpecificOutput",
    "ForkSessionResult",
    "HookCallback",
    "HookContext",
    "HookEffort",
    "HookEventMessage",
    "HookInput",
    "HookJSONOutput",
    "HookMatcher",
    "InMemorySessionStore",
    "McpSdkServerConfig",
    "McpServerConfig",
    "McpServerConnectionStatus",
    "McpServerInfo",
    "McpServerStatus",
    "McpServerStatusConfig",
    "McpStatusResponse",
    "McpToolAnnotations",
    "McpToolInfo",
    "Message",
    "MessageDisplayHookSpecificOutput",
    "MessageOrigin",
    "MessageOriginKind",
    "MirrorErrorMessage",
    "ModelUsage",
    "NotificationHookInput",
    "NotificationHookSpecificOutput",
    "PermissionDeniedHookSpecificOutput",
    "PermissionMode",
    "PermissionRequestHookInput",
    "PermissionRequestHookSpecificOutput",
    "PermissionResult",
    "PermissionResultAllow",
    "PermissionResultDeny",
    "PermissionUpdate",
    "PostModelSwitchHookSpecificOutput",
    "PostToolBatchHookSpecificOutput",
    "PostToolUseFailureHookInput",
    "PostToolUseFailureHookSpecificOutput",
    "PostToolUseHookInput",
    "PostToolUseHookSpecificOutput",
    "PreCompactHookInput",
    "PreModelSwitchHookSpecificOutput",
    "PreToolUseHookInput",
    "PreToolUseHookSpecificOutput",
    "ProcessError",
    "RateLimitEvent",
    "RateLimitInfo",
    "RateLimitStatus",
    "RateLimitType",
    "ResultError",
    "ResultMessage",
    "SDKSessionInfo",
    "SandboxIgnoreViolations",
    "SandboxNetworkConfig",
    "SandboxSettings",
    "SdkBeta",
    "SdkMcpTool",
    "SdkPluginConfig",
    "ServerToolName",
    "ServerToolResultBlock",
    "ServerToolUseBlock",
    "SessionCronSummary",
    "SessionKey",
    "SessionListSubkeysKey",
    "SessionMessage",
    "SessionStartHookSpecificOutput",
    "SessionStore",
    "SessionStoreEntry",
    "SessionStoreFlushMode",
    "SessionStoreListEntry",
    "SessionSummaryEntry",
    "SettingSource",
    "StopHookInput",
    "StopHookSpecificOutput",
    "StreamEvent",
    "SubagentStartHookInput",
    "SubagentStartHookSpecificOutput",
    "SubagentStopHookInput",
    "SubagentStopHookSpecificOutput",
    "SystemInitData",
    "SystemInitMcpServer",
    "SystemInitPlugin",
    "SystemInitPluginError",
    "SystemMessage",
    "TERMINAL_TASK_STATUSES",
    "TaskBudget",
    "TaskNotificationMessage",
    "TaskNotificationOriginSubkind",
    "TaskNotificationStatus",
    "TaskProgressMessage",
    "TaskStartedMessage",
    "TaskUpdatedMessage",
    "TaskUpdatedStatus",
    "TaskUsage",
    "TextBlock",
    "ThinkingBlock",
    "ThinkingConfig",
    "ThinkingConfigAdaptive",
    "ThinkingConfigDisabled",
    "ThinkingConfigEnabled",
    "ToolAnnotations",
    "ToolPermissionContext",
    "ToolResultBlock",
    "ToolUseBlock",
    "Transport",
    "UserMessage",
    "UserPromptExpansionHookSpecificOutput",
    "UserPromptSubmitHookInput",
    "UserPromptSubmitHookSpecificOutput",
    "WorktreeCreateHookSpecificOutput",
    "__version__",
    "create_sdk_mcp_server",
    "delete_session",
    "delete_session_via_store",
    "fold_session_summary",
    "fork_session",
    "fork_session_via_store",
    "get_session_info",
    "get_session_info_from_store",
    "get_session_messages",
    "get_session_messages_from_store",
    "get_subagent_messages",
    "get_subagent_messages_from_store",
    "import_session_to_store",
    "list_sessions",
    "list_sessions_from_store",
    "list_subagents",
    "list_subagents_from_store",
    "project_key_for_directory",
    "query",
    "rename_session",
    "rename_session_via_store",
    "tag_session",
    "tag_session_via_store",
    "tool",
]

ONLY_TYPES: Final = [
    "AssistantMessageError",
    "AsyncHookJSONOutput",
    "HookEvent",
    "HookSpecificOutput",
    "McpClaudeAIProxyServerConfig",
    "McpHttpServerConfig",
    "McpSSEServerConfig",
    "McpSdkServerConfigStatus",
    "McpStdioServerConfig",
    "PermissionBehavior",
    "PermissionRuleValue",
    "PermissionUpdateDestination",
    "SyncHookJSONOutput",
    "SystemPromptFile",
    "SystemPromptPreset",
    "ThinkingDisplay",
    "ToolsPreset",
]

FIELDS: Final[Mapping[str, str]] = {
    "TextBlock": "text",
    "ThinkingBlock": "thinking signature",
    "ToolUseBlock": "id name input",
    "ToolResultBlock": "tool_use_id content=None is_error=None",
    "ServerToolUseBlock": "id name input",
    "ServerToolResultBlock": "tool_use_id content",
    "UserMessage": "content uuid=None parent_tool_use_id=None tool_use_result=None origin=None",
    "AssistantMessage": "content model parent_tool_use_id=None error=None usage=None message_id=None stop_reason=None "
    "session_id=None uuid=None",
    "SystemMessage": "subtype data",
    "HookEventMessage": "subtype data hook_event_name='' session_id=None uuid=None",
    "TaskStartedMessage": "subtype data task_id description uuid session_id tool_use_id=None task_type=None",
    "TaskProgressMessage": "subtype data task_id description usage uuid session_id tool_use_id=None "
    "last_tool_name=None",
    "TaskNotificationMessage": "subtype data task_id status output_file summary uuid session_id tool_use_id=None "
    "usage=None",
    "TaskUpdatedMessage": "subtype data task_id patch status=None session_id=None uuid=None",
    "MirrorErrorMessage": "subtype data key=None error=''",
    "ResultMessage": "subtype duration_ms duration_api_ms is_error num_turns session_id stop_reason=None "
    "total_cost_usd=None usage=None result=None structured_output=None model_usage=None permission_denials=None "
    "deferred_tool_use=None errors=None api_error_status=None uuid=None terminal_reason=None origin=None",
    "DeferredToolUse": "id name input",
    "StreamEvent": "uuid session_id event parent_tool_use_id=None",
    "RateLimitInfo": "status resets_at=None rate_limit_type=None utilization=None overage_status=None "
    "overage_resets_at=None overage_disabled_reason=None raw={}",
    "RateLimitEvent": "rate_limit_info uuid session_id",
    "ConversationResetMessage": "new_conversation_id uuid session_id",
    "SDKSessionInfo": "session_id summary last_modified file_size=None custom_title=None first_prompt=None "
    "git_branch=None cwd=None tag=None created_at=None",
    "SessionMessage": "type uuid session_id message parent_tool_use_id=None parent_agent_id=None",
    "ForkSessionResult": "session_id",
    "PermissionRuleValue": "tool_name rule_content=None",
    "PermissionUpdate": "type rules=None behavior=None mode=None directories=None destination=None",
    "ToolPermissionContext": "signal=None suggestions=[] tool_use_id=None agent_id=None blocked_path=None "
    "decision_reason=None title=None display_name=None description=None",
    "PermissionResultAllow": "behavior='allow' updated_input=None updated_permissions=None",
    "PermissionResultDeny": "behavior='deny' message='' interrupt=False",
    "HookMatcher": "matcher=None hooks=[] timeout=None",
    "AgentDefinition": "description prompt tools=None disallowedTools=None model=None skills=None memory=None "
    "mcpServers=None initialPrompt=None maxTurns=None background=None effort=None permissionMode=None",
    "SdkMcpTool": "name description input_schema handler annotations=None",
    "ClaudeAgentOptions": "tools=None allowed_tools=[] system_prompt=None mcp_servers={} strict_mcp_config=False "
    "permission_mode=None continue_conversation=False resume=None session_id=None max_turns=None max_budget_usd=None "
    "disallowed_tools=[] model=None fallback_model=None betas=[] permission_prompt_tool_name=None cwd=None "
    "cli_path=None settings=None add_dirs=[] env={} extra_args={} max_buffer_size=None debug_stderr stderr=None "
    "can_use_tool=None hooks=None user=None include_partial_messages=False include_hook_events=False "
    "fork_session=False resume_session_at=None resume_drops_turn=None agents=None setting_sources=None skills=None "
    "sandbox=None plugins=[] max_thinking_tokens=None thinking=None effort=None output_format=None "
    "enable_file_checkpointing=False session_store=None session_store_flush='batched' load_timeout_ms=60000 "
    "task_budget=None",
}

KEYS: Final[Mapping[str, str]] = {
    "BaseHookInput": "session_id transcript_path cwd permission_mode",
    "PreToolUseHookInput": "session_id transcript_path cwd permission_mode agent_id agent_type hook_event_name "
    "tool_name tool_input tool_use_id",
    "SubagentStopHookInput": "session_id transcript_path cwd permission_mode hook_event_name stop_hook_active "
    "agent_id agent_transcript_path agent_type",
    "NotificationHookInput": "session_id transcript_path cwd permission_mode hook_event_name message title "
    "notification_type",
    "SandboxSettings": "enabled autoAllowBashIfSandboxed excludedCommands allowUnsandboxedCommands network "
    "ignoreViolations enableWeakerNestedSandbox",
    "McpServerStatus": "name status serverInfo error config scope tools",
    "SessionKey": "project_key session_id subpath",
}


@requirement("SDK-1")
def test_every_name_can_be_imported_from_where_it_is_there() -> None:
    assert [name for name in PACKAGE if not hasattr(claude_agent_sdk, name)] == []
    of_types = [name for name in (*PACKAGE, *ONLY_TYPES) if name in types.__all__]
    assert len(of_types) > 100
    assert [name for name in ONLY_TYPES if not hasattr(types, name)] == []
    assert [name for name in of_types if getattr(types, name) is not getattr(claude_agent_sdk, name)] == []


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return f"{field.name}={field.default_factory()!r}"
    if field.default is dataclasses.MISSING or field.name == "debug_stderr":  # whatever standard error is
        return field.name
    return f"{field.name}={field.default!r}"


@requirement("SDK-1")
@pytest.mark.parametrize("name", FIELDS)
def test_a_value_has_those_fields_and_defaults(name: str) -> None:
    """Those that are required stand in the same order, so that they can be given by place; more may follow."""
    found = [_default(field) for field in dataclasses.fields(getattr(claude_agent_sdk, name))]
    known = FIELDS[name].split()

    assert [field for field in found if field in known] == known


@pytest.mark.parametrize("name", KEYS)
def test_a_dict_has_those_keys(name: str) -> None:
    assert set(typing.get_type_hints(getattr(types, name))) == set(KEYS[name].split())


def test_a_message_is_its_readers_own() -> None:
    block = claude_agent_sdk.TextBlock("secret")

    block.text = "***"

    assert vars(block) == {"text": "***"}
