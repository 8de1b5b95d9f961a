"""What neither a rule nor a mode approves: protected, sensitive and critical paths, hosts of the private network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from ..core.effects import Change, Effects, ReachesHost, ReadsPath, RunsCommand, WritesPath
from ..core.values import frozen_named_value, frozen_value
from ..core.verdicts import Behavior, Verdict
from . import sensitive
from .domains import is_local
from .name_table import Listed, NameTable
from .paths import Places, is_below
from .programs import removes_what_a_variable_names

_REMOVING: Final = frozenset({Change.DELETES, Change.UNLINKS})
_NOTHING: Final[Mapping[str, Listed]] = MappingProxyType({})


@frozen_named_value
class PathLists:
    """Every list can be changed; the defaults are those of `sensitive`."""

    run_later: tuple[str, ...] = tuple(sensitive.RUN_LATER.split())
    not_run_later: tuple[str, ...] = tuple(sensitive.NOT_RUN_LATER.split())
    secrets: tuple[str, ...] = tuple(sensitive.SECRETS.split())
    not_secrets: tuple[str, ...] = tuple(sensitive.NOT_SECRETS.split())
    delicate: tuple[str, ...] = tuple(sensitive.DELICATE.split())
    system: tuple[str, ...] = tuple(sensitive.SYSTEM.split())


DEFAULT_LISTS: Final = PathLists()


@frozen_value
class Concern:
    """Why a call is not simply allowed."""

    behavior: Behavior
    reason: str
    secret: tuple[str, str] | None = None
    """The path, and the same with its sensitive part called otherwise: a rule for it alone settles the matter."""
    host: str | None = None
    """The host, where a rule that names it settles the matter."""
    in_bypass: bool = field(default=True, kw_only=True)
    """Whether it holds where permissions are bypassed."""

    def verdict(self) -> Verdict:
        return Verdict(behavior=self.behavior, source="safety", reason=self.reason)


class Guard:
    """Looks at what a call touches. Made once for a session."""

    def __init__(self, places: Places, lists: PathLists = DEFAULT_LISTS) -> None:
        self._places = places
        self._table = _table(lists, places.home)

    def concerns(self, effects: Effects) -> Iterator[Concern]:
        commands = bool(effects.commands)
        for touch in effects.touches:
            if isinstance(touch, ReadsPath | WritesPath):
                for path in (touch.path,) if touch.real in ("", touch.path) else (touch.path, touch.real):
                    concern = self._read(path) if isinstance(touch, ReadsPath) else self._written(path, touch.change)
                    if concern is not None:
                        yield concern
            elif isinstance(touch, RunsCommand) and removes_what_a_variable_names(touch.argv):
                shown = " ".join(touch.argv)
                yield Concern(Behavior.ASK, f"`{shown}` removes whatever a variable names, which may be everything")
            elif isinstance(touch, ReachesHost) and not commands and is_local(touch.host):
                reason = f"{touch.host or 'the host'} is this machine or a private network, and no rule names it"
                yield Concern(Behavior.ASK, reason, host=touch.host, in_bypass=False)

    def _read(self, path: str) -> Concern | None:
        listed = self._listed(path)
        secret = listed.get("secrets")
        if secret is None or "not_secrets" in listed:
            return None
        reason = f"{path} may hold secrets (`{secret.name}`); only a rule that names the path allows reading it"
        return Concern(Behavior.ASK, reason, secret=(path, _renamed(path, secret)), in_bypass=False)

    def _written(self, path: str, change: Change) -> Concern | None:
        listed = self._listed(path)
        if "system" in listed:
            return Concern(Behavior.DENY, f"{path} says who may do what on this machine, and is never written")
        if change in _REMOVING and self._is_critical(path):
            return Concern(Behavior.ASK, f"{path} would be removed, and no rule and no mode approves that")
        if not listed:
            return None
        protected = self._protected(path, listed)
        if protected is not None:
            reason = f"{path} is protected (`{protected.name}`): programs run or trust it later"
            return Concern(Behavior.ASK, reason)
        sensitive_name = listed.get("secrets") or listed.get("delicate")
        if sensitive_name is None:
            return None
        reason = f"{path} is sensitive (`{sensitive_name.name}`), so a person decides about every write to it"
        return Concern(Behavior.ASK, reason)

    def _protected(self, path: str, listed: Mapping[str, Listed]) -> Listed | None:
        """An exempt folder takes nothing away from what is below it, such as the .git of a worktree."""
        exempt = listed.get("not_run_later")
        if exempt is None:
            return listed.get("run_later")
        parts = path.split("/")
        rest = "/".join((*parts[: exempt.at], *parts[exempt.at + exempt.length :]))
        return self._listed(rest).get("run_later")

    def _listed(self, path: str) -> Mapping[str, Listed]:
        """What is listed of the path, the first of each list.

        A workspace that lies in a folder named `secrets` is not sensitive as a
        whole: for such names only what is below the workspace counts.
        """
        found = self._table.find(path)
        if not found:
            return _NOTHING
        depth = max((root.rstrip("/").count("/") + 1 for root in self._places.roots if is_below(path, root)), default=0)
        listed: dict[str, Listed] = {}
        for one in found:
            if one.at >= depth or one.anchored or one.kind not in ("secrets", "delicate"):
                listed.setdefault(one.kind, one)
        return listed

    def _is_critical(self, path: str) -> bool:
        """The root and what is in it, home, and the workspace with all that it lies in."""
        if os.path.dirname(path) == "/" or path == "/":
            return True
        return any(is_below(folder, path) for folder in (*self._places.home, *self._places.roots, *self._places.cwd))


@lru_cache(maxsize=4)
def _table(lists: PathLists, home: tuple[str, ...]) -> NameTable:
    """Made once for many judges: rules change more often than what is protected."""
    return NameTable({each.name: getattr(lists, each.name) for each in fields(lists)}, home=home)


def _renamed(path: str, secret: Listed) -> str:
    """The path with its secret part called otherwise."""
    parts = path.split("/")
    other = (f"x{step}-x" for step in range(secret.length))
    return "/".join((*parts[: secret.at], *other, *parts[secret.at + secret.length :]))
