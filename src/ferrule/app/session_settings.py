"""What a session is made from, as values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from ..agents.agent_catalog import Agents
from ..agents.agent_kinds import AgentKind
from ..agents.caps import Caps
from ..agents.launcher import Brief, ModelSource
from ..core.model import ModelProvider
from ..core.ports import AfterCall, Approver, Extractor, Judge, Questioner
from ..core.tool import AnyTool, Keep
from ..core.values import named_value
from ..engine.budget import MESSAGE_LIMIT
from ..engine.gate import DEFAULT_LIMIT
from ..hooks.hook import NO_HOOKS, Hook, HookBook
from ..host.documents.text_pages import REMINDER, TOKENS
from ..host.storage.session_folder import DEFAULT_CLEANUP_DAYS
from ..host.storage.state_folder import state_folder
from ..mcp.config import ServerConfig
from ..permissions.approvals import Person
from ..permissions.classifier import Classifier
from ..permissions.domains import PreApproval
from ..permissions.live_rules import LiveRules, Policy
from ..permissions.modes import Mode
from ..permissions.protected import DEFAULT_LISTS, PathLists
from ..permissions.reading_door import ReadingDoor
from ..permissions.rules import Rule
from ..providers.model_choice import ModelChoice
from ..settings.definition_files import DefinitionFiles
from ..skills.skill_catalog import Skills

if TYPE_CHECKING:
    from ..bash_analysis.analysis import Analyse
    from ..host.files.checkpoints import Checkpoints
    from ..mcp.servers import McpServers
    from ..settings.plugins import Plugin

CONCURRENCY_VARIABLES = (
    "FERRULE_MAX_TOOL_CONCURRENCY",
    "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY",
    "COCODE_MAX_TOOL_USE_CONCURRENCY",
)


def concurrency_from(environment: Mapping[str, str]) -> int:
    """The cap that the environment sets; a bad or zero value means the default.

    >>> concurrency_from({"FERRULE_MAX_TOOL_CONCURRENCY": "4"}), concurrency_from({})
    (4, 10)
    """
    for name in CONCURRENCY_VARIABLES:
        if name in environment:
            text = environment[name].strip()
            return int(text) if text.isascii() and text.isdecimal() and 0 < int(text) < 10_000 else DEFAULT_LIMIT
    return DEFAULT_LIMIT


SIMPLE_VARIABLES = ("FERRULE_SIMPLE", "CLAUDE_CODE_SIMPLE")


def is_simple(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for the three basic tools.

    >>> is_simple({"FERRULE_SIMPLE": "1"}), is_simple({"CLAUDE_CODE_SIMPLE": "0"})
    (True, False)
    """
    text = next((environment[name] for name in SIMPLE_VARIABLES if name in environment), "")
    return text.strip().lower() not in ("", "0", "false", "no", "off")


@named_value
class SessionPolicy(Policy):
    """What settings say: who decides, and everything else that a session takes from them."""

    hooks: HookBook = NO_HOOKS
    directories: tuple[str, ...] = ()
    cleanup_days: int | None = None
    result_limit: int | None = None
    result_keep: Keep | None = None
    results_folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    model: ModelChoice = field(default_factory=ModelChoice)
    output_style: str = ""
    approves_https: bool = False
    """Whether any page may be fetched over https without a question."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of a session's settings, by name."""
    names_domains: bool = False
    """Whether settings name the domains that may be fetched from without a question."""
    ignored_rules: tuple[str, ...] = ()
    """Rules that are not valid and would only allow something, and why."""
    given_rules: tuple[Rule, ...] = ()
    """Those of the rules that came with the command line."""
    warnings: tuple[str, ...] = ()
    """For a person: what was left out, and why."""


class SessionRules(LiveRules):
    """The rules of a session, whose settings have hooks as well."""

    @property
    def hooks(self) -> HookBook:
        """As they were at the last look."""
        policy = self.last_policy
        return policy.hooks if isinstance(policy, SessionPolicy) else NO_HOOKS


