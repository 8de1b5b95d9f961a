"""The system prompt: first what never changes, then what is about this project, last what is about this moment.

It is put together once for each session, so that every request begins with the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from ..core.tool import ToolSpec
from ..core.values import named_value
from .git_facts import GitFacts, git_facts
from .instruction_loading import Instruction
from .output_styles import OutputStyle

MOST_FILES: Final = 20


def environment(cwd: str, added: Sequence[str], today: date, *, with_git: bool = True) -> str:
    lines = _machine(cwd, added, today)
    return "\n".join((*lines, *_git(git_facts(cwd))) if with_git else lines)


@named_value
class Situation:
    """What a call may expect from people and rules."""

    mode: str
    approves: bool = False
    """Whether somebody can approve calls."""
    answers: bool = False
    """Whether somebody can answer questions."""
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    """Rules, as they were written."""


_MODES: Final = {
    "default": "reading in the workspace is allowed, anything else needs an approval or a rule",
    "acceptEdits": "reading and editing in the workspace is allowed, anything else needs an approval or a rule",
    "plan": "nothing may be changed",
    "auto": "a classifier decides what no rule does",
    "dontAsk": "what no rule allows is refused",
    "bypassPermissions": "everything is allowed that no rule denies",
}
MOST_RULES: Final = 12


def describe_situation(situation: Situation) -> str:
    """Who is there, and what is allowed."""
    return "\n".join(_describe_situation(situation))


def _describe_situation(situation: Situation) -> Iterator[str]:
    if situation.answers:
        yield "Person: can answer questions and approve calls"
    elif situation.approves:
        yield "Person: calls can be approved, questions are not answered"
    else:
        yield (
            "Person: nobody is there to answer or to approve a call. The run ends when you end your turn, "
            "and commands in the background end with it; agents in the background are waited for"
        )
    yield f"Permission mode: {situation.mode}" + (f" ({words})" if (words := _MODES.get(situation.mode)) else "")
    for word, rules in (("Allowed", situation.allowed), ("Denied", situation.denied)):
        if rules:
            more = f" and {len(rules) - MOST_RULES:,} more" if len(rules) > MOST_RULES else ""
            yield f"{word} by rules: {', '.join(map(_on_one_line, rules[:MOST_RULES]))}{more}"


def _machine(cwd: str, added: Sequence[str], today: date) -> Iterator[str]:
    system = os.uname()
    yield f"Working directory: {_on_one_line(cwd)}"
    for directory in added:
        yield f"Further directory: {_on_one_line(directory)}"
    yield f"Platform: {system.sysname} {system.release} ({system.machine})"
    yield f"Date: {today.isoformat()}"


def _git(git: GitFacts | None) -> Iterator[str]:
    if git is None:
        yield "Git: not a repository"
        return
    branch = _on_one_line(git.branch) if git.branch else "no branch is checked out"
    yield f"Git: {branch}, repository at {_on_one_line(git.root)}"
    if git.changed is not None:
        yield from _changes("Modified", git.changed.modified)
        yield from _changes("Deleted", git.changed.deleted)
        if not (git.changed.modified or git.changed.deleted):
            yield "No tracked file is modified."
    if git.commits:
        yield "Latest commits:"
        yield from (f"  {_on_one_line(commit)}" for commit in git.commits)


def _changes(word: str, paths: Sequence[str]) -> Iterator[str]:
    if paths:
        named = ", ".join(_on_one_line(path) for path in paths[:MOST_FILES])
        more = f" and {len(paths) - MOST_FILES:,} more" if len(paths) > MOST_FILES else ""
        yield f"{word} files: {named}{more}"


def _on_one_line(text: str) -> str:
    """Names come from the disk: on one line, whatever they contain."""
    return "".join(char if char.isprintable() else "?" for char in text)


_HEADING = (
    "# Instructions of this person and project\n\n"
    "They come from files, in order: later ones are nearer to the work and take precedence. "
    "Follow them wherever they apply to the task."
)
_CODING: Final = frozenset({"How to work", "How to write"})
"""Sections that an output style replaces."""
_MOMENT = "# Where you are\n\nAs it was when this conversation began; it is not updated."


def builtin_prompt(*, with_coding: bool = True) -> str:
    """How to work, for any model and any project; without the coding if a style says how to work instead."""
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    if with_coding:
        return text
    sections = text.split("\n\n# ")
    return "\n\n# ".join(section for section in sections if section.partition("\n")[0] not in _CODING)


def system_prompt(
    *,
    base: str | None = None,
    append: str | None = None,
    style: OutputStyle | None = None,
    instructions: Sequence[Instruction] = (),
    deferred: Iterable[ToolSpec] = (),
    environment: str = "",
) -> str:
    """`base` replaces the built-in instructions, the output style and the facts about the machine."""
    if base is None:
        parts = [builtin_prompt(with_coding=style is None or style.keeps_coding)]
        parts.append(f"# Output style: {_on_one_line(style.name)}\n\n{style.text}" if style else "")
    else:
        parts = [base.strip()]
    parts.append((append or "").strip())
    parts.append(_deferred_tools(deferred))
    parts.append(surroundings(instructions, "" if base is not None else environment))
    return "\n\n".join(part for part in parts if part)


def surroundings(instructions: Sequence[Instruction], environment: str) -> str:
    """What is about this project, then what is about this moment."""
    parts = ["\n\n".join((_HEADING, *map(str, instructions)))] if instructions else []
    if environment:
        parts.append(f"{_MOMENT}\n\n{environment}")
    return "\n\n".join(parts)


def _deferred_tools(specs: Iterable[ToolSpec]) -> str:
    """Names, and the hint of those that have one: ToolSearch has the rest."""
    lines = [f"- {spec.name}: {spec.hint}" if spec.hint else f"- {spec.name}" for spec in specs]
    if not lines:
        return ""
    return "\n".join(("# Further tools\n\nLoad one with ToolSearch before you call it.\n", *lines))
