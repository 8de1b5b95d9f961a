"""What a program chooses for a conversation."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..agents.agent_kinds import AgentKind
from ..app.session_settings import Settings
from ..core.model import Effort, ModelProvider
from ..core.ports import Questioner
from ..core.tool import AnyTool
from ..hooks.hook import Hook
from ..permissions.approvals import Person
from ..permissions.modes import Mode
from .stores import SessionStore
from .toolbox import Ask

Folder: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Every default is what `ferrule -p` does without a flag."""

    model: str | ModelProvider | None = None
    """A name, or the model itself, which stays its owner's to close; `None` for what the environment names."""
    fallback_model: str | None = None
    """Asked where the service of the other cannot answer."""
    cwd: Folder | None = None
    added_directories: Sequence[Folder] = ()
    system_prompt: str | None = None
    """In the place of the built-in words."""
    append_system_prompt: str | None = None

    allow: Sequence[str] = ()
    """Rules, as settings have them."""
    deny: Sequence[str] = ()
    mode: Mode | str | None = None
    """`None` for what the settings say."""
    ask: Ask | None = None
    """Asked where a call needs somebody's word: yes, no, or no in words. Without it such a call is refused."""
    person: Person | None = None
    """In the place of `ask`: asked one question at a time, with rules for "always"."""
    questioner: Questioner | None = None
    """Who answers the model's own questions."""
    approver_answers: bool = False
    """Whether `person` answers them instead, by filling in the input of AskUserQuestion."""
    hooks: Sequence[Hook] = ()
    """See `ferrule.hook`."""

    tools: Sequence[AnyTool] = ()
    """Of the program's own: see `ferrule.tool`."""
    builtin_tools: Collection[str] | None = None
    """The built-in ones there are; `None` for all."""
    mcp_servers: Mapping[str, Mapping[str, Any]] | Folder = field(default_factory=dict[str, Mapping[str, Any]])
    """By name: what `create_sdk_mcp_server` gives, or an entry as in `.mcp.json`; or such a file."""
    strict_mcp_config: bool = False
    """Whether those are the only servers."""
    agents: Sequence[AgentKind] = ()

    skills: Collection[str] | None = None
    """The skills and commands there are, by name; `None` for all."""
    plugins: Sequence[Folder] = ()
    """Folders that bring agents, skills, commands, hooks and servers, which count because they are named here."""

    setting_sources: Sequence[str] | None = None
    """Of `user`, `project` and `local`; `None` for all, an empty one for none."""
    settings: str | None = None
    """A further settings file, or its JSON."""
    trust: bool = False
    """Whether what the folder itself allows and runs counts although nobody agreed to it."""
    without_project_hooks: bool = False
    """Whether the hooks of the folder are left out, trusted or not."""
    base: Settings | None = None
    """For what has no option here; what the settings files say comes on top of it."""
    sandbox: Mapping[str, Any] | None = None
    """As `sandbox` in settings."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables beside those of the process, for choosing the model and its service."""

    max_turns: int | None = None
    max_budget_usd: float | None = None
    thinking_tokens: int | None = None
    effort: Effort | None = None
    output_schema: Mapping[str, Any] | None = None
    """A JSON Schema that the answer must fit."""

    resume: str | None = None
    """The id of a conversation to go on with."""
    continue_last: bool = False
    """Go on with the one that was used last in the directory."""
    fork: bool = False
    """Go on under an id of its own, and leave the old one as it is."""
    fork_at: str | None = None
    """The id of the last entry of the old transcript that a fork takes over."""
    session_id: str | None = None
    """The id of a new one, or of a fork."""

    checkpoints: bool = False
    """Whether what stood in files before the tools changed them is kept, for `rewind_files` of the client."""

    session_store: SessionStore | None = None
    """Where the transcript is kept too, and resumed from; see `sdk/stores.py`."""
    store_flush: Literal["batched", "eager"] = "batched"
    """When it is sent there: before each result, or at once."""
    load_within: float = 60.0
    """Seconds that the store may take to give a transcript."""

    agent_messages: Literal["all", "calls"] = "all"
    """What is told of agents: everything, or only their calls with the results. Each names the call that it is for."""
    prompt_messages: bool = False
    """Whether prompts are told too, as messages of the user."""
    partial_messages: bool = False
    hook_messages: bool = False
