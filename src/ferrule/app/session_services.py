"""The base of a session: its folder, its files, its rules, its shell, its servers."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.events import Emit
from ..core.ports import Note, Questioner
from ..core.state import SessionState
from ..core.values import named_value
from ..core.verdicts import Confinement
from ..engine.bus import Bus
from ..host.files.changed_files import ChangedFiles
from ..host.files.journal import Journal, recover
from ..host.files.ledger import Ledgers
from ..host.files.local_paths import LocalPaths
from ..host.files.text_store import TextStore
from ..host.files.workfiles import Objection, Workfiles
from ..host.processes.held_places import HeldPlaces
from ..host.storage.session_folder import SessionFolder
from ..mcp.launcher import CannotStart, ServerChild
from ..mcp.server_context import Around, timing_from
from ..permissions.deciding_files import with_deciding_files
from ..permissions.live_rules import LiveRules, Policy, PolicyLost
from ..permissions.path_patterns import Places
from ..permissions.protected import PathLists, SecretPaths
from ..settings.settings_files import kind_of
from .session_settings import SessionParts, SessionRules, Settings

if TYPE_CHECKING:
    from ..host.files.checkpoints import Checkpoints
    from ..host.processes.program_hold import ProgramHold
    from ..host.processes.session_shell import Shell
    from ..mcp.servers import McpServers


class SessionLauncher:
    """Nothing is loaded or started before the first server is. Satisfies `mcp.launcher.Launcher`."""

    def __init__(self, shell: LateShell, rules: LiveRules) -> None:
        self._shell = shell
        self._rules = rules

    def can_hold(self) -> bool:
        needed = self._rules.denied_paths()
        return needed is None or (self._shell.is_tried and self._shell.confines(needed))

    async def wanted_hold(self, cwd: str | None, /) -> ProgramHold | None:
        needed = self._rules.denied_paths()
        if needed is None:
            return None
        if not self._shell.is_tried:
            await self._shell.try_it()
        if not self._shell.confines(needed):
            return None  # so the judge asks about its calls
        from ..host.processes.sandbox import CannotConfine

        try:
            return await self._shell.get().hold_for(self._placed(cwd), needed)
        except CannotConfine as error:
            raise CannotStart(f"paths that rules deny cannot be hidden from it: {str(error).rstrip('.')}") from None

    async def launch(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], cwd: str | None, hold: ProgramHold | None
    ) -> ServerChild:
        from ..host.processes.command import CommandFailed
        from ..host.processes.piped_process import Program
        from ..host.processes.sandbox import CannotConfine

        folder = self._placed(cwd)
        program = Program(path=_found(argv[0], env, folder), argv=argv, cwd=folder, env=env)
        try:
            return await self._shell.get().start_program(program, hold)
        except (CommandFailed, CannotConfine, OSError) as error:
            raise CannotStart(f"{argv[0]} cannot be started: {str(error).rstrip('.')}") from None

    def _placed(self, cwd: str | None) -> str:
        """Like a child process: relative to Ferrule's own working directory."""
        return os.path.abspath(cwd) if cwd else os.getcwd()


def _found(name: str, env: Mapping[str, str], cwd: str) -> str:
    """Raises `CannotStart`."""
    if "/" in name:
        path = os.path.join(cwd, name)
        why = "No such file or directory" if not os.path.exists(path) else "Permission denied"
        found = path if os.access(path, os.X_OK) and os.path.isfile(path) else None
    else:
        found, why = shutil.which(name, path=env.get("PATH", os.defpath)), "No such file or directory"
    if found is None:
        raise CannotStart(f"{name} cannot be started: {why}")
    return os.path.join(cwd, found)


