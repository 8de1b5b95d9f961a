"""The settings' `sandbox`: commands that are confined to the workspace, and so run without asking.

A command that nobody approved is confined to its declared effects. One with
unknown effects can write only the workspace, its temporary folder and what the
settings add, never protected paths, and has no network: the kernel cannot
distinguish hosts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from ..core.effects import RunsCommand
from ..core.ports import Opinion, Proposal
from ..core.values import named_value
from ..core.verdicts import Behavior, Confinement, Grants, Verdict
from ..settings.layers import Layered
from ..settings.levels import Source
from .holding import grants_of, is_command, join_confinements
from .modes import Mode
from .path_patterns import is_below
from .patterns import TextPattern


@named_value
class SandboxPolicy:
    auto_allow: bool = True
    """Whether commands inside run without asking."""
    may_leave: bool = True
    """Whether a person may allow a command to run outside of it."""
    required: bool = False
    """Whether commands are refused if no sandbox is available."""
    excluded: tuple[TextPattern, ...] = ()
    """Commands that run outside of it."""
    writable: tuple[str, ...] = ()
    unwritable: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


class CannotEnforce(ValueError):
    """A part of the settings that no sandbox here enforces. The message names it."""


def sandbox_of(layered: Layered, cwd: str) -> SandboxPolicy | None:
    """`None` if it is not enabled. Raises `CannotEnforce`."""
    if not _flag(layered, "enabled"):
        return None
    files = layered.items("sandbox", "credentials", "files")
    for item in files:
        if item.value.get("mode") == "mask":
            raise CannotEnforce(f"{item.source}: `sandbox.credentials.files` can deny a file here, not mask it.")
    for item in layered.items("sandbox", "credentials", "envVars"):
        raise CannotEnforce(f"{item.source}: `sandbox.credentials.envVars` is not supported by this version.")
    denied = tuple(_absolute_path(item.value["path"], item.source, cwd) for item in files)
    return SandboxPolicy(
        auto_allow=_flag(layered, "autoAllowBashIfSandboxed", otherwise=True),
        may_leave=_flag(layered, "allowUnsandboxedCommands", otherwise=True),
        required=_flag(layered, "failIfUnavailable"),
        excluded=tuple(TextPattern(item.value) for item in layered.items("sandbox", "excludedCommands")),
        writable=_paths(layered, "allowWrite", cwd),
        unwritable=_paths(layered, "denyWrite", cwd),
        unreadable=(*_paths(layered, "denyRead", cwd), *denied),
    )


def allowed_reads(layered: Layered, cwd: str) -> tuple[str, ...]:
    """What commands that nobody approved may also read, whether or not a sandbox is enabled."""
    return _paths(layered, "allowRead", cwd)


def apply_sandbox_policy(
    policy: SandboxPolicy,
    proposal: Proposal,
    verdict: Opinion,
    *,
    roots: tuple[str, ...],
    mode: Mode,
    confines: Callable[[Confinement], bool],
) -> Opinion:
    """The rules' verdict on a command, adapted to run inside. `roots` are the folders of the workspace."""
    if not is_command(proposal):
        return verdict
    if (
        (verdict is not None and verdict.behavior is Behavior.DENY)
        or mode is Mode.PLAN
        or _is_excluded(policy, proposal)
    ):
        return verdict
    if proposal.input.dangerously_disable_sandbox:
        return verdict if policy.may_leave else _refusal("the settings do not allow commands outside of the sandbox")
    if verdict is not None and verdict.behavior is Behavior.ALLOW and not verdict.approved:
        declared = join_confinements(verdict.needs_confinement, confinement_wanted_by(policy))
        return replace(verdict, needs_confinement=declared) if confines(declared) else verdict
    if proposal.effects.read_only:
        return verdict
    if verdict is None and policy.auto_allow and not proposal.effects.unknown:
        needed = replace(confinement_wanted_by(policy), grants=_inside_grants(proposal, roots), then=Behavior.ALLOW)
        if confines(needed):
            inside = "it runs in a sandbox that holds it to what it declares in the workspace"
            return Verdict(behavior=Behavior.ALLOW, source="mode", reason=inside, needs_confinement=needed)
    needed = _confinement_for(policy, verdict, roots)
    if verdict is None:
        needed = replace(needed, grants=Grants(lasts=grants_of(proposal).lasts))
    if not confines(needed):
        return _refusal("the settings require a sandbox, and this machine has none") if policy.required else verdict
    if verdict is None and policy.auto_allow:
        inside = "it runs in a sandbox that holds it to the workspace"
        return Verdict(behavior=Behavior.ALLOW, source="mode", reason=inside, needs_confinement=needed)
    return None if verdict is None else replace(verdict, needs_confinement=needed)


def confinement_wanted_by(policy: SandboxPolicy | None) -> Confinement:
    """What the settings deny to every command."""
    return Confinement(unreadable=policy.unreadable, unwritable=policy.unwritable) if policy else Confinement()


def _inside_grants(proposal: Proposal, roots: tuple[str, ...]) -> Grants:
    """What the command declares within the workspace. Nothing else is allowed, and no network."""
    declared = grants_of(proposal)
    writes = tuple(one for one in declared.writes if any(is_below(one.path, root) for root in roots))
    return Grants(writes=writes, lasts=declared.lasts)


def _confinement_for(policy: SandboxPolicy, verdict: Opinion, roots: tuple[str, ...]) -> Confinement:
    """What the settings require to be enforced, combined with what the rules require."""
    rules = (verdict.needs_confinement if verdict else None) or Confinement()
    return replace(
        rules,
        writable=(*roots, *policy.writable),
        unreadable=(*rules.unreadable, *policy.unreadable),
        unwritable=(*rules.unwritable, *policy.unwritable),
    )


def _is_excluded(policy: SandboxPolicy, proposal: Proposal) -> bool:
    """Whether each of its commands is excluded from the sandbox."""
    commands = [touch for touch in proposal.effects.touches if isinstance(touch, RunsCommand) and not touch.within]
    return bool(commands) and all(
        any(pattern.matches(" ".join(one.argv)) or pattern.text == one.argv[0] for pattern in policy.excluded)
        for one in commands
        if one.argv
    )


def _refusal(reason: str) -> Verdict:
    return Verdict(behavior=Behavior.DENY, source="rule", reason=reason)


def _flag(layered: Layered, key: str, *, otherwise: bool = False) -> bool:
    found = layered.value("sandbox", key)
    return otherwise if found is None else bool(found.value)


def _paths(layered: Layered, key: str, cwd: str) -> tuple[str, ...]:
    return tuple(_absolute_path(item.value, item.source, cwd) for item in layered.items("sandbox", "filesystem", key))


def _absolute_path(path: str, source: Source, cwd: str) -> str:
    """As a shell would read it: relative to the workspace, or to the folder of a user's own file."""
    base = cwd if source.level.in_folder or source.path.startswith("-") else os.path.dirname(source.path)
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))
