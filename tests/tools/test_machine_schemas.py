"""What the model is told of the tools for commands, the web and MCP servers. A change is one of every request."""

from __future__ import annotations

from inline_snapshot import snapshot

from tests.requirement import requirement

from .wire_schemas import SCHEMAS


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
      "description": "Time limit in milliseconds: 120,000 by default, at most 600,000."
    },
    "description": {
      "type": "string",
      "description": "What it does, in five to ten words."
    },
    "run_in_background": {
      "default": false,
      "description": "Whether to run it in the background and return its id at once.",
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
      "description": "The id that Bash gave. Omit it to list all of them."
    },
    "filter": {
      "minLength": 1,
      "type": "string",
      "description": "Show only lines that match this regular expression; others are treated as seen."
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
