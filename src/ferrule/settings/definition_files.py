"""The files of skills, commands and agents: where they are, what they say, and whether what they define applies.

A file of the folder that is a link out of its checkout is skipped: otherwise its
content would be read without any rule being checked. Files of the user and of an
administrator may link to anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import TYPE_CHECKING, Final

from ..core.ports import Door
from ..core.values import named_value, plain_value
from ..host.files.open_files import digest_of
from ..host.files.text_files import NotText
from .folder_items import FAMILIES, SKILL_FILE, item_of_file, markdown_below, skills_in
from .heads import text_of
from .levels import Level, SettingsContext
from .settings_files import FOLDERS
from .settings_loading import content_of
from .trust_items import Item, ItemKind, ProjectFolder, is_below, printable
from .trust_store import ground_of

if TYPE_CHECKING:
    from ..host.storage.front_matter import HeadedText

_NAMES: Final = {ItemKind.AGENT: "agents", ItemKind.SKILL: "skills", ItemKind.COMMAND: "commands"} | {
    ItemKind.STYLE: "output-styles"
}
_MOST_NAMED: Final = 3
_SHARED: Final = ".agents"
"""Where other programs look for skills too."""


_PLUGIN_ROOT: Final = re.compile(r"\$\{(?:CLAUDE|FERRULE)_PLUGIN_ROOT\}")


class BadPage(ValueError):
    """The file cannot be used. The message names it and says why."""


@plain_value
class DefinitionFolder:
    """A folder for files of one kind, existing or not."""

    level: Level
    kind: ItemKind
    path: str
    prefix: str = ""
    """Prefix for the names of what is found there."""
    root: str = ""
    """The folder of the plugin that it belongs to."""

    def files(self) -> Iterator[tuple[str, str]]:
        """Each file with the name it gives; a command in a folder of its own has that folder's name before it.

        Plugins also name single files, and single folders of skills.
        """
        if self.kind is ItemKind.SKILL:
            own = os.path.join(self.path, SKILL_FILE)
            alone = [(os.path.basename(self.path), own)] if self.root and os.path.isfile(own) else None
            yield from ((path, self.prefix + name) for name, path in alone or skills_in(self.path))
        elif self.root and os.path.isfile(self.path):
            yield self.path, self.prefix + _stem(os.path.basename(self.path))
        else:
            for path in markdown_below(self.path):
                yield path, self.prefix + _stem(os.path.relpath(path, self.path)).replace(os.sep, ":")


@named_value
class WrittenPage:
    shelf: DefinitionFolder
    path: str
    page: HeadedText
    counts: bool
    """Whether it may do more than say something: give permissions, run commands, define hooks or servers."""

    @property
    def model(self) -> str:
        """As its head names it; a file of an untrusted folder cannot choose where requests go."""
        name = text_of(self.page.head, "model")
        return name if self.counts or name in FAMILIES else ""


def _stem(name: str) -> str:
    return os.path.splitext(name)[0]


def describe_faults(written: Iterable[WrittenPage]) -> Iterator[str]:
    """One warning for all files whose heads are not valid YAML."""
    faulty = [page for page in written if page.page.fault]
    if not faulty:
        return
    named = "; ".join(f"{printable(page.path)}: {page.page.fault}" for page in faulty[:_MOST_NAMED])
    more = f"; and {len(faulty) - _MOST_NAMED} more" if len(faulty) > _MOST_NAMED else ""
    yield f"Not valid YAML, and so read line by line: the head of {named}{more}. Put such values in quotes."


class DefinitionFiles:
    """Reads such files for one session."""

    def __init__(
        self,
        around: SettingsContext,
        trusts: Callable[[Item], bool] = lambda item: False,
        *,
        levels: frozenset[Level] = frozenset(Level),
        at_one_moment: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """`trusts` tells whether what a file of the folder defines applies; files from elsewhere are the user's own.

        Inside `at_one_moment` it is asked for many files, and answers as of its beginning.

        An administrator's files always apply, whatever the `levels`.
        """
        self._around = around
        self._levels = levels | {Level.MANAGED}
        self._ground: ProjectFolder = ground_of(around)
        self._trusts = trusts
        self.at_one_moment: Final = at_one_moment
        self._more: tuple[DefinitionFolder, ...] = ()
        self._door: Door | None = None
        self._of_plugins = dict[str, str]()
        """The digests of the files of plugins as they were first read: what is written there later is only words."""

    def join(self, more: Iterable[DefinitionFolder]) -> DefinitionFiles:
        """With further shelves after these, whatever the levels."""
        pages = copy(self)
        pages._more = (*self._more, *more)
        return pages

    def behind(self, door: Door) -> DefinitionFiles:
        """With a check that the files of the folder must pass."""
        pages = copy(self)
        pages._door = door
        return pages

    def shelves(self, kind: ItemKind) -> Iterator[DefinitionFolder]:
        yield from (shelf for shelf in self._all_shelves(kind) if shelf.level in self._levels)
        yield from (shelf for shelf in self._more if shelf.kind is kind)

    def _all_shelves(self, kind: ItemKind) -> Iterator[DefinitionFolder]:
        """From the highest level to the lowest, and from the working directory up to the root of the checkout."""
        name = _NAMES[kind]
        hidden = (*reversed(FOLDERS), *([_SHARED] if kind is ItemKind.SKILL else []))
        for managed in reversed(self._around.managed_folders):
            yield DefinitionFolder(Level.MANAGED, kind, os.path.join(managed, FOLDERS[0], name))
        for folder in self._folders():
            yield from (DefinitionFolder(Level.PROJECT, kind, os.path.join(folder, one, name)) for one in hidden)
        config = {FOLDERS[0]: self._around.config_folder}
        for one in hidden:
            yield DefinitionFolder(
                Level.USER, kind, os.path.join(config.get(one, os.path.join(self._around.home, one)), name)
            )

    def read(self, shelf: DefinitionFolder, path: str) -> WrittenPage:
        """Raises `BadPage`."""
        from ..host.storage.front_matter import BadHead, split_head

        shown = printable(path)
        if shelf.level is Level.PROJECT and not self._is_inside(path):
            raise BadPage(f"{shown} is skipped: it is a link out of the folder")
        if shelf.level is Level.PROJECT and self._door and (objection := self._door.objection(path)):
            raise BadPage(f"{shown} is skipped: {objection}")
        try:
            content = content_of(path)
            text = content.decode()
            page = split_head(_PLUGIN_ROOT.sub(lambda _: shelf.root, text) if shelf.root else text)
        except OSError as error:
            raise BadPage(f"{shown} is skipped: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise BadPage(f"{shown} is skipped: it is not valid UTF-8 text") from None
        except (NotText, BadHead) as error:
            raise BadPage(f"{shown} is skipped: {error}") from None
        return WrittenPage(shelf=shelf, path=path, page=page, counts=self._counts(shelf, path, content))

    def _counts(self, shelf: DefinitionFolder, path: str, content: bytes) -> bool:
        if shelf.root:
            digest = digest_of(content)
            return self._of_plugins.setdefault(path, digest) == digest
        if shelf.level is not Level.PROJECT or shelf.kind is ItemKind.STYLE:
            return True
        item = item_of_file(shelf.kind, path, content, self._ground)
        return item is None or self._trusts(item)

    def _is_inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(is_below(real, root) for root in self._ground.roots)

    def _folders(self) -> Iterator[str]:
        """Each folder of the checkout that contains the start, except the home, whose files are the user's."""
        folder, root = self._ground.real_cwd, self._ground.roots[0]
        home = os.path.realpath(self._around.home)
        while True:
            if folder != home:
                yield folder
            if not is_below(folder, root):
                return
            folder = os.path.dirname(folder)
