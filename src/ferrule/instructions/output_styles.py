"""Output styles: how the model works and answers, in the words of a file or of a built-in style.

A style replaces the parts of the prompt that are about writing code and
reporting it, unless its head says `keep-coding-instructions: true`. What
tools, instructions and permissions mean stays. A style only has words, so a
folder's styles need no trust; to choose one is a setting, which does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

from ..core.values import named_value
from ..settings.definition_files import BadPage, DefinitionFiles, WrittenPage, describe_faults
from ..settings.heads import text_of, truth_of
from ..settings.levels import Level
from ..settings.trust_items import ItemKind

DEFAULT: Final = "default"
MOST: Final = 200
"""Styles from files."""


@named_value
class OutputStyle:
    name: str
    text: str
    description: str = ""
    keeps_coding: bool = False
    """Whether the built-in instructions about writing code and reporting it stay."""


_EXPLANATORY: Final = OutputStyle(
    name="Explanatory",
    description="Does the work and explains the choices it makes in this code base.",
    keeps_coding=True,
    text="""\
Do the work as you always would, and let the person learn this code base from it. Before or after a piece of code that \
shows something, explain in two or three points what is worth knowing: why it is done this way here, which pattern of \
the project it follows, what the other way would have cost. Set these apart from the rest, like this:

`★ Insight ─────────────────────────────────────`
[two or three points]
`─────────────────────────────────────────────────`

Explain what is particular to this code, not what any book on the language says. The points belong in your answer, \
not into the code as comments. You may write more than usual for them, as long as each says something.""",
)
_LEARNING: Final = OutputStyle(
    name="Learning",
    description="Leaves small parts of the code for the person to write, and explains the rest.",
    keeps_coding=True,
    text="""\
The person wants to learn by doing. Do the work with them: write what is routine yourself, and leave to them the parts \
where something is decided, such as a rule of the business, the choice of a data structure, how an error is treated.

- Where you would write twenty lines or more, choose two to ten of them that matter and leave those to the person. \
Prepare the place first: the function with its signature, a comment that says what is needed, and one `TODO(human)`. \
There is never more than one `TODO(human)` in the code.
- Then ask for it in your answer: what is there already, which function in which file is theirs, what to weigh. Give \
hints and no solution. End your message there and wait; do not go on until they have written it.
- When they have, say what is good about it and one thing that could be otherwise, and continue.
- If nobody can answer, as in a run without a person, write that part yourself and explain the choice.

In between, point out in two or three sentences what is particular to this code base. Keep a todo list that shows \
which steps are theirs.""",
)
BUILT_IN: Final = (_EXPLANATORY, _LEARNING)


class OutputStyles:
    """The styles of a session: an administrator's, the user's, the built-in ones, then the folder's and of plugins."""

    def __init__(self, pages: DefinitionFiles | None) -> None:
        self._pages = pages

    @property
    def names(self) -> tuple[str, ...]:
        return (DEFAULT, *self._discovered[0])

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._discovered[1]

    def find(self, name: str) -> OutputStyle | None:
        """By its name, whatever the case. `None` for the default and for an unknown one."""
        known = self._discovered[0]
        return known.get(name) or next((one for key, one in known.items() if key.lower() == name.lower()), None)

    @cached_property
    def _discovered(self) -> tuple[Mapping[str, OutputStyle], tuple[str, ...]]:
        warnings: list[str] = []
        read: list[WrittenPage] = []
        found: dict[str, OutputStyle] = {}
        own = list(self._styles(warnings, read))
        for style in (*(one for is_own, one in own if is_own), *BUILT_IN, *(one for _, one in own)):
            found.setdefault(style.name, style)
        return found, (*warnings, *describe_faults(read))

    def _styles(self, warnings: list[str], read: list[WrittenPage]) -> Iterator[tuple[bool, OutputStyle]]:
        """Each with whether the user or an administrator wrote it."""
        pages = self._pages
        shelves = tuple(pages.shelves(ItemKind.STYLE)) if pages else ()
        files = ((shelf, path) for shelf in shelves for path, _ in shelf.files())
        for shelf, path in (one for _, one in zip(range(MOST), files, strict=False)):
            assert pages is not None
            try:
                written = pages.read(shelf, path)
                style = _style_of(written)
            except BadPage as reason:
                warnings.append(str(reason))
                continue
            read.append(written)
            yield shelf.level is not Level.PROJECT and not shelf.prefix, style


def _style_of(written: WrittenPage) -> OutputStyle:
    """Raises `BadPage` for a file without a text."""
    head, text = written.page.head, written.page.body.strip()
    if not text:
        raise BadPage(f"{written.path} is skipped: it has no text, so the style would say nothing")
    name = text_of(head, "name") or os.path.splitext(os.path.basename(written.path))[0]
    return OutputStyle(
        name=written.shelf.prefix + name,
        text=text,
        description=text_of(head, "description"),
        keeps_coding=truth_of(head, "keep-coding-instructions", default=False),
    )
