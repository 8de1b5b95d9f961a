"""From options to a conversation that can be asked."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from ..app.headless_run import SchemaError, StructuredOutput, read_schema
from ..app.kept_sessions import TranscriptError
from ..app.session_opening import ModelBriefing, Which, open_conversation
from ..app.session_opening import OpenedSession as Found
from ..app.session_services import servers_if_any
from ..app.session_settings import SessionParts, Settings
from ..app.settings_interpretation import load_session_settings
from ..app.slash_commands import SlashCommands
from ..core.model import ModelError
from ..core.state import ModeChanged
from ..core.values import named_value
from ..core.verdicts import Behavior
from ..engine.session import Session
from ..engine.spending import TurnLimits
from ..mcp.server_context import ServerTrouble
from ..permissions.live_rules import Policy
from ..permissions.modes import Mode
from ..permissions.rules import Rule, RuleError
from ..providers.asked_model import AskedModel
from ..settings.levels import Level, SettingsPath
from ..settings.reload import EVERY_LEVEL
from ..settings.settings_files import SettingsKind
from ..settings.settings_loading import load_text
from ..settings.settings_sources import LEVELS, SettingsError, is_trusted_by
from ..settings.untrusted_keys import is_stricter
from ..skills.skill_catalog import Skills
from .errors import CannotOpen
from .opened_models import OpenedModels
from .option_checks import faults_in
from .options import Options

if TYPE_CHECKING:
    from ..agents.agent_kinds import AgentKind
    from ..host.files.checkpoints import Checkpoints
    from ..mcp.config import ServerConfig
    from ..mcp.server_connection import ServerConnection
    from ..mcp.servers import McpServers
    from ..settings.plugins import Plugin
    from .mirroring import Mirror
    from .tools import OwnServer


class AddedRules:
    """Satisfies `Settings.reload`: the same object as long as nothing has changed."""

    def __init__(self, policy: Callable[[], Policy]) -> None:
        self._policy = policy
        self._added: tuple[Rule, ...] = ()
        self._seen: Policy | None = None
        self._joined: Policy | None = None

    def add(self, rules: Iterable[Rule]) -> None:
        self._change((*rules, *self._added))

    def remove(self, behavior: Behavior, texts: Iterable[str]) -> None:
        """Those that were added; what the settings say stays."""
        gone = frozenset(texts)
        self._change(tuple(rule for rule in self._added if rule.behavior is not behavior or rule.text not in gone))

    def replace(self, behavior: Behavior, rules: Iterable[Rule]) -> None:
        self._change((*rules, *(rule for rule in self._added if rule.behavior is not behavior)))

    def _change(self, rules: tuple[Rule, ...]) -> None:
        self._added, self._seen = rules, None

    def __call__(self) -> Policy:
        policy = self._policy()
        if not self._added:
            return policy
        if policy is not self._seen or self._joined is None:
            self._seen, self._joined = policy, replace(policy, rules=(*self._added, *policy.rules))
        return self._joined


log = logging.getLogger(__name__)


@named_value
class OpenedConversation:
    """Everything that one conversation runs with."""

    session: Session
    found: Found
    plugins: tuple[Plugin, ...]
    model: AskedModel
    models: OpenedModels
    structured: StructuredOutput | None
    rules: AddedRules
    given_rules: tuple[Rule, ...]
    """Those of the options, not of a file."""
    servers: McpServers | None
    """`None` if none is configured."""
    own_servers: Mapping[str, OwnServer]
    settings: Settings
    checkpoints: Checkpoints | None
    mirror: Mirror | None
    may_bypass: bool
    """Whether it was opened in a mode that allows everything."""
    thinking_tokens: int | None
    """What it was opened with."""
    initial_prompt: str
    """What its agent is told before the first prompt; empty for nothing."""

    def server(self, name: str) -> ServerConnection:
        """Raises `ServerTrouble`."""
        if self.servers is None:
            raise ServerTrouble(f"The server `{name}` was not found. No servers are configured.")
        return self.servers.get(name)

    @property
    def state_folder(self) -> Path:
        return self.settings.state_folder

    @property
    def commands(self) -> SlashCommands:
        """The available slash commands."""
        return self.found.commands


WAYS_ON: Final = (
    "To continue, review them with `ferrule trust --show`; then trust the folder for this run (`trust=True`, "
    "`trust_folder=True` of ClaudeAgentOptions, or FERRULE_TRUST=1), trust it permanently with `ferrule trust`, or "
    "leave them out with `without_project_hooks=True` or by `setting_sources`."
)


def _log_warning(words: str) -> None:
    log.warning("%s", words)


@named_value
class OpeningWords:
    """How whoever opens a conversation speaks to its people."""

    ways_on: str = WAYS_ON
    """What to do where hooks of the folder are not trusted."""
    warn: Callable[[str], None] = _log_warning
    """Told what was left out, and why."""


def open_for_program(
    options: Options, mirror: Mirror | None = None, words: OpeningWords | None = None
) -> OpenedConversation:
    """Raises `CannotOpen`. Nothing runs before the session is entered."""
    try:
        return _open(options, mirror, words or OpeningWords())
    except (SettingsError, RuleError, TranscriptError, ModelError, SchemaError) as error:
        raise CannotOpen(str(error)) from error


def _open(options: Options, mirror: Mirror | None, words: OpeningWords) -> OpenedConversation:
    _check(options)
    settings, given_rules, levels = _settings(options, words)
    kind: AgentKind | None = None
    denied: tuple[Rule, ...] = ()
    if options.agent is not None:
        from .leading_agent import denied_to, find_kind, led_by

        kind = find_kind(options.agent, settings)
        denied = denied_to(kind)
        options, settings = led_by(kind, options, replace(settings, rules=(*settings.rules, *denied)), words.warn)
    models = _models(options, settings)
    model = models.leading()
    if options.max_budget_usd is not None and model.facts.input_price is None:
        raise CannotOpen(f"The price of {model.name} is unknown, so a budget cannot be enforced. Leave the budget out.")
    rules = AddedRules(settings.policy_source())
    rules.add(denied)
    settings = replace(settings, reload=rules, servers=(*settings.servers, *_in_process(options)))
    structured = StructuredOutput(read_schema(json.dumps(options.output_schema))) if options.output_schema else None
    checkpoints = _new_checkpoints() if options.checkpoints else None
    parts = _parts(options, settings, models, structured)
    parts["checkpoints"], parts["mirror"] = checkpoints, mirror
    if kind is not None and kind.mode == "plan":
        from ..agents.narrowing import OnlyLooks

        parts["judges"] = (OnlyLooks(kind.name),)
    opened = open_conversation(
        settings,
        _telling(options, levels),
        _which(options),
        limits=TurnLimits(max_turns=options.max_turns, max_budget=options.max_budget_usd),
        **parts,
    )
    for warning in opened.warnings:
        words.warn(warning)
    opened.commands.are_off = not options.slash_commands
    session = opened.session
    session.thinking_tokens = _thinking_tokens(options, settings)
    session.effort = options.effort
    if kind is not None and kind.mode == "dontAsk" and is_stricter(kind.mode, (str(settings.mode),)):
        session.state.apply(ModeChanged(kind.mode))
    if mirror is not None:
        mirror.begin(session.id, session.transcript_path, is_fork=options.fork)
    return OpenedConversation(
        session=session,
        found=opened,
        plugins=settings.plugins,
        model=AskedModel(model),
        models=models,
        structured=structured,
        rules=rules,
        given_rules=given_rules,
        servers=parts.get("mcp"),
        own_servers=_own_servers(options, session),
        settings=settings,
        checkpoints=checkpoints,
        mirror=mirror,
        may_bypass=options.may_bypass or settings.mode is Mode.BYPASS,
        thinking_tokens=session.thinking_tokens,
        initial_prompt=kind.initial_prompt if kind is not None and not session.history else "",
    )


def _new_checkpoints() -> Checkpoints:
    from ..host.files.checkpoints import Checkpoints

    return Checkpoints()


def _parts(
    options: Options, settings: Settings, models: OpenedModels, structured: StructuredOutput | None
) -> SessionParts:
    parts: SessionParts = {
        "tools": (*options.tools, *((structured,) if structured else ())),
        "hooks": options.hooks,
        "approver": None,
        "person": options.person,
        "questioner": options.questioner,
        "approver_answers": options.approver_answers,
        "mcp": servers_if_any(settings, options.questioner),
        "models": models,
        "small_model": models.small(),
    }
    if options.ask is not None:
        from .toolbox import AskingApprover

        parts["approver"] = AskingApprover(options.ask)
    if options.skills is not None and settings.pages is not None:
        parts["skills"] = Skills(settings.pages, options.skills)
    return parts


def _which(options: Options) -> Which:
    return Which(
        resume=options.resume,
        latest=options.continue_last,
        fork=options.fork,
        session_id=options.session_id,
        fork_at=options.fork_at,
        is_kept=options.persist,
    )


def _thinking_tokens(options: Options, settings: Settings) -> int | None:
    """Without an option, what the environment says."""
    if options.thinking_tokens is not None:
        return int(options.thinking_tokens) or None
    return settings.model.thinking({**os.environ, **settings.environment, **options.env})


def _check(options: Options) -> None:
    for fault in faults_in(options):
        raise CannotOpen(fault)
    if options.ask is not None and options.person is not None:
        raise CannotOpen("`ask` and `person` answer the same questions. Give one of them.")
    if options.resume and options.continue_last:
        raise CannotOpen("`resume` and `continue_last` name two conversations. Give one of them.")
    if options.session_id and (options.resume or options.continue_last) and not options.fork:
        raise CannotOpen("`session_id` is for a new conversation, or with `fork`.")
    if options.fork and not (options.resume or options.continue_last):
        raise CannotOpen("`fork` needs `resume` or `continue_last`.")
    if not options.persist and (options.resume or options.continue_last):
        raise CannotOpen("A conversation that is resumed is also kept. Leave out `persist`.")
    if options.fork_at and not options.fork:
        raise CannotOpen("`fork_at` needs `fork`: a transcript is never shortened.")


def _models(options: Options, settings: Settings) -> OpenedModels:
    given = None if options.model is None or isinstance(options.model, str) else options.model
    environ = {**os.environ, **settings.environment, **options.env}
    name = options.model if isinstance(options.model, str) else None
    return OpenedModels(given, environ, settings.model, name=name, fallback=options.fallback_model)


def _settings(options: Options, words: OpeningWords) -> tuple[Settings, tuple[Rule, ...], frozenset[Level]]:
    base = options.base or Settings()
    cwd = base.cwd if options.cwd is None else os.path.abspath(options.cwd)
    if not os.path.isdir(cwd):
        raise CannotOpen(f"{cwd} is not a directory. Give another `cwd`.")
    only = base.only_tools if options.builtin_tools is None else frozenset(options.builtin_tools)
    levels = _levels(options)
    settings, found = load_session_settings(
        replace(base, cwd=cwd, only_tools=only, agents=(*base.agents, *options.agents)),
        settings=options.settings,
        flags=_flags(options, cwd),
        levels=levels,
        trusting=_trusts(options),
        server_sources=_server_sources(options),
        plugin_folders=options.plugins,
        folders_without_servers=options.plugins_without_servers,
        more=options.more_settings,
        strict_servers=options.strict_mcp_config,
        project_hooks=not options.without_project_hooks,
        ways_on=words.ways_on,
    )
    for warning in found.warnings:
        words.warn(warning)
    return settings, found.given_rules, levels


def _telling(options: Options, levels: frozenset[Level]) -> ModelBriefing:
    base, append = options.system_prompt, options.append_system_prompt
    told = frozenset[Level]() if options.bare else levels
    return ModelBriefing(base=base, append=append, levels=told, trusting=_trusts(options))


def _trusts(options: Options) -> bool:
    return options.trust or is_trusted_by(os.environ)


def _levels(options: Options) -> frozenset[Level]:
    if options.setting_sources is None:
        return EVERY_LEVEL
    if unknown := [name for name in options.setting_sources if name not in LEVELS]:
        raise CannotOpen(f"`setting_sources`: {unknown[0]} is not one of {', '.join(LEVELS)}.")
    return frozenset(LEVELS[name] for name in options.setting_sources)


def _flags(options: Options, cwd: str) -> dict[str, dict[str, Any]]:
    """In the form of a settings file, under the names of the command line's flags."""
    try:
        mode = None if options.mode is None else str(Mode(options.mode))
    except ValueError:
        raise CannotOpen(f"{options.mode!r} is not a mode. Available: {', '.join(Mode)}.") from None
    base = options.base
    directories = (*(base.added_directories if base else ()), *_directories(options, cwd))
    said: dict[str, dict[str, Any]] = {
        "--allow": {"allow": list(options.allow)},
        "--deny": {"deny": list(options.deny)},
        "--permission-mode": {"defaultMode": mode},
        "--add-dir": {"additionalDirectories": list(directories)},
    }
    flags: dict[str, dict[str, Any]] = {
        flag: {"permissions": what} for flag, what in said.items() if any(what.values())
    }
    if options.bare:
        flags["--bare"] = {"disableAllHooks": True}
    return flags if options.sandbox is None else {**flags, "--sandbox": {"sandbox": _sandbox(options.sandbox)}}


