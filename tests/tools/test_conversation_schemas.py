"""What the model is told of the tools that steer a conversation. A change here is a change of every request."""

from __future__ import annotations

from inline_snapshot import snapshot

from tests.requirement import requirement

from .wire_schemas import SCHEMAS


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
      "description": "The whole task, for an agent that knows nothing about it yet.",
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
      "description": "A model to override the default of its kind."
    },
    "run_in_background": {
      "default": false,
      "description": "Whether to return its id at once and continue.",
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
            "description": "A label of one or two words.",
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
      "description": "The arguments of the skill.",
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
            "description": "What to do, in the imperative.",
            "maxLength": 1000,
            "minLength": 1,
            "type": "string"
          },
          "status": {
            "description": "Its status.",
            "enum": [
              "pending",
              "in_progress",
              "completed"
            ],
            "type": "string"
          },
          "activeForm": {
            "default": "",
            "description": "The same in the present continuous.",
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
