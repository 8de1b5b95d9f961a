"""The demo: a small project, and the script of a model that explores it."""

from __future__ import annotations

from pathlib import Path

from ..core.calls import ToolCall
from ..core.model import CallReady, ModelEvent, Stopped
from ..providers.scripted import says, words

PROMPT = "The receipt's total is wrong when there is a discount. Where is the bug?"

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
    "shop/receipt.py": '''\
from shop.items import Item


def total(items: list[Item], discount_percent: int = 0) -> int:
    """What is to be paid, in cents."""
    cents = sum(item.cents * item.count for item in items)
    return cents - cents * discount_percent
''',
    "tests/test_receipt.py": """\
from shop.items import Item
from shop.receipt import total


def test_a_tenth_off() -> None:
    assert total([Item("tea", 500, 2)], discount_percent=10) == 900
""",
}


def make_sample_project(folder: Path) -> None:
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def script() -> list[list[ModelEvent]]:
    """Calls that start while the message streams, calls side by side, one that fails, one refused; then an answer."""
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
            "That name was a slip, and files outside the project need a person's yes. Once more, just the line I need.",
            _call("read-line", "Read", file_path="shop/receipt.py", offset="7", limit="1"),
        ),
        says(
            "Found it. shop/receipt.py, line 7 multiplies by the discount in percent and never divides by 100: "
            "ten percent off 1000 cents takes away 10000. It should be: return cents - cents * discount_percent // 100"
        ),
    ]


def _call(id: str, name: str, **arguments: str) -> ToolCall:
    return ToolCall(id, name, arguments)
