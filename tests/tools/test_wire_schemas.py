"""What the model is told of each built-in tool. A change here is a change of every request."""

from __future__ import annotations

import json

import pytest
from inline_snapshot import snapshot

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

SCHEMAS = {tool.name: json.dumps(json.loads(tool.spec.schema_json()), indent=2) for tool in builtin_tools()}
"""Written out, keys in the order in which they are sent."""


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


@requirement("CON-3")
def test_the_schema_of_agent() -> None:
    assert SCHEMAS["Agent"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "description": {
      "description": "The task in three to five words, for people.",
      "maxLength": 200,
      "minLength": 1,
      "type": "string"
    },
    "prompt": {
      "description": "The whole task, for an agent that knows nothing of it yet.",
      "minLength": 1,
      "type": "string"
    },
    "subagent_type": {
      "default": "general-purpose",
      "description": "The kind of agent.",
      "maxLength": 100,
      "minLength": 1,
      "type": "string"
    },
    "model": {
      "minLength": 1,
      "type": "string",
      "description": "Another model than that of its kind."
    },
    "run_in_background": {
      "default": false,
      "description": "Whether to get its id at once and go on.",
      "type": "boolean"
    }
  },
  "required": [
    "description",
    "prompt"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_ask_user_question() -> None:
    assert SCHEMAS["AskUserQuestion"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "questions": {
      "description": "What to ask, all at once.",
      "items": {
        "additionalProperties": false,
        "properties": {
          "question": {
            "description": "The question, whole and with its question mark.",
            "maxLength": 2000,
            "minLength": 1,
            "type": "string"
          },
          "header": {
            "default": "",
            "description": "One or two words that stand for the question.",
            "maxLength": 40,
            "type": "string"
          },
          "options": {
            "description": "The answers to choose from.",
            "items": {
              "additionalProperties": false,
              "properties": {
                "label": {
                  "description": "The answer, in one to five words.",
                  "maxLength": 200,
                  "minLength": 1,
                  "type": "string"
                },
                "description": {
                  "default": "",
                  "description": "What it means, and what follows from it.",
                  "maxLength": 2000,
                  "type": "string"
                },
                "preview": {
                  "default": "",
                  "description": "What it would look like, in Markdown.",
                  "maxLength": 10000,
                  "type": "string"
                }
              },
              "required": [
                "label"
              ],
              "type": "object"
            },
            "maxItems": 4,
            "minItems": 2,
            "type": "array"
          },
          "multiSelect": {
            "default": false,
            "description": "Whether several may be chosen.",
            "type": "boolean"
          }
        },
        "required": [
          "question",
          "options"
        ],
        "type": "object"
      },
      "maxItems": 4,
      "minItems": 1,
      "type": "array"
    }
  },
  "required": [
    "questions"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_enter_plan_mode() -> None:
    assert SCHEMAS["EnterPlanMode"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {},
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_exit_plan_mode() -> None:
    assert SCHEMAS["ExitPlanMode"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "plan": {
      "description": "The plan, in Markdown.",
      "minLength": 1,
      "type": "string"
    }
  },
  "required": [
    "plan"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_skill() -> None:
    assert SCHEMAS["Skill"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "skill": {
      "description": "The name of the skill.",
      "maxLength": 200,
      "minLength": 1,
      "type": "string"
    },
    "args": {
      "default": "",
      "description": "What the skill is given to work on.",
      "maxLength": 20000,
      "type": "string"
    }
  },
  "required": [
    "skill"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_todo_write() -> None:
    assert SCHEMAS["TodoWrite"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "todos": {
      "description": "The whole list, in the order of the work.",
      "items": {
        "additionalProperties": false,
        "properties": {
          "content": {
            "description": "What is to be done, as an order.",
            "maxLength": 1000,
            "minLength": 1,
            "type": "string"
          },
          "status": {
            "description": "How far it is.",
            "enum": [
              "pending",
              "in_progress",
              "completed"
            ],
            "type": "string"
          },
          "activeForm": {
            "default": "",
            "description": "The same as something that is going on.",
            "maxLength": 1000,
            "type": "string"
          }
        },
        "required": [
          "content",
          "status"
        ],
        "type": "object"
      },
      "maxItems": 200,
      "type": "array"
    }
  },
  "required": [
    "todos"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_edit() -> None:
    assert SCHEMAS["Edit"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "file_path": {
      "description": "The file to change.",
      "type": "string"
    },
    "old_string": {
      "description": "The text to replace, exactly as it stands in the file. Empty for a new file.",
      "type": "string"
    },
    "new_string": {
      "description": "The text to put in its place.",
      "type": "string"
    },
    "replace_all": {
      "default": false,
      "description": "Whether to replace every occurrence.",
      "type": "boolean"
    }
  },
  "required": [
    "file_path",
    "old_string",
    "new_string"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_write() -> None:
    assert SCHEMAS["Write"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "file_path": {
      "description": "The file to write.",
      "type": "string"
    },
    "content": {
      "description": "All that the file is to contain.",
      "type": "string"
    }
  },
  "required": [
    "file_path",
    "content"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_glob() -> None:
    assert SCHEMAS["Glob"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "pattern": {
      "description": "What the path must match, such as \\"src/**/*.py\\".",
      "minLength": 1,
      "type": "string"
    },
    "path": {
      "type": "string",
      "description": "The directory to search. Omit for the working directory."
    },
    "include_ignored": {
      "default": false,
      "description": "Whether to find files that git ignores, too.",
      "type": "boolean"
    }
  },
  "required": [
    "pattern"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_grep() -> None:
    assert SCHEMAS["Grep"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "pattern": {
      "description": "The regular expression to look for, in ripgrep's syntax.",
      "minLength": 1,
      "type": "string"
    },
    "path": {
      "type": "string",
      "description": "The file or directory to search. Omit for the working directory."
    },
    "output_mode": {
      "default": "files_with_matches",
      "description": "Paths (files_with_matches), matching lines (content), or how many each file has (count).",
      "enum": [
        "files_with_matches",
        "content",
        "count"
      ],
      "type": "string"
    },
    "glob": {
      "minLength": 1,
      "type": "string",
      "description": "Only files whose path matches, such as \\"*.py\\" or \\"src/**/*.ts\\"; \\"!*.js\\" leaves out."
    },
    "type": {
      "minLength": 1,
      "type": "string",
      "description": "Only files of this type: \\"py\\", \\"js\\", \\"rust\\", \\"go\\" \\u2026"
    },
    "-A": {
      "default": 0,
      "description": "Lines to show after each match, in content mode.",
      "minimum": 0,
      "type": "integer"
    },
    "-B": {
      "default": 0,
      "description": "Lines to show before each match, in content mode.",
      "minimum": 0,
      "type": "integer"
    },
    "-C": {
      "default": 0,
      "description": "Lines to show before and after each match, in content mode.",
      "minimum": 0,
      "type": "integer"
    },
    "-n": {
      "default": true,
      "description": "Whether content mode shows line numbers.",
      "type": "boolean"
    },
    "-i": {
      "default": false,
      "description": "Whether upper and lower case are the same.",
      "type": "boolean"
    },
    "-o": {
      "default": false,
      "description": "Show, or count, each match by itself and not its whole line.",
      "type": "boolean"
    },
    "multiline": {
      "default": false,
      "description": "Whether a match may span lines; `.` then matches newlines.",
      "type": "boolean"
    },
    "head_limit": {
      "default": 250,
      "description": "How many files or lines to give at most; 0 for all.",
      "minimum": 0,
      "type": "integer"
    },
    "offset": {
      "default": 0,
      "description": "How many files or lines to pass over first.",
      "minimum": 0,
      "type": "integer"
    },
    "include_ignored": {
      "default": false,
      "description": "Whether to search files that git ignores, too.",
      "type": "boolean"
    }
  },
  "required": [
    "pattern"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_notebook_edit() -> None:
    assert SCHEMAS["NotebookEdit"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "notebook_path": {
      "description": "The notebook to change, an .ipynb file.",
      "type": "string"
    },
    "cell_id": {
      "type": "string",
      "description": "The cell's id, or its index from 0. To insert: the cell to insert after; omit it for the start."
    },
    "new_source": {
      "type": "string",
      "description": "All that the cell is to contain. Needed unless you delete."
    },
    "cell_type": {
      "enum": [
        "code",
        "markdown",
        "raw"
      ],
      "type": "string",
      "description": "The type of the cell. Needed to insert; otherwise omit it to keep the type."
    },
    "edit_mode": {
      "default": "replace",
      "description": "What to do.",
      "enum": [
        "replace",
        "insert",
        "delete"
      ],
      "type": "string"
    }
  },
  "required": [
    "notebook_path"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_read() -> None:
    assert SCHEMAS["Read"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "file_path": {
      "description": "The file to read.",
      "type": "string"
    },
    "offset": {
      "default": 1,
      "description": "The first line (in a notebook: cell) to read, counted from 1.",
      "minimum": 1,
      "type": "integer"
    },
    "limit": {
      "minimum": 1,
      "type": "integer",
      "description": "How many lines (in a notebook: cells) to read. Omit for as many as fit."
    },
    "pages": {
      "type": "string",
      "description": "Pages of a PDF document, such as \\"3\\" or \\"1-5\\", at most 20 at once."
    }
  },
  "required": [
    "file_path"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_tool_search() -> None:
    assert SCHEMAS["ToolSearch"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "query": {
      "description": "Words to look for, or \\"select:NameA,NameB\\" to take tools by name.",
      "minLength": 1,
      "type": "string"
    },
    "max_results": {
      "default": 5,
      "description": "How many tools to return at most.",
      "maximum": 20,
      "minimum": 1,
      "type": "integer"
    }
  },
  "required": [
    "query"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_bash() -> None:
    assert SCHEMAS["Bash"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "command": {
      "description": "The command, as it would be typed.",
      "minLength": 1,
      "type": "string"
    },
    "timeout": {
      "minimum": 1,
      "type": "integer",
      "description": "Milliseconds it may take: 120,000 unless given, at most 600,000."
    },
    "description": {
      "type": "string",
      "description": "What it does, in five to ten words."
    },
    "run_in_background": {
      "default": false,
      "description": "Whether to let it run beside the conversation and get its id at once.",
      "type": "boolean"
    },
    "ready_pattern": {
      "minLength": 1,
      "type": "string",
      "description": "In the background: first wait until a line of its output matches this regular expression."
    }
  },
  "required": [
    "command"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_kill_shell() -> None:
    assert SCHEMAS["KillShell"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "shell_id": {
      "description": "The id that Bash gave.",
      "minLength": 1,
      "type": "string"
    }
  },
  "required": [
    "shell_id"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_task_output() -> None:
    assert SCHEMAS["TaskOutput"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "task_id": {
      "minLength": 1,
      "type": "string",
      "description": "The id that Bash gave. Without one, all that there are are listed."
    },
    "filter": {
      "minLength": 1,
      "type": "string",
      "description": "Show only lines that match this regular expression; others count as seen."
    },
    "block": {
      "default": true,
      "description": "Whether to wait until it ends, or until `timeout`.",
      "type": "boolean"
    },
    "timeout": {
      "default": 30000,
      "description": "Milliseconds to wait at most.",
      "maximum": 600000,
      "minimum": 0,
      "type": "integer"
    }
  },
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_call_mcp_tool() -> None:
    assert SCHEMAS["CallMcpTool"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "server": {
      "type": "string",
      "description": "The server that has the tool."
    },
    "tool": {
      "description": "The tool's name, as its server has it.",
      "minLength": 1,
      "type": "string"
    },
    "arguments": {
      "additionalProperties": true,
      "description": "What the tool is given.",
      "type": "object"
    }
  },
  "required": [
    "tool"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_list_mcp_resources() -> None:
    assert SCHEMAS["ListMcpResources"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "server": {
      "type": "string",
      "description": "The server to ask. Leave it out to ask all."
    }
  },
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_read_mcp_resource() -> None:
    assert SCHEMAS["ReadMcpResource"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "server": {
      "description": "The server that has it.",
      "minLength": 1,
      "type": "string"
    },
    "uri": {
      "description": "Its URI, as ListMcpResources gives it.",
      "minLength": 1,
      "type": "string"
    }
  },
  "required": [
    "server",
    "uri"
  ],
  "type": "object"
}\
""")


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


@requirement("CON-3")
def test_the_schema_of_web_fetch() -> None:
    assert SCHEMAS["WebFetch"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "url": {
      "description": "The whole URL, such as https://example.com/docs.",
      "minLength": 1,
      "type": "string"
    },
    "prompt": {
      "default": "",
      "description": "What to find out from the page. Omit for the page itself.",
      "type": "string"
    },
    "max_length": {
      "minimum": 1,
      "type": "integer",
      "description": "How many characters of the page to give at most."
    }
  },
  "required": [
    "url"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_web_search() -> None:
    assert SCHEMAS["WebSearch"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "query": {
      "description": "What to search for.",
      "maxLength": 1000,
      "minLength": 2,
      "type": "string"
    },
    "allowed_domains": {
      "default": [],
      "description": "Only results of these domains and below, such as \\"docs.python.org\\".",
      "items": {
        "type": "string"
      },
      "type": "array"
    },
    "blocked_domains": {
      "default": [],
      "description": "No results of these domains and below.",
      "items": {
        "type": "string"
      },
      "type": "array"
    }
  },
  "required": [
    "query"
  ],
  "type": "object"
}\
""")
