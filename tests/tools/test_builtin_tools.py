"""That every built-in tool has what it must have: a guide, and a test of its contract."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import ferrule.tools
from ferrule.core.tool import AnyTool
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

    assert len(spec.description.split()) >= 40
    assert len(spec.description) > len(spec.summary) + 150


OLD_NAMES = {
    "Read": ("read_file", "FileRead"),
    "Write": ("write_file", "FileWrite"),
    "Edit": ("edit_file", "FileEdit"),
    "Glob": ("list_files",),
    "Grep": ("grep_search",),
    "Bash": ("run_shell",),
    "WebFetch": ("web_fetch",),
    "ToolSearch": ("tool_search",),
    "Skill": ("skill",),
    "Agent": ("agent", "Task"),
    "EnterPlanMode": ("enter_plan_mode",),
    "ExitPlanMode": ("exit_plan_mode",),
    "TaskOutput": ("BashOutput",),
    "KillShell": ("KillBash", "TaskStop"),
    "CallMcpTool": ("McpInput",),
    "ListMcpResources": ("ListMcpResourcesTool",),
    "ReadMcpResource": ("ReadMcpResourceTool",),
}


@requirement("CON-15")
def test_every_old_name_leads_to_its_tool() -> None:
    aliases = {tool.name: {alias.name for alias in tool.aliases} for tool in builtin_tools()}

    assert {name: old for name, old in OLD_NAMES.items() if not aliases[name].issuperset(old)} == {}


@requirement("CON-4")
@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
def test_every_builtin_tool_has_a_schema_of_its_output(tool: AnyTool) -> None:
    schema = tool.output_schema()

    assert schema is not None
    Draft202012Validator.check_schema(schema)
    assert schema.keys() & {"properties", "anyOf", "items"}
