"""What a program chooses for a conversation."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..agents.agent_kinds import AgentKind
from ..app.session_settings import Settings
from ..core.model import Effort, ModelProvider
from ..core.ports import Questioner
from ..core.tool import AnyTool
from ..core.values import frozen_named_value
from ..hooks.hook import Hook
from ..permissions.approvals import Person
from ..permissions.modes import Mode

if TYPE_CHECKING:
    from ..settings.settings_loading import Loaded
    from .stores import SessionStore
    from .toolbox import Ask

Folder: TypeAlias = str | os.PathLike[str]


@frozen_named_value
class Options:
    """Every default is what `ferrule -p` does without a flag."""

    model: str | ModelProvider | None = None
    """A name, or the model itself, which stays its owner's to close; `None` for what the environment names."""
    fallback_model: str | None = None
    """The fallback if the service of the other model cannot answer."""
    cwd: Folder | None = None
    added_directories: Sequence[Folder] = ()
    system_prompt: str | None = None
    """Replaces the built-in instructions."""
    append_system_prompt: str | None = None

    allow: Sequence[str] = ()
    """Rules, as settings have them."""
    deny: Sequence[str] = ()
    mode: Mode | str | None = None
    """`None` for what the settings say."""
    may_bypass: bool = False
    """Whether bypassPermissions can be chosen later."""
    ask: Ask | None = None
    """Called when a call needs approval: yes, no, or no with a reason. Without it such a call is refused."""
    person: Person | None = None
    """Instead of `ask`: asked one question at a time, with rules for "always"."""
    questioner: Questioner | None = None
    """Who answers the model's own questions."""
    approver_answers: bool = False
    """Whether `person` answers them instead, by filling in the input of AskUserQuestion."""
    hooks: Sequence[Hook] = ()
    """See `ferrule.hook`."""

    tools: Sequence[AnyTool] = ()
    """The program's own tools: see `ferrule.tool`."""
    builtin_tools: Collection[str] | None = None
    """The available built-in tools; `None` for all."""
    mcp_servers: Mapping[str, Mapping[str, Any]] | Folder = field(default_factory=dict[str, Mapping[str, Any]])
    """By name: what `create_sdk_mcp_server` returns, or an entry as in `.mcp.json`; or such a file."""
    mcp_configs: Sequence[str] = ()
    """Further files like `.mcp.json`, or their JSON."""
    strict_mcp_config: bool = False
    """Whether those are the only servers."""
    agents: Sequence[AgentKind] = ()
    agent: str | None = None
    """The kind of agent that the conversation itself is."""

    skills: Collection[str] | None = None
    """The available skills and commands, by name; `None` for all."""
    slash_commands: bool = True
    """Whether a prompt that begins with a slash is a command."""
    plugins: Sequence[Folder] = ()
    """Folders with agents, skills, commands, hooks and servers. They are trusted because they are named here."""
    plugins_without_servers: Sequence[Folder] = ()
    """More of them, whose servers are not started."""

    setting_sources: Sequence[str] | None = None
    """Of `user`, `project` and `local`; `None` for all, an empty one for none."""
    settings: str | None = None
    """An additional settings file, or its JSON."""
    more_settings: Sequence[Loaded] = ()
    """Settings that were read already."""
    bare: bool = False
    """Whether hooks and instructions of files are left out."""
    trust: bool = False
    """Whether to trust what the folder itself allows and runs."""
    without_project_hooks: bool = False
    """Whether to ignore the folder's hooks, trusted or not."""
    base: Settings | None = None
    """For settings without an option here; settings files are applied on top."""
    sandbox: Mapping[str, Any] | None = None
    """As `sandbox` in settings."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables in addition to those of the process, for choosing the model and its service."""

    max_turns: int | None = None
    max_budget_usd: float | None = None
    thinking_tokens: int | None = None
    """How much of an answer may be reasoning, 0 for none; `None` for what the environment says."""
    effort: Effort | None = None
    output_schema: Mapping[str, Any] | None = None
    """A JSON Schema that the answer must fit."""

    resume: str | None = None
    """The id of a conversation to resume."""
    continue_last: bool = False
    """Continue the most recent one in the directory."""
    fork: bool = False
    """Resume under a new id, and leave the original unchanged."""
    fork_at: str | None = None
    """The id of the last entry of the old transcript that a fork takes over."""
    session_id: str | None = None
    """The id of a new one, or of a fork."""
    persist: bool = True
    """Whether the conversation is kept on disk, and can be resumed."""

    checkpoints: bool = False
    """Whether to keep the previous contents of files that tools change, for `rewind_files` of the client."""

    session_store: SessionStore | None = None
    """Where the transcript is also kept, and resumed from; see `sdk/stores.py`."""
    store_flush: Literal["batched", "eager"] = "batched"
    """When it is sent there: before each result, or at once."""
    load_within: float = 60.0
    """Seconds that the store may take to return a transcript."""

    agent_messages: Literal["all", "calls"] = "all"
    """Which messages of agents are sent: all, or only calls and results. Each names the call that it belongs to."""
    prompt_messages: bool = False
    """Whether prompts are sent too, as messages of the user."""
    partial_messages: bool = False
    hook_messages: bool = False
    task_messages: bool = False
    """Whether there are messages when agents and commands in the background begin and end."""
