"""Settings in, a session out. The one place that knows every part."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from platformdirs import user_state_path

from ..core.events import ListChanged
from ..core.ports import AfterCall, Approver, Extractor, Judge
from ..core.state import SessionState
from ..core.tool import AnyTool, Keep
from ..engine.budget import MESSAGE_LIMIT, Budget
from ..engine.bus import Bus
from ..engine.compaction import Compaction, StateNotes
from ..engine.gate import DEFAULT_LIMIT, Gate
from ..engine.pipeline import Pipeline
from ..engine.pool import Layer, Registry, available, features, hiding, without
from ..engine.session import Session
from ..hooks.hook import NO_HOOKS, Hook, HookBook
from ..hooks.payloads import Scene
from ..host.changed_files import ChangedFiles
from ..host.journal import Journal, recover
from ..host.ledger import Ledgers
from ..host.paths import LocalPaths
from ..host.search import Search
from ..host.shelf import Shelf
from ..host.shell import FinishedTasks, OpenTasks, Shell
from ..host.spill import DEFAULT_CLEANUP_DAYS, SessionFolder
from ..host.web.fetching import Fetcher
from ..host.web.pages import Pages
from ..host.web.searching import SEARCH_VARIABLES, WebSearches
from ..host.workfiles import Objection, Workfiles
from ..permissions.approvers import NobodyToAsk
from ..permissions.domains import PreApproval
from ..permissions.hiding import hidden_tools
from ..permissions.modes import Mode
from ..permissions.paths import Places
from ..permissions.protected import DEFAULT_LISTS, PathLists
from ..permissions.rules import Rule
from ..settings.files import kind_of
from ..tools import Services, builtin_tools
from ..tools.read import REMINDER, TOKENS
from .hooks import hook_parts
from .live_rules import LiveRules, Policy

log = logging.getLogger(__name__)

CONCURRENCY_VARIABLES = (
    "FERRULE_MAX_TOOL_CONCURRENCY",
    "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY",
    "COCODE_MAX_TOOL_USE_CONCURRENCY",
)

LASTING_STATE = {"todos": "todo_list", "plan": "approved_plan"}
"""The state that a compaction must not lose, and what the model is told that it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a session is made from. Every field has the default a careful user would choose."""

    cwd: str = field(default_factory=os.getcwd)
    added_directories: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    mode: Mode = Mode.DEFAULT
    pre_approval: PreApproval = field(default_factory=PreApproval)
    path_lists: PathLists = DEFAULT_LISTS
    """Which paths are protected, sensitive and secret."""
    only_tools: frozenset[str] | None = None
    """The built-in tools there are; `None` for all of them."""
    features: frozenset[str] = frozenset()
    state_folder: Path = field(default_factory=lambda: user_state_path("ferrule"))
    cleanup_days: int = DEFAULT_CLEANUP_DAYS
    max_concurrency: int = field(default_factory=lambda: concurrency_from(os.environ))
    result_limits: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    result_limit: int | None = None
    """For every tool that has a limit and none of its own in `result_limits`."""
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
    tell_changes: bool = True
    """Whether the model is told when somebody else changed a file that it has seen."""
    hooks: HookBook = NO_HOOKS
    reload: Callable[[], Policy] | None = None
    """Asked before each decision; `rules`, `mode` and `hooks` are what it says at the start."""


def open_session(
    settings: Settings | None = None,
    *,
    tools: Iterable[AnyTool] = (),
    judges: Sequence[Judge] = (),
    approver: Approver | None = None,
    after: Sequence[AfterCall] = (),
    hooks: Iterable[Hook] = (),
    extractor: Extractor | None = None,
    session_id: str | None = None,
) -> Session:
    """A session with the built-in tools and yours, under one policy.

    Your judges speak beside the rules, and your hooks beside those of the
    settings: see `ferrule.hook`. Without an approver nobody is asked, so a
    call that would have to ask is refused. Without an extractor a page of
    the web is given as it is, and nobody answers from it. For a session that
    is kept and can be resumed see `app.sessions`.
    """
    settings = settings or Settings()
    bus = Bus()
    emit = bus.emitter()
    session_id = session_id or new_session_id()
    folder = SessionFolder(_sessions_folder(settings), session_id, cleanup_days=settings.cleanup_days)
    paths = LocalPaths()
    cwd = paths.anchor(settings.cwd, os.getcwd())
    added = tuple(paths.anchor(directory, cwd) for directory in settings.added_directories)
    roots = _roots(paths, cwd, *added, str(folder.path))
    home = paths.anchor("~", cwd)
    places = Places(cwd=_roots(paths, cwd), home=_roots(paths, home), roots=roots)
    files = _workfiles(settings.state_folder, folder, cwd)
    state = SessionState(cwd, added_directories=added)
    policy = Policy(settings.rules, settings.mode, hooks=settings.hooks)  # as long as nobody reloads it
    rules = LiveRules(
        settings.reload or (lambda: policy), places, state, lists=settings.path_lists, domains=settings.pre_approval
    )
    shell = rules.box = Shell(folder.path / "commands", hidden=rules.plain_hidden)
    services = Services(
        files=files,
        search=Search(hidden=rules.hidden),
        shell=shell,
        parts_folder=folder.path / "parts",
        read_tokens=settings.read_tokens,
        reminder=settings.reminder,
        reminder_off_for=settings.reminder_off_for,
        pages=Pages(fetcher=Fetcher(local_hosts=rules.names_host), folder=folder.path / "web"),
        extractor=extractor,
        searches=_searches(os.environ),
    )
    builtin = builtin_tools(services)
    all_tools = (*builtin, *tools)
    approver = approver or NobodyToAsk()
    own = tuple(hooks)
    scene = Scene(session_id=session_id, project=cwd, mode=lambda: str(rules.last_mode))
    parts = (
        hook_parts(rules, own, scene, emit=emit, approver=approver, spill=folder)
        if own or settings.hooks or settings.reload
        else None  # there never will be any, so they cost nothing
    )
    registry = Registry(
        all_tools,
        features(settings.features),
        _chosen(settings, builtin),
        hiding(hidden_tools(settings.rules, places)),
        available(),
        changed=lambda names: emit(ListChanged("tools", names)),
    )
    pipeline = Pipeline(
        paths=paths,
        judges=(rules, *((parts.judge,) if parts else ()), *judges),
        approver=parts.approver if parts else approver,
        after=(*((parts.after,) if parts else ()), *after),
        emit=emit,
        budget=Budget(
            spill=folder,
            limits=_limits(settings, all_tools),
            keep=settings.result_keep,
            message_limit=settings.message_limit,
        ),
        time_limits=settings.time_limits,
        cut=lambda agent, call_id: files.ledgers.of(agent).not_shown(call_id),
    )
    state = SessionState(cwd, added_directories=added)
    return Session(
        id=session_id,
        workspace=cwd,
        registry=registry,
        pipeline=pipeline,
        state=state,
        compaction=Compaction(
            lasting=(StateNotes(state, LASTING_STATE), OpenTasks(shell.background)),
            only_these_stand=lambda agent, call_ids: files.ledgers.of(agent).keep_only(call_ids),
        ),
        bus=bus,
        gate=Gate(settings.max_concurrency),
        note_sources=(
            FinishedTasks(shell.background),
            *((parts.runner,) if parts else ()),
            *_changes(files, paths.resolve(cwd)[0], settings),
        ),
        closing=(*((parts.runner.close,) if parts else ()), shell.close),
        hooks=parts.lifecycle if parts else None,
    )


def new_session_id() -> str:
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(4).hex()}"


def _chosen(settings: Settings, builtin: Iterable[AnyTool]) -> Layer:
    """Only built-in tools are chosen from: a tool that somebody passes to the session is wanted by that."""
    kept = settings.only_tools
    named = {tool.name: {tool.name, *(alias.name for alias in tool.aliases)} for tool in builtin}
    left_out = [name for name, names in named.items() if kept is not None and not names & kept]
    return without(left_out, "it is not among the tools chosen for this run")


def _sessions_folder(settings: Settings) -> Path:
    """In a folder of its own wherever it is: old sessions are removed from it, and nothing else may stand there."""
    folder = settings.results_folder
    return settings.state_folder / "sessions" if folder is None else folder / "ferrule-sessions"


def _searches(environ: Mapping[str, str]) -> WebSearches:
    """The services are loaded only where one is configured."""
    if not any(environ.get(name) for name in SEARCH_VARIABLES):
        return WebSearches()
    from ..host.web.backends import configured

    return configured(environ)


def _limits(settings: Settings, tools: Iterable[AnyTool]) -> Mapping[str, int | None]:
    if settings.result_limit is None:
        return settings.result_limits
    limited = {tool.name: settings.result_limit for tool in tools if tool.result_limit is not None}
    return {**limited, **settings.result_limits}


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


def _workfiles(state_folder: Path, folder: SessionFolder, workspace: str) -> Workfiles:
    """What this session reads and writes with; what a killed one left half-done is tidied up first."""
    journals = state_folder / "writing"
    for saved in recover(journals):
        log.warning("a process was killed while it wrote a file with several hard links; its old content is %s", saved)
    return Workfiles(Ledgers(Shelf(folder.path / "seen")), Journal(journals), settings_objection(workspace))


def _changes(files: Workfiles, workspace: str, settings: Settings) -> tuple[ChangedFiles, ...]:
    return (ChangedFiles(files.ledgers, workspace),) if settings.tell_changes else ()


def settings_objection(workspace: str) -> Objection:
    """Objects to a settings file that would not be valid."""
    home, config_folder = os.path.expanduser("~"), os.environ.get("CLAUDE_CONFIG_DIR")

    def objection(path: str, before: str | None, after: str) -> str | None:
        kind = kind_of(path, home=home, workspace=workspace, config_folder=config_folder)
        if kind is None:
            return None
        from ..settings.checking import check

        violations = check(kind, before, after)
        return violations.describe(path) if violations else None

    return objection


def _roots(paths: LocalPaths, *folders: str) -> tuple[str, ...]:
    """Each folder as written and as resolved: a workspace may itself be reached through a link."""
    return tuple(dict.fromkeys(form for folder in folders for form in (folder, paths.resolve(folder)[0])))
