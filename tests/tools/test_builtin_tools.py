"""That every built-in tool has what it must have."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from ferrule.core.tool import AnyTool
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools import builtin_tools
from tests.requirement import requirement
from tests.tools import (
    test_agent,
    test_ask_user_question,
    test_background_tools,
    test_bash,
    test_edit,
    test_glob,
    test_grep,
    test_mcp_tools,
    test_notebook_edit,
    test_plan_mode,
    test_read,
    test_skill,
    test_todo_write,
    test_tool_search,
    test_web_fetch,
    test_web_search,
    test_write,
)

from .wire_schemas import SCHEMAS

WRITTEN_OUT = (
    "Agent",
    "AskUserQuestion",
    "Bash",
    "CallMcpTool",
    "Edit",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "KillShell",
    "ListMcpResources",
    "NotebookEdit",
    "Read",
    "ReadMcpResource",
    "Skill",
    "TaskOutput",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
)


@requirement("CON-3")
def test_every_builtin_tool_has_its_schema_here() -> None:
    assert list(SCHEMAS) == [tool.name for tool in builtin_tools()] == sorted(WRITTEN_OUT)


@requirement("CON-14")
def test_every_builtin_tool_has_a_contract() -> None:
    modules = (
        test_agent,
        test_ask_user_question,
        test_bash,
        test_background_tools,
        test_edit,
        test_glob,
        test_grep,
        test_mcp_tools,
        test_notebook_edit,
        test_plan_mode,
        test_read,
        test_skill,
        test_todo_write,
        test_tool_search,
        test_web_fetch,
        test_web_search,
        test_write,
    )
    contracts = {
        type(contract().make())
        for module in modules
        for name, contract in vars(module).items()
        if name.startswith("Test")
        and isinstance(contract, type)
        and issubclass(contract, ToolContract)
        and contract is not ToolContract
    }

    assert contracts == {type(tool) for tool in builtin_tools()}


@requirement("CON-4", "LOOP-4")
@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
def test_every_builtin_tool_ships_a_full_guide(tool: object) -> None:
    spec = tool.spec  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]

    assert len(spec.description.split()) >= 60
    assert len(spec.description) > len(spec.summary) + 200


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
