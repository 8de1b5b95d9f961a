"""From options to a conversation that can be asked."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from ..app.headless_run import SchemaError, StructuredOutput, read_schema
from ..app.kept_sessions import TranscriptError
from ..app.session_opening import ModelBriefing, Which, open_conversation
from ..app.session_opening import OpenedSession as Found
from ..app.session_services import servers_of
from ..app.session_settings import SessionParts, Settings
from ..app.settings_interpretation import load_session_settings
from ..app.slash_commands import SlashCommands
from ..core.model import ModelError
from ..core.verdicts import Behavior
from ..engine.pool import Registry
from ..engine.session import Session
from ..engine.spending import TurnLimits
from ..host.files.checkpoints import Checkpoints
from ..mcp.config import InProcess, ServerConfig
from ..mcp.naming import server_parts, tool_name
from ..mcp.servers import McpServers
from ..permissions.live_rules import Policy
from ..permissions.modes import Mode
from ..permissions.rules import Rule, RuleError
from ..providers.asked_model import AskedModel
from ..settings.levels import Level, SettingsPath
from ..settings.reload import EVERY_LEVEL
from ..settings.settings_files import SettingsKind
from ..settings.settings_loading import load_text
from ..settings.settings_sources import LEVELS, SettingsError, is_trusted_by
from ..skills.skill_catalog import Skills
from .errors import CannotOpen
from .mirroring import Mirror
from .opened_models import OpenedModels
from .option_checks import faults_in
from .options import Options
from .plugins import Plugin
from .toolbox import AskingApprover
from .tools import SdkServer, SdkTool


class OwnServer:
    """Its tools under the names that models use, updated as they change."""

    def __init__(self, server: SdkServer, part: str | None, registry: Registry) -> None:
        """`part` is its part of the names of its tools; without one they keep their names."""
        self._server = server
        self._part = part
        self._registry = registry
        self._tools: dict[str, tuple[SdkTool, SdkTool]] = {}
        self._renew()
        self._unlisten: Callable[[], None] | None = server.listen(self._renew)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def leave(self) -> None:
        """Stop following its changes."""
        unlisten, self._unlisten = self._unlisten, None
        if unlisten is not None:
            unlisten()

    def _renew(self) -> None:
        """Each with the tool that it was made from, so that an unchanged one is not replaced."""
        before, self._tools = self._tools, {}
        for tool in self._server.tools:
            name = tool.name if self._part is None else tool_name(self._part, tool.name, self._tools)
            known = before.get(name)
            self._tools[name] = known if known and known[0] is tool else (tool, tool.rename(name))
        gone = [name for name, pair in before.items() if self._tools.get(name) is not pair]
        come = [pair[1] for name, pair in self._tools.items() if before.get(name) is not pair]
        self._registry.replace_remote(gone, come)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedConversation:
    """Everything that one conversation runs with."""

    session: Session
    found: Found
    plugins: tuple[Plugin, ...]
    model: AskedModel
    models: OpenedModels
    structured: StructuredOutput | None
    rules: AddedRules
    servers: McpServers
    own_servers: Mapping[str, OwnServer]
    state_folder: Path
    checkpoints: Checkpoints | None
    mirror: Mirror | None
    may_bypass: bool
    """Whether it was opened in a mode that allows everything."""

    @property
    def commands(self) -> SlashCommands:
        """The available slash commands."""
        return self.found.commands


WAYS_ON: Final = (
    "To continue, review them with `ferrule trust --show`; then trust the folder for this run (`trust=True`, "
    "`trust_folder=True` of ClaudeAgentOptions, or FERRULE_TRUST=1), trust it permanently with `ferrule trust`, or "
    "leave them out with `without_project_hooks=True` or by `setting_sources`."
)


def open_for_program(options: Options, mirror: Mirror | None = None) -> OpenedConversation:
    """Raises `CannotOpen`. Nothing runs before the session is entered."""
    try:
        return _open(options, mirror)
    except (SettingsError, RuleError, TranscriptError, ModelError, SchemaError) as error:
        raise CannotOpen(str(error)) from error


def _open(options: Options, mirror: Mirror | None) -> OpenedConversation:
    _check(options)
    plugins = tuple(Plugin.at(path) for path in options.plugins)
    settings, levels = _settings(options, plugins)
    models = _models(options, settings)
    model = models.leading(options.model if isinstance(options.model, str) else None)
    if options.max_budget_usd is not None and model.facts.input_price is None:
        raise CannotOpen(f"The price of {model.name} is unknown, so a budget cannot be enforced. Leave the budget out.")
    rules = AddedRules(settings.policy_source())
    settings = replace(settings, reload=rules, servers=(*settings.servers, *_in_process(options)))
    structured = StructuredOutput(read_schema(json.dumps(options.output_schema))) if options.output_schema else None
    servers = servers_of(settings, options.questioner)
    checkpoints = Checkpoints() if options.checkpoints else None
    parts: SessionParts = {
        "tools": (*options.tools, *((structured,) if structured else ())),
        "hooks": options.hooks,
        "approver": AskingApprover(options.ask) if options.ask is not None else None,
        "person": options.person,
        "questioner": options.questioner,
        "approver_answers": options.approver_answers,
        "mcp": servers,
        "models": models,
        "small_model": models.small(),
        "checkpoints": checkpoints,
        "mirror": mirror,
    }
    if options.skills is not None and settings.pages is not None:
        parts["skills"] = Skills(settings.pages, options.skills)
    found = open_conversation(
        settings,
        _telling(options, levels),
        Which(
            resume=options.resume,
            latest=options.continue_last,
            fork=options.fork,
            session_id=options.session_id,
            fork_at=options.fork_at,
        ),
        limits=TurnLimits(max_turns=options.max_turns, max_budget=options.max_budget_usd),
        **parts,
    )
    for warning in found.warnings:
        log.warning("%s", warning)
    found.session.thinking_tokens = options.thinking_tokens
    found.session.effort = options.effort
    if mirror is not None:
        mirror.begin(found.session.id, found.session.transcript_path, is_fork=options.fork)
    return OpenedConversation(
        session=found.session,
        found=found,
        plugins=plugins,
        model=AskedModel(model),
        models=models,
        structured=structured,
        rules=rules,
        servers=servers,
        own_servers=_own_servers(options, found.session.registry),
        state_folder=settings.state_folder,
        checkpoints=checkpoints,
        mirror=mirror,
        may_bypass=settings.mode is Mode.BYPASS,
    )


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
    if options.fork_at and not options.fork:
        raise CannotOpen("`fork_at` needs `fork`: a transcript is never shortened.")


def _models(options: Options, settings: Settings) -> OpenedModels:
    given = None if options.model is None or isinstance(options.model, str) else options.model
    environ = {**os.environ, **settings.environment, **options.env}
    return OpenedModels(given, environ, settings.model, fallback=options.fallback_model)


def _settings(options: Options, plugins: tuple[Plugin, ...]) -> tuple[Settings, frozenset[Level]]:
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
        server_sources=(*_server_sources(options), *(one for plugin in plugins if (one := plugin.servers()))),
        more=[one for plugin in plugins if (one := plugin.hooks())],
        strict_servers=options.strict_mcp_config,
        project_hooks=not options.without_project_hooks,
        ways_on=WAYS_ON,
    )
    for warning in found.warnings:
        log.warning("%s", warning)
    return _with_pages(settings, options, plugins), levels


def _telling(options: Options, levels: frozenset[Level]) -> ModelBriefing:
    base, append = options.system_prompt, options.append_system_prompt
    return ModelBriefing(base=base, append=append, levels=levels, trusting=_trusts(options))


def _trusts(options: Options) -> bool:
    return options.trust or is_trusted_by(os.environ)


def _with_pages(settings: Settings, options: Options, plugins: tuple[Plugin, ...]) -> Settings:
    pages = settings.pages
    assert pages is not None, "settings that were gathered have them"
    agents = (kind for plugin in plugins for kind in plugin.agents(pages))
    more = (shelf for plugin in plugins for shelf in plugin.shelves)
    return replace(settings, pages=pages.join(more), agents=(*settings.agents, *agents))


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
    flags = {flag: {"permissions": what} for flag, what in said.items() if any(what.values())}
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


def _sdk_servers(options: Options) -> dict[str, Any]:
    given = options.mcp_servers
    entries = cast(Mapping[str, Mapping[str, Any]], given if isinstance(given, Mapping) else {})
    return {name: entry.get("instance") for name, entry in entries.items() if entry.get("type") == "sdk"}


def _own_servers(options: Options, registry: Registry) -> dict[str, OwnServer]:
    """Servers made by `create_sdk_mcp_server`."""
    servers = _sdk_servers(options)
    parts = server_parts(servers)
    return {
        name: OwnServer(server, parts[name], registry)
        for name, server in servers.items()
        if isinstance(server, SdkServer)
    }


def _in_process(options: Options) -> Iterator[ServerConfig]:
    """Server objects of the `mcp` package, which are used like any server."""
    servers = _sdk_servers(options)
    parts = server_parts(servers)
    for name, server in servers.items():
        if server is None:
            raise CannotOpen(f"`mcp_servers.{name}` has no `instance`. Make it with create_sdk_mcp_server.")
        if not isinstance(server, SdkServer):
            yield ServerConfig(name=name, transport=InProcess(server), part=parts[name], origin="this program")