def _sandbox(given: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps({"sandbox": given}, default=repr)
    loaded = load_text(SettingsPath(Level.COMMAND_LINE, "`sandbox`", SettingsKind.SETTINGS), text)
    for note in loaded.skipped:
        raise CannotOpen(note.fault)
    return loaded.value["sandbox"]


def _directories(options: Options, cwd: str) -> Iterator[str]:
    for directory in options.added_directories:
        path = os.path.abspath(os.path.join(cwd, os.path.expanduser(directory)))
        if not os.path.isdir(path):
            raise CannotOpen(f"`added_directories`: {os.fspath(directory)} is not a directory.")
        yield path


def _server_sources(options: Options) -> Iterator[str]:
    given = options.mcp_servers
    if not isinstance(given, Mapping):
        yield os.fspath(given)
        return
    entries = {name: dict(entry) for name, entry in given.items() if entry.get("type") != "sdk"}
    if entries:
        yield json.dumps({"mcpServers": entries})
    yield from options.mcp_configs


def _sdk_servers(options: Options) -> dict[str, Any]:
    given = options.mcp_servers
    entries = cast(Mapping[str, Mapping[str, Any]], given if isinstance(given, Mapping) else {})
    return {name: entry.get("instance") for name, entry in entries.items() if entry.get("type") == "sdk"}


def _own_servers(options: Options, session: Session) -> Mapping[str, OwnServer]:
    servers = _sdk_servers(options)
    if not servers:
        return {}
    from .tools import join_own_servers

    return join_own_servers(servers, session.registry)


def _in_process(options: Options) -> tuple[ServerConfig, ...]:
    servers = _sdk_servers(options)
    if not servers:
        return ()
    from .tools import in_process_servers

    return tuple(in_process_servers(servers))
