"""The demo: a small project with a bug, and the script of a model that finds it, fixes it and proves it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..core.calls import ToolCall
from ..core.model import CallReady, ModelEvent, Stopped
from ..core.verdicts import Behavior
from ..permissions.rules import Rule, parse_rule
from ..providers.scripted import says, words

PROMPT = "The receipt's total is wrong when there is a discount. Find the bug and fix it."
TEST_BEFORE = "test-before"
TEST_AFTER = "test-after"
"""The calls that run the project's own test."""

_TEST = "{python} -m unittest -q tests.test_receipt"
_BUG = "    return cents - cents * discount_percent\n"
_FIX = "    return cents - cents * discount_percent // 100\n"
_STEPS = ("Run the test to see it fail", "Divide the percentage by 100", "Run the test again")

_FILES = {
    "README.md": "# Receipts\n\nAdds up what was bought. Prices are in cents.\n",
    "shop/__init__.py": "",
    "shop/items.py": """\
from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    name: str
    cents: int
    count: int = 1
""",
    "shop/receipt.py": f'''\
from shop.items import Item


def total(items: list[Item], discount_percent: int = 0) -> int:
    """What is to be paid, in cents."""
    cents = sum(item.cents * item.count for item in items)
{_BUG}''',
    "tests/__init__.py": "",
    "tests/test_receipt.py": """\
import unittest

from shop.items import Item
from shop.receipt import total


class TestTotal(unittest.TestCase):
    def test_a_tenth_off(self) -> None:
        self.assertEqual(total([Item("tea", 500, 2)], discount_percent=10), 900)
""",
}


def make_sample_project(folder: Path) -> None:
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def rules() -> tuple[Rule, ...]:
    """What the person of the demo has allowed: changes and commands in a folder made for it. Nothing outside."""
    return tuple(parse_rule(tool, Behavior.ALLOW, "the demo") for tool in ("Bash", "Edit"))


def script(tools: Collection[str], python: str = "python3") -> list[list[ModelEvent]]:
    """Calls that start while the message streams, calls side by side, one that fails, one refused; then the work."""
    test = _TEST.format(python=python)
    return [
        [
            *words("First the sources and their tests; "),
            CallReady(_call("glob-py", "Glob", pattern="**/*.py")),
            *words("that search runs while I am still writing this, "),
            CallReady(_call("glob-md", "Glob", pattern="*.md")),
            *words("and so does the one for notes."),
            Stopped("tool_use"),
        ],
        says(
            "Reading the code and its test side by side. I'm guessing at one more name, and at a file outside.",
            _call("read-receipt", "Read", file_path="shop/receipt.py"),
            _call("read-items", "Read", file_path="shop/items.py"),
            _call("read-test", "Read", file_path="tests/test_receipt.py"),
            _call("read-guess", "Read", file_path="shop/recipt.py"),
            _call("read-outside", "Read", file_path="/etc/hostname"),
        ),
        says(
            "That name was a slip, and files outside the project need a person's yes. Line 7 multiplies by the "
            f"discount in percent and never divides by 100. The plan: {'; '.join(_STEPS).lower()}.",
            *_plan(tools, done=0),
            _call(TEST_BEFORE, "Bash", command=test, description="Run the failing test"),
        ),
        says(
            "It fails as reported: ten percent off 1000 cents gives -9000. The fix, and the test behind it in the same "
            "message: the test waits until the file is written.",
            _call("fix", "Edit", file_path="shop/receipt.py", old_string=_BUG, new_string=_FIX),
            _call(TEST_AFTER, "Bash", command=test, description="Run the test again"),
            *_plan(tools, done=3),
        ),
        says(
            "Fixed. shop/receipt.py:7 took the discount in percent as a factor; it is divided by 100 now. "
            "tests/test_receipt.py failed before the change and passes after it. Nothing else was touched."
        ),
    ]


def _plan(tools: Collection[str], *, done: int) -> tuple[ToolCall, ...]:
    """The steps as a todo list, if a tool for one is available."""
    if "TodoWrite" not in tools:
        return ()
    states = ["completed"] * done + ["in_progress", "pending", "pending"][: len(_STEPS) - done]
    todos = [{"content": step, "status": state, "activeForm": step} for step, state in zip(_STEPS, states, strict=True)]
    return (_call(f"plan-{done}", "TodoWrite", todos=todos),)


def _call(id: str, name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id, name, arguments)