class LateShell:
    """Represents the shell for everything but the tools, which get the shell itself.

    Satisfies `live_rules.Box`, `core.ports.NoteSource` and `core.ports.Lasting`.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        rules: LiveRules,
        places: HeldPlaces,
        *,
        snapshot: bool = False,
    ) -> None:
        self._snapshot = snapshot
        self._folder = folder
        self._places = places
        self._environment = environment
        self._rules = rules
        self._made: Shell | None = None

    def get(self) -> Shell:
        if self._made is None:
            from ..host.processes.session_shell import Shell
            from ..host.search.ripgrep import offer_ripgrep

            environment, link_programs = offer_ripgrep(self._environment, self._folder / "programs")
            self._made = Shell(
                self._folder,
                environment=environment,
                hidden=self._rules.plain_hidden_paths,
                places=self._places,
                snapshot=self._snapshot,
                before_first=link_programs,
            )
        return self._made

    def take(self, variables: Mapping[str, str]) -> None:
        """For the commands from now on."""
        self.get().take(variables)

    @property
    def is_tried(self) -> bool:
        return self._made is not None and self._made.is_tried

    async def try_it(self) -> None:
        await self.get().try_it()

    def confines(self, needed: Confinement, /) -> bool:
        return self._made is not None and self._made.confines(needed)

    def why_unheld(self) -> str:
        return self._made.why_unheld() if self._made else ""

    async def notes(self, agent: str) -> tuple[Note, ...]:
        return await self._made.finished.notes(agent) if self._made else ()

    async def wait_for_report(self, seconds: float) -> bool:
        return self._made is not None and await self._made.background.wait_for_report(seconds)

    def lasting(self, agent: str) -> tuple[Note, ...]:
        return self._made.open_tasks.lasting(agent) if self._made else ()

    async def close(self) -> None:
        if self._made:
            await self._made.close()


log = logging.getLogger(__name__)


@named_value
class PolicyParts:
    """What decides about calls in a folder, and the sandbox that it relies on."""

    paths: LocalPaths
    cwd: str
    places: Places
    state: SessionState
    rules: SessionRules
    shell: LateShell


def process_variables(settings: Settings, session_id: str, project: str) -> Mapping[str, str]:
    """For the hooks and commands of a session, in addition to those of this process: where they run, and for whom."""
    return {
        "CLAUDE_CODE_ENTRYPOINT": os.environ.get("CLAUDE_CODE_ENTRYPOINT") or "sdk-cli",
        **settings.environment,
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": session_id,
        "CLAUDE_PROJECT_DIR": project,
    }


def build_policy(settings: Settings, folder: Path, session_id: str = "") -> PolicyParts:
    """`folder` is that of the session."""
    paths = LocalPaths()
    cwd = paths.anchor(settings.cwd, os.getcwd())
    added = tuple(paths.anchor(directory, cwd) for directory in settings.added_directories)
    home = paths.anchor("~", cwd)
    places = Places.resolve(paths, cwd=cwd, home=home, roots=(cwd, *added, str(folder)))
    state = SessionState(cwd, added_directories=added)
    lists = with_deciding_files(settings.path_lists, str(settings.state_folder), os.environ)
    current = settings.policy_source()
    rules = SessionRules(current, places, state, lists=lists, domains=settings.pre_approval)
    held = HeldPlaces(
        roots=lambda: (cwd, *state.added_directories),
        readable=rules.readable,
        writable=rules.writable,
        saved=str(folder),
        private=str(settings.state_folder),
        secrets=SecretPaths(places, _lists_at_the_start(current, lists)),
    )
    environment = {**os.environ, **process_variables(settings, session_id, cwd)}
    shell = rules.box = LateShell(folder / "commands", environment, rules, held, snapshot=settings.shell_snapshot)
    return PolicyParts(paths=paths, cwd=cwd, places=places, state=state, rules=rules, shell=shell)


@named_value
class SessionServices:
    session_id: str
    bus: Bus
    emit: Emit
    folder: SessionFolder
    paths: LocalPaths
    cwd: str
    places: Places
    files: Workfiles
    state: SessionState
    rules: SessionRules
    shell: LateShell
    changes: tuple[ChangedFiles, ...]
    servers: McpServers | None
    """`None` if none is configured: then none of their modules is loaded."""

    def keep_only(self, agent: str, call_ids: frozenset[str]) -> None:
        """Only the results of these calls can still be read."""
        self.files.ledgers.of(agent).keep_only(call_ids)


def build_services(settings: Settings, session_id: str, parts: SessionParts) -> SessionServices:
    bus = Bus()
    folder = SessionFolder(sessions_folder(settings), session_id, cleanup_days=settings.cleanup_days)
    policy = build_policy(settings, folder.path, session_id)
    paths, cwd = policy.paths, policy.cwd
    files = _workfiles(settings.state_folder, folder, cwd, parts.get("checkpoints"))
    return SessionServices(
        session_id=session_id,
        bus=bus,
        emit=bus.emitter(),
        folder=folder,
        paths=paths,
        cwd=cwd,
        places=policy.places,
        files=files,
        state=policy.state,
        rules=policy.rules,
        shell=policy.shell,
        changes=(ChangedFiles(files.ledgers, paths.resolve(cwd)[0]),) if settings.tell_changes else (),
        servers=parts.get("mcp") or servers_if_any(settings, parts.get("questioner")),
    )


def _lists_at_the_start(current: Callable[[], Policy], lists: PathLists) -> PathLists:
    with suppress(PolicyLost):  # then nothing runs that could read a secret
        return current().more_paths.add_to(lists)
    return lists


def servers_if_any(settings: Settings, questioner: Questioner | None) -> McpServers | None:
    return servers_of(settings, questioner) if settings.servers else None


def servers_of(settings: Settings, questioner: Questioner | None = None) -> McpServers:
    """The settings' servers, none of them started, for programs that need access to them."""
    from ..mcp.servers import McpServers, limits_from

    paths = LocalPaths()
    cwd = paths.anchor(settings.cwd, os.getcwd())
    added = (paths.anchor(directory, cwd) for directory in settings.added_directories)
    around = Around(
        state_folder=settings.state_folder,
        timing=timing_from(os.environ),
        questioner=questioner,
        roots=tuple(Path(folder).as_uri() for folder in (cwd, *added)),
        negotiation="legacy" if os.environ.get("MCP_PROTOCOL_NEGOTIATION") == "legacy" else "auto",
    )
    return McpServers(settings.servers, around, limits_from(os.environ))


