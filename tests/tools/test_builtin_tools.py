"""That every built-in tool has what it must have: a guide, and a test of its contract."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import ferrule.tools
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools import BuiltinTool, builtin_tools
from tests.requirement import requirement

SOURCE = Path(ferrule.tools.__file__).parent


@requirement("CON-3")
def test_every_module_of_the_folder_is_a_tool_with_a_guide() -> None:
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}

    assert {type(tool).__module__.rpartition(".")[2] for tool in builtin_tools()} == modules
    assert {path.stem for path in SOURCE.glob("*.md")} == modules


@requirement("CON-14")
def test_every_builtin_tool_has_a_contract() -> None:
    modules = [import_module(f"{__package__}.{path.stem}") for path in Path(__file__).parent.glob("test_*.py")]
    contracts = {
        type(contract().make())
        for module in modules
        for name, contract in vars(module).items()
        if name.startswith("Test")
        and isinstance(contract, type)
        and issubclass(contract, ToolContract)
        and contract is not ToolContract
    }

    assert {type(tool) for tool in builtin_tools()} <= contracts


@requirement("CON-4", "LOOP-4")
@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
def test_every_builtin_tool_ships_a_full_guide(tool: BuiltinTool[Any, Any]) -> None:
    spec = tool.spec

    assert len(spec.description.split()) >= 60
    assert len(spec.description) > len(spec.summary) + 200
