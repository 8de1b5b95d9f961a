"""The system prompt: what never changes first, what is about this project next, what is about this moment last.

It is put together once for each session, so that every request begins with the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core.tool import ToolSpec
from .instruction_loading import Instruction

_HEADING = (
    "# Instructions of this person and project\n\n"
    "They come from files, in order: what stands later is nearer to the work and counts more. "
    "Follow them wherever they apply to the task."
)
_MOMENT = "# Where you are\n\nAs it was when this conversation began; it does not follow what changes."


def builtin_prompt() -> str:
    """How to work, for any model and any project."""
    return Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()


def system_prompt(
    *,
    base: str | None = None,
    append: str | None = None,
    instructions: Sequence[Instruction] = (),
    deferred: Iterable[ToolSpec] = (),
    environment: str = "",
) -> str:
    """`base` stands in the place of the built-in words and of the facts about the machine."""
    parts = [builtin_prompt() if base is None else base.strip()]
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
    return "\n".join(("# Tools that are known by name\n\nLoad one with ToolSearch before you call it.\n", *lines))
