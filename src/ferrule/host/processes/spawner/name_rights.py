"""What a held command may do to a place, by what it declared and what it has made so far; and what it did."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .change_log import ChangeLog
    from .declared_names import DeclaredNames
    from .handed_call import CallPlace
    from .temporaries import TemporaryNames

MOST_REMEMBERED = 100_000


class NameRights:
    """Of one command. What may not be done is noted in the log as it is refused."""

    def __init__(self, names: DeclaredNames, temporaries: TemporaryNames, log: ChangeLog) -> None:
        self.names = names
        self.temporaries = temporaries
        self._log = log
        self._parents: set[bytes] = set()
        """Folders that were missing above declared names and were made."""
        self._new: set[bytes] = set()
        """What names that were made are called, without their folders."""

    def may_change(self, place: CallPlace) -> bool:
        return self.names.is_declared(place.path) or self.temporaries.means(place.path, place.found)

    def may_be_read(self, place: CallPlace) -> bool:
        return self.names.may_be_read(place.path) or self.temporaries.means(place.path, place.found)

    def check_existing(self, place: CallPlace) -> None:
        if not self.may_change(place):
            raise self.refusal(place.path)

    def check_new(self, place: CallPlace) -> bool:
        """Whether the name, where nothing is, will be a temporary one. Raises where it may not be made."""
        if self.names.is_declared(place.path):
            return False
        if self.names.is_guarded(place.path):
            raise self.refusal(place.path)
        if self.temporaries.is_below(place.path):
            return False
        if place.is_dot or not self.names.is_beside(place.path):
            raise self.refusal(place.path)
        return True

    def check_alone(self, found: os.stat_result, path: bytes) -> None:
        """A file with other names would change under those as well."""
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise self.refusal(path)

    def refusal(self, path: bytes, error: int = errno.EACCES) -> OSError:
        self._log.note_refused(path)
        return OSError(error, "not declared")

    def is_made_parent(self, path: bytes) -> bool:
        return path in self._parents

    def is_new(self, name: bytes) -> bool:
        """Whether some name that was made is called so."""
        return name in self._new

    def announce(self, place: CallPlace, *, is_temporary: bool) -> None:
        if is_temporary:
            self.temporaries.announce(place.path)

    def note_made(self, place: CallPlace, found: os.stat_result, *, is_temporary: bool) -> None:
        self._remember(place.name)
        if is_temporary:
            self.temporaries.add(place.path, found)
        self.note_changed(place.path)

    def note_parent_made(self, place: CallPlace) -> None:
        self._parents.add(place.path)
        self._remember(place.name)
        self.note_changed(place.path)

    def note_renamed(self, place: CallPlace) -> None:
        """It was the old name or is the new one."""
        self._remember(place.name)
        self.note_changed(place.path)

    def _remember(self, name: bytes) -> None:
        if len(self._new) < MOST_REMEMBERED:
            self._new.add(name)

    def note_changed(self, path: bytes) -> None:
        if self.names.is_declared(path) or path in self._parents:
            self._log.note_done(path)