@named_value
class Settings:
    """What a session is made from. Every field has the default a careful user would choose."""

    cwd: str = field(default_factory=os.getcwd)
    added_directories: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    mode: Mode = Mode.DEFAULT
    model: ModelChoice = field(default_factory=ModelChoice)
    """Which model to ask by default."""
    pre_approval: PreApproval = field(default_factory=PreApproval)
    path_lists: PathLists = DEFAULT_LISTS
    """Which paths are protected, sensitive and secret."""
    only_tools: frozenset[str] | None = None
    """The available built-in tools; `None` for all of them."""
    simple: bool = field(default_factory=lambda: is_simple(os.environ))
    """Whether there are no built-in tools but Bash, Edit and Read."""
    features: frozenset[str] = frozenset()
    """The tools behind these switches are available."""
    state_folder: Path = field(default_factory=state_folder)
    cleanup_days: int = DEFAULT_CLEANUP_DAYS
    max_concurrency: int = field(default_factory=lambda: concurrency_from(os.environ))
    """How many calls run at once. Where it is the default, many more of those that only read do."""
    result_limits: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    result_limit: int | None = None
    """The default for every tool with a limit that is not in `result_limits`."""
    result_keep: Keep | None = None
    results_folder: Path | None = None
    """Where sessions keep their results, if not in the state folder."""
    message_limit: int = MESSAGE_LIMIT
    time_limits: Mapping[str, float] = field(default_factory=dict[str, float])
    read_tokens: int = TOKENS
    """What one page of Read may cost."""
    reminder: str | None = REMINDER
    """What Read says below the text of a file, and the models for which it says nothing."""
    reminder_off_for: tuple[str, ...] = ()
    concise: bool = True
    """Whether the model reads relative paths, and no diff where a change was made as asked."""
    servers: tuple[ServerConfig, ...] = ()
    """MCP servers, which are started in the background and closed with the session."""
    tell_changes: bool = True
    """Whether the model is notified when a file that it has seen was changed by others."""
    shell_snapshot: bool = False
    """Whether commands have the functions and aliases of the user's own shell."""
    hooks: HookBook = NO_HOOKS
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables for hooks and commands, in addition to those of this process."""
    pages: DefinitionFiles | None = None
    """Where skills and agents are read from; without it only the built-in ones exist."""
    agents: tuple[AgentKind, ...] = ()
    """Kinds of agents that a program defines; they take precedence over those from files."""
    servers_of_agent: Callable[[AgentKind], tuple[ServerConfig, ...]] | None = None
    """The servers that the file of an agent defines, as far as settings let them be started; without it none are."""
    plugins: tuple[Plugin, ...] = ()
    """What they contain is in the other settings already; these are for whoever asks which there are."""
    output_style: str = ""
    """The name of one; empty for the default."""
    agent_caps: Caps = field(default_factory=lambda: Caps.from_environment(os.environ))
    reload: Callable[[], Policy] | None = None
    """Asked before each decision; `rules`, `mode` and `hooks` are what it says at the start."""

    def policy_source(self) -> Callable[[], Policy]:
        """`reload`, or what always gives the policy at the start."""
        if self.reload is not None:
            return self.reload
        policy = SessionPolicy(self.rules, self.mode, hooks=self.hooks)
        return lambda: policy


def reading_door(settings: Settings) -> ReadingDoor:
    return ReadingDoor(settings.policy_source(), settings.cwd, settings.added_directories, settings.path_lists)


class SessionParts(TypedDict, total=False):
    """What a program may plug into a session."""

    tools: Iterable[AnyTool]
    builtin: bool
    """Whether the built-in tools are available in addition to these; by default they are."""
    judges: Sequence[Judge]
    """They judge in addition to the rules."""
    hooks: Iterable[Hook]
    """They run in addition to those of the settings: see `ferrule.hook`."""
    after: Sequence[AfterCall]
    approver: Approver | None
    """Without one nobody is asked, so a call that would have to ask is refused."""
    person: Person | None
    """Asked one question at a time, with a rule for "always"; replaces an approver."""
    questioner: Questioner | None
    """Without one nobody answers questions."""
    approver_answers: bool
    """Whether the approver of calls also answers the questions of AskUserQuestion, by filling them in."""
    extractor: Extractor | None
    """Without one the session's own model reads pages, or that of `small_model`."""
    small_model: ModelProvider | None
    """For small questions; without one it is whichever model was asked last."""
    classifier: Classifier | None
    """Judges what no rule decides. Without one a small model does, in the mode `auto` alone."""
    skills: Skills | None
    """Replaces those of the settings, for programs that need access to them."""
    agents: Agents
    """Replaces those of the settings, for programs that need access to them, or to their warnings."""
    analyse: Analyse | None
    """Says what a command would do, instead of Ferrule's own analysis."""
    mcp: McpServers | None
    """Replaces the settings' servers, for programs that need access to them; the session closes them."""
    brief: Brief
    """Instructions for agents in addition to the prompt of their kind."""
    models: ModelSource | None
    """Models other than the session's, for agents that use one."""
    mirror: Callable[[bytes], None] | None
    """Gets each line of a kept session's transcript once it is written."""
    checkpoints: Checkpoints | None
    """Where the previous contents of changed files are kept; without it nothing can be restored."""
