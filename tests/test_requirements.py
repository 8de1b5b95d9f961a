"""What is promised and what is shown agree.

Marks are found in the source of the tests and not by collecting them, so a run
of a few tests judges the same as a run of all.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
MANIFEST = "docs/requirements.toml"
MARK = "requirement"


class State(IntEnum):
    """In the order of progress."""

    OPEN = 0
    PARTIAL = 1
    BUILT = 2


@dataclass(frozen=True, slots=True)
class Mark:
    id: str
    """As it stands in the source: what is no plain text names no requirement."""
    owner: str
    """The function or class it decorates, or `pytestmark`."""
    place: str


def test_every_entry_has_the_form_of_a_requirement() -> None:
    wrong = [f"{id}: {fault}" for id, entry in manifest().items() for fault in faults(id, entry)]

    assert not wrong, listed(f"entries of {MANIFEST} that are not as they should be", wrong)


def test_no_two_requirements_say_the_same() -> None:
    sentences = {id: entry["says"] for id, entry in manifest().items()}
    uses = Counter(sentences.values())

    twice = [f"{id}: {says}" for id, says in sentences.items() if uses[says] > 1]

    assert not twice, listed("requirements that say the same", twice)


def test_every_mark_names_a_requirement_that_exists() -> None:
    known = manifest()

    unknown = [f"{mark.id} at {mark.place}" for mark in all_marks() if mark.id not in known]

    assert not unknown, listed(f"marks that name no requirement of {MANIFEST}", unknown)


def test_every_mark_stands_on_a_test() -> None:
    idle = [f"{mark.id} on {mark.owner} at {mark.place}" for mark in all_marks() if not on_a_test(mark)]

    assert not idle, listed("marks on something that pytest does not run", idle)


def test_every_built_requirement_is_named_by_a_test() -> None:
    named = shown()

    unshown = [id for id, state in states(manifest()).items() if state is State.BUILT and id not in named]

    assert not unshown, listed("requirements that are built and that no test names", unshown)


def test_every_partial_requirement_is_named_by_a_test() -> None:
    named = shown()

    unshown = [id for id, state in states(manifest()).items() if state is State.PARTIAL and id not in named]

    assert not unshown, listed("requirements that are partly built and that no test names", unshown)


def test_no_open_requirement_is_named_by_a_test() -> None:
    state = states(manifest())

    begun = [f"{mark.id} at {mark.place}" for mark in all_marks() if state.get(mark.id) is State.OPEN]

    assert not begun, listed("open requirements that a test names, so they are at least partial", begun)


@pytest.mark.parametrize("revision", ["HEAD", "HEAD~1"])
def test_what_is_not_built_only_shrinks(revision: str) -> None:
    before = tomllib.loads(manifest_at(revision))

    lost = steps_back(states(before), states(manifest()))

    assert not lost, listed(f"steps back since {revision}", lost)


def test_marks_are_found_on_functions_classes_and_modules() -> None:
    source = """
        pytestmark = [pytest.mark.slow, requirement("A-1")]

        @pytest.mark.requirement("A-2", "A-3")
        def test_one(): ...

        class TestSome:
            pytestmark: object = pytest.mark.requirement("A-4")

            @pytest.mark.parametrize("a", [1])
            @requirement("A-5")
            async def test_two(self, a): ...

        @requirement("A-6")
        class TestMore(Contract): ...
    """

    assert [(mark.id, mark.owner, mark.place) for mark in marks_in(dedent(source), "t.py")] == [
        ("A-1", "pytestmark", "t.py:2"),
        ("A-2", "test_one", "t.py:4"),
        ("A-3", "test_one", "t.py:4"),
        ("A-6", "TestMore", "t.py:14"),
        ("A-4", "pytestmark", "t.py:8"),
        ("A-5", "test_two", "t.py:11"),
    ]


@pytest.mark.parametrize("mark", ["@requirement", "@requirement()", "@requirement(ID)", "@pytest.mark.requirement(1)"])
def test_a_mark_without_a_plain_id_names_no_requirement(mark: str) -> None:
    (found,) = marks_in(f"{mark}\ndef test_one(): ...\n", "t.py")

    assert found.id not in manifest()


def test_a_step_back_is_seen_whatever_its_form() -> None:
    before = {"A-1": State.BUILT, "A-2": State.BUILT, "A-3": State.PARTIAL, "A-4": State.OPEN, "A-5": State.OPEN}
    after = {"A-1": State.PARTIAL, "A-3": State.OPEN, "A-4": State.BUILT, "A-5": State.OPEN, "A-6": State.OPEN}

    assert steps_back(before, after) == [
        "A-1 was built and is partial",
        "A-2 was built and is gone",
        "A-3 was partial and is open",
        "A-6 is new and open",
    ]


def manifest() -> dict[str, Any]:
    return tomllib.loads((ROOT / MANIFEST).read_text(encoding="utf-8"))


def manifest_at(revision: str) -> str:
    """The file as committed there; skips where there is no such commit, or no git."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed, so there is no earlier version to compare with")
    # The `./` keeps a copy that lies inside another repository from being compared with that one's file.
    asked = subprocess.run(
        ["git", "show", f"{revision}:./{MANIFEST}"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    if asked.returncode:
        pytest.skip(f"{revision} has no {MANIFEST} to compare with: {asked.stderr.strip()}")
    return asked.stdout


def faults(id: str, entry: Any) -> Iterator[str]:
    if not re.fullmatch(r"[A-Z]+-[1-9][0-9]*", id):
        yield "the id is not of the form AREA-N"
    if not isinstance(entry, dict):
        yield "it is not a table"
        return
    if unknown := entry.keys() - {"says", "state", "missing"}:
        yield f"unknown keys {sorted(unknown)}"
    if not is_text(entry.get("says"), at_least=20):
        yield "`says` has fewer than 20 characters"
    state = entry.get("state")
    if state not in (None, "open", "partial"):
        yield f'`state` is {state!r}; it may be "open" or "partial", or be left out'
    if state == "partial" and not is_text(entry.get("missing"), at_least=20):
        yield "it is partial and `missing` does not tell, in 20 characters or more, what is not built"
    if state != "partial" and "missing" in entry:
        yield "`missing` is for what is partial"


def is_text(value: Any, *, at_least: int) -> bool:
    return isinstance(value, str) and len(value.strip()) >= at_least


def states(entries: Mapping[str, Any]) -> dict[str, State]:
    return {id: State[entry.get("state", "built").upper()] for id, entry in entries.items()}


def steps_back(before: Mapping[str, State], after: Mapping[str, State]) -> list[str]:
    """A requirement that vanishes is a step back, and so is a new one that nobody built."""
    back = [
        f"{id} was {state.name.lower()} and is {after[id].name.lower() if id in after else 'gone'}"
        for id, state in before.items()
        if id not in after or after[id] < state
    ]
    new = [
        f"{id} is new and {state.name.lower()}"
        for id, state in after.items()
        if id not in before and state is not State.BUILT
    ]
    return back + new


def shown() -> set[str]:
    return {mark.id for mark in all_marks() if on_a_test(mark)}


def on_a_test(mark: Mark) -> bool:
    return mark.owner.startswith(("test", "Test")) or mark.owner == "pytestmark"


@cache
def all_marks() -> list[Mark]:
    return [
        mark
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for mark in marks_in(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]


def marks_in(source: str, name: str) -> list[Mark]:
    return [
        Mark(id, owner, f"{name}:{expression.lineno}")
        for node in ast.walk(ast.parse(source, name))
        for owner, expression in marking(node)
        for id in ids(expression)
    ]


def marking(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The expressions by which a node puts marks on tests, each with what it is put on."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            for decorator in node.decorator_list:
                yield node.name, decorator
        case (
            ast.Assign(targets=[ast.Name("pytestmark")], value=value)
            | ast.AnnAssign(target=ast.Name("pytestmark"), value=ast.expr() as value)
        ):
            for expression in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
                yield "pytestmark", expression


def ids(expression: ast.expr) -> list[str]:
    """What a mark names; empty for another mark, and the mark itself where it names nothing."""
    match expression:
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[_, *_] as arguments):
            named = [a.value if is_plain_text(a) else ast.unparse(a) for a in arguments]
        case (
            ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called))
            | ast.Name(id=called)
            | ast.Attribute(attr=called)
        ):
            named = [ast.unparse(expression)]
        case _:
            return []
    return named if called == MARK else []


def is_plain_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def listed(what: str, items: list[str]) -> str:
    return "\n  ".join([f"{len(items)} {what}:", *items])
