"""The Claude Agent SDK's names, shapes and semantics on top of this library: change the import, and the program runs.

Everything happens in this process. docs/sdk.md says what each option does,
and what is refused.
"""

from __future__ import annotations

from ..._version import __version__
from ...sdk.stores import InMemorySessionStore
from ...sdk.tools import SdkMcpTool, create_sdk_mcp_server, tool
from . import types
from .client import ClaudeSDKClient, query
from .errors import (
    ClaudeSDKError,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    FilesLeft,
    NotBuilt,
    ProcessError,
    ResultError,
    not_built,
)
from .options import ToolAnnotations
from .session_changes import (
    ForkSessionResult,
    delete_session,
    fork_session,
    rename_session,
    tag_session,
)
from .sessions import (
    get_session_info,
    get_session_messages,
    get_subagent_messages,
    list_sessions,
    list_subagents,
    project_key_for_directory,
)
from .stored_sessions import (
    delete_session_via_store,
    fork_session_via_store,
    get_session_info_from_store,
    get_session_messages_from_store,
    get_subagent_messages_from_store,
    import_session_to_store,
    list_sessions_from_store,
    list_subagents_from_store,
    rename_session_via_store,
    tag_session_via_store,
)
from .types import *  # noqa: F403 - the same names in both places, as programs import them from either

fold_session_summary = not_built("fold_session_summary")
Transport = not_built("Transport")

__all__: list[str] = [
    "CLIConnectionError",
    "CLIJSONDecodeError",
    "CLINotFoundError",
    "ClaudeSDKClient",
    "ClaudeSDKError",
    "FilesLeft",
    "ForkSessionResult",
    "InMemorySessionStore",
    "NotBuilt",
    "ProcessError",
    "ResultError",
    "SdkMcpTool",
    "ToolAnnotations",
    "Transport",
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
__all__ += types.__all__