def sessions_folder(settings: Settings) -> Path:
    """Always in a separate folder: old sessions are removed from it, so it must not contain anything else."""
    folder = settings.results_folder
    return settings.state_folder / "sessions" if folder is None else folder / "ferrule-sessions"


def _workfiles(state_folder: Path, folder: SessionFolder, workspace: str, checkpoints: Checkpoints | None) -> Workfiles:
    """What this session reads and writes with; unfinished writes of a killed one are cleaned up first."""
    journals = state_folder / "writing"
    for saved in recover(journals):
        log.warning("a process was killed while it wrote a file with several hard links; its old content is %s", saved)
    if checkpoints is not None:
        checkpoints.open(folder.path / "checkpoints")
    ledgers = Ledgers(TextStore(folder.path / "seen"))
    return Workfiles(ledgers, Journal(journals), settings_objection(workspace), checkpoints)


def settings_objection(workspace: str) -> Objection:
    """Objects to a settings file that would not be valid."""
    home, config_folder = os.path.expanduser("~"), os.environ.get("CLAUDE_CONFIG_DIR")

    def objection(path: str, before: str | None, after: str) -> str | None:
        kind = kind_of(path, home=home, workspace=workspace, config_folder=config_folder)
        if kind is None:
            return None
        from ..settings.edit_checks import check

        violations = check(kind, before, after)
        return violations.describe(path) if violations else None

    return objection
