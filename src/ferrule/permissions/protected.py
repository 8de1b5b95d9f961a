"""What neither a rule nor a mode approves: protected, sensitive and critical paths, hosts of the private network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from ..bash_analysis.word_paths import VOLUMES, is_critical, without_volume
from ..core.effects import Change, Effects, ReachesHost, ReadsPath, RunsCommand, WritesPath
from ..core.values import frozen_named_value, frozen_value
from ..core.verdicts import Behavior, Verdict
from . import sensitive
from .domains import is_local
from .name_table import ListedName, NameTable, is_wild
from .path_patterns import Places, is_below
from .programs import removes_files_by_name, removes_what_a_variable_names, shows_content

_REMOVING: Final = frozenset({Change.DELETES, Change.UNLINKS})
_NOTHING: Final[Mapping[str, ListedName]] = MappingProxyType({})


@frozen_named_value
class PathLists:
    """Every list can be changed; the defaults are those of `sensitive`."""

    run_later: tuple[str, ...] = tuple(sensitive.RUN_LATER.split())
    not_run_later: tuple[str, ...] = tuple(sensitive.NOT_RUN_LATER.split())
    secrets: tuple[str, ...] = tuple(sensitive.SECRETS.split())
    not_secrets: tuple[str, ...] = tuple(sensitive.NOT_SECRETS.split())
    delicate: tuple[str, ...] = tuple(sensitive.DELICATE.split())
    system: tuple[str, ...] = tuple(sensitive.SYSTEM.split())

    def change(
        self,
        *,
        protected: Iterable[str] = (),
        unprotected: Iterable[str] = (),
        secrets: Iterable[str] = (),
        not_secrets: Iterable[str] = (),
    ) -> PathLists:
        """With names added and removed. The never-written list does not change."""
        free = tuple(unprotected)
        return replace(
            self,
            run_later=(*self.run_later, *protected),
            not_run_later=(*self.not_run_later, *free),
            delicate=tuple(name for name in self.delicate if name not in free),
            secrets=(*self.secrets, *secrets),
            not_secrets=(*self.not_secrets, *not_secrets),
        )


DEFAULT_LISTS: Final = PathLists()


@frozen_value
class Concern:
    """Why a call is not simply allowed."""

    behavior: Behavior
    reason: str
    secret: tuple[str, str] | None = None
    """The path, and the same with its sensitive part renamed: only a rule that matches just the first resolves it."""
    written: tuple[str, tuple[str, ...]] | None = None
    """The path, and the names in it that an allow rule must spell out to resolve the concern."""
    host: str | None = None
    """The host, if a rule that names it resolves the concern."""
    spelled: bool = field(default=False, kw_only=True)
    """Whether an allow rule that has the very text of the command resolves the concern."""
    in_bypass: bool = field(default=True, kw_only=True)
    """Whether it applies even if permissions are bypassed."""

    def verdict(self) -> Verdict:
        return Verdict(behavior=self.behavior, source="safety", reason=self.reason)


class PathGuard:
    """Checks what a call touches. Created once per session."""

    def __init__(self, places: Places, lists: PathLists = DEFAULT_LISTS) -> None:
        self._places = places
        self._table = _table(lists, places.home)

    def concerns(self, effects: Effects) -> Iterator[Concern]:
        commands = bool(effects.commands)
        shows = True
        for touch in effects.touches:
            if isinstance(touch, ReadsPath | WritesPath):
                yield from self._of_path(touch, shows=shows)
            elif isinstance(touch, RunsCommand):
                shows = shows_content(touch.argv)
                if removes_what_a_variable_names(touch.argv):
                    reason = f"`{' '.join(touch.argv)}` removes whatever a variable names, which may be everything"
                    yield Concern(Behavior.ASK, reason, spelled=removes_files_by_name(touch.argv))
            elif isinstance(touch, ReachesHost) and not commands and is_local(touch.host):
                reason = f"{touch.host or 'the host'} is this machine or a private network, and no rule names it"
                yield Concern(Behavior.ASK, reason, host=touch.host, in_bypass=False)

    def secret_in(self, path: str) -> Concern | None:
        """Why reading the path needs to be asked about; `None` if it does not."""
        found = self._table.find(path)
        return self._read(path, self._find_listed(found, path)) if found else None

    def secret_meant(self, folder: str, names: str) -> Concern | None:
        """The same for a glob below a folder: for one that targets a secret, not for one that merely includes it."""
        for listed in self._table.find_meant(folder, names) if names else ():
            path = _spell_out(folder, names, listed)
            spelled = self._table.find(path.rstrip("*?"))  # `.env.example*` does not target a secret
            concern = self._read(path, self._find_listed([listed, *spelled], path))
            if concern is not None:
                return concern
        return None

    def _of_path(self, touch: ReadsPath | WritesPath, *, shows: bool) -> Iterator[Concern]:
        """If a program shows only names, nothing secret is read."""
        reads = isinstance(touch, ReadsPath)
        if reads and not shows:
            return
        for path in (touch.path,) if touch.real in ("", touch.path) else (touch.path, touch.real):
            concern = self.secret_in(path) if reads else self._concern_of_write(path, touch.change)
            if concern is None and touch.names:
                concern = (
                    self.secret_meant(path, touch.names) if reads else self._concern_of_glob_write(path, touch.names)
                )
            if concern is not None:
                yield concern

    def _read(self, path: str, listed: Mapping[str, ListedName]) -> Concern | None:
        secret = listed.get("secrets")
        if secret is None or "not_secrets" in listed:
            return None
        reason = f"{path} may hold secrets (`{secret.name}`); only a rule that names the path allows reading it"
        return Concern(Behavior.ASK, reason, secret=(path, _rename_secret(path, secret)), in_bypass=False)

    def _concern_of_write(self, path: str, change: Change) -> Concern | None:
        found = self._table.find(path)
        listed = self._find_listed(found, path) if found else _NOTHING
        if "system" in listed or (path.startswith(VOLUMES) and self._is_of_the_system(without_volume(path))):
            return Concern(Behavior.DENY, f"{path} controls access to this machine, and is never written")
        if change in _REMOVING and self._is_critical(path):
            return Concern(Behavior.ASK, f"{path} would be removed, which no rule or mode can approve")
        return self._delicate(path, listed) if listed else None

    def _is_of_the_system(self, path: str) -> bool:
        return any(listed.kind == "system" for listed in self._table.find(path))

    def _concern_of_glob_write(self, folder: str, names: str) -> Concern | None:
        for listed in self._table.find_meant(folder, names):
            path = _spell_out(folder, names, listed)
            concern = self._delicate(path, self._find_listed([listed], path))
            if concern is not None:
                return concern
        return None

    def _delicate(self, path: str, listed: Mapping[str, ListedName]) -> Concern | None:
        protected = self._find_protected(path, listed)
        if protected is not None:
            reason = f"{path} is protected (`{protected.name}`): programs run or trust it later"
            return Concern(Behavior.ASK, reason, written=(path, _names_in(path, protected)), in_bypass=False)
        sensitive_name = listed.get("secrets") or listed.get("delicate")
        if sensitive_name is None:
            return None
        reason = f"{path} is sensitive (`{sensitive_name.name}`), so a person decides about every write to it"
        names = _names_in(path, sensitive_name)
        names = names[:1] if sensitive_name.kind == "delicate" else names
        return Concern(Behavior.ASK, reason, written=(path, names), in_bypass=False)

    def _find_protected(self, path: str, listed: Mapping[str, ListedName]) -> ListedName | None:
        """An exempt folder does not exempt what is below it, such as the .git of a worktree."""
        exempt = listed.get("not_run_later")
        if exempt is None:
            return listed.get("run_later")
        parts = path.split("/")
        rest = "/".join((*parts[: exempt.at], *parts[exempt.at + exempt.length :]))
        return self._find_listed(self._table.find(rest), rest).get("run_later")

    def _find_listed(self, found: Sequence[ListedName], path: str) -> Mapping[str, ListedName]:
        """The first match of each list in the path.

        A workspace inside a folder named `secrets` is not sensitive as a whole:
        such names apply only below the workspace.
        """
        if not found:
            return _NOTHING
        depth = max((root.rstrip("/").count("/") + 1 for root in self._places.roots if is_below(path, root)), default=0)
        listed: dict[str, ListedName] = {}
        for one in found:
            if one.at >= depth or one.anchored or one.kind not in ("secrets", "delicate"):
                listed.setdefault(one.kind, one)
        return listed

    def _is_critical(self, path: str) -> bool:
        """The root and what is in it, home, and the workspace with all its parent folders."""
        if path == "/" or is_critical(path, home=self._places.home[0] if self._places.home else "/", workspace=""):
            return True
        return any(is_below(folder, path) for folder in (*self._places.home, *self._places.roots, *self._places.cwd))


class SecretPaths:
    """By the same lists and in the same way as the judge asks about reading. Satisfies `covering.SecretNames`."""

    def __init__(self, places: Places, lists: PathLists = DEFAULT_LISTS) -> None:
        self._guard = PathGuard(places, lists)
        names = {name.casefold().rpartition("/")[2] for name in lists.secrets}
        self._plain = frozenset(name for name in names if not any(sign in name for sign in "*?["))
        self._patterns = tuple(names - self._plain)
        self.may_be = lru_cache(maxsize=65_536)(self._may_be)

    def _may_be(self, name: str) -> bool:
        name = name.casefold()
        return name in self._plain or any(fnmatchcase(name, pattern) for pattern in self._patterns)

    def is_secret(self, path: str, /) -> bool:
        return any(concern.secret is not None for concern in self._guard.concerns(Effects.reading(path)))


@lru_cache(maxsize=4)
def _table(lists: PathLists, home: tuple[str, ...]) -> NameTable:
    """Created once for many judges: rules change more often than what is protected."""
    return NameTable({each.name: getattr(lists, each.name) for each in fields(lists)}, home=home)


def _rename_secret(path: str, secret: ListedName) -> str:
    """The path with its secret part renamed."""
    parts = path.split("/")
    other = (f"x{step}-x" for step in range(secret.length))
    return "/".join((*parts[: secret.at], *other, *parts[secret.at + secret.length :]))


def _spell_out(folder: str, names: str, listed: ListedName) -> str:
    """The path that a glob targets: as listed, or as in the glob if that is a pattern too."""
    parts = [*folder.rstrip("/").split("/"), *(part for part in names.split("/") if part not in ("", "."))]
    name = listed.name.removeprefix("~/").strip("/").split("/")
    own = parts[listed.at : listed.at + listed.length] if is_wild(listed.name) else name
    return "/".join((*parts[: listed.at], *own))


def _names_in(path: str, listed: ListedName) -> tuple[str, ...]:
    return tuple(path.split("/")[listed.at : listed.at + listed.length])
